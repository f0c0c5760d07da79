//! Sign-in with a browser: the code flow with PKCE (RFC 6749, RFC 7636, OpenID Connect Core 1.0).
//!
//! 1. A sign-in ends in the browser that began it: `state`, `nonce` and the verifier lie in a cookie of ten minutes.
//! 2. The ID token goes through the same verifier as tokens that programs show.
//! 3. After it the browser goes to a path of this service, and nowhere else.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT, COOKIE, LOCATION, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;
use watershed::http::Client;
use watershed_api::http::ProblemDocument;
use watershed_api::{Code, Problem};

use super::provider::Exchange;
use super::sessions::LIFE_S;
use super::{People, now_ms, random, refused};

/// The time within which a sign-in has to end, in seconds.
const WITHIN_S: i64 = 600;
/// The longest path to which a browser returns, in bytes.
const NEXT_MAX: usize = 2_048;
/// The longest parameter of the provider's answer, in bytes.
const PARAMETER_MAX: usize = 4_096;
/// The path of all that belongs to signing in.
const PATH: &str = "/auth/";

/// A sign-in that has begun, as its cookie has it.
#[derive(Serialize, Deserialize)]
struct Begun {
    state: String,
    nonce: String,
    verifier: String,
    next: String,
    until_ms: i64,
}

/// A cookie of the service: its name and its attributes, by the connection and the path prefix.
pub(super) struct Cookie {
    name: String,
    attributes: String,
}

impl Cookie {
    pub(super) fn new(what: &str, is_encrypted: bool, base: &str) -> Self {
        let (prefix, path, secure) = match (is_encrypted, base) {
            (true, "") => ("__Host-", "/", "; Secure"),
            (true, base) => ("__Secure-", base, "; Secure"),
            (false, "") => ("", "/", ""),
            (false, base) => ("", base, ""),
        };
        Self {
            name: format!("{prefix}watershed_{what}"),
            attributes: format!("; Path={path}; HttpOnly; SameSite=Lax{secure}"),
        }
    }

    /// Returns the cookie's value in a request; none if the request has it not, or twice.
    pub(super) fn of<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        let lines = headers.get_all(COOKIE).iter();
        let pairs = lines
            .filter_map(|line| line.to_str().ok())
            .flat_map(|line| line.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        let mut named = pairs
            .filter(|(name, _)| *name == self.name)
            .map(|(_, value)| value);
        let first = named.next()?;
        named.next().is_none().then_some(first)
    }

    fn set(&self, value: &str, life_s: i64) -> Option<HeaderValue> {
        let text = format!("{}={value}{}; Max-Age={life_s}", self.name, self.attributes);
        HeaderValue::try_from(text).ok()
    }
}

/// Returns true if the client's own connection is encrypted.
pub(super) fn is_encrypted(head: &Parts) -> bool {
    head.extensions
        .get::<Client>()
        .is_some_and(|client| client.is_encrypted)
}

/// Adds the pages of signing in to the routes of a service, and sends browsers there that nobody has signed in.
pub(in crate::serve) fn with_sign_in(people: &Arc<People>, routes: Router) -> Router {
    routes.layer(from_fn_with_state(Arc::clone(people), to_sign_in))
}

/// Returns the pages of signing in.
pub(in crate::serve) fn pages(people: &Arc<People>) -> Router {
    Router::new()
        .route("/auth/login", get(login))
        .route("/auth/callback", get(callback))
        .route("/auth/logout", post(logout))
        .with_state(Arc::clone(people))
}

/// Sends a browser to the sign-in that looks at a page without a session.
async fn to_sign_in(State(people): State<Arc<People>>, request: Request, next: Next) -> Response {
    let accept = request
        .headers()
        .get(ACCEPT)
        .and_then(|accept| accept.to_str().ok());
    let is_page =
        request.method() == Method::GET && accept.is_some_and(|accept| accept.contains("text/html"));
    let path = request.uri().path_and_query().map(ToString::to_string);
    let response = next.run(request).await;
    if !is_page || response.status() != StatusCode::UNAUTHORIZED {
        return response;
    }
    let next = encoded(&path.unwrap_or_default());
    to(&format!("{}{PATH}login?next={next}", people.base)).unwrap_or(response)
}

fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// Returns the parameters of a query; none of those that stand twice or are too long.
fn parameter(query: Option<&str>, name: &str) -> Option<String> {
    let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let mut named = pairs.filter(|(key, _)| key == name).map(|(_, value)| value);
    let first = named.next()?;
    (named.next().is_none() && first.len() <= PARAMETER_MAX).then(|| first.into_owned())
}

