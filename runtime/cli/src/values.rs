//! Types of option values, whose errors say what is accepted.

use std::num::NonZeroUsize;
use std::str::FromStr;
use std::time::Duration;

use watershed_api::documents::{Outcome, Time};
use watershed_callers::Grant;
use watershed_compilers::parse_size;

/// A value `KEY=VALUE` of `--env`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Variable {
    pub key: String,
    pub value: String,
}

impl FromStr for Variable {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((key, value)) = text.split_once('=') else {
            return Err(format!(
                "no `=` in it; for the environment write `--environment {text}`"
            ));
        };
        let mut chars = key.chars();
        let starts_well = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        if !starts_well || !chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.') {
            return Err(format!(
                "`{key}` is not a valid variable name; use letters, digits, `_` and `.`"
            ));
        }
        Ok(Self {
            key: key.to_owned(),
            value: value.to_owned(),
        })
    }
}

/// The argument `desired=STAGE` of `set`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Desired(pub String);

impl FromStr for Desired {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some(("desired", stage)) if !stage.is_empty() => Ok(Self(stage.to_owned())),
            _ => Err("`desired=` with the name of a stage was expected".to_owned()),
        }
    }
}

/// An argument `NAME=VALUE` of `call`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Argument {
    /// Name of the argument.
    pub name: String,
    /// Value of the argument: parsed as JSON if it is a number, a boolean, a list or a mapping, otherwise text.
    pub value: serde_json::Value,
}

impl FromStr for Argument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => (name.to_owned(), value),
            _ => return Err("`NAME=VALUE` was expected".to_owned()),
        };
        let value = match serde_json::from_str(value) {
            Ok(
                read @ (serde_json::Value::Array(_)
                | serde_json::Value::Object(_)
                | serde_json::Value::Bool(_)),
            ) => read,
            // A number that JSON writes in another way, as `007`, is a text.
            Ok(serde_json::Value::Number(number)) if number.to_string() == value => number.into(),
            _ => value.into(),
        };
        Ok(Self { name, value })
    }
}

/// A role on an instance, `INSTANCE=ROLE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InstanceRole {
    pub instance: String,
    pub role: Grant,
}

impl FromStr for InstanceRole {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = text.split_once('=').filter(|(instance, _)| !instance.is_empty());
        let (instance, role) = named.ok_or("`INSTANCE=ROLE` was expected, such as `shop=operate`")?;
        Ok(Self {
            instance: instance.to_owned(),
            role: role.parse::<Grant>().map_err(|error| error.to_string())?,
        })
    }
}

/// A limit of concurrency, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limit(NonZeroUsize);

/// Largest limit of concurrency: more than any machine has, so a larger one is most likely a typing error.
const MOST: usize = 1024;

impl Limit {
    pub(super) fn get(self) -> NonZeroUsize {
        self.0
    }
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<NonZeroUsize>() {
            Ok(number) if number.get() <= MOST => Ok(Self(number)),
            _ => Err(format!("a whole number from 1 to {MOST} was expected")),
        }
    }
}

/// A number of replicas; none for the number in the service's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Replicas(pub Option<u32>);

impl FromStr for Replicas {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("file", _) => Ok(Self(None)),
            (_, Ok(number)) => Ok(Self(Some(number))),
            _ => Err("a whole number or `file` was expected".to_owned()),
        }
    }
}

/// A length of time, as typed: `10s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wait(pub Duration);

impl FromStr for Wait {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "0" {
            return Ok(Self(Duration::ZERO));
        }
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(format!("the unit is missing; `{text}s` is {text} seconds"));
        }
        let expected = || "a length of time such as `500ms`, `30s`, `5m` or `1h30m` was expected".to_owned();
        let span: jiff::SignedDuration = text.parse().map_err(|_| expected())?;
        Duration::try_from(span).map(Self).map_err(|_| expected())
    }
}

/// A time in the past: as given, or a length of time before now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Since(pub Time);

