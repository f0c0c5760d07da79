//! The public keys of a provider, found by discovery and cached.

use std::sync::{Arc, Mutex, MutexGuard};

use futures::future::BoxFuture;
use jsonwebtoken::jwk::{AlgorithmParameters, Jwk, JwkSet, PublicKeyUse};
use serde::Deserialize;
use thiserror::Error;
use watershed_locks::Unpoisoned as _;

/// The time for which fetched keys are fresh, in milliseconds.
const KEPT_MS: i64 = 10 * 60_000;
/// The shortest interval between two fetches in milliseconds, so that unknown key ids can't flood the provider.
const BETWEEN_LOOKS_MS: i64 = 60_000;
/// The most keys of a provider that are cached.
const KEYS_MAX: usize = 64;

/// The error of a failed fetch of the provider's keys.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the keys of the identity provider can't be fetched: {0}")]
pub struct FetchError(pub String);

/// Fetches a provider's documents over HTTPS, with limits of size and time, and without redirects to other hosts.
pub trait Fetch: Send + Sync + 'static {
    /// Fetches a document's text.
    fn fetch<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<String, FetchError>>;
}

/// The cached public keys of one provider.
pub struct Keys {
    issuer: String,
    fetch: Arc<dyn Fetch>,
    known: Mutex<Known>,
    /// Lock held during a fetch, so that concurrent callers share one fetch.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Known {
    keys: Vec<Jwk>,
    /// Time of the last successful fetch, in milliseconds since 1970; none before the first.
    fetched_ms: Option<i64>,
    /// Time of the last attempt to fetch, in milliseconds since 1970; none before the first.
    tried_ms: Option<i64>,
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

impl Keys {
    pub(super) fn new(issuer: &str, fetch: impl Fetch) -> Self {
        Self {
            issuer: issuer.to_owned(),
            fetch: Arc::new(fetch),
            known: Mutex::default(),
            fetching: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the key with an id, or without an id the provider's only key; none if there is no such key.
    pub(super) async fn find(&self, name: Option<&str>, now_ms: i64) -> Result<Option<Jwk>, FetchError> {
        let look = self.known().look(name, now_ms);
        let wait = match look {
            Look::Done(Some(found)) => return Ok(Some(found)),
            // A key that is on its way is no unknown one.
            Look::Done(None) => match self.fetching.try_lock() {
                Ok(_) => return self.known().unknown(),
                Err(_) => self.fetching.lock().await,
            },
            // A slow provider holds up nobody whose key is known.
            Look::Stale(found) => match self.fetching.try_lock() {
                Ok(turn) => turn,
                Err(_) => return Ok(Some(found)),
            },
            Look::Unknown => self.fetching.lock().await,
        };
        let look = self.known().look(name, now_ms);
        let found = match look {
            // Somebody else has fetched meanwhile.
            Look::Done(Some(found)) => return Ok(Some(found)),
            Look::Done(None) => return self.known().unknown(),
            Look::Stale(found) => Some(found),
            Look::Unknown => None,
        };
        self.known().tried_ms = Some(now_ms);
        let loaded = self.load().await;
        let mut known = self.known();
        match loaded {
            Ok(keys) => (known.keys, known.fetched_ms) = (keys, Some(now_ms)),
            Err(error) if found.is_none() => return Err(error),
            Err(error) => tracing::warn!(%error, "the keys from before are taken"),
        }
        drop(wait);
        Ok(known.find(name))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unpoisoned()
    }

    async fn load(&self) -> Result<Vec<Jwk>, FetchError> {
        let at = format!(
            "{}/.well-known/openid-configuration",
            self.issuer.trim_end_matches('/')
        );
        let broken = |what: &str| FetchError(format!("its {what} is not what the standard says"));
        let discovery: Discovery =
            serde_json::from_str(&self.fetch.fetch(&at).await?).map_err(|_| broken("discovery document"))?;
        if discovery.issuer != self.issuer {
            return Err(FetchError("its discovery document is of another issuer".into()));
        }
        let set = self.fetch.fetch(&discovery.jwks_uri).await?;
        let set: JwkSet = serde_json::from_str(&set).map_err(|_| broken("set of keys"))?;
        let is_for_signatures = |key: &Jwk| {
            let is_public = !matches!(
                key.algorithm,
                AlgorithmParameters::OctetKey(_) | AlgorithmParameters::Other(_)
            );
            is_public && !matches!(key.common.public_key_use, Some(PublicKeyUse::Encryption))
        };
        Ok(set
            .keys
            .into_iter()
            .filter(is_for_signatures)
            .take(KEYS_MAX)
            .collect())
    }
}

/// The result of a lookup in the cached keys.
enum Look {
    /// The result is final: the key is fresh, or a fetch is not allowed yet.
    Done(Option<Jwk>),
    /// The key was found, and the cache is due for a fetch.
    Stale(Jwk),
    /// The key was not found, and a fetch may find it.
    Unknown,
}

impl Known {
    fn look(&self, name: Option<&str>, now_ms: i64) -> Look {
        let found = self.find(name);
        let is_fresh = self.fetched_ms.is_some_and(|at| is_within(at, now_ms, KEPT_MS));
        let was_tried = self
            .tried_ms
            .is_some_and(|at| is_within(at, now_ms, BETWEEN_LOOKS_MS));
        match found {
            // Keys that were good ten minutes ago are better than nobody's sign-in while the provider is away.
            found if was_tried || (is_fresh && found.is_some()) => Look::Done(found),
            Some(found) => Look::Stale(found),
            None => Look::Unknown,
        }
    }

    /// Returns the result of a lookup that found no key: an error if no keys were fetched yet, since any may be missing.
    fn unknown(&self) -> Result<Option<Jwk>, FetchError> {
        match self.fetched_ms {
            Some(_) => Ok(None),
            None => Err(FetchError(
                "the last try has failed, less than a minute ago".into(),
            )),
        }
    }

    fn find(&self, name: Option<&str>) -> Option<Jwk> {
        match (name, self.keys.as_slice()) {
            (Some(_), keys) => keys
                .iter()
                .find(|key| key.common.key_id.as_deref() == name)
                .cloned(),
            (None, [only]) => Some(only.clone()),
            (None, _) => None,
        }
    }
}

/// Returns true if `at_ms` lies less than `span_ms` in the past. False if the clock was set back.
fn is_within(at_ms: i64, now_ms: i64, span_ms: i64) -> bool {
    (0..span_ms).contains(&now_ms.saturating_sub(at_ms))
}
