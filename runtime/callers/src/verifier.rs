//! Stored forms of a secret, from which the secret can't be recovered.

use std::fmt;
use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::{digest, hmac, pbkdf2};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;

/// Iterations of the key derivation, the same number as in Postgres. Secrets have 256 random bits, so more would add no
/// protection.
pub const ROUNDS: NonZeroU32 = NonZeroU32::new(4096).expect("it is not zero");
/// Length of a salt, in bytes.
const SALT_BYTES: usize = 16;
/// Length of a key, in bytes.
const KEY_BYTES: usize = digest::SHA256_OUTPUT_LEN;

/// The SHA-256 of a secret, compared in constant time.
#[derive(Clone, Copy, Eq)]
pub struct Digest([u8; KEY_BYTES]);

impl Digest {
    /// Returns the digest of a secret.
    pub fn of(secret: &str) -> Self {
        let digest = digest::digest(&digest::SHA256, secret.as_bytes());
        let mut bytes = [0; KEY_BYTES];
        bytes.copy_from_slice(digest.as_ref());
        Self(bytes)
    }

    /// Parses 64 hexadecimal digits; none if the text has another form.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; KEY_BYTES];
        if text.len() != 2 * KEY_BYTES || !text.is_ascii() {
            return None;
        }
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// Returns the digest as 64 hexadecimal digits.
    pub fn to_hex(self) -> String {
        hex(&self.0)
    }
}

impl PartialEq for Digest {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(..)")
    }
}

/// A SCRAM-SHA-256 verifier (RFC 5802, RFC 7677), against which SQL clients prove their secret.
///
/// As text it has the form in which Postgres keeps verifiers: `SCRAM-SHA-256$ROUNDS:SALT$STORED_KEY:SERVER_KEY`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Verifier {
    /// Iterations of the key derivation.
    pub rounds: NonZeroU32,
    /// Random salt of the key derivation.
    pub salt: Vec<u8>,
    /// SHA-256 of the client key.
    pub stored_key: [u8; KEY_BYTES],
    /// Key with which the server proves that it knows the verifier.
    pub server_key: [u8; KEY_BYTES],
}

impl Verifier {
    /// Derives the verifier of a secret, with a random salt.
    ///
    /// # Panics
    /// When the system has no random bytes.
    pub fn of(secret: &str) -> Self {
        let salt: [u8; SALT_BYTES] = random();
        Self::with_salt(secret, &salt, ROUNDS)
    }

    fn with_salt(secret: &str, salt: &[u8], rounds: NonZeroU32) -> Self {
        let mut salted = [0; KEY_BYTES];
        pbkdf2::derive(
            pbkdf2::PBKDF2_HMAC_SHA256,
            rounds,
            salt,
            secret.as_bytes(),
            &mut salted,
        );
        let key = hmac::Key::new(hmac::HMAC_SHA256, &salted);
        let client_key = hmac::sign(&key, b"Client Key");
        let stored_key = digest::digest(&digest::SHA256, client_key.as_ref());
        let server_key = hmac::sign(&key, b"Server Key");
        let bytes = |from: &[u8]| {
            let mut bytes = [0; KEY_BYTES];
            bytes.copy_from_slice(from);
            bytes
        };
        Self {
            rounds,
            salt: salt.to_vec(),
            stored_key: bytes(stored_key.as_ref()),
            server_key: bytes(server_key.as_ref()),
        }
    }

    /// Returns true if the verifier was derived from the secret.
    pub fn is_of(&self, secret: &str) -> bool {
        let made = Self::with_salt(secret, &self.salt, self.rounds);
        made.stored_key.ct_eq(&self.stored_key).into()
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verifier(..)")
    }
}

impl From<Verifier> for String {
    fn from(verifier: Verifier) -> Self {
        format!(
            "SCRAM-SHA-256${}:{}${}:{}",
            verifier.rounds,
            BASE64.encode(&verifier.salt),
            BASE64.encode(verifier.stored_key),
            BASE64.encode(verifier.server_key)
        )
    }
}

