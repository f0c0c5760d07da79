//! Settings in a manifest for all managed resources.

use std::collections::BTreeMap;

use crate::{
    diagnostics::Code,
    yaml::{Fields, keys::blocks},
};

blocks! {
    /// Keys of the block `managers`.
    pub(crate) static MANAGERS = "managers" Refused {
        "at_once": Count, "The most managed resources that are worked on at once; 10.";
        "discover": Block(&DISCOVER), "How things are listed that may belong to no resource.";
    }

    /// Keys of the block `discover`.
    pub(crate) static DISCOVER = "discover" Refused {
        "command": Texts, "The program and its arguments; with a slash in its name it lies below the project's root.";
        "environment": Map(&Text), "Variables of the program; it gets no others but PATH, HOME and LANG.";
    }
}

/// The largest number of managed resources that may be worked on at once.
const AT_ONCE_MAX: u32 = 1_000;

/// Settings for all managed resources; unset ones are none or empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ManagerSettings {
    /// The largest number of managed resources that are worked on at once.
    pub at_once: Option<u32>,
    /// The command that lists the things that exist outside; empty for none.
    pub discover: Vec<String>,
    /// Environment variables of the discovery command, whose values may be templates.
    pub environment: BTreeMap<String, String>,
}

/// Takes the block `managers` of a manifest; without the block, defaults apply.
pub(crate) fn take(fields: &mut Fields<'_>) -> ManagerSettings {
    let Some((map, at)) = fields.map("managers") else {
        return ManagerSettings::default();
    };
    let mut block = Fields::new(map, at, fields.findings());
    let at_once_at = block.value_at("at_once");
    let mut settings = ManagerSettings {
        at_once: block.count("at_once"),
        ..ManagerSettings::default()
    };
    if let (Some(at), Some(count)) = (at_once_at, settings.at_once)
        && !(1..=AT_ONCE_MAX).contains(&count)
    {
        let message = format!("\"at_once\" is a number from 1 to {AT_ONCE_MAX}, not {count}");
        block.findings().add(at, Code::InvalidValue, message);
    }
    if let Some((map, at)) = block.map("discover") {
        let mut discover = Fields::new(map, at, block.findings());
        settings.discover = discover.texts("command").unwrap_or_default();
        settings.environment = discover.text_map("environment");
        if settings.discover.is_empty() {
            let message = "`discover` needs a `command`";
            discover.findings().add(at, Code::MissingKey, message);
        }
        discover.finish(&DISCOVER);
    }
    block.finish(&MANAGERS);
    settings
}
