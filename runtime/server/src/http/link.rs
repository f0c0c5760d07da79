//! Authentication by a link for one use: whoever opens the link gets a session with all roles until the process ends.
//!
//! For callers whose user can't be looked up: other users of the machine, containers, port forwards.

use std::fmt;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::header::{CACHE_CONTROL, COOKIE, LOCATION, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use blake3::Hash;
use uuid::Uuid;
use watershed_api::{Code, Problem};
use watershed_locks::Unpoisoned;

use super::answers::Refused;
use super::caller::Caller;
use super::guard;
use super::router::router;
use super::service::Service;

/// The path prefix of links.
const PATH: &str = "/link/";
/// Headers by which a browser marks a prefetch.
const EARLY: [&str; 2] = ["sec-purpose", "purpose"];

/// The routes of a service with the link that opens a session.
pub struct Linked {
    /// Routes that require the session.
    pub routes: Router,
    /// The path of the link below the service's path prefix. A secret.
    pub path: String,
}

impl fmt::Debug for Linked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Linked").finish_non_exhaustive()
    }
}

/// Returns the routes of a service behind a link for one use. `name` makes the session's cookie unique, since browsers
/// share cookies among all ports of a host.
pub fn router_by_link(service: Service, name: &str) -> Linked {
    let secret = secret();
    let door = Door(Arc::new(Shared {
        cookie: format!("watershed_{name}"),
        service: service.clone(),
        link: Mutex::new(Some(blake3::hash(secret.as_bytes()))),
        session: Mutex::new(None),
    }));
    let path = format!("{}{PATH}{secret}", service.base());
    let asked = door.clone();
    let routes = router(service, move |head| asked.who(head))
        .merge(Router::new().route("/link/{secret}", get(enter)).with_state(door));
    Linked { routes, path }
}

/// The session of a link: authenticates requests by a cookie.
#[derive(Clone)]
struct Door(Arc<Shared>);

struct Shared {
    /// Name of the session's cookie.
    cookie: String,
    service: Service,
    /// Hash of the link's secret; none once the link was used.
    link: Mutex<Option<Hash>>,
    /// Hash of the session's secret; none before the link is used.
    session: Mutex<Option<Hash>>,
}

/// Returns a secret of 256 bits, of which 244 are random.
fn secret() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}

impl Door {
    /// Returns the owner as the caller if the request has the session's cookie.
    fn who(&self, head: &Parts) -> Result<Caller, Problem> {
        let session = *self.0.session.lock().unpoisoned();
        // Hashes are compared in constant time.
        let is_owner = self
            .cookies(head)
            .any(|value| Some(blake3::hash(value.as_bytes())) == session);
        match is_owner {
            true => Ok(Caller::owner("link")),
            false => Err(
                Problem::new(Code::NotAllowed, "only who has opened the service's link may ask")
                    .hint("open the link that the service wrote when it started"),
            ),
        }
    }

    fn cookies<'h>(&self, head: &'h Parts) -> impl Iterator<Item = &'h str> + use<'h, '_> {
        let lines = head.headers.get_all(COOKIE).iter();
        let pairs = lines
            .filter_map(|line| line.to_str().ok())
            .flat_map(|line| line.split(';'));
        let named = pairs.filter_map(|pair| pair.trim().split_once('='));
        named
            .filter(|(name, _)| *name == self.0.cookie)
            .map(|(_, value)| value)
    }

    /// Uses up the link and returns the session's cookie; none if the secret is wrong or was used before.
    fn open(&self, given: &str) -> Option<String> {
        let mut link = self.0.link.lock().unpoisoned();
        if *link != Some(blake3::hash(given.as_bytes())) {
            return None;
        }
        *link = None;
        let session = secret();
        *self.0.session.lock().unpoisoned() = Some(blake3::hash(session.as_bytes()));
        let path = match self.0.service.base() {
            "" => "/",
            base => base,
        };
        Some(format!(
            "{}={session}; Path={path}; HttpOnly; SameSite=Lax",
            self.0.cookie
        ))
    }
}

async fn enter(State(door): State<Door>, Path(given): Path<String>, request: Request) -> Response {
    let service = &door.0.service;
    let (parts, _) = request.into_parts();
    if let Err(refused) = guard::check(&parts, service.hosts(), service.base()) {
        return refused.into_response();
    }
    let refused = |message: &str, hint: &str| {
        Refused::new(Problem::new(Code::NotAllowed, message).hint(hint), service.base()).into_response()
    };
    // A preview of the link is nobody who opens it.
    if parts.method == Method::HEAD || EARLY.iter().any(|name| parts.headers.contains_key(*name)) {
        return refused("the link was not opened", "open it, without a look ahead");
    }
    let opened = door.open(&given);
    let Some(cookie) = opened.and_then(|cookie| HeaderValue::try_from(cookie).ok()) else {
        return refused(
            "this link was used already, or is none of this service's",
            "start the service again: it writes another link",
        );
    };
    let mut response = StatusCode::SEE_OTHER.into_response();
    let headers = response.headers_mut();
    let home = format!("{}/", service.base());
    if let Ok(home) = HeaderValue::try_from(home) {
        headers.insert(LOCATION, home);
    }
    headers.insert(SET_COOKIE, cookie);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        HeaderName::from_static("referrer-policy"),
        HeaderValue::from_static("no-referrer"),
    );
    response
}