impl TryFrom<String> for Verifier {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let read = || {
            let rest = text.strip_prefix("SCRAM-SHA-256$")?;
            let (derivation, keys) = rest.split_once('$')?;
            let (rounds, salt) = derivation.split_once(':')?;
            let (stored_key, server_key) = keys.split_once(':')?;
            let bytes = |text: &str| <[u8; KEY_BYTES]>::try_from(BASE64.decode(text).ok()?).ok();
            Some(Self {
                rounds: rounds
                    .parse()
                    .ok()
                    .filter(|rounds: &NonZeroU32| rounds.get() <= 1_000_000)?,
                salt: BASE64.decode(salt).ok().filter(|salt| !salt.is_empty())?,
                stored_key: bytes(stored_key)?,
                server_key: bytes(server_key)?,
            })
        };
        read().ok_or("no verifier of SCRAM-SHA-256, which begins with `SCRAM-SHA-256$4096:`")
    }
}

/// Writes bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns random bytes from the operating system.
///
/// # Panics
/// When the system has none: going on would make secrets that can be guessed.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .expect("the system has random bytes");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_that_of_the_standard_and_shows_nothing() {
        let digest = Digest::of("abc");
        let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest.to_hex(), hex);
        assert_eq!(Digest::from_hex(hex), Some(digest));
        assert_ne!(digest, Digest::of("abd"));
        assert_eq!(format!("{digest:?}"), "Digest(..)");
        for text in [
            "",
            "ba78",
            &hex[1..],
            &format!("{}g", &hex[1..]),
            &"é".repeat(32),
            &format!("+{}", &hex[1..]),
        ] {
            assert_eq!(
                Digest::from_hex(text).filter(|_| !text.starts_with('+')),
                None,
                "{text}"
            );
        }
    }

    #[test]
    fn a_verifier_is_that_of_the_standard() {
        // The example of RFC 7677: user `user`, password `pencil`.
        let salt = BASE64.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let verifier = Verifier::with_salt("pencil", &salt, ROUNDS);
        // What the client of the example proves itself with, checked as a server does.
        let message = "n=user,r=rOprNGfwEbeRWgbNEkqO,\
            r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,\
            c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let proof = BASE64
            .decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
            .unwrap();
        let stored = hmac::Key::new(hmac::HMAC_SHA256, &verifier.stored_key);
        let signature = hmac::sign(&stored, message.as_bytes());
        let client_key: Vec<u8> = proof.iter().zip(signature.as_ref()).map(|(a, b)| a ^ b).collect();
        assert_eq!(
            digest::digest(&digest::SHA256, &client_key).as_ref(),
            verifier.stored_key
        );
        let server = hmac::Key::new(hmac::HMAC_SHA256, &verifier.server_key);
        let answer = BASE64.encode(hmac::sign(&server, message.as_bytes()));
        assert_eq!(answer, "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }

    #[test]
    fn a_verifier_keeps_its_text_and_knows_its_secret_alone() {
        let verifier = Verifier::of("secret");
        let text = String::from(verifier.clone());
        assert_eq!(Verifier::try_from(text.clone()), Ok(verifier.clone()));
        assert!(verifier.is_of("secret") && !verifier.is_of("secre") && !verifier.is_of(""));
        assert_ne!(
            String::from(Verifier::of("secret")),
            text,
            "the salt is another one"
        );
        for broken in [
            "",
            "SCRAM-SHA-1$4096:c2FsdA==$x:y",
            &text.replace("4096", "0"),
            &text.replace("4096", "4000000000"),
            &text[..text.len() - 8],
            &text.replace('$', ":"),
        ] {
            assert!(Verifier::try_from(broken.to_owned()).is_err(), "{broken}");
        }
        assert_eq!(format!("{verifier:?}"), "Verifier(..)");
    }
}