/// Returns a path of this service to which a browser may return; the first page for everything else.
fn own_path(next: Option<String>) -> String {
    let is_own = |next: &String| {
        let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
        next.len() <= NEXT_MAX
            && next.starts_with('/')
            && !next.starts_with("//")
            && !next.starts_with(PATH)
            && next.bytes().all(is_plain)
    };
    next.filter(is_own).unwrap_or_else(|| "/".to_owned())
}

fn to(address: &str) -> Option<Response> {
    let mut response = StatusCode::SEE_OTHER.into_response();
    response
        .headers_mut()
        .insert(LOCATION, HeaderValue::try_from(address).ok()?);
    Some(response)
}

async fn login(State(people): State<Arc<People>>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let answered = people.begin(&head).await;
    answered.unwrap_or_else(|problem| people.problem(problem))
}

async fn callback(State(people): State<Arc<People>>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let mut response = match people.finish(&head).await {
        Ok(response) => response,
        Err(problem) => people.problem(problem),
    };
    // One try for each beginning.
    let cookie = Cookie::new("sign_in", is_encrypted(&head), &people.base);
    if let Some(gone) = cookie.set("", 0) {
        response.headers_mut().append(SET_COOKIE, gone);
    }
    response
}

async fn logout(State(people): State<Arc<People>>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let cookie = Cookie::new("session", is_encrypted(&head), &people.base);
    let ended = match (cookie.of(&head.headers), &people.sign_in) {
        (Some(secret), Some(sign_in)) => sign_in.sessions.end(secret).await,
        _ => Ok(()),
    };
    let mut response = match ended {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(problem) => people.problem(problem),
    };
    if let Some(gone) = cookie.set("", 0) {
        response.headers_mut().append(SET_COOKIE, gone);
    }
    response
}

impl People {
    /// Begins a sign-in, and returns the way to the provider.
    async fn begin(&self, head: &Parts) -> Result<Response, Problem> {
        let sign_in = self.sign_in.as_ref().ok_or_else(no_provider)?;
        let begun = Begun {
            state: random(),
            nonce: random(),
            verifier: random(),
            next: own_path(parameter(head.uri.query(), "next")),
            until_ms: now_ms() + WITHIN_S * 1_000,
        };
        let back = self.back(head)?;
        let challenge = ring::digest::digest(&ring::digest::SHA256, begun.verifier.as_bytes());
        let way = sign_in
            .provider
            .way(&[
                ("response_type", "code"),
                ("scope", "openid email profile"),
                ("redirect_uri", &back),
                ("state", &begun.state),
                ("nonce", &begun.nonce),
                ("code_challenge", &BASE64.encode(challenge)),
                ("code_challenge_method", "S256"),
            ])
            .await?;
        let value = BASE64.encode(serde_json::to_vec(&begun).unwrap_or_default());
        let cookie = Cookie::new("sign_in", is_encrypted(head), &self.base).set(&value, WITHIN_S);
        let broken = || Problem::new(Code::Unavailable, "the provider's address is none");
        let mut response = to(&way).ok_or_else(broken)?;
        response
            .headers_mut()
            .append(SET_COOKIE, cookie.ok_or_else(broken)?);
        Ok(response)
    }

    /// Ends a sign-in with the provider's answer, and returns the way back.
    async fn finish(&self, head: &Parts) -> Result<Response, Problem> {
        let sign_in = self.sign_in.as_ref().ok_or_else(no_provider)?;
        let cookie = Cookie::new("sign_in", is_encrypted(head), &self.base);
        let begun = cookie
            .of(&head.headers)
            .and_then(|value| BASE64.decode(value).ok());
        let begun: Option<Begun> = begun.and_then(|value| serde_json::from_slice(&value).ok());
        let begun = begun
            .filter(|begun| begun.until_ms > now_ms())
            .ok_or_else(|| refused("the sign-in did not begin in this browser, or took too long"))?;
        let query = head.uri.query();
        let state = parameter(query, "state").unwrap_or_default();
        if !bool::from(state.as_bytes().ct_eq(begun.state.as_bytes())) {
            return Err(refused("the answer belongs to another sign-in"));
        }
        // An answer that names another provider was begun there (RFC 9207).
        if parameter(query, "iss").is_some_and(|issuer| !sign_in.provider.is(&issuer)) {
            return Err(refused("the answer is another provider's"));
        }
        if let Some(error) = parameter(query, "error") {
            let said: String = error.chars().filter(char::is_ascii_graphic).take(64).collect();
            return Err(refused(&format!("the identity provider refused: {said}")));
        }
        let code = parameter(query, "code").ok_or_else(|| refused("the answer has no code"))?;
        let token = sign_in
            .provider
            .exchange(&Exchange {
                code: &code,
                redirect: &self.back(head)?,
                verifier: &begun.verifier,
            })
            .await?;
        let believed = sign_in.believer.believe(&token, now_ms()).await;
        let claims = believed.map_err(|why| refused(&why.to_string()))?;
        let nonce = claims
            .get("nonce")
            .and_then(serde_json::Value::as_str)
            .unwrap_or_default();
        if !bool::from(nonce.as_bytes().ct_eq(begun.nonce.as_bytes())) {
            return Err(refused("the token belongs to another sign-in"));
        }
        self.note(&self.of_claims(&claims), now_ms()).await;
        let secret = sign_in.sessions.begin(claims).await?;
        let session = Cookie::new("session", is_encrypted(head), &self.base);
        let broken = || Problem::new(Code::Defect, "the way back is none");
        let mut response = to(&format!("{}{}", self.base, own_path(Some(begun.next)))).ok_or_else(broken)?;
        let cookie = session.set(&secret, LIFE_S).ok_or_else(broken)?;
        response.headers_mut().append(SET_COOKIE, cookie);
        Ok(response)
    }

