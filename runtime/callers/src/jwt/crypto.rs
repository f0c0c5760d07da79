//! Signature checks of JWTs by `ring`, which the process uses for TLS too.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{Error as NoSignature, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use ring::signature::{
    self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};

static PROVIDER: CryptoProvider = CryptoProvider {
    // Nothing is signed here.
    signer_factory: |_, _| Err(Error::from(ErrorKind::UnsupportedAlgorithm)),
    verifier_factory: |algorithm, key| Ok(Box::new(Check::new(*algorithm, key)?)),
    key_utils: KeyUtils::new_unimplemented(),
};

/// Installs `ring` as the process's provider of signature checks, unless another provider is installed.
pub(super) fn install() {
    let _ = PROVIDER.install_default();
}

/// A public key with the algorithm of its signatures.
struct Check {
    algorithm: Algorithm,
    key: Key,
}

enum Key {
    Rsa(&'static RsaParameters, RsaPublicKeyComponents<Vec<u8>>),
    Point(UnparsedPublicKey<Vec<u8>>),
}

impl Check {
    fn new(algorithm: Algorithm, key: &DecodingKey) -> Result<Self, Error> {
        let key = match (rsa(algorithm), point(algorithm), key.kind()) {
            (Some(how), _, DecodingKeyKind::RsaModulusExponent { n, e }) => {
                let components = RsaPublicKeyComponents {
                    n: n.clone(),
                    e: e.clone(),
                };
                Key::Rsa(how, components)
            }
            (_, Some(how), DecodingKeyKind::SecretOrDer(point)) => {
                Key::Point(UnparsedPublicKey::new(how, point.clone()))
            }
            _ => return Err(ErrorKind::InvalidAlgorithm.into()),
        };
        Ok(Self { algorithm, key })
    }
}

/// Returns the RSA parameters of an algorithm, with keys of at least 2,048 bits; none for other algorithms.
fn rsa(algorithm: Algorithm) -> Option<&'static RsaParameters> {
    Some(match algorithm {
        Algorithm::RS256 => &signature::RSA_PKCS1_2048_8192_SHA256,
        Algorithm::RS384 => &signature::RSA_PKCS1_2048_8192_SHA384,
        Algorithm::RS512 => &signature::RSA_PKCS1_2048_8192_SHA512,
        Algorithm::PS256 => &signature::RSA_PSS_2048_8192_SHA256,
        Algorithm::PS384 => &signature::RSA_PSS_2048_8192_SHA384,
        Algorithm::PS512 => &signature::RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}

fn point(algorithm: Algorithm) -> Option<&'static dyn VerificationAlgorithm> {
    Some(match algorithm {
        Algorithm::ES256 => &signature::ECDSA_P256_SHA256_FIXED,
        Algorithm::ES384 => &signature::ECDSA_P384_SHA384_FIXED,
        Algorithm::EdDSA => &signature::ED25519,
        _ => return None,
    })
}

impl Verifier<Vec<u8>> for Check {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), NoSignature> {
        let checked = match &self.key {
            Key::Rsa(how, components) => components.verify(how, message, signature),
            Key::Point(key) => key.verify(message, signature),
        };
        checked.map_err(|_| NoSignature::new())
    }
}

impl JwtVerifier for Check {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
