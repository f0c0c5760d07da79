//! Verification of an identity provider's JWTs: exact issuer and audience, asymmetric signatures only, a required
//! expiry, keys by discovery.

mod crypto;
mod keys;

use std::collections::HashSet;

use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation, decode, decode_header};
use serde_json::{Map, Value};
use thiserror::Error;

pub use keys::{Fetch, FetchError, Keys};

/// The longest accepted JWT, in bytes.
pub const JWT_MAX: usize = 8 * 1024;
/// Tolerated difference between the clocks of provider and service, in seconds.
pub const LEEWAY_SECONDS: i64 = 30;

/// The accepted algorithms: asymmetric signatures only, neither `none` nor shared secrets.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// The claims of a verified JWT.
pub type Claims = Map<String, Value>;

/// The reason why a JWT is refused. Messages omit the claims' values, since the token may be stolen.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refused {
    /// The token is longer than [`JWT_MAX`].
    #[error("the token is longer than 8 KiB")]
    TooLong,
    /// The token can't be parsed as a JWT.
    #[error("the token is no JWT")]
    Malformed,
    /// The algorithm is not accepted, or does not fit the key.
    #[error("the token is signed in a way that is not taken")]
    Algorithm,
    /// The header requires an extension (`crit`), and none is supported.
    #[error("the token's header names an extension that is not known")]
    Critical,
    /// The provider publishes no key with the token's key id.
    #[error("the token is signed with a key that the provider does not have")]
    UnknownKey,
    /// The signature does not match the provider's key.
    #[error("the token's signature is wrong")]
    Signature,
    /// The issuer or audience is another one.
    #[error("the token is for another service or of another provider")]
    NotForUs,
    /// The token has expired, or has no expiry.
    #[error("the token has ended")]
    Over,
    /// The token is not valid yet.
    #[error("the token is not valid yet")]
    NotYet,
    /// The provider's keys can't be fetched.
    #[error(transparent)]
    Keys(#[from] FetchError),
}

/// An identity provider, with the service's client id there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issuer {
    /// The `iss` of tokens, compared exactly.
    pub issuer: String,
    /// The `aud` of tokens: the service's client id.
    pub audience: String,
}

/// Verifies the JWTs of one provider.
pub struct Believer {
    issuer: Issuer,
    keys: Keys,
}

impl Believer {
    /// Creates the verifier of a provider's tokens. `fetch` fetches the keys when the first token arrives.
    ///
    /// Signatures are checked by `ring`. The crate `jsonwebtoken` knows one such provider for the process: it is named here, unless the
    /// process has named another.
    pub fn new(issuer: Issuer, fetch: impl Fetch) -> Self {
        crypto::install();
        let keys = Keys::new(&issuer.issuer, fetch);
        Self { issuer, keys }
    }

    /// Verifies a JWT and returns its claims.
    ///
    /// # Errors
    /// The reason why the token is not believed.
    ///
    /// # Cancel safety
    /// A dropped call fetches nothing more; the next one begins anew.
    pub async fn believe(&self, token: &str, now_ms: i64) -> Result<Claims, Refused> {
        if token.len() > JWT_MAX {
            return Err(Refused::TooLong);
        }
        let header = read_header(token)?;
        let key = self.keys.find(header.kid.as_deref(), now_ms).await?;
        let key = key.ok_or(Refused::UnknownKey)?;
        let claims = self.checked(token, &header, &key)?;
        check_times(&claims, now_ms.div_euclid(1_000))?;
        Ok(claims)
    }

    fn checked(&self, token: &str, header: &Header, key: &Jwk) -> Result<Claims, Refused> {
        let says_another = key
            .common
            .key_algorithm
            .is_some_and(|of_key| of_key.to_string() != format!("{:?}", header.alg));
        if says_another {
            return Err(Refused::Algorithm);
        }
        let key = DecodingKey::from_jwk(key).map_err(|_| Refused::UnknownKey)?;
        if key.family() != header.alg.family() {
            return Err(Refused::Algorithm);
        }
        let mut validation = Validation::new(header.alg);
        validation.set_issuer(&[&self.issuer.issuer]);
        validation.set_audience(&[&self.issuer.audience]);
        // Times are checked by the clock that is handed in.
        (validation.validate_exp, validation.validate_nbf) = (false, false);
        validation.required_spec_claims = HashSet::from(["iss".to_owned(), "aud".to_owned()]);
        use jsonwebtoken::errors::ErrorKind;
        let decoded = decode::<Claims>(token, &key, &validation).map_err(|error| match error.kind() {
            ErrorKind::InvalidSignature => Refused::Signature,
            ErrorKind::InvalidIssuer | ErrorKind::InvalidAudience | ErrorKind::MissingRequiredClaim(_) => {
                Refused::NotForUs
            }
            ErrorKind::InvalidAlgorithm | ErrorKind::UnsupportedAlgorithm => Refused::Algorithm,
            _ => Refused::Malformed,
        })?;
        Ok(decoded.claims)
    }
}

/// Parses the header of a JWT, and refuses algorithms and extensions that are not accepted.
fn read_header(token: &str) -> Result<Header, Refused> {
    // A header with an algorithm that nobody knows can't be read at all, nor can `none`.
    let header = decode_header(token).map_err(|_| match is_of_three_parts(token) {
        true => Refused::Algorithm,
        false => Refused::Malformed,
    })?;
    match header {
        _ if header.crit.is_some() => Err(Refused::Critical),
        header if ALGORITHMS.contains(&header.alg) => Ok(header),
        _ => Err(Refused::Algorithm),
    }
}

fn is_of_three_parts(token: &str) -> bool {
    token.split('.').count() == 3 && token.split('.').take(2).all(|part| !part.is_empty())
}

/// Refuses a token that is not valid yet, has expired or has no expiry.
fn check_times(claims: &Claims, now: i64) -> Result<(), Refused> {
    let seconds = |name: &str| {
        claims
            .get(name)
            .map(|value| value.as_f64().filter(|at| at.is_finite()))
    };
    #[expect(
        clippy::cast_precision_loss,
        reason = "seconds since 1970 are exact as floating point"
    )]
    let (now, leeway) = (now as f64, LEEWAY_SECONDS as f64);
    match seconds("exp") {
        Some(Some(end)) if now < end + leeway => {}
        _ => return Err(Refused::Over),
    }
    match seconds("nbf") {
        None => Ok(()),
        Some(Some(begin)) if begin <= now + leeway => Ok(()),
        Some(_) => Err(Refused::NotYet),
    }
}

#[cfg(test)]
mod tests;
