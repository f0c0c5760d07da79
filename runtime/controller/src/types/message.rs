//! Encoding and decoding of specs and states.
//!
//! The core sees a spec and a state as bytes with a format number. A kind says what the bytes mean by giving two
//! types that implement [`Message`]. Two rules make everything else work:
//!
//! 1. Equal values encode to equal bytes, so "nothing changed" is a comparison of bytes. Use ordered maps; the
//!    implementations made by [`json_message!`](crate::json_message) sort the keys of objects as well.
//! 2. Bytes that can't be read are an error. The controller keeps such bytes untouched, lists the resource with the
//!    error, and neither runs nor overwrites it. A panic of a decoder counts as such an error, with its message.
//!
//! The format number rises when bytes of the old shape would be misread. [`Message::decode`] is told the number that
//! the bytes were written under, so a kind reads older formats by matching on it.

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::tasks::panics;

/// A spec or a state: a value with a stable encoding.
///
/// Implement it with [`json_message!`](crate::json_message) for serde types, with
/// [`prost_message!`](crate::prost_message) for protobuf messages, or by hand.
///
/// ```
/// use watershed_controller::message::{DecodeError, EncodeError, Message};
///
/// #[derive(Debug, PartialEq)]
/// struct Count(u64);
///
/// impl Message for Count {
///     const FORMAT: u32 = 1;
///
///     fn encode(&self) -> Result<Vec<u8>, EncodeError> {
///         Ok(self.0.to_be_bytes().to_vec())
///     }
///
///     fn decode(format: u32, bytes: &[u8]) -> Result<Self, DecodeError> {
///         match (format, <[u8; 8]>::try_from(bytes)) {
///             (1, Ok(bytes)) => Ok(Self(u64::from_be_bytes(bytes))),
///             (1, Err(error)) => Err(DecodeError::malformed::<Self>(error)),
///             _ => Err(DecodeError::unknown_format::<Self>(format)),
///         }
///     }
/// }
///
/// assert_eq!(Count::decode(1, &Count(7).encode()?)?, Count(7));
/// assert!(matches!(Count::decode(2, b""), Err(DecodeError::UnknownFormat { found: 2, known: 1, .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no message: it has no stable bytes",
    note = "for a type with serde's traits write `watershed_controller::json_message!({Self}, format = 1);`",
    note = "for a type of prost `watershed_controller::prost_message!({Self}, format = 1);`"
)]
pub trait Message: Sized + Send + Sync + 'static {
    /// Number of the format that [`encode`](Self::encode) writes.
    const FORMAT: u32;

    /// Encodes the value; equal values have equal bytes.
    fn encode(&self) -> Result<Vec<u8>, EncodeError>;

    /// Decodes bytes that were encoded with `format`.
    ///
    /// Formats that this program doesn't know, newer ones above all, are a [`DecodeError::UnknownFormat`].
    fn decode(format: u32, bytes: &[u8]) -> Result<Self, DecodeError>;
}

/// Error of a value that can't be encoded.
///
/// See [`Message`] for an example.
#[derive(Debug, Error)]
#[error("can't encode `{type_name}`: {message}")]
pub struct EncodeError {
    /// Rust type of the value.
    pub type_name: &'static str,
    /// Explanation by the encoder.
    pub message: String,
}

/// Error of bytes that can't be decoded.
///
/// See [`Message`] for an example.
#[derive(Debug, Error)]
pub enum DecodeError {
    /// The bytes have a format that this program can't read.
    #[error("format {found} of `{type_name}` can't be read here, expected {known} or what it can migrate")]
    UnknownFormat {
        /// Rust type that was expected.
        type_name: &'static str,
        /// Format of the bytes.
        found: u32,
        /// Format that this program writes.
        known: u32,
    },
    /// The bytes don't match their format.
    #[error("can't decode `{type_name}`: {message}")]
    Malformed {
        /// Rust type that was expected.
        type_name: &'static str,
        /// Explanation by the decoder.
        message: String,
    },
}

impl DecodeError {
    /// Creates the error for bytes of a format that `M` can't read.
    pub fn unknown_format<M: Message>(found: u32) -> Self {
        Self::UnknownFormat {
            type_name: std::any::type_name::<M>(),
            found,
            known: M::FORMAT,
        }
    }

    /// Creates the error for bytes that don't match their format.
    pub fn malformed<M>(message: impl ToString) -> Self {
        Self::Malformed {
            type_name: std::any::type_name::<M>(),
            message: message.to_string(),
        }
    }
}

/// Encodes a message; a panic of the encoder becomes an error.
pub(crate) fn encode<M: Message>(message: &M) -> Result<Vec<u8>, EncodeError> {
    panics::caught(|| message.encode()).unwrap_or_else(|panic| {
        Err(EncodeError {
            type_name: std::any::type_name::<M>(),
            message: format!("the encoder panicked: {panic}"),
        })
    })
}

/// Decodes a message; a panic of the decoder becomes an error, so that one unreadable resource doesn't keep others from
/// being read.
pub(crate) fn decode<M: Message>(format: u32, bytes: &[u8]) -> Result<M, DecodeError> {
    panics::caught(|| M::decode(format, bytes)).unwrap_or_else(|panic| {
        Err(DecodeError::malformed::<M>(format!(
            "the decoder panicked: {panic}"
        )))
    })
}

/// The message of a kind without contents: no bytes at all.
impl Message for () {
    const FORMAT: u32 = 0;

    fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        Ok(Vec::new())
    }

    fn decode(format: u32, bytes: &[u8]) -> Result<Self, DecodeError> {
        match (format, bytes) {
            (0, []) => Ok(()),
            (0, _) => Err(DecodeError::malformed::<Self>("expected no bytes")),
            _ => Err(DecodeError::unknown_format::<Self>(format)),
        }
    }
}

