//! Themes: colours, in a file of their own or inside a dashboard.

mod colours;

use std::collections::BTreeMap;

use watershed_proto::ThemeSpec;

use crate::{
    diagnostics::{At, Code},
    draft::Context,
    kinds::reader::{Declared, Reader},
    resource::{Kind, Spec},
    text::names,
    yaml::{Data, Fields, Map, keys::blocks, misspelled, unknown_key},
};

blocks! {
    /// Keys that a theme accepts at its top level.
    pub(crate) static THEME = "theme" Kept {
        "light": Map(&Text), "Colours on a light ground, by variable.";
        "dark": Map(&Text), "Colours on a dark ground, by variable.";
        "colors": Block(&COLORS), "The primary and the secondary colour." => "light";
    }

    /// Keys of the deprecated block `colors`.
    pub(crate) static COLORS = "colors" Kept {
        "primary": Text, "The primary colour.";
        "secondary": Text, "The secondary colour.";
    }
}

/// Reads a theme from its settings.
pub(crate) fn read(reader: &mut Reader<'_, '_>) -> Declared {
    reader.refuse_sql(Kind::Theme);
    let spec = spec(&mut reader.fields);
    for (key, entry) in reader.fields.take_rest() {
        misspelled(reader.fields.findings(), &key, entry.key_at, &THEME);
    }
    Declared::new(Spec::Theme(Box::new(spec)))
}

/// Takes the theme of a dashboard: a name, by default the manifest's, or colours.
pub(crate) fn take(fields: &mut Fields<'_>, context: &Context<'_>) -> (String, Option<ThemeSpec>) {
    let Some(entry) = fields.take("theme") else {
        return (context.manifest.theme.clone(), None);
    };
    let node = entry.value;
    match node.data {
        Data::Map(map) => {
            let mut block = Fields::new(map, entry.key_at, fields.findings());
            let theme = spec(&mut block);
            block.take("display_name");
            for (key, entry) in block.take_rest() {
                unknown_key(block.findings(), &key, entry.key_at, &THEME);
            }
            (String::new(), Some(theme))
        }
        _ if node.scalar_text().is_some() => (node.scalar_text().unwrap_or_default(), None),
        other => {
            let message = format!(
                "\"theme\" takes a theme's name or its colours, not {}",
                other.type_name()
            );
            fields.findings().add(node.at, Code::WrongType, message);
            (String::new(), None)
        }
    }
}

fn spec(fields: &mut Fields<'_>) -> ThemeSpec {
    fields.deprecations(&THEME);
    let legacy_at = fields.key_at("colors");
    let legacy = fields.map("colors").map(|(map, at)| colours(map, at, fields));
    let mut side = |key: &str| {
        let block = fields.map(key);
        let known = block.map(|(map, at)| colours(map, at, fields));
        known.unwrap_or_default()
    };
    let (light, dark) = (side("light"), side("dark"));
    if let (Some(at), false) = (legacy_at, light.is_empty() && dark.is_empty()) {
        let message = "`colors` is the older form of `light` and `dark`: use one of the two";
        fields.findings().add(at, Code::ConflictingKeys, message);
    }
    let mut legacy = legacy.unwrap_or_default();
    ThemeSpec {
        primary_color: legacy.remove("primary").unwrap_or_default(),
        secondary_color: legacy.remove("secondary").unwrap_or_default(),
        light,
        dark,
        ..ThemeSpec::default()
    }
}

/// Reads colours by variable; deprecated names of variables are replaced.
fn colours(map: Map, _: At, fields: &mut Fields<'_>) -> BTreeMap<String, String> {
    let findings = fields.findings();
    let mut found = BTreeMap::new();
    for (name, entry) in map {
        let Some(text) = entry.value.scalar_text() else {
            let message = format!("\"{name}\" takes a colour, not {}", entry.value.data.type_name());
            findings.add(entry.value.at, Code::WrongType, message);
            continue;
        };
        if !colours::is_variable(&name) {
            let message = format!("\"{name}\" is no variable of a theme");
            match names::nearest(&name, colours::VARIABLES) {
                Some(near) => {
                    let hint = format!("did you mean `{near}`?");
                    findings.add_with_hint(entry.key_at, Code::UnknownKey, message, hint);
                }
                None => findings.add(entry.key_at, Code::UnknownKey, message),
            }
            continue;
        }
        if name != "radius" && !colours::is_colour(&text) {
            let message = format!("\"{text}\" is no colour");
            let hint = "write `#1f6feb`, `rgb(31, 111, 235)`, `hsl(212, 84%, 52%)`, or a name such as `teal`";
            findings.add_with_hint(entry.value.at, Code::InvalidValue, message, hint);
        }
        let present = colours::renamed(&name);
        if let [only] = present
            && *only != name
        {
            let message = format!("variable \"{name}\" has a newer name");
            findings.add_with_hint(
                entry.key_at,
                Code::DeprecatedKey,
                message,
                format!("use `{only}`"),
            );
        }
        for variable in present {
            found.insert((*variable).to_owned(), text.clone());
        }
        if present.is_empty() {
            found.insert(name, text);
        }
    }
    found
}
