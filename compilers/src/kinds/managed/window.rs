//! The time window in which a managed resource is wanted.

use jiff::civil::DateTime;
use watershed_proto::ManagedWindow;

use super::keys::WINDOW;
use crate::{blocks::schedule, diagnostics::Code, yaml::Fields};

/// The default preparation time before the start of a window, in milliseconds.
const LEAD_MS: u64 = 15 * 60 * 1_000;
/// The default cleanup time after the end of a window, in milliseconds.
const TEARDOWN_MS: u64 = 10 * 60 * 1_000;

/// Takes the block `window`.
pub(super) fn take(fields: &mut Fields<'_>) -> Option<ManagedWindow> {
    let (map, at) = fields.map("window")?;
    let mut block = Fields::new(map, at, fields.findings());
    let is_once = block.has("start") || block.has("end");
    let is_recurring = block.has("cron") || block.has("duration");
    let is_whole = (block.has("start") && block.has("end")) || (block.has("cron") && block.has("duration"));
    if is_once && is_recurring {
        let message = "a window says `start` and `end`, or `cron` and `duration`, not both";
        block.findings().add(at, Code::ConflictingKeys, message);
    } else if !is_whole {
        let message = "a window needs `start` and `end`, or `cron` and `duration`";
        block.findings().add(at, Code::MissingKey, message);
    }
    let end_at = block.value_at("end");
    let (start, end) = (local_time(&mut block, "start"), local_time(&mut block, "end"));
    if let (Some((start, _)), Some((end, _)), Some(at)) = (&start, &end, end_at)
        && end <= start
    {
        let message = "the end of a window must be later than its start";
        block.findings().add(at, Code::InvalidValue, message);
    }
    let cron_at = block.value_at("cron");
    let times = schedule::cron_and_zone(&mut block);
    if let Some(at) = cron_at.filter(|_| times.every_ms.is_some()) {
        let message = "a window begins at times of the clock, and `@every` says none";
        block.findings().add(at, Code::InvalidValue, message);
    }
    let window = ManagedWindow {
        start: start.map(|(_, text)| text).unwrap_or_default(),
        end: end.map(|(_, text)| text).unwrap_or_default(),
        cron: times.cron.unwrap_or_default(),
        duration_ms: block.milliseconds("duration").unwrap_or_default(),
        time_zone: times.time_zone.unwrap_or_default(),
        lead_ms: block.milliseconds("lead").unwrap_or(LEAD_MS),
        teardown_ms: block.milliseconds("teardown").unwrap_or(TEARDOWN_MS),
    };
    block.finish(&WINDOW);
    Some(window)
}

/// Takes a local time, together with its text.
fn local_time(block: &mut Fields<'_>, key: &str) -> Option<(DateTime, String)> {
    let node = block.text_node(key)?;
    let text = node.scalar_text().unwrap_or_default();
    if let Ok(time) = text.parse() {
        return Some((time, text));
    }
    let message = format!("\"{text}\" is no local time");
    let hint = "write one such as `2027-03-01T09:00`, and the zone under `time_zone`";
    block
        .findings()
        .add_with_hint(node.at, Code::InvalidValue, message, hint);
    None
}
