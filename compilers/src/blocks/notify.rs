//! The block `notify`: receivers of the messages of alerts and reports.

use std::collections::BTreeMap;

use watershed_proto::{MapValue, Notifier, Value};

use super::connector;
use crate::{
    diagnostics::{At, Code, Findings},
    draft::Context,
    yaml::{Fields, keys::blocks},
};

blocks! {
    /// Keys of the block `notify`.
    pub(crate) static NOTIFY = "notify" Refused {
        "email": Block(&EMAIL), "People who are told by e-mail.";
        "slack": Block(&SLACK), "Who is told in Slack.";
        "webhook": Texts, "Connectors of the driver `webhook`.";
        "command": Texts, "Connectors of the driver `command`.";
        "file": Texts, "Connectors of the driver `file`.";
    }

    /// Keys of the block `email`.
    pub(crate) static EMAIL = "email" Refused {
        "recipients": Texts, "E-mail addresses.";
        "connector": Text, "The connector of the mail server; `smtp`.";
        "renotify": Bool, "Whether people are told again while nothing changes." => "renotify";
        "renotify_after": Duration, "How long after they are told again." => "renotify_after";
        "on_recover": Bool, "Whether people are told of a recovery." => "on_recover";
        "on_fail": Bool, "Whether people are told of a failure." => "on_fail";
        "on_error": Bool, "Whether people are told of an error." => "on_error";
    }

    /// Keys of the block `slack`.
    pub(crate) static SLACK = "slack" Refused {
        "users": Texts, "E-mail addresses of users.";
        "channels": Texts, "Channels.";
        "webhooks": Texts, "Addresses of webhooks.";
        "connector": Text, "The connector that holds the bot's token; `slack`.";
    }
}

/// The parsed settings for notifications of an alert or report.
#[derive(Debug, Default)]
pub(crate) struct Notifications {
    pub(crate) notifiers: Vec<Notifier>,
    /// Settings found in the deprecated block `email`.
    pub(crate) legacy: Legacy,
}

/// Settings of an alert from the deprecated block `email`.
#[derive(Debug, Default)]
pub(crate) struct Legacy {
    pub(crate) renotify: Option<bool>,
    pub(crate) renotify_after: Option<u32>,
    pub(crate) on_recover: Option<bool>,
    pub(crate) on_fail: Option<bool>,
    pub(crate) on_error: Option<bool>,
}

/// Takes `notify`, or the deprecated block `email`.
pub(crate) fn take(fields: &mut Fields<'_>, context: &Context<'_>) -> Notifications {
    let mut found = Notifications::default();
    let old_at = fields.key_at("email");
    if let Some((map, at)) = fields.map("email") {
        let mut block = Fields::new(map, at, fields.findings());
        found.legacy = Legacy {
            renotify: block.bool("renotify"),
            renotify_after: block.seconds("renotify_after"),
            on_recover: block.bool("on_recover"),
            on_fail: block.bool("on_fail"),
            on_error: block.bool("on_error"),
        };
        found.notifiers.extend(email(&mut block, at, context));
        block.finish(&EMAIL);
    }
    let Some((map, at)) = fields.map("notify") else {
        return found;
    };
    let mut block = Fields::new(map, at, fields.findings());
    let email_at = block.key_at("email");
    if let Some((map, at)) = block.map("email") {
        let mut inner = Fields::new(map, at, block.findings());
        if let (Some(one), Some(other)) = (old_at, email_at)
            && !found.notifiers.is_empty()
            && inner.has("recipients")
        {
            let message = "people are told by e-mail in two ways: `email` and `notify.email`";
            let hint = Some("keep `notify.email`, with all recipients");
            let (first, second) = (one.min(other), one.max(other));
            inner
                .findings()
                .add_second(second, Some(first), Code::ConflictingKeys, message, hint);
        }
        found.notifiers.extend(email(&mut inner, at, context));
        inner.finish(&EMAIL);
    }
    if let Some((map, at)) = block.map("slack") {
        let mut inner = Fields::new(map, at, block.findings());
        found.notifiers.extend(slack(&mut inner, at, context));
        inner.finish(&SLACK);
    }
    for way in CONNECTORS {
        for (name, at) in block.placed_texts(way) {
            check_connector(&name, way, at, context, block.findings());
            found.notifiers.push(notifier(way, &name, []));
        }
    }
    block.finish(&NOTIFY);
    found
}

