//! The encoding of bytes in two parts: a JSON head that all kinds share, and the kind's own message.
//!
//! The own part is kept as its encoder made it, so that it may be anything, and readers of the head need not know its type.

use serde::Serialize;
use serde::de::DeserializeOwned;
use watershed_controller::message::{DecodeError, EncodeError, from_json, to_json};

/// Joins a head and a kind's own bytes.
pub(crate) fn join<H: Serialize>(head: &H, own: &[u8]) -> Result<Vec<u8>, EncodeError> {
    let head = to_json(head)?;
    let length = u32::try_from(head.len()).map_err(|error| EncodeError {
        type_name: std::any::type_name::<H>(),
        message: error.to_string(),
    })?;
    let mut bytes = Vec::with_capacity(4 + head.len() + own.len());
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(&head);
    bytes.extend_from_slice(own);
    Ok(bytes)
}

/// Splits bytes into their head and the kind's own bytes.
pub(crate) fn split<H: DeserializeOwned>(bytes: &[u8]) -> Result<(H, &[u8]), DecodeError> {
    let short = || DecodeError::malformed::<H>("it is shorter than it says");
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(short)?;
    let length = usize::try_from(u32::from_be_bytes(*length)).map_err(DecodeError::malformed::<H>)?;
    let (head, own) = rest.split_at_checked(length).ok_or_else(short)?;
    Ok((from_json(head)?, own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_joined_is_split_and_anything_else_is_an_error() {
        let bytes = join(&"head", b"own").unwrap();
        assert_eq!(split::<String>(&bytes).unwrap(), ("head".to_owned(), &b"own"[..]));
        for cut in 0..bytes.len() - 3 {
            assert!(split::<String>(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        assert!(split::<u64>(&bytes).is_err());
    }
}
