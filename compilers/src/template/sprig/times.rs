//! Template functions on times: RFC 3339 texts, and layouts of Go.

use gotmpl::Value;
use jiff::{SignedDuration, Timestamp, Zoned, civil, tz::TimeZone};

use crate::template::values::text;

pub(super) fn stamp(at: Timestamp) -> Value {
    at.to_string().into()
}

/// Parses a time: RFC 3339, a date, or seconds since 1970.
pub(super) fn timestamp(value: &Value) -> Option<Timestamp> {
    let written = text(value);
    if let Ok(seconds) = written.parse::<i64>() {
        return Timestamp::from_second(seconds).ok();
    }
    let civil = || {
        written
            .parse::<civil::DateTime>()
            .ok()?
            .to_zoned(TimeZone::UTC)
            .ok()
    };
    written
        .parse()
        .ok()
        .or_else(|| civil().map(|zoned: Zoned| zoned.timestamp()))
}

pub(super) fn formatted(layout: String, at: &Value) -> Option<Value> {
    in_zone(&layout, at, "UTC")
}

pub(super) fn in_zone(layout: &str, at: &Value, zone: &str) -> Option<Value> {
    let zone = if zone.is_empty() || zone == "UTC" {
        TimeZone::UTC
    } else {
        TimeZone::get(zone).ok()?
    };
    let zoned = timestamp(at)?.to_zoned(zone);
    jiff::fmt::strtime::format(strftime(layout), &zoned)
        .ok()
        .map(Into::into)
}

/// Returns a time shifted by a duration such as `-24h`.
pub(super) fn moved(by: &str, at: &Value) -> Option<Value> {
    let (sign, written) = match by.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, by.strip_prefix('+').unwrap_or(by)),
    };
    let by: SignedDuration = written.parse().ok()?;
    timestamp(at)?.checked_add(by.checked_mul(sign)?).ok().map(stamp)
}

/// Converts a time layout of Go to a format of `strftime`.
pub(super) fn strftime(layout: &str) -> String {
    const PARTS: [(&str, &str); 22] = [
        ("2006", "%Y"),
        ("January", "%B"),
        ("Monday", "%A"),
        ("-07:00", "%:z"),
        ("Z07:00", "%:z"),
        ("-0700", "%z"),
        ("Jan", "%b"),
        ("Mon", "%a"),
        ("MST", "%Z"),
        (".000000", ".%6f"),
        (".000", ".%3f"),
        ("01", "%m"),
        ("02", "%d"),
        ("_2", "%e"),
        ("15", "%H"),
        ("03", "%I"),
        ("04", "%M"),
        ("05", "%S"),
        ("06", "%y"),
        ("PM", "%p"),
        ("pm", "%P"),
        ("%", "%%"),
    ];
    let mut format = String::new();
    let mut rest = layout;
    while let Some(first) = rest.chars().next() {
        match PARTS.iter().find(|(part, _)| rest.starts_with(part)) {
            Some((part, by)) => {
                format.push_str(by);
                rest = rest.strip_prefix(part).unwrap_or_default();
            }
            None => {
                format.push(first);
                rest = rest.get(first.len_utf8()..).unwrap_or_default();
            }
        }
    }
    format
}
