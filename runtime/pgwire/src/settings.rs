//! Settings of a session: what clients ask for, and what little of it they can change.

use crate::state::{BAD_VALUE, SqlError};

/// The version of Postgres whose protocol and types are spoken.
const VERSION: &str = "16.0";

/// Settings that are told as a session begins, with what they are.
pub(crate) const TOLD: [(&str, &str); 8] = [
    ("server_version", VERSION),
    ("server_encoding", "UTF8"),
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO, YMD"),
    ("IntervalStyle", "postgres"),
    ("TimeZone", "UTC"),
    ("integer_datetimes", "on"),
    ("standard_conforming_strings", "on"),
];

/// Settings that are told when somebody asks.
const ASKED: [(&str, &str); 12] = [
    ("server_version_num", "160000"),
    ("transaction_isolation", "read committed"),
    ("default_transaction_isolation", "read committed"),
    ("transaction_read_only", "on"),
    ("default_transaction_read_only", "on"),
    ("in_hot_standby", "off"),
    ("is_superuser", "off"),
    ("search_path", "main"),
    ("extra_float_digits", "1"),
    ("bytea_output", "hex"),
    ("max_identifier_length", "63"),
    ("statement_timeout", "0"),
];

/// Settings that decide how values look, with the only values that they take.
const FIXED: [(&str, &[&str]); 5] = [
    ("client_encoding", &["utf8", "utf-8", "unicode"]),
    ("timezone", &["utc", "etc/utc", "gmt", "z", "default"]),
    ("standard_conforming_strings", &["on", "true", "1"]),
    ("intervalstyle", &["postgres"]),
    ("bytea_output", &["hex"]),
];

/// Returns the value of a setting; none if there is no such setting.
pub(crate) fn get(name: &str) -> Option<&'static str> {
    let all = TOLD.iter().chain(&ASKED);
    let mut found = all.filter(|(own, _)| own.eq_ignore_ascii_case(name));
    found.next().map(|(_, value)| *value)
}

/// Accepts a setting. Those that would change how values look take what they are; others change nothing for a reader.
///
/// # Errors
/// For a value that would not be kept.
pub(crate) fn check(name: &str, value: &str) -> Result<(), SqlError> {
    let fixed = FIXED.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
    let value = value.trim().trim_matches('\'').to_ascii_lowercase();
    match fixed {
        Some((own, values)) if !values.contains(&value.as_str()) => {
            let message = format!("`{own}` can't be `{value}` here");
            Err(SqlError::new(BAD_VALUE, message).hint(format!("it is `{}`", values[0])))
        }
        _ => Ok(()),
    }
}
