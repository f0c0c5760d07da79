//! Tokens: positions in lists and streams, as texts that readers send back to continue.
//!
//! A token holds no secret. Its checksum makes sure that an altered token, or another instance's, is refused instead of being
//! misread.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use watershed_api::{Code, Problem};

/// Length of the checksum, in bytes.
const CHECKSUM: usize = 8;

/// A position in a list or stream, from which a reader continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Token {
    /// Id of the projection that the change number belongs to.
    pub(super) projection: Uuid,
    /// Number of the last change that the reader has seen.
    pub(super) change: u64,
    /// Hash of the list's or stream's filter.
    pub(super) filter: u64,
    /// Last resource of the page; none in a stream.
    pub(super) after: Option<Place>,
}

/// The last resource of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// Kind of the resource.
    pub(super) kind: String,
    /// Name of the resource.
    pub(super) name: String,
    /// Uid of the resource.
    pub(super) uid: Uuid,
}

impl Token {
    /// Encodes the token as text; `catalog` is the id of the catalog that the position is in.
    pub(super) fn write(&self, catalog: Uuid) -> String {
        let mut bytes = serde_json::to_vec(self).unwrap_or_default();
        let sum = checksum(catalog, &bytes);
        bytes.extend(sum);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Decodes a token; `catalog` is the id of the catalog that the token must belong to.
    ///
    /// # Errors
    /// `bad-argument`, when it was altered or is one of another catalog.
    pub(super) fn read(text: &str, catalog: Uuid) -> Result<Self, Problem> {
        let wrong = || {
            Problem::new(
                Code::BadArgument,
                "the token was not given out here, or was altered",
            )
            .hint("begin again without a token")
        };
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| wrong())?;
        let split = bytes.len().checked_sub(CHECKSUM).ok_or_else(wrong)?;
        let (said, sum) = bytes.split_at(split);
        if sum != checksum(catalog, said) {
            return Err(wrong());
        }
        serde_json::from_slice(said).map_err(|_| wrong())
    }
}

fn checksum(catalog: Uuid, bytes: &[u8]) -> [u8; CHECKSUM] {
    let mut hasher = blake3::Hasher::new_derive_key("watershed 2026 place in a list or stream");
    hasher.update(catalog.as_bytes());
    hasher.update(bytes);
    let mut sum = [0; CHECKSUM];
    sum.copy_from_slice(&hasher.finalize().as_bytes()[..CHECKSUM]);
    sum
}

/// Returns a hash of a filter, by which tokens of other filters are refused.
pub(super) fn sign(filter: &impl Serialize) -> u64 {
    let text = serde_json::to_vec(filter).unwrap_or_default();
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&blake3::hash(&text).as_bytes()[..8]);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_by_its_catalog_alone_and_as_it_was_given() {
        let token = Token {
            projection: Uuid::from_u128(1),
            change: 7,
            filter: sign(&["a"]),
            after: Some(Place {
                kind: "model".into(),
                name: "a/b \u{202e}".into(),
                uid: Uuid::from_u128(2),
            }),
        };
        let (ours, other) = (Uuid::from_u128(3), Uuid::from_u128(4));
        let text = token.write(ours);
        assert_eq!(Token::read(&text, ours).unwrap(), token);
        assert!(Token::read(&text, other).is_err());
        for index in 0..text.len() {
            let mut altered = text.clone().into_bytes();
            altered[index] = if altered[index] == b'A' { b'B' } else { b'A' };
            let altered = String::from_utf8(altered).unwrap();
            assert!(Token::read(&altered, ours).is_err(), "at {index}");
        }
        for wrong in ["", "=", "AAAA", "\u{202e}", &"A".repeat(100_000)] {
            assert!(Token::read(wrong, ours).is_err());
        }
    }
}
