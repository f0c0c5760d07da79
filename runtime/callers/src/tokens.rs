//! The tokens that a service accepts, in memory: stored tokens, and tokens from a file of the operator.
//!
//! 1. A token that was revoked, has expired or has left its file is found no more, and its [`Live::ended`] is cancelled.
//! 2. A new token is found only after it is stored.
//! 3. A revoked token is forgotten in memory before it is revoked in the state, so that a disk that refuses keeps nobody in.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, RwLock};

use tokio_util::sync::CancellationToken;
use watershed_locks::Unpoisoned as _;

use crate::state::{BETWEEN_NOTES_MS, Listed, State, StateError};
use crate::token::{Minted, Presented, Token, Wanted};

/// The origin of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The token was created by a caller and lies in the state.
    State,
    /// The token stands in a file of the operator.
    File,
}

/// A token that was accepted, as long as it is valid.
#[derive(Debug, Clone)]
pub struct Live {
    /// The token, without its secret.
    pub token: Arc<Token>,
    /// Token that is cancelled when the access token is revoked. Expiry does not cancel it.
    pub ended: CancellationToken,
}

/// The tokens that a service accepts.
pub struct Tokens {
    state: Arc<State>,
    known: RwLock<HashMap<String, Known>>,
}

struct Known {
    live: Live,
    origin: Origin,
    /// Time of the last recorded use, in milliseconds since 1970.
    noted_ms: AtomicI64,
}

impl Known {
    fn new(token: Token, origin: Origin) -> Self {
        Self {
            live: Live {
                token: Arc::new(token),
                ended: CancellationToken::new(),
            },
            origin,
            noted_ms: AtomicI64::new(i64::MIN),
        }
    }
}

/// The outcome of a revocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revoked {
    /// The token is valid no more.
    Done,
    /// The token stands in a file, and is removed there.
    InFile,
    /// The id is unknown, or the token was revoked before.
    Unknown,
}

impl Tokens {
    /// Loads the stored tokens, and adds those of a file.
    ///
    /// # Errors
    /// When the state can't be read.
    pub async fn open(state: Arc<State>, of_file: Vec<Token>) -> Result<Self, StateError> {
        let stored = state.tokens().await?.into_iter();
        let valid = stored.filter(|listed| listed.revoked_ms.is_none());
        let known = valid.map(|listed| (listed.token.id.clone(), Known::new(listed.token, Origin::State)));
        let tokens = Self {
            known: RwLock::new(known.collect()),
            state,
        };
        tokens.replace_file(of_file);
        Ok(tokens)
    }

    /// Replaces the tokens of the file. Tokens that stand there no more, or otherwise, end.
    pub fn replace_file(&self, of_file: Vec<Token>) {
        let mut of_file: HashMap<String, Token> = of_file
            .into_iter()
            .map(|token| (token.id.clone(), token))
            .collect();
        let mut known = self.known.write().unpoisoned();
        known.retain(|id, known| {
            let stays = known.origin == Origin::State || of_file.get(id) == Some(&*known.live.token);
            match stays {
                true => drop(of_file.remove(id)),
                false => known.live.ended.cancel(),
            }
            stays
        });
        for (id, token) in of_file {
            known.insert(id, Known::new(token, Origin::File));
        }
    }

    /// Returns the valid token that was presented; none if it is unknown, expired or revoked, or the secret is wrong.
    pub fn find(&self, presented: &Presented<'_>, now_ms: i64) -> Option<Live> {
        let known = self.known.read().unpoisoned();
        let found = known.get(presented.id)?;
        let is_valid = found.live.token.is_held_by(presented) && !found.live.token.is_over(now_ms);
        is_valid.then(|| found.live.clone())
    }

    /// Returns the valid token of an id, for whoever has its secret proved in another way; none if it is unknown, expired or
    /// revoked. The id proves nothing.
    pub fn of_id(&self, id: &str, now_ms: i64) -> Option<Live> {
        let known = self.known.read().unpoisoned();
        let found = known.get(id).filter(|known| !known.live.token.is_over(now_ms));
        found.map(|known| known.live.clone())
    }

