//! Signatures of webhooks by the Standard Webhooks specification: HMAC-SHA256 over id, time and body.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

/// Prefix of secrets in files.
const PREFIX: &str = "whsec_";
/// Permitted lengths of a secret in bytes, by the specification.
const BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// A secret key for signing webhooks.
#[derive(Clone)]
pub struct Secret(hmac::Key);

/// The error of a text that is no valid secret. The text is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a secret of webhooks is `whsec_` and 24 to 64 bytes in base64")]
pub struct SecretError;

impl Secret {
    /// Parses a secret, with or without `whsec_`.
    ///
    /// # Errors
    /// When it is no base64, too short or too long.
    pub fn new(text: &str) -> Result<Self, SecretError> {
        let text = text.trim();
        let encoded = text.strip_prefix(PREFIX).unwrap_or(text);
        let bytes = STANDARD.decode(encoded).map_err(|_| SecretError)?;
        match BYTES.contains(&bytes.len()) {
            true => Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes))),
            false => Err(SecretError),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Returns the value of the header `webhook-signature` with one signature for each secret, so that receivers accept
/// messages during a change of secrets.
#[must_use]
pub fn sign(secrets: &[Secret], id: &str, seconds: i64, body: &[u8]) -> String {
    let mut signed = format!("{id}.{seconds}.").into_bytes();
    signed.extend_from_slice(body);
    let signatures: Vec<String> = secrets
        .iter()
        .map(|secret| format!("v1,{}", STANDARD.encode(hmac::sign(&secret.0, &signed))))
        .collect();
    signatures.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expects a signature computed with Python's `hmac`, a second implementation.
    #[test]
    fn a_signature_is_that_of_another_implementation() {
        let secret = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a secret");
        let signature = sign(
            std::slice::from_ref(&secret),
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn two_secrets_sign_both_while_they_are_changed() {
        let old = Secret::new(&STANDARD.encode([1; 24])).expect("a secret");
        let new = Secret::new(&STANDARD.encode([2; 64])).expect("a secret");
        let both = sign(&[new.clone(), old.clone()], "id", 1, b"{}");
        let alone = [sign(&[new], "id", 1, b"{}"), sign(&[old], "id", 1, b"{}")];
        assert_eq!(both, alone.join(" "));
        assert_ne!(alone[0], alone[1]);
    }

    #[test]
    fn secrets_of_other_lengths_are_refused_and_none_is_shown() {
        for text in ["", "whsec_", "whsec_c2hvcnQ=", "not base64 at all, is it?"] {
            assert_eq!(Secret::new(text).map(|_| ()), Err(SecretError), "{text}");
        }
        assert!(Secret::new(&STANDARD.encode([1; 65])).is_err());
        let secret = Secret::new(&STANDARD.encode([1; 24])).expect("a secret");
        assert_eq!(format!("{secret:?}"), "Secret(..)");
    }
}