    /// Returns the address at which the provider answers, under the name that the browser knows.
    fn back(&self, head: &Parts) -> Result<String, Problem> {
        let host = head.headers.get(axum::http::header::HOST);
        let host = host.and_then(|host| host.to_str().ok());
        let host = host.ok_or_else(|| Problem::new(Code::BadArgument, "the request names no host"))?;
        let scheme = if is_encrypted(head) { "https" } else { "http" };
        Ok(format!("{scheme}://{host}{}{PATH}callback", self.base))
    }

    fn problem(&self, problem: Problem) -> Response {
        let document = ProblemDocument::new(problem, &self.base);
        let status = StatusCode::from_u16(document.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&document).unwrap_or_default();
        let media = HeaderValue::from_static(ProblemDocument::MEDIA_TYPE);
        (status, [(axum::http::header::CONTENT_TYPE, media)], body).into_response()
    }
}

fn no_provider() -> Problem {
    Problem::new(
        Code::UnknownName,
        "nobody signs in here: no identity provider is configured",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s_api16_a_browser_returns_to_a_path_of_this_service_and_nowhere_else() {
        for own in ["/", "/ui/shop?view=graph", "/%2f%2fevil.example", "/a//b"] {
            assert_eq!(own_path(Some(own.to_owned())), own);
        }
        for other in [
            "//evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "https://evil.example",
            "evil.example",
            "",
            "/\t/evil.example",
            "/ /evil.example",
            "/\r\nset-cookie: a=b",
            "/auth/login",
            "/\u{e9}",
        ] {
            assert_eq!(own_path(Some(other.to_owned())), "/", "{other:?}");
        }
        assert_eq!(own_path(Some(format!("/{}", "a".repeat(NEXT_MAX)))), "/");
        assert_eq!(own_path(None), "/");
    }

    #[test]
    fn s_api16_cookies_are_bound_to_the_host_or_the_path() {
        for (is_encrypted, base, expected) in [
            (
                true,
                "",
                "__Host-watershed_session=x; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=9",
            ),
            (
                true,
                "/data",
                "__Secure-watershed_session=x; Path=/data; HttpOnly; SameSite=Lax; Secure; Max-Age=9",
            ),
            (
                false,
                "",
                "watershed_session=x; Path=/; HttpOnly; SameSite=Lax; Max-Age=9",
            ),
            (
                false,
                "/data",
                "watershed_session=x; Path=/data; HttpOnly; SameSite=Lax; Max-Age=9",
            ),
        ] {
            let cookie = Cookie::new("session", is_encrypted, base);
            assert_eq!(cookie.set("x", 9).unwrap(), expected);
        }
        // A name without the prefix could be set by a page that is not encrypted.
        let strict = Cookie::new("session", true, "");
        let headers = |line: &'static str| HeaderMap::from_iter([(COOKIE, HeaderValue::from_static(line))]);
        assert_eq!(strict.of(&headers("a=b; __Host-watershed_session=x")), Some("x"));
        assert_eq!(strict.of(&headers("watershed_session=x")), None);
        assert_eq!(strict.of(&headers("__Secure-watershed_session=x")), None);
        assert_eq!(
            strict.of(&headers("__Host-watershed_session=x; __Host-watershed_session=y")),
            None
        );
    }

    #[test]
    fn a_parameter_that_stands_twice_is_none() {
        assert_eq!(
            parameter(Some("state=a&code=b%26"), "code").as_deref(),
            Some("b&")
        );
        assert_eq!(parameter(Some("state=a&state=a"), "state"), None);
        assert_eq!(parameter(Some("states=a"), "state"), None);
        assert_eq!(parameter(None, "state"), None);
    }
}
