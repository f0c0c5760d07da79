//! Access tokens for scripts and SQL clients.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::grants::Grants;
use crate::verifier::{Digest, Verifier, hex, random};

/// Prefix of every token, by which scanners detect leaked ones.
const PREFIX: &str = "wsd_";
/// Length of a token's id in bytes; the id is not secret.
const ID_BYTES: usize = 8;
/// Length of a token's secret, in bytes.
const SECRET_BYTES: usize = 32;

/// Default lifetime of a token, in days.
pub const LIFE_DAYS: u16 = 90;
/// The longest name of a token, in bytes.
pub const NAME_MAX: usize = 128;
/// The most operations to which a token may be restricted.
pub const OPERATIONS_MAX: usize = 128;

/// A token as it is stored: without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// Public id of the token, a part of its text.
    pub id: String,
    /// Name for people, such as `nightly job`.
    pub name: String,
    /// Access by instance.
    pub roles: Grants,
    /// Names of the permitted operations; none for all that the grants allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<Vec<String>>,
    /// Permitted resources, in the language of `--select`; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub select: Vec<String>,
    /// Time of expiry, in milliseconds since 1970.
    pub expires_ms: i64,
    /// SHA-256 of the secret, in hexadecimal digits.
    pub sha256: String,
    /// SCRAM verifier for SQL clients; none if SQL sign-in is not permitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scram: Option<Verifier>,
}

/// A new token with its secret, which is shown only once.
pub struct Minted {
    /// The token as it is stored.
    pub token: Token,
    /// Text for the holder: `wsd_ID_SECRET`.
    pub text: String,
}

/// The properties of a token to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Name for people, such as `nightly job`.
    pub name: String,
    /// Access by instance.
    pub roles: Grants,
    /// Names of the permitted operations; none for all that the grants allow.
    pub operations: Option<Vec<String>>,
    /// Permitted resources, in the language of `--select`; empty for all.
    pub select: Vec<String>,
    /// Time of expiry, in milliseconds since 1970.
    pub expires_ms: i64,
}

impl Token {
    /// Creates a token with a secret of 256 random bits.
    ///
    /// # Panics
    /// When the system has no random bytes.
    pub fn mint(wanted: Wanted) -> Minted {
        let id = hex(&random::<ID_BYTES>());
        let mut secret = hex(&random::<SECRET_BYTES>());
        secret.push_str(&checksum(&id, &secret));
        let token = Self {
            sha256: Digest::of(&secret).to_hex(),
            scram: Some(Verifier::of(&secret)),
            name: wanted.name,
            roles: wanted.roles,
            operations: wanted.operations,
            select: wanted.select,
            expires_ms: wanted.expires_ms,
            id,
        };
        let text = format!("{PREFIX}{}_{secret}", token.id);
        Minted { token, text }
    }

    /// Returns true if the presented secret is this token's, in constant time.
    pub fn is_held_by(&self, presented: &Presented<'_>) -> bool {
        // A file may hold a digest that none is.
        Digest::from_hex(&self.sha256).is_some_and(|digest| digest == Digest::of(presented.secret))
    }

    /// Returns true if the token has expired.
    pub fn is_over(&self, now_ms: i64) -> bool {
        self.expires_ms <= now_ms
    }

    /// Returns true if the token is not restricted to other operations.
    pub fn is_for(&self, operation: &str) -> bool {
        self.operations
            .as_ref()
            .is_none_or(|all| all.iter().any(|name| name == operation))
    }
}

impl fmt::Debug for Minted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Minted")
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}

/// A well-formed token from a request, not verified yet.
#[derive(Clone, Copy)]
pub struct Presented<'a> {
    /// Public id, by which the stored token is found.
    pub id: &'a str,
    secret: &'a str,
}

impl<'a> Presented<'a> {
    /// Parses a token; none if the text has another form or its checksum is wrong.
    pub fn read(text: &'a str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        Self::of_parts(id, secret)
    }

    /// Parses an id and a secret that SQL clients send as user and password.
    pub fn of_parts(id: &'a str, secret: &'a str) -> Option<Self> {
        let is_hex = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if id.len() != 2 * ID_BYTES
            || secret.len() != 2 * SECRET_BYTES + CHECKSUM
            || !is_hex(id)
            || !is_hex(secret)
        {
            return None;
        }
        let (random, check) = secret.split_at(2 * SECRET_BYTES);
        (checksum(id, random) == check).then_some(Self { id, secret })
    }
}

impl fmt::Debug for Presented<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Presented")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// Length of the checksum, in hexadecimal digits.
const CHECKSUM: usize = 8;

/// Returns the CRC-32 of id and secret, by which mistyped tokens are detected without the store.
fn checksum(id: &str, secret: &str) -> String {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(id.as_bytes());
    hasher.update(secret.as_bytes());
    format!("{:08x}", hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grants::{Grant, Level};

    fn minted() -> Minted {
        Token::mint(Wanted {
            name: "nightly job".into(),
            roles: Grants::one("shop", Grant::new(Level::Operate)),
            operations: Some(vec!["run".into()]),
            select: Vec::new(),
            expires_ms: 1_000,
        })
    }

    #[test]
    fn s_api17_a_token_is_held_by_whoever_has_its_text_and_by_nobody_else() {
        let (one, other) = (minted(), minted());
        assert_ne!(one.text, other.text);
        let presented = Presented::read(&one.text).unwrap();
        assert_eq!(presented.id, one.token.id);
        assert!(one.token.is_held_by(&presented) && !other.token.is_held_by(&presented));
        let secret = one.text.rsplit('_').next().unwrap();
        assert!(Presented::of_parts(&one.token.id, secret).is_some_and(|parts| one.token.is_held_by(&parts)));
        assert!(one.token.scram.as_ref().unwrap().is_of(secret));
        let forged = Token {
            sha256: "no digest".into(),
            ..one.token.clone()
        };
        assert!(!forged.is_held_by(&presented));
    }

    #[test]
    fn s_api17_what_is_stored_shows_no_secret() {
        let minted = minted();
        let secret = minted.text.rsplit('_').next().unwrap();
        let stored = serde_json::to_string(&minted.token).unwrap();
        for shown in [
            &stored,
            &format!("{minted:?}"),
            &format!("{:?}", Presented::read(&minted.text)),
        ] {
            assert!(!shown.contains(&secret[..16]), "{shown}");
        }
        assert_eq!(serde_json::from_str::<Token>(&stored).unwrap(), minted.token);
    }

    #[test]
    fn a_token_with_any_sign_lost_changed_or_added_is_none() {
        let text = minted().text;
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'0' { b'1' } else { b'0' };
            assert!(
                Presented::read(std::str::from_utf8(&changed).unwrap()).is_none(),
                "changed at {at}"
            );
            assert!(Presented::read(&text[..at]).is_none(), "cut at {at}");
        }
        for text in [
            "",
            "wsd_",
            "wsd__",
            &format!("{text}0"),
            &format!(" {text}"),
            &text.to_uppercase(),
            "é",
        ] {
            assert!(Presented::read(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_token_ends_at_its_moment_and_is_for_what_it_names() {
        let token = minted().token;
        assert!(!token.is_over(999) && token.is_over(1_000));
        assert!(token.is_for("run") && !token.is_for("pause"));
        assert!(
            Token {
                operations: None,
                ..token
            }
            .is_for("pause")
        );
    }
}