    /// Records the use of a stored token.
    ///
    /// # Errors
    /// When the state can't be written.
    pub async fn note_use(&self, id: &str, now_ms: i64) -> Result<(), StateError> {
        self.state.note_use(id, now_ms).await
    }

    /// Returns true if the use of a stored token should be recorded now; of many at once only for one.
    pub fn is_use_due(&self, id: &str, now_ms: i64) -> bool {
        let known = self.known.read().unpoisoned();
        let stored = known.get(id).filter(|known| known.origin == Origin::State);
        stored.is_some_and(|known| {
            let last = known.noted_ms.load(Ordering::Relaxed);
            let is_due = last.saturating_add(BETWEEN_NOTES_MS) <= now_ms || last > now_ms;
            let noted = &known.noted_ms;
            is_due
                && noted
                    .compare_exchange(last, now_ms, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
        })
    }

    /// Creates a token and stores it. Returns none if too many are stored already.
    ///
    /// # Errors
    /// When the state can't be written.
    pub async fn create(
        &self,
        wanted: Wanted,
        made_by: &str,
        now_ms: i64,
    ) -> Result<Option<Minted>, StateError> {
        let minted = Token::mint(wanted);
        if !self.state.add_token(&minted.token, made_by, now_ms).await? {
            return Ok(None);
        }
        let known = Known::new(minted.token.clone(), Origin::State);
        self.known
            .write()
            .unpoisoned()
            .insert(minted.token.id.clone(), known);
        Ok(Some(minted))
    }

    /// Revokes a stored token for good, and ends its streams.
    ///
    /// # Errors
    /// When the state can't be written. The token is refused all the same until the process ends.
    pub async fn revoke(&self, id: &str, now_ms: i64) -> Result<Revoked, StateError> {
        {
            let mut known = self.known.write().unpoisoned();
            match known.get(id).map(|known| known.origin) {
                Some(Origin::File) => return Ok(Revoked::InFile),
                Some(Origin::State) => {
                    if let Some(known) = known.remove(id) {
                        known.live.ended.cancel();
                    }
                }
                None => {}
            }
        }
        Ok(match self.state.revoke_token(id, now_ms).await? {
            true => Revoked::Done,
            false => Revoked::Unknown,
        })
    }

    /// Returns all tokens with their origin, the newest first, and those of the file last, by name.
    ///
    /// # Errors
    /// When the state can't be read.
    pub async fn list(&self) -> Result<Vec<(Listed, Origin)>, StateError> {
        let stored = self.state.tokens().await?.into_iter();
        let mut all: Vec<(Listed, Origin)> = stored.map(|listed| (listed, Origin::State)).collect();
        let mut of_file: Vec<Token> = {
            let known = self.known.read().unpoisoned();
            let of_file = known.values().filter(|known| known.origin == Origin::File);
            of_file.map(|known| Token::clone(&known.live.token)).collect()
        };
        of_file.sort_by(|one, other| (&one.name, &one.id).cmp(&(&other.name, &other.id)));
        all.extend(
            of_file
                .into_iter()
                .map(|token| (of_operator(token), Origin::File)),
        );
        Ok(all)
    }
}

/// Returns a token of the file as it is listed: nothing is known of its past.
fn of_operator(token: Token) -> Listed {
    Listed {
        token,
        made_ms: 0,
        made_by: "the operator".to_owned(),
        used_ms: None,
        revoked_ms: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grants::{Grant, Grants, Level};

    fn wanted(name: &str) -> Wanted {
        Wanted {
            name: name.into(),
            roles: Grants::one("shop", Grant::new(Level::Read)),
            operations: None,
            select: Vec::new(),
            expires_ms: 1_000,
        }
    }

    async fn opened(of_file: Vec<Token>) -> Tokens {
        let state = Arc::new(State::in_memory().await.unwrap());
        Tokens::open(state, of_file).await.unwrap()
    }

    #[tokio::test]
    async fn s_api17_a_token_is_found_until_it_is_revoked_or_over_and_by_its_secret_alone() {
        let tokens = opened(Vec::new()).await;
        let [kept, lost] = ["kept", "lost"].map(wanted);
        let kept = tokens.create(kept, "ann", 0).await.unwrap().unwrap();
        let lost = tokens.create(lost, "ann", 0).await.unwrap().unwrap();
        let found = |text: &str, now: i64| tokens.find(&Presented::read(text).unwrap(), now);
        let stream = found(&lost.text, 999).unwrap();
        assert!(found(&kept.text, 999).is_some() && found(&kept.text, 1_000).is_none());
        let foreign = Token::mint(wanted("kept"));
        assert!(found(&foreign.text, 0).is_none());
        let of_id = |id: &str, now: i64| tokens.of_id(id, now).map(|live| live.token.id.clone());
        assert_eq!(of_id(&kept.token.id, 999).as_ref(), Some(&kept.token.id));
        assert_eq!(
            [of_id(&kept.token.id, 1_000), of_id(&foreign.token.id, 0)],
            [None, None]
        );
        let (_, secret) = kept.text.rsplit_once('_').unwrap();
        assert!(
            Presented::of_parts(&lost.token.id, secret).is_none(),
            "of another id"
        );
        assert_eq!(tokens.revoke(&lost.token.id, 5).await.unwrap(), Revoked::Done);
        assert!(stream.ended.is_cancelled() && found(&lost.text, 0).is_none());
        assert!(tokens.of_id(&lost.token.id, 0).is_none());
        assert_eq!(tokens.revoke(&lost.token.id, 6).await.unwrap(), Revoked::Unknown);
        assert_eq!(tokens.revoke("nobody's", 6).await.unwrap(), Revoked::Unknown);
        // And after a restart.
        let again = Tokens::open(Arc::clone(&tokens.state), Vec::new()).await.unwrap();
        assert!(again.find(&Presented::read(&kept.text).unwrap(), 0).is_some());
        assert!(again.find(&Presented::read(&lost.text).unwrap(), 0).is_none());
        assert_eq!(again.list().await.unwrap().len(), 2, "a revoked one is listed");
    }

    #[tokio::test]
    async fn a_token_ends_when_it_leaves_its_file_or_is_another_there() {
        let minted = ["a", "b", "c"].map(|name| Token::mint(wanted(name)));
        let all: Vec<Token> = minted.iter().map(|minted| minted.token.clone()).collect();
        let tokens = opened(all.clone()).await;
        let live = minted.each_ref().map(|minted| {
            let found = tokens.find(&Presented::read(&minted.text).unwrap(), 0);
            found.unwrap().ended
        });
        assert_eq!(tokens.revoke(&all[0].id, 0).await.unwrap(), Revoked::InFile);
        let mut wider = all[1].clone();
        wider.roles = Grants::one("shop", Grant::new(Level::Admin));
        tokens.replace_file(vec![all[0].clone(), wider]);
        assert_eq!(
            live.each_ref().map(CancellationToken::is_cancelled),
            [false, true, true]
        );
        let found = minted.each_ref().map(|minted| {
            let found = tokens.find(&Presented::read(&minted.text).unwrap(), 0);
            found.is_some()
        });
        assert_eq!(found, [true, true, false]);
    }

    #[tokio::test]
    async fn uses_are_noted_once_a_minute_without_the_state_being_asked() {
        let tokens = opened(Vec::new()).await;
        let id = tokens
            .create(wanted("a"), "ann", 0)
            .await
            .unwrap()
            .unwrap()
            .token
            .id;
        let mut due = Vec::new();
        for now in [5, 6, 60_004, 60_005, 7] {
            let is_due = tokens.is_use_due(&id, now);
            due.push(is_due);
            if is_due {
                tokens.note_use(&id, now).await.unwrap();
            }
        }
        assert_eq!(due, [true, false, false, true, true]);
        let (listed, _) = tokens.list().await.unwrap().remove(0);
        assert_eq!(listed.used_ms, Some(7));
        assert!(!tokens.is_use_due("nobody's", 0));
    }
}