/// Notifiers whose entries are names of connectors of the same driver.
const CONNECTORS: [&str; 3] = ["webhook", "command", "file"];

fn email(fields: &mut Fields<'_>, at: At, context: &Context<'_>) -> Option<Notifier> {
    let recipients = addresses(fields, "recipients");
    let connector = connector_of(fields, at, "smtp", !recipients.is_empty(), context);
    (!recipients.is_empty()).then(|| notifier("email", &connector, [("recipients", recipients)]))
}

fn slack(fields: &mut Fields<'_>, at: At, context: &Context<'_>) -> Option<Notifier> {
    let users = addresses(fields, "users");
    let channels = fields.texts("channels").unwrap_or_default();
    let webhooks = fields.texts("webhooks").unwrap_or_default();
    // A webhook needs none: its address is all.
    let needs_connector = !users.is_empty() || !channels.is_empty();
    let connector = connector_of(fields, at, "slack", needs_connector, context);
    let somebody = needs_connector || !webhooks.is_empty();
    let all = [("users", users), ("channels", channels), ("webhooks", webhooks)];
    somebody.then(|| notifier("slack", &connector, all))
}

/// Takes the connector of a notifier; without one, returns the name of its driver.
fn connector_of(
    fields: &mut Fields<'_>,
    at: At,
    driver: &str,
    is_used: bool,
    context: &Context<'_>,
) -> String {
    if let Some((name, at)) = fields.placed_texts("connector").pop() {
        if is_used {
            check_connector(&name, driver, at, context, fields.findings());
        }
        return name;
    }
    if is_used && !context.drivers.contains_key(driver) {
        let message = format!("no connector \"{driver}\" is declared, so messages wait for one");
        let hint = format!("declare it in `connectors/{driver}.yaml` with `driver: {driver}`");
        fields
            .findings()
            .add_with_hint(at, Code::MissingRef, message, hint);
    }
    driver.to_owned()
}

/// Reports a connector that is undeclared or has another driver than the notifier needs.
fn check_connector(name: &str, driver: &str, at: At, context: &Context<'_>, findings: &mut Findings) {
    if crate::template::is_template(name) {
        return;
    }
    match context.drivers.get(name) {
        Some(found) if found == driver => {}
        Some(found) => {
            let message = format!("connector \"{name}\" has the driver `{found}`, not `{driver}`");
            findings.add(at, Code::InvalidValue, message);
        }
        None => {
            let suitable = context.drivers.iter().filter(|(_, found)| *found == driver);
            let declare = format!("declare it in `connectors/{name}.yaml` with `driver: {driver}`");
            connector::unknown(
                name,
                at,
                suitable.map(|(name, _)| name.as_str()),
                declare,
                findings,
            );
        }
    }
}

/// Takes a list of e-mail addresses; entries with templates are not checked.
fn addresses(fields: &mut Fields<'_>, key: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (text, at) in fields.placed_texts(key) {
        let is_address = crate::template::is_template(&text)
            || text
                .split_once('@')
                .is_some_and(|(user, host)| !user.is_empty() && host.contains('.') && !text.contains(' '));
        if !is_address {
            let message = format!("\"{text}\" is no e-mail address");
            fields.findings().add(at, Code::InvalidValue, message);
        }
        found.push(text);
    }
    found
}

fn notifier<const N: usize>(way: &str, connector: &str, properties: [(&str, Vec<String>); N]) -> Notifier {
    let list = |names: Vec<String>| Value::from(names.into_iter().map(Value::from).collect::<Vec<_>>());
    let said = properties.into_iter().filter(|(_, names)| !names.is_empty());
    let mut fields: BTreeMap<_, _> = said.map(|(key, names)| (key.to_owned(), list(names))).collect();
    fields.insert("connector".to_owned(), Value::from(connector));
    Notifier {
        connector: way.to_owned(),
        properties: Some(MapValue { fields }),
    }
}
