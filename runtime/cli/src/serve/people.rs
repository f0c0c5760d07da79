//! Authentication of people: an identity provider's tokens, and a proxy's header.

mod provider;
mod sessions;
mod sign_in;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, RwLock};

use axum::Router;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::future::BoxFuture;
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio_util::sync::CancellationToken;
use watershed::Directory;
use watershed::http::{
    Authentication, Bearers, Caller, Client, Identify, Peer, Service, bearer, guarded, router_with,
    unauthenticated,
};
use watershed_api::documents::Time;
use watershed_api::{Code, Problem};
use watershed_callers::Digest;
use watershed_callers::jwt::{Believer, Claims, Refused};
use watershed_callers::people::{Mapping, Person};
use watershed_callers::state::{State, StateError};
use watershed_locks::Unpoisoned as _;

pub(super) use self::provider::{Https, Provider};
use self::sessions::Sessions;
use self::sign_in::Cookie;

/// The longest e-mail address of a proxy's header, in bytes.
const ADDRESS_MAX: usize = 320;
/// The time for which a verified token is not verified again, in milliseconds.
const VERIFIED_MS: i64 = 60_000;
/// The most verified tokens that are remembered.
const VERIFIED_MAX: usize = 10_000;

/// The people of a configuration, checked.
pub(super) struct Checked {
    /// The provider with the verifier of its tokens; none if not configured.
    pub(super) provider: Option<(Provider, Believer)>,
    /// Header of a proxy; none if not configured.
    pub(super) header: Option<Header>,
    /// Roles and attributes of people.
    pub(super) mapping: Mapping,
}

/// The header in which a proxy names the person.
#[derive(Debug, Clone)]
pub(super) struct Header {
    pub(super) name: HeaderName,
    /// Name of the header with the secret, and the secret's digest; none over a Unix socket.
    pub(super) secret: Option<(HeaderName, Digest)>,
}

impl Checked {
    /// Returns the provider and the header as texts without secrets, by which changes are noticed.
    pub(super) fn fixed(&self) -> [String; 2] {
        let oidc = self.provider.as_ref().map(|(provider, _)| provider.fixed());
        let header = self.header.as_ref().map(|header| {
            let secret = header.secret.as_ref();
            let secret = secret.map(|(name, digest)| format!("{name} {}", digest.to_hex()));
            format!("{} {secret:?}", header.name)
        });
        [oidc.unwrap_or_default(), header.unwrap_or_default()]
    }

    /// Returns the issuer of the provider; none without one.
    pub(super) fn issuer(&self) -> Option<&str> {
        self.provider.as_ref().map(|(provider, _)| provider.issuer())
    }

    /// Returns true if people can sign in.
    pub(super) fn is_any(&self) -> bool {
        self.provider.is_some() || self.header.is_some()
    }
}

/// Authenticates people, and remembers what was seen of them.
pub(super) struct People {
    sign_in: Option<SignIn>,
    header: Option<Header>,
    mapping: RwLock<Arc<Mapping>>,
    /// Token of the streams of people, cancelled when roles or attributes change.
    streams: RwLock<CancellationToken>,
    state: Arc<State>,
    /// Path prefix of the service.
    base: String,
    verified: Mutex<HashMap<[u8; 32], Verified>>,
    /// Times at which people were last written to the state, by e-mail address.
    noted: Mutex<HashMap<String, i64>>,
}

/// Authentication of callers by the configuration of a service: its own tokens, then people.
#[derive(Clone)]
pub(super) struct Chain {
    tokens: Bearers,
    people: Option<Arc<People>>,
}

impl Chain {
    /// Creates the authentication by tokens and, if people can sign in, of people.
    pub(super) fn new(tokens: Bearers, people: Option<Arc<People>>) -> Self {
        Self { tokens, people }
    }

    /// Returns the routes of a service behind this authentication, with the pages of signing in.
    pub(super) fn routes(&self, service: Service) -> Router {
        let routes = router_with(service.clone(), self.clone());
        match &self.people {
            Some(people) if people.sign_in.is_some() => {
                let pages = guarded(service, sign_in::pages(people));
                sign_in::with_sign_in(people, routes).merge(pages)
            }
            _ => routes,
        }
    }
}

impl Identify for Chain {
    fn identify<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Result<Caller, Problem>> {
        Box::pin(async move {
            let credential = bearer(head)?;
            let is_named = self
                .people
                .as_ref()
                .is_some_and(|people| people.is_named_by_proxy(head));
            let holder = credential
                .filter(|_| !is_named)
                .and_then(|text| self.tokens.holder(text));
            match (holder, &self.people) {
                (Some(caller), _) => Ok(caller),
                (None, Some(people)) => {
                    let person = people.identify(head, credential).await?;
                    person.ok_or_else(unauthenticated)
                }
                (None, None) => Err(unauthenticated()),
            }
        })
    }
}

/// Sign-in at a provider.
struct SignIn {
    provider: Provider,
    believer: Believer,
    sessions: Sessions,
}