/// Encodes a value as canonical JSON: no spaces, and the keys of every object in order.
///
/// ```
/// use std::collections::HashMap;
/// use watershed_controller::message::{from_json, to_json};
///
/// let value = HashMap::from([("b", 1), ("a", 2)]);
/// assert_eq!(to_json(&value)?, br#"{"a":2,"b":1}"#);
/// assert_eq!(from_json::<HashMap<String, u32>>(br#"{"a":2}"#)?["a"], 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn to_json<T: Serialize>(value: &T) -> Result<Vec<u8>, EncodeError> {
    let error = |e: serde_json::Error| EncodeError {
        type_name: std::any::type_name::<T>(),
        message: e.to_string(),
    };
    let mut tree = serde_json::to_value(value).map_err(error)?;
    // Does nothing unless some crate of the build switched serde_json to maps in insertion order.
    tree.sort_all_objects();
    serde_json::to_vec(&tree).map_err(error)
}

/// Decodes a value from JSON.
///
/// See [`to_json`] for an example.
pub fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    serde_json::from_slice(bytes).map_err(DecodeError::malformed::<T>)
}

/// Implements [`Message`] for a serde type as canonical JSON.
///
/// ```
/// # use watershed_controller::json_message;
/// # use watershed_controller::message::{DecodeError, from_json};
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Greeting {
///     text: String,
///     times: u32,
/// }
///
/// json_message!(Greeting, format = 2, older = read_older);
///
/// /// Format 1 had no `times`; its JSON was the text alone.
/// fn read_older(format: u32, bytes: &[u8]) -> Result<Greeting, DecodeError> {
///     match format {
///         1 => Ok(Greeting { text: from_json(bytes)?, times: 1 }),
///         _ => Err(DecodeError::unknown_format::<Greeting>(format)),
///     }
/// }
/// ```
#[macro_export]
macro_rules! json_message {
    ($type:ty, format = $format:expr $(, older = $older:expr)?) => {
        $crate::__message!(
            $type,
            $format,
            $crate::message::to_json,
            $crate::message::from_json
            $(, $older)?
        );
    };
}

/// Implements [`Message`] for a prost message as protobuf bytes; the calling crate depends on `prost`.
///
/// Have its maps generated as `BTreeMap`, so that equal messages have equal bytes. Protobuf reads what older
/// messages of the same shape wrote, so `format` rises only when a field changes its meaning; `older` is then a
/// function from the format and the bytes to the message, as with [`json_message!`](crate::json_message).
#[macro_export]
macro_rules! prost_message {
    ($type:ty, format = $format:expr $(, older = $older:expr)?) => {
        $crate::__message!(
            $type,
            $format,
            |message: &$type| Ok(::prost::Message::encode_to_vec(message)),
            |bytes: &[u8]| {
                ::prost::Message::decode(bytes).map_err($crate::message::DecodeError::malformed::<$type>)
            }
            $(, $older)?
        );
    };
}

/// Implements [`Message`] for the macros above; not part of the interface.
#[doc(hidden)]
#[macro_export]
macro_rules! __message {
    ($type:ty, $format:expr, $encode:expr, $decode:expr) => {
        $crate::__message!($type, $format, $encode, $decode, |format: u32, _: &[u8]| {
            Err($crate::message::DecodeError::unknown_format::<$type>(
                format,
            ))
        });
    };
    ($type:ty, $format:expr, $encode:expr, $decode:expr, $older:expr) => {
        impl $crate::message::Message for $type {
            const FORMAT: u32 = $format;

            fn encode(&self) -> Result<Vec<u8>, $crate::message::EncodeError> {
                ($encode)(self)
            }

            fn decode(format: u32, bytes: &[u8]) -> Result<Self, $crate::message::DecodeError> {
                if format == <Self as $crate::message::Message>::FORMAT {
                    ($decode)(bytes)
                } else {
                    ($older)(format, bytes)
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    struct Sample {
        zebra: u32,
        apple: HashMap<String, u32>,
    }

    crate::json_message!(Sample, format = 3);

    fn sample(keys: &[&str]) -> Sample {
        Sample {
            zebra: 1,
            apple: keys.iter().map(|key| (key.to_string(), 1)).collect(),
        }
    }

    #[test]
    fn equal_values_have_equal_bytes_whatever_the_order_of_their_maps() {
        let forth = sample(&["a", "b", "c", "d", "e"]).encode().unwrap();
        let back = sample(&["e", "d", "c", "b", "a"]).encode().unwrap();
        assert_eq!(forth, back);
        assert_eq!(forth, br#"{"apple":{"a":1,"b":1,"c":1,"d":1,"e":1},"zebra":1}"#);
    }

    #[test]
    fn what_was_encoded_is_decoded() {
        let value = sample(&["a"]);
        assert_eq!(Sample::decode(3, &value.encode().unwrap()).unwrap(), value);
    }

    #[test]
    fn an_unknown_format_is_an_error_that_names_both() {
        let error = Sample::decode(4, b"{}").unwrap_err();
        assert!(
            matches!(
                error,
                DecodeError::UnknownFormat {
                    found: 4,
                    known: 3,
                    ..
                }
            ),
            "{error}"
        );
    }

    #[test]
    fn malformed_bytes_are_an_error() {
        assert!(matches!(
            Sample::decode(3, b"{").unwrap_err(),
            DecodeError::Malformed { .. }
        ));
        assert!(matches!(
            <()>::decode(0, b"x").unwrap_err(),
            DecodeError::Malformed { .. }
        ));
    }
}
