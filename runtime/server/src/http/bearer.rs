//! Authentication by the service's own tokens: `Authorization: Bearer wsd_ID_SECRET`.

use std::sync::Arc;

use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use futures::future::{BoxFuture, ready};
use watershed_api::documents::Time;
use watershed_api::http::access::Authentication;
use watershed_api::{Code, Problem};
use watershed_callers::tokens::Live;
use watershed_callers::{Presented, Tokens};

use super::caller::{Caller, Identify, Narrowing};

/// The longest credential that is looked at, in bytes.
const LONGEST: usize = 16 << 10;

/// Returns the problem of a request whose caller is not known. It is the same whatever is wrong with a credential, so that nobody
/// learns which tokens there are.
pub fn unauthenticated() -> Problem {
    Problem::new(Code::Unauthenticated, "nobody knows who asks").hint(
        "send a token that is valid, as `Authorization: Bearer TOKEN`; an admin of the service makes one",
    )
}

/// Returns the credential of the scheme `Bearer`; none if the request has no credential.
///
/// # Errors
/// `unauthenticated`, for several credentials, another scheme, or one that is no text.
pub fn bearer(head: &Parts) -> Result<Option<&str>, Problem> {
    let mut given = head.headers.get_all(AUTHORIZATION).iter();
    let Some(first) = given.next() else {
        return Ok(None);
    };
    if given.next().is_some() || first.len() > LONGEST {
        return Err(unauthenticated());
    }
    let (scheme, credential) = first
        .to_str()
        .ok()
        .and_then(|text| text.split_once(' '))
        .ok_or_else(unauthenticated)?;
    match scheme.eq_ignore_ascii_case("bearer") {
        true => Ok(Some(credential.trim_matches(' '))),
        false => Err(unauthenticated()),
    }
}

/// Authenticates requests by the service's own tokens. Clones share them.
#[derive(Clone)]
pub struct Bearers(Arc<Tokens>);

impl Bearers {
    /// Creates the authentication by these tokens.
    pub fn new(tokens: Arc<Tokens>) -> Self {
        Self(tokens)
    }

    /// Returns the caller who holds a token; none for any other text.
    pub fn holder(&self, credential: &str) -> Option<Caller> {
        let now_ms = Time::now().millis();
        let live = self.0.find(&Presented::read(credential)?, now_ms)?;
        self.note(&live, now_ms);
        Some(caller(live))
    }

    /// Returns the caller who has proved the secret of a verifier; none if the token of this id is not valid, or has another.
    #[cfg(feature = "pgwire")]
    pub(super) fn proved(&self, id: &str, verifier: &watershed_callers::Verifier) -> Option<Caller> {
        let now_ms = Time::now().millis();
        let live = self.0.of_id(id, now_ms)?;
        if live.token.scram.as_ref() != Some(verifier) {
            return None;
        }
        self.note(&live, now_ms);
        Some(caller(live))
    }

    /// Notes the use of a token, if that is due.
    fn note(&self, live: &Live, now_ms: i64) {
        if self.0.is_use_due(&live.token.id, now_ms) {
            let (tokens, id) = (Arc::clone(&self.0), live.token.id.clone());
            tokio::spawn(async move {
                if let Err(error) = tokens.note_use(&id, now_ms).await {
                    tracing::warn!(%error, "the use of a token can't be noted");
                }
            });
        }
    }
}

fn caller(live: Live) -> Caller {
    let token = live.token;
    // Names of tokens are chosen by callers, and could be those of people.
    let caller = Caller::with(format!("token:{}", token.id), token.roles.clone())
        .known_by(Authentication::Token)
        .until(live.ended)
        .expiring(Time::from_millis(token.expires_ms));
    match token.operations.is_none() && token.select.is_empty() {
        true => caller,
        false => caller.narrowed(Narrowing {
            operations: token.operations.clone(),
            select: token.select.clone(),
        }),
    }
}

impl Identify for Bearers {
    fn identify<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Result<Caller, Problem>> {
        let found = bearer(head).and_then(|given| {
            let holder = given.and_then(|credential| self.holder(credential));
            holder.ok_or_else(unauthenticated)
        });
        Box::pin(ready(found))
    }
}