/// A token that was verified.
#[derive(Clone)]
struct Verified {
    claims: Arc<Claims>,
    /// Time of the verification, in milliseconds since 1970.
    at_ms: i64,
    /// Time of the token's end, in milliseconds since 1970.
    ends_ms: i64,
}

impl People {
    /// Creates the authentication of a configuration's people, with the sessions that go on.
    ///
    /// # Errors
    /// When the state can't be read.
    pub(super) async fn new(checked: Checked, state: Arc<State>, base: &str) -> Result<Self, StateError> {
        let sign_in = match checked.provider {
            Some((provider, believer)) => Some(SignIn {
                provider,
                believer,
                sessions: Sessions::load(Arc::clone(&state)).await?,
            }),
            None => None,
        };
        Ok(Self {
            sign_in,
            header: checked.header,
            mapping: RwLock::new(Arc::new(checked.mapping)),
            streams: RwLock::default(),
            state,
            base: base.to_owned(),
            verified: Mutex::default(),
            noted: Mutex::default(),
        })
    }

    /// Replaces roles and attributes, for all requests from now on. Streams of people end, to be asked for by what they are now.
    pub(super) fn map(&self, mapping: Mapping) {
        if **self.mapping.read().unpoisoned() == mapping {
            return;
        }
        *self.mapping.write().unpoisoned() = Arc::new(mapping);
        std::mem::take(&mut *self.streams.write().unpoisoned()).cancel();
        if let Some(sign_in) = &self.sign_in {
            sign_in.sessions.end_streams();
        }
    }

    /// Returns the token that is cancelled when roles or attributes change.
    fn streams(&self) -> CancellationToken {
        self.streams.read().unpoisoned().clone()
    }

    /// Returns the person who makes a request; none if the request names none, or nobody who is believed.
    ///
    /// # Errors
    /// `unavailable`, when the provider's keys can't be fetched.
    async fn identify(&self, head: &Parts, credential: Option<&str>) -> Result<Option<Caller>, Problem> {
        // Taken before the roles are: who is judged by former ones has a token that is cancelled.
        let (now_ms, streams) = (now_ms(), self.streams());
        if self.is_named_by_proxy(head) {
            return match self.named_by_proxy(head) {
                Ok(person) => {
                    self.note(&person, now_ms).await;
                    Ok(Some(caller(person, Authentication::Proxy).until(streams)))
                }
                Err(why) => {
                    tracing::warn!(why, "a proxy's header is not believed");
                    Ok(None)
                }
            };
        }
        let Some(sign_in) = &self.sign_in else {
            return Ok(None);
        };
        let Some(token) = credential else {
            let session = self
                .session(head)
                .and_then(|secret| sign_in.sessions.find(secret));
            return Ok(session.map(|session| {
                caller(self.of_claims(&session.claims), Authentication::Session)
                    .until(session.streams)
                    .expiring(Time::from_millis(session.ends_ms))
            }));
        };
        match self.verified(&sign_in.believer, token, now_ms).await {
            Ok((claims, ends_ms)) => {
                let person = self.of_claims(&claims);
                self.note(&person, now_ms).await;
                Ok(Some(
                    caller(person, Authentication::Jwt)
                        .until(streams)
                        .expiring(Time::from_millis(ends_ms)),
                ))
            }
            Err(Refused::Keys(error)) => Err(Problem::new(Code::Unavailable, error.to_string())),
            Err(why) => {
                tracing::debug!(%why, "a provider's token is not believed");
                Ok(None)
            }
        }
    }

