//! The keys of a provider, found by discovery and kept for a while.

use std::sync::{Arc, Mutex, MutexGuard};

use futures::future::BoxFuture;
use jsonwebtoken::jwk::{AlgorithmParameters, Jwk, JwkSet, PublicKeyUse};
use serde::Deserialize;
use thiserror::Error;
use watershed_locks::Unpoisoned as _;

/// Milliseconds for which keys are taken as they were fetched.
const KEPT_MS: i64 = 10 * 60_000;
/// Milliseconds between two looks for a key that is not known: made-up names must not make the service call the provider.
const BETWEEN_LOOKS_MS: i64 = 60_000;
/// The most keys of a provider that are kept.
const KEYS_MAX: usize = 64;

/// The provider's keys can't be had.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the keys of the identity provider can't be fetched: {0}")]
pub struct FetchError(pub String);

/// Fetches a document of the provider: over HTTPS, with bounds of size and time, and without redirects to elsewhere.
pub trait Fetch: Send + Sync + 'static {
    /// Returns the document's text.
    fn fetch<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<String, FetchError>>;
}

/// The keys of one provider.
pub struct Keys {
    issuer: String,
    fetch: Arc<dyn Fetch>,
    known: Mutex<Known>,
    /// Held while keys are fetched, so that many callers wait for one fetch.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Known {
    keys: Vec<Jwk>,
    /// The time of the last fetch that came to an end; none before the first.
    fetched_ms: Option<i64>,
    /// The time of the last try.
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

    /// Returns the key of this name; without a name the provider's only key. None if there is none.
    pub(super) async fn find(&self, name: Option<&str>, now_ms: i64) -> Result<Option<Jwk>, FetchError> {
        let look = self.known().look(name, now_ms);
        let wait = match look {
            Look::Done(found) => return Ok(found),
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
            Look::Done(found) => return Ok(found),
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

/// A look at the keys that are known.
enum Look {
    /// No fetch could tell more now.
    Done(Option<Jwk>),
    /// The key is known, and it is time to fetch the keys anew.
    Stale(Jwk),
    /// The key is not known, and a fetch may find it.
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

/// Returns true if a moment lies less than `span_ms` back. A clock that was set back counts as a long time.
fn is_within(at_ms: i64, now_ms: i64, span_ms: i64) -> bool {
    (0..span_ms).contains(&now_ms.saturating_sub(at_ms))
}
