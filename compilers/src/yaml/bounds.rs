//! Numbers and durations that must lie within bounds.

use super::Fields;
use crate::diagnostics::Code;

/// The bounds of a number, both inclusive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counts {
    pub(crate) least: u32,
    pub(crate) most: u32,
}

/// Takes a number; reports one outside the bounds.
pub(crate) fn count(fields: &mut Fields<'_>, key: &str, bounds: Counts) -> Option<u32> {
    let at = fields.value_at(key);
    let number = fields.count(key)?;
    let message = match number {
        _ if number < bounds.least => format!("\"{key}\" is at least {}, not {number}", bounds.least),
        _ if number > bounds.most => format!("\"{key}\" is at most {}, not {number}", bounds.most),
        _ => return Some(number),
    };
    let at = at.unwrap_or(fields.at());
    fields.findings().add(at, Code::InvalidValue, message);
    None
}

/// Takes a duration in milliseconds; reports one shorter than `least_ms`, with `hint`.
pub(crate) fn milliseconds(fields: &mut Fields<'_>, key: &str, least_ms: u64, hint: &str) -> Option<u64> {
    let at = fields.value_at(key);
    let time = fields.milliseconds(key)?;
    if time >= least_ms {
        return Some(time);
    }
    let message = format!("\"{key}\" is at least {}", told(least_ms));
    let at = at.unwrap_or(fields.at());
    fields
        .findings()
        .add_with_hint(at, Code::InvalidValue, message, hint);
    None
}

fn told(ms: u64) -> String {
    match ms % 1_000 {
        0 => format!("{}s", ms / 1_000),
        _ => format!("{ms}ms"),
    }
}