impl FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let utc =
            |time: jiff::civil::DateTime| Some(time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp());
        let given = text.parse::<jiff::Timestamp>().ok();
        // In the zone in which times are shown.
        let given = given.or_else(|| utc(text.parse().ok()?));
        if let Some(time) = given {
            return Ok(Self(Time::from_millis(time.as_millisecond())));
        }
        let Wait(span) = text.parse::<Wait>().map_err(|error| {
            if error.starts_with("the unit") {
                return error;
            }
            "a length of time such as `30s` or `1h30m`, or a time in UTC such as `2026-11-25 14:30`, was expected"
                .to_owned()
        })?;
        let span = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Ok(Self(Time::from_millis(Time::now().millis().saturating_sub(span))))
    }
}

/// A number of bytes, as typed: `512MB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size(pub u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let size = parse_size(text).filter(|bytes| *bytes > 0);
        size.map(Self)
            .ok_or_else(|| "a size such as `512MB`, `4GB` or `2GiB` was expected".to_owned())
    }
}

/// Reads an outcome of runs.
pub(super) fn outcome(typed: &str) -> Result<Outcome, String> {
    const ALL: [Outcome; 6] = [
        Outcome::Done,
        Outcome::Failed,
        Outcome::Skipped,
        Outcome::Cancelled,
        Outcome::Unchanged,
        Outcome::NotSelected,
    ];
    let known = ALL.into_iter().find(|outcome| outcome.as_str() == typed);
    known.ok_or_else(|| format!("one of {}", ALL.map(Outcome::as_str).join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_without_equals_says_environment() {
        let error = "prod".parse::<Variable>().unwrap_err();
        assert!(error.contains("--environment prod"), "{error}");
    }

    #[test]
    fn a_value_may_hold_equals_signs_and_be_empty() {
        let variable: Variable = "a.b=x=y".parse().unwrap();
        assert_eq!((variable.key.as_str(), variable.value.as_str()), ("a.b", "x=y"));
        assert_eq!("a=".parse::<Variable>().unwrap().value, "");
        assert!("1a=x".parse::<Variable>().is_err());
        assert!("=x".parse::<Variable>().is_err());
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!("1h30m".parse::<Wait>().unwrap().0, Duration::from_secs(5400));
        assert_eq!("500ms".parse::<Wait>().unwrap().0, Duration::from_millis(500));
        assert!("30".parse::<Wait>().unwrap_err().contains("`30s`"));
        assert!("-5s".parse::<Wait>().is_err());
        assert!("soon".parse::<Wait>().is_err());
    }

    #[test]
    fn a_moment_is_given_or_so_long_ago() {
        let at = |text: &str| text.parse::<Since>().map(|since| since.0.to_string());
        for text in [
            "2026-11-25T14:30:00Z",
            "2026-11-25T15:30:00+01:00",
            "2026-11-25 14:30",
        ] {
            assert_eq!(at(text).as_deref(), Ok("2026-11-25T14:30:00.000Z"), "{text}");
        }
        assert_eq!(at("2026-11-25").as_deref(), Ok("2026-11-25T00:00:00.000Z"));
        let Since(hour) = "1h".parse().unwrap();
        let ago = Time::now().since_ms(hour);
        assert!((3_600_000..3_660_000).contains(&ago), "{ago}");
        assert!("30".parse::<Since>().unwrap_err().contains("`30s`"));
        for text in ["yesterday", "", "25.11.2026", "-1h"] {
            assert!(text.parse::<Since>().unwrap_err().contains("1h30m"), "{text}");
        }
    }

    #[test]
    fn sizes_know_both_families_of_units() {
        assert_eq!("2GB".parse::<Size>().unwrap().0, 2_000_000_000);
        assert_eq!("1.5 GiB".parse::<Size>().unwrap().0, 1_610_612_736);
        assert!("2".parse::<Size>().is_err());
        assert!("-1GB".parse::<Size>().is_err());
        assert!("GB".parse::<Size>().is_err());
    }

    #[test]
    fn limits_begin_at_one() {
        assert_eq!("8".parse::<Limit>().unwrap().get().get(), 8);
        assert!("0".parse::<Limit>().is_err());
        assert!("many".parse::<Limit>().is_err());
    }
}
