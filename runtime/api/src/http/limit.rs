//! The maximum number of entries in an answer.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};

/// Maximum number of entries in an answer: `USUAL` by default, otherwise from `LEAST` to `MOST`.
///
/// A number out of range is refused. If it were reduced, a caller could take a part of the answer for the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit<const USUAL: u64, const MOST: u64, const LEAST: u64 = 1>(u64);

impl<const USUAL: u64, const MOST: u64, const LEAST: u64> Limit<USUAL, MOST, LEAST> {
    /// Returns the maximum number of entries.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl<const USUAL: u64, const MOST: u64, const LEAST: u64> Default for Limit<USUAL, MOST, LEAST> {
    fn default() -> Self {
        Self(USUAL)
    }
}

impl<'de, const USUAL: u64, const MOST: u64, const LEAST: u64> Deserialize<'de>
    for Limit<USUAL, MOST, LEAST>
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Option::<u64>::deserialize(deserializer)? {
            None => Ok(Self::default()),
            Some(number) if (LEAST..=MOST).contains(&number) => Ok(Self(number)),
            Some(number) => Err(de::Error::custom(format!(
                "`limit` takes {LEAST} to {MOST}, and {number} is beyond that"
            ))),
        }
    }
}

impl<const USUAL: u64, const MOST: u64, const LEAST: u64> JsonSchema for Limit<USUAL, MOST, LEAST> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Limit{MOST}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["integer", "null"], "minimum": LEAST, "maximum": MOST, "default": USUAL })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s_api10_a_number_beyond_the_bound_is_refused_with_the_bound() {
        let read = |text: &str| serde_json::from_str::<Limit<100, 1_000>>(text).map(Limit::get);
        assert_eq!(read("null").unwrap(), 100);
        assert_eq!(read("1").unwrap(), 1);
        assert_eq!(read("1000").unwrap(), 1_000);
        for beyond in ["0", "1001", "18446744073709551615"] {
            assert!(
                read(beyond).unwrap_err().to_string().contains("1 to 1000"),
                "{beyond}"
            );
        }
        assert_eq!(
            serde_json::from_str::<Limit<100, 1_000, 0>>("0").unwrap().get(),
            0
        );
    }
}
