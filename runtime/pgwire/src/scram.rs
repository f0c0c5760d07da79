//! Proof of a secret by SCRAM-SHA-256 (RFC 5802, RFC 7677), the server's part.
//!
//! Somebody unknown is asked for a proof too, with a salt that stays the same, and fails as a wrong secret does: nobody learns
//! who is known.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::rand::SecureRandom as _;
use ring::{digest, hmac, rand};
use subtle::ConstantTimeEq as _;
use watershed_callers::Verifier;
use watershed_callers::verifier::ROUNDS;

/// The name of the mechanism.
pub(crate) const MECHANISM: &str = "SCRAM-SHA-256";
/// The longest message of a client, in bytes.
pub(crate) const LONGEST: usize = 2 << 10;

/// The key by which the salts of unknown users are made, new in each process.
static UNKNOWN: LazyLock<Option<hmac::Key>> =
    LazyLock::new(|| hmac::Key::generate(hmac::HMAC_SHA256, &rand::SystemRandom::new()).ok());

/// A proof that is under way: the client has sent its first message.
pub(crate) struct Asked {
    verifier: Verifier,
    is_known: bool,
    /// The client's words about channels, which are repeated in its last message.
    header: String,
    /// The first messages of both sides, which the proof covers.
    begun: String,
    nonce: String,
    /// The message that the client has to answer.
    pub(crate) first: String,
}

/// Reads the first message of a client; none if it is no such message.
pub(crate) fn begin(user: &str, known: Option<Verifier>, message: &[u8]) -> Option<Asked> {
    let message = std::str::from_utf8(message).ok()?;
    // A client that demands to bind the channel (`p=`) is offered no such mechanism.
    let bare = message
        .strip_prefix("n,")
        .or_else(|| message.strip_prefix("y,"))?;
    let (name, bare) = bare.split_once(',')?;
    if !(name.is_empty() || name.starts_with("a=")) {
        return None;
    }
    let header = message[..message.len() - bare.len()].to_owned();
    let own = bare.split(',').nth(1)?.strip_prefix("r=")?;
    if own.is_empty() || !bare.starts_with("n=") {
        return None;
    }
    let mut random = [0; 18];
    rand::SystemRandom::new().fill(&mut random).ok()?;
    let nonce = format!("{own}{}", BASE64.encode(random));
    let is_known = known.is_some();
    let verifier = match known {
        Some(verifier) => verifier,
        None => unknown(user)?,
    };
    let first = format!(
        "r={nonce},s={},i={}",
        BASE64.encode(&verifier.salt),
        verifier.rounds
    );
    Some(Asked {
        begun: format!("{bare},{first}"),
        verifier,
        is_known,
        header,
        nonce,
        first,
    })
}

fn unknown(user: &str) -> Option<Verifier> {
    let made = hmac::sign(UNKNOWN.as_ref()?, user.as_bytes());
    let mut key = [0; digest::SHA256_OUTPUT_LEN];
    key.copy_from_slice(made.as_ref());
    Some(Verifier {
        rounds: ROUNDS,
        salt: made.as_ref()[..16].to_vec(),
        stored_key: key,
        server_key: key,
    })
}

