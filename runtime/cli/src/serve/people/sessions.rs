//! Sessions of people who have signed in with a browser.
//!
//! 1. A session is found only after it is stored, by the digest of its cookie alone.
//! 2. A session ends by signing out, and twelve hours after it began: its streams end with it.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use watershed_api::{Code, Problem};
use watershed_callers::Digest;
use watershed_callers::jwt::Claims;
use watershed_callers::state::{Session, State, StateError};
use watershed_locks::Unpoisoned as _;

use super::{now_ms, random};

/// The life of a session in seconds: a working day.
pub(super) const LIFE_S: i64 = 12 * 3_600;

/// The open sessions. Clones share them.
#[derive(Clone)]
pub(super) struct Sessions {
    state: Arc<State>,
    open: Arc<RwLock<HashMap<String, Open>>>,
}

/// An open session.
#[derive(Clone)]
pub(super) struct Open {
    pub(super) claims: Arc<Claims>,
    /// Token that is cancelled when the session ends.
    ended: CancellationToken,
    /// Token of the session's streams, cancelled with the session or when roles change.
    pub(super) streams: CancellationToken,
    /// Time of its end, in milliseconds since 1970.
    pub(super) ends_ms: i64,
}

impl Sessions {
    /// Loads the stored sessions.
    ///
    /// # Errors
    /// When the state can't be read.
    pub(super) async fn load(state: Arc<State>) -> Result<Self, StateError> {
        let now_ms = now_ms();
        let stored = state.sessions(now_ms).await?;
        let sessions = Self {
            state,
            open: Arc::default(),
        };
        for session in stored {
            sessions.keep(session, now_ms);
        }
        Ok(sessions)
    }

    /// Begins a session, and returns the secret of its cookie.
    ///
    /// # Errors
    /// `busy` if there are too many, `unavailable` if the session can't be stored.
    pub(super) async fn begin(&self, claims: Claims) -> Result<String, Problem> {
        let (secret, now_ms) = (random(), now_ms());
        let session = Session {
            digest: Digest::of(&secret),
            claims,
            ends_ms: now_ms + LIFE_S * 1_000,
        };
        match self.state.add_session(&session, now_ms).await {
            Ok(true) => self.keep(session, now_ms),
            Ok(false) => return Err(Problem::new(Code::Busy, "too many people are signed in")),
            Err(error) => return Err(unstored(&error)),
        }
        Ok(secret)
    }

    fn keep(&self, session: Session, now_ms: i64) {
        let ended = CancellationToken::new();
        let open = Open {
            claims: Arc::new(session.claims),
            streams: ended.child_token(),
            ended,
            ends_ms: session.ends_ms,
        };
        let key = session.digest.to_hex();
        let left = Duration::from_millis(u64::try_from(session.ends_ms - now_ms).unwrap_or_default());
        let (sessions, ended) = (Arc::clone(&self.open), open.ended.clone());
        self.open.write().unpoisoned().insert(key.clone(), open);
        tokio::spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(left) => ended.cancel(),
                () = ended.cancelled() => {}
            }
            sessions.write().unpoisoned().remove(&key);
        });
    }

    /// Returns the session of a cookie; none if it has ended, or never was.
    pub(super) fn find(&self, secret: &str) -> Option<Open> {
        let key = Digest::of(secret).to_hex();
        let found = self.open.read().unpoisoned().get(&key).cloned()?;
        (found.ends_ms > now_ms()).then_some(found)
    }

    /// Ends the streams of all sessions, which go on.
    pub(super) fn end_streams(&self) {
        for open in self.open.write().unpoisoned().values_mut() {
            let next = open.ended.child_token();
            std::mem::replace(&mut open.streams, next).cancel();
        }
    }

    /// Ends a session, also one that has ended already.
    ///
    /// # Errors
    /// `unavailable`, if the end can't be stored; this process forgets the session all the same.
    pub(super) async fn end(&self, secret: &str) -> Result<(), Problem> {
        let digest = Digest::of(secret);
        if let Some(open) = self.open.write().unpoisoned().remove(&digest.to_hex()) {
            open.ended.cancel();
        }
        let ended = self.state.end_session(digest).await;
        ended.map_err(|error| unstored(&error))
    }
}

fn unstored(error: &StateError) -> Problem {
    Problem::new(Code::Unavailable, error.to_string())
}
