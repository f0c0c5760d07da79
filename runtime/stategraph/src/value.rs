//! The requirements on an item's value.

use std::fmt;
use std::io;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::field::FieldPath;

/// The value of an item, which only the embedder's handlers understand.
///
/// Values are compared (equal items are left alone), stored with their graph, and looked into by
/// predicates. The two provided methods go through the value's JSON form; a type that is large or
/// compared often may answer them directly.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use watershed_stategraph::{FieldPath, Value};
/// #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
/// struct Table { columns: Vec<String> }
/// impl Value for Table {}
///
/// let orders = Table { columns: vec!["day".to_owned()] };
/// assert_eq!(orders.field(&FieldPath::new("columns.0")), Some("day".into()));
/// ```
pub trait Value:
    fmt::Debug + Clone + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// Returns the field at `path` as JSON; none if there is no such field.
    fn field(&self, path: &FieldPath) -> Option<serde_json::Value> {
        let whole = serde_json::to_value(self).ok()?;
        path.find(&whole).cloned()
    }

    /// Returns a stable hash: equal for equal values, on every machine and in every version.
    fn fingerprint(&self) -> Fingerprint {
        Fingerprint::from_value(self)
    }
}

impl Value for serde_json::Value {
    fn field(&self, path: &FieldPath) -> Option<serde_json::Value> {
        path.find(self).cloned()
    }
}

/// A stable 128-bit hash, shown as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(u128);

impl Fingerprint {
    /// Hashes the JSON form of a serializable value.
    ///
    /// A value that cannot be serialised hashes as far as it got, which is no fingerprint to rely on;
    /// such a value cannot be stored either.
    pub fn from_value<T: Serialize + ?Sized>(value: &T) -> Self {
        let mut sink = Sink(blake3::Hasher::new());
        // The sink never fails, and what fails to serialise fails again, visibly, when it is stored.
        let _ = serde_json::to_writer(&mut sink, value);
        Self::short(&sink.0.finalize())
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        Self::short(&blake3::hash(bytes))
    }

    fn short(hash: &blake3::Hash) -> Self {
        let mut short = [0; 16];
        short.copy_from_slice(&hash.as_bytes()[..16]);
        Self(u128::from_be_bytes(short))
    }

    pub(crate) fn as_number(self) -> u128 {
        self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        u128::from_str_radix(&text, 16)
            .map(Self)
            .map_err(serde::de::Error::custom)
    }
}

/// A writer that passes serialized bytes straight to the hash.
struct Sink(blake3::Hasher);

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_fingerprint_is_the_same_for_ever() {
        assert_eq!(
            json!({"a": 1, "b": [true]}).fingerprint(),
            json!({"b": [true], "a": 1}).fingerprint()
        );
        assert_ne!(json!(1).fingerprint(), json!(2).fingerprint());
    }

    #[test]
    fn a_fingerprint_survives_storing() {
        let fingerprint = json!("x").fingerprint();
        let stored = serde_json::to_string(&fingerprint).unwrap();
        assert_eq!(serde_json::from_str::<Fingerprint>(&stored).unwrap(), fingerprint);
    }
}
