//! Points in time in documents.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A point in time, written as RFC 3339 in UTC with milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(i64);

impl Time {
    /// Returns the current time.
    pub fn now() -> Self {
        Self(Timestamp::now().as_millisecond())
    }

    /// Returns the time at a number of milliseconds since 1970.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Returns the number of milliseconds since 1970.
    pub fn millis(self) -> i64 {
        self.0
    }

    /// Returns the time since `earlier`, in milliseconds; 0 if `earlier` is later.
    pub fn since_ms(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stamp = Timestamp::from_millisecond(self.0).unwrap_or(Timestamp::UNIX_EPOCH);
        write!(f, "{stamp:.3}")
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let stamp: Timestamp = text.parse().map_err(|_| {
            de::Error::custom(format!(
                "\"{text}\" is no time: write one as 2026-01-31T06:00:00Z"
            ))
        })?;
        Ok(Self(stamp.as_millisecond()))
    }
}

impl JsonSchema for Time {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "format": "date-time", "description": "RFC 3339 in UTC"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_in_utc_with_milliseconds_and_read_back() {
        let time = Time::from_millis(1_767_225_600_000);
        let text = serde_json::to_string(&time).unwrap();
        assert_eq!(text, "\"2026-01-01T00:00:00.000Z\"");
        assert_eq!(serde_json::from_str::<Time>(&text).unwrap(), time);
    }
}