impl Asked {
    /// Checks the last message of the client, and returns the server's own proof; none if the client has not proved its
    /// secret.
    pub(crate) fn finish(self, message: &[u8]) -> Option<String> {
        let message = std::str::from_utf8(message).ok()?;
        let (without, proof) = message.rsplit_once(",p=")?;
        let mut parts = without.split(',');
        let header = BASE64.decode(parts.next()?.strip_prefix("c=")?).ok()?;
        let nonce = parts.next()?.strip_prefix("r=")?;
        let proof = BASE64.decode(proof).ok()?;
        let covered = format!("{},{without}", self.begun);
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.verifier.stored_key);
        let signature = hmac::sign(&key, covered.as_bytes());
        if proof.len() != signature.as_ref().len() {
            return None;
        }
        let client_key: Vec<u8> = proof.iter().zip(signature.as_ref()).map(|(a, b)| a ^ b).collect();
        let stored = digest::digest(&digest::SHA256, &client_key);
        let is_proved: bool = stored.as_ref().ct_eq(&self.verifier.stored_key).into();
        if !is_proved || !self.is_known || nonce != self.nonce || header != self.header.as_bytes() {
            return None;
        }
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.verifier.server_key);
        Some(format!(
            "v={}",
            BASE64.encode(hmac::sign(&key, covered.as_bytes()))
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves a secret as a client does, with the salted password derived anew.
    fn prove(secret: &str, asked: &Asked, header: &str) -> String {
        let mut salted = [0; 32];
        ring::pbkdf2::derive(
            ring::pbkdf2::PBKDF2_HMAC_SHA256,
            asked.verifier.rounds,
            &asked.verifier.salt,
            secret.as_bytes(),
            &mut salted,
        );
        let client_key = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &salted), b"Client Key");
        let stored = digest::digest(&digest::SHA256, client_key.as_ref());
        let without = format!("c={},r={}", BASE64.encode(header), asked.nonce);
        let covered = format!("{},{without}", asked.begun);
        let signature = hmac::sign(
            &hmac::Key::new(hmac::HMAC_SHA256, stored.as_ref()),
            covered.as_bytes(),
        );
        let proof: Vec<u8> = client_key
            .as_ref()
            .iter()
            .zip(signature.as_ref())
            .map(|(a, b)| a ^ b)
            .collect();
        format!("{without},p={}", BASE64.encode(proof))
    }

    #[test]
    fn s_api27_the_right_secret_alone_is_proved() {
        let verifier = Verifier::of("secret");
        let begin = |known| begin("id", known, b"n,,n=,r=abc").unwrap();
        let asked = begin(Some(verifier.clone()));
        let message = prove("secret", &asked, "n,,");
        assert!(asked.finish(message.as_bytes()).unwrap().starts_with("v="));
        for (secret, header) in [("secres", "n,,"), ("", "n,,"), ("secret", "y,,")] {
            let asked = begin(Some(verifier.clone()));
            let message = prove(secret, &asked, header);
            assert_eq!(asked.finish(message.as_bytes()), None, "{secret} {header}");
        }
        // A proof of one exchange is none in another.
        let (one, other) = (begin(Some(verifier.clone())), begin(Some(verifier)));
        let message = prove("secret", &one, "n,,");
        assert_eq!(other.finish(message.as_bytes()), None);
    }

    #[test]
    fn s_api27_somebody_unknown_is_asked_as_others_are_and_fails() {
        let asked = |user: &str| begin(user, None, b"n,,n=,r=abc").unwrap();
        let salt = |asked: &Asked| asked.verifier.salt.clone();
        assert_eq!(salt(&asked("one")), salt(&asked("one")));
        assert_ne!(salt(&asked("one")), salt(&asked("two")));
        let one = asked("one");
        let message = prove("anything", &one, "n,,");
        assert_eq!(one.finish(message.as_bytes()), None);
    }

    #[test]
    fn messages_that_are_none_are_refused() {
        for message in [
            &b""[..],
            b"n",
            b"n,,",
            b"n,,n=",
            b"n,,n=,r=",
            b"p=tls-unique,,n=,r=abc",
            b"n,,r=abc,n=",
            b"\xff",
            b"n,x,n=,r=abc",
        ] {
            assert!(begin("id", None, message).is_none(), "{message:?}");
        }
        for message in [
            &b""[..],
            b"c=biws",
            b"c=biws,p=",
            b"c=biws,r=x,p=AA==",
            b"\xff,p=",
        ] {
            let asked = begin("id", Some(Verifier::of("x")), b"n,,n=,r=abc").unwrap();
            assert_eq!(asked.finish(message), None);
        }
    }
}