    /// Returns the secret of the session's cookie; none if the request has none.
    fn session<'h>(&self, head: &'h Parts) -> Option<&'h str> {
        Cookie::new("session", sign_in::is_encrypted(head), &self.base).of(&head.headers)
    }

    fn of_claims(&self, claims: &Claims) -> Person {
        self.mapping.read().unpoisoned().person(claims)
    }

    /// Verifies a provider's token, once a minute at most, and returns its claims and the time of its end.
    async fn verified(
        &self,
        believer: &Believer,
        token: &str,
        now_ms: i64,
    ) -> Result<(Arc<Claims>, i64), Refused> {
        let digest = *blake3::hash(token.as_bytes()).as_bytes();
        let known = self.verified.lock().unpoisoned().get(&digest).cloned();
        if let Some(known) = known
            && (known.at_ms..known.at_ms + VERIFIED_MS).contains(&now_ms)
            && now_ms < known.ends_ms
        {
            return Ok((known.claims, known.ends_ms));
        }
        let claims = Arc::new(believer.believe(token, now_ms).await?);
        let end_s = claims.get("exp").and_then(serde_json::Value::as_f64);
        #[expect(clippy::cast_possible_truncation, reason = "it saturates")]
        let ends_ms = (end_s.unwrap_or_default() * 1_000.0) as i64;
        let known = Verified {
            claims: Arc::clone(&claims),
            at_ms: now_ms,
            ends_ms,
        };
        let mut verified = self.verified.lock().unpoisoned();
        if verified.len() >= VERIFIED_MAX {
            verified.clear();
        }
        verified.insert(digest, known);
        Ok((claims, ends_ms))
    }

    /// Returns true if a request has the header in which a proxy names people.
    fn is_named_by_proxy(&self, head: &Parts) -> bool {
        let header = self.header.as_ref();
        header.is_some_and(|header| head.headers.contains_key(&header.name))
    }

    /// Returns the person whom a declared proxy names.
    ///
    /// # Errors
    /// The reason why the header is not believed.
    fn named_by_proxy(&self, head: &Parts) -> Result<Person, &'static str> {
        let header = self.header.as_ref().ok_or("no header is configured")?;
        let mut named = head.headers.get_all(&header.name).iter();
        let (Some(first), None) = (named.next(), named.next()) else {
            return Err("it stands twice");
        };
        let client = head.extensions.get::<Client>();
        if !client.is_some_and(|client| client.is_behind_proxy) {
            return Err("it comes from no declared proxy");
        }
        if self.session(head).is_some() || head.headers.contains_key(AUTHORIZATION) {
            return Err("the request itself names somebody too");
        }
        if !header.is_secret_shown(head) {
            return Err("the secret is not shown");
        }
        let email = address(first).ok_or("it is no e-mail address")?;
        Ok(self.mapping.read().unpoisoned().named_by_proxy(email))
    }

    /// Stores what was seen of a person, once a minute at most: policies of alerts and reports on their behalf see it.
    async fn note(&self, person: &Person, now_ms: i64) {
        let Some(email) = person.attributes.get("email").and_then(serde_json::Value::as_str) else {
            return;
        };
        {
            let mut noted = self.noted.lock().unpoisoned();
            let is_fresh = |at_ms: &i64| (*at_ms..*at_ms + VERIFIED_MS).contains(&now_ms);
            if noted.get(email).is_some_and(is_fresh) {
                return;
            }
            if noted.len() >= VERIFIED_MAX {
                noted.retain(|_, at_ms| is_fresh(at_ms));
            }
            if noted.len() >= VERIFIED_MAX {
                noted.clear();
            }
            noted.insert(email.to_owned(), now_ms);
        }
        if let Err(error) = self.state.see_person(email, &person.attributes, now_ms).await {
            tracing::warn!(%error, "what was seen of a person is not stored");
        }
    }
}

impl Header {
    /// Returns true if a request shows the proxy's secret exactly once. Over a Unix socket the file is the secret.
    fn is_secret_shown(&self, head: &Parts) -> bool {
        let Some((name, expected)) = &self.secret else {
            // Without a secret the configuration has a Unix socket.
            let peer = head.extensions.get::<Peer>();
            return peer.is_some_and(|peer| peer.address.is_none());
        };
        let mut shown = head.headers.get_all(name).iter();
        let (first, more) = (shown.next(), shown.next());
        let text = first.and_then(|shown| shown.to_str().ok()).unwrap_or_default();
        // Digests are compared in constant time.
        more.is_none() && Digest::of(text) == *expected
    }
}

/// Returns an e-mail address as a proxy names it; none for lists, blanks, other names and what is too long.
fn address(value: &HeaderValue) -> Option<&str> {
    let text = value.to_str().ok()?;
    let is_plain = |sign: char| sign.is_ascii_graphic() && !matches!(sign, ',' | ';' | '"' | '<' | '>');
    let (name, domain) = text.split_once('@')?;
    let is_address = !name.is_empty() && !domain.is_empty() && !domain.contains('@');
    (is_address && text.len() <= ADDRESS_MAX && text.chars().all(is_plain)).then_some(text)
}

/// Returns the caller that a person is. Whoever has no verified address gets a name that is no address, and no other caller's.
fn caller(person: Person, authentication: Authentication) -> Caller {
    let name = match person.attributes.contains_key("email") {
        true => person.name,
        false => format!("person:{}", person.name),
    };
    Caller::with(name, person.roles)
        .seen_as(person.attributes)
        .known_by(authentication)
}

/// Returns the refusal of a sign-in. It says why, but nothing of what the request has shown.
fn refused(why: &str) -> Problem {
    Problem::new(Code::Unauthenticated, why).hint("sign in again")
}

fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// Returns a secret of 256 random bits, as text for addresses and cookies.
fn random() -> String {
    let mut bytes = [0; 32];
    // Without random bytes nobody signs in: the operating system always has some.
    match SystemRandom::new().fill(&mut bytes) {
        Ok(()) => URL_SAFE_NO_PAD.encode(bytes),
        Err(_) => panic!("the system has no random bytes"),
    }
}

/// The directory of the service: people as they were last seen.
pub(super) struct Seen(pub(super) Arc<State>);

impl Directory for Seen {
    fn find<'a>(
        &'a self,
        user: &'a str,
    ) -> BoxFuture<'a, Option<serde_json::Map<String, serde_json::Value>>> {
        Box::pin(async move {
            let found = self.0.person(user).await;
            let found = found.inspect_err(|error| tracing::warn!(%error, "a person can't be looked up"));
            Some(found.ok()??.into_iter().collect())
        })
    }
}
