//! Bytes in text formats: two hexadecimal digits each, half the size of a list of numbers.

use std::fmt::Write;
use std::sync::Arc;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes written as hexadecimal digits.
struct Digits(Arc<[u8]>);

impl Serialize for Digits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut digits = String::with_capacity(self.0.len() * 2);
        for byte in self.0.iter() {
            // Writing into a string does not fail.
            let _ = write!(digits, "{byte:02x}");
        }
        serializer.serialize_str(&digits)
    }
}

impl<'de> Deserialize<'de> for Digits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
        let mut pairs = text.as_bytes().chunks(2);
        let bytes: Option<Arc<[u8]>> = pairs
            .by_ref()
            .map(|pair| match pair {
                [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
                _ => None,
            })
            .collect();
        bytes
            .map(Digits)
            .ok_or_else(|| D::Error::custom("expected pairs of hexadecimal digits"))
    }
}

pub(crate) fn serialize<S: Serializer>(bytes: &Arc<[u8]>, serializer: S) -> Result<S::Ok, S::Error> {
    Digits(Arc::clone(bytes)).serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<[u8]>, D::Error> {
    Digits::deserialize(deserializer).map(|digits| digits.0)
}

/// Serialization of an update's spec together with its format.
pub(crate) mod with_format {
    use super::{Arc, Deserialize, Deserializer, Digits, Serialize, Serializer};

    type Spec = Option<(Arc<[u8]>, u32)>;

    pub(crate) fn serialize<S: Serializer>(spec: &Spec, serializer: S) -> Result<S::Ok, S::Error> {
        let spec = spec
            .as_ref()
            .map(|(bytes, format)| (Digits(Arc::clone(bytes)), format));
        spec.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Spec, D::Error> {
        let spec = Option::<(Digits, u32)>::deserialize(deserializer)?;
        Ok(spec.map(|(digits, format)| (digits.0, format)))
    }
}
