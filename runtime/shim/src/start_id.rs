//! Start ids, each the identity of one start of a program.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest uid in bytes. A UUID has 36, and pages of starts stay within one frame.
pub const MAX_UID: usize = 64;

/// The identity of a start: the uid of its resource, and a counter that the owner stored before the start.
///
/// Written as `uid:counter`. A uid has letters, digits, `-` and `_`, as it also stands in the environment and in
/// names of folders.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StartId {
    uid: Box<str>,
    counter: u64,
}

/// The error of a text that is no start id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no start id: expected `uid:counter` with a uid of 1 to {MAX_UID} letters, digits, `-` and `_`"
)]
pub struct BadStartId(String);

impl StartId {
    /// Creates a start id.
    ///
    /// # Errors
    /// When the uid is empty, too long or has other characters than letters, digits, `-` and `_`.
    pub fn new(uid: &str, counter: u64) -> Result<Self, BadStartId> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if uid.is_empty() || uid.len() > MAX_UID || !uid.bytes().all(is_allowed) {
            let shown: String = uid.chars().take(MAX_UID).collect();
            return Err(BadStartId(format!("{shown}:{counter}")));
        }
        Ok(Self {
            uid: uid.into(),
            counter,
        })
    }

    /// Returns the uid of the started resource.
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// Returns the number of the start.
    pub fn counter(&self) -> u64 {
        self.counter
    }
}

impl fmt::Display for StartId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.uid, self.counter)
    }
}

impl FromStr for StartId {
    type Err = BadStartId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || BadStartId(text.chars().take(2 * MAX_UID).collect());
        let (uid, counter) = text.split_once(':').ok_or_else(bad)?;
        Self::new(uid, counter.parse().map_err(|_| bad())?)
    }
}

impl TryFrom<String> for StartId {
    type Error = BadStartId;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<StartId> for String {
    fn from(id: StartId) -> Self {
        id.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_id_is_read_as_it_is_written_and_nothing_else_is_one() {
        let id = StartId::new("0190-a_b", 7).unwrap();
        assert_eq!(id.to_string().parse::<StartId>().unwrap(), id);
        for wrong in ["", "a", ":1", "a:", "a:-1", "a/b:1", "a b:1", "a:1:2", "é:1"] {
            assert!(wrong.parse::<StartId>().is_err(), "{wrong}");
        }
        assert!(StartId::new(&"x".repeat(MAX_UID + 1), 1).is_err());
    }
}
