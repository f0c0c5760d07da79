//! Protection against requests that another site's page makes through a browser (CSRF, DNS rebinding).
//!
//! The host must be a known name, against DNS rebinding. A request with effects needs the service's own origin if a browser
//! sends an origin, and a media type that no HTML form can send.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use watershed_api::http::access::Authentication;
use watershed_api::{Code, Problem, hint};

use super::answers::Refused;
use super::caller::Caller;
use super::service::Service;

/// Host names of loopback.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Media types that the body of a request with effects may have.
const BODIES: [&str; 3] = [
    "application/json",
    "application/cloudevents+json",
    "application/cloudevents-batch+json",
];

/// Media types of forms, which are no files.
const FORMS: [&str; 2] = ["application/x-www-form-urlencoded", "multipart/form-data"];

/// Checks host, origin and media type of a request, against other sites that use the caller's browser.
///
/// # Errors
/// 421 for another name of the host, 403 for another origin, 415 for another body.
pub(super) fn check(parts: &Parts, hosts: &[String], base: &str) -> Result<(), Refused> {
    let host = host(parts)
        .map_err(|problem| Refused::new(problem, base).with_status(StatusCode::MISDIRECTED_REQUEST))?;
    if !is_known(&host, hosts) {
        let problem = Problem::new(Code::NotAllowed, format!("this service is not `{host}`")).hint(format!(
            "start it with {}, or name the host in its configuration's `hosts`",
            hint::option("host", &host)
        ));
        return Err(Refused::new(problem, base).with_status(StatusCode::MISDIRECTED_REQUEST));
    }
    if parts.method == Method::GET || parts.method == Method::HEAD {
        return Ok(());
    }
    own_origin(&parts.headers, &host).map_err(|problem| Refused::new(problem, base))?;
    let is_of_file = parts.method == Method::PUT;
    known_body(&parts.headers, is_of_file)
        .map_err(|problem| Refused::new(problem, base).with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE))
}

/// Checks the origin of a request for a WebSocket, which browsers let pages of all sites send. One without an origin comes
/// from no browser, and is let in by a token alone.
///
/// # Errors
/// `not-allowed`.
pub(super) fn check_socket(parts: &Parts, caller: &Caller) -> Result<(), Problem> {
    own_origin(&parts.headers, &host(parts)?)?;
    let has_token = matches!(
        caller.authentication(),
        Authentication::Token | Authentication::Jwt
    );
    match parts.headers.contains_key(ORIGIN) || has_token {
        true => Ok(()),
        false => Err(
            Problem::new(Code::NotAllowed, "a WebSocket without `Origin` needs a token").hint(
                "send `Origin` with the service's own address, or a token as `Authorization: Bearer TOKEN`",
            ),
        ),
    }
}

/// Returns routes whose requests are checked like those of [`router`](super::router()) first: pages beside the service's own, such as
/// those of signing in.
pub fn guarded(service: Service, routes: Router) -> Router {
    routes.layer(from_fn_with_state(service, pass))
}

async fn pass(State(service): State<Service>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let mut response = match check(&parts, service.hosts(), service.base()) {
        Ok(()) => next.run(Request::from_parts(parts, body)).await,
        Err(refused) => return refused.into_response(),
    };
    protect(response.headers_mut());
    response
}

/// Adds the headers of every answer, against browsers that guess, tell others or keep.
pub(super) fn protect(headers: &mut HeaderMap) {
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    headers.insert("referrer-policy", HeaderValue::from_static("no-referrer"));
    headers
        .entry("cache-control")
        .or_insert(HeaderValue::from_static("no-store"));
}

/// Returns the request's host, which must be named exactly once.
fn host(parts: &Parts) -> Result<String, Problem> {
    let wrong = |what: &str| Problem::new(Code::BadArgument, format!("the request names {what}"));
    let mut named = parts.headers.get_all(HOST).iter();
    let first = named
        .next()
        .map(|host| host.to_str().map_err(|_| wrong("a host that is no text")));
    if named.next().is_some() {
        return Err(wrong("several hosts"));
    }
    let first = first.transpose()?;
    let authority = parts.uri.authority().map(ToString::to_string);
    match (authority, first) {
        (Some(authority), Some(host)) if authority != host => Err(wrong("several hosts")),
        (Some(host), _) => Ok(host),
        (None, Some(host)) if !host.is_empty() => Ok(host.to_owned()),
        (None, _) => Err(wrong("no host")),
    }
}

/// Returns true if the host, with or without a port, is loopback or one of `hosts`.
fn is_known(host: &str, hosts: &[String]) -> bool {
    let name = without_port(host);
    let is_it = |known: &str| known.eq_ignore_ascii_case(name) || known.eq_ignore_ascii_case(host);
    LOOPBACK.iter().any(|known| is_it(known)) || hosts.iter().any(|known| is_it(known))
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty() => name,
        _ => host,
    }
}

/// Refuses a request that a browser sends on behalf of another site.
fn own_origin(headers: &HeaderMap, host: &str) -> Result<(), Problem> {
    let refused = |said: &str| {
        Problem::new(
            Code::NotAllowed,
            format!("a page of `{said}` may not change anything here"),
        )
        .hint("open the service's own address")
    };
    if let Some(origin) = headers.get(ORIGIN) {
        let origin = origin.to_str().unwrap_or("another origin");
        let is_own = ["http://", "https://"]
            .iter()
            .any(|scheme| origin.strip_prefix(scheme) == Some(host));
        if !is_own {
            return Err(refused(origin));
        }
    }
    match headers
        .get("sec-fetch-site")
        .map(|site| site.to_str().unwrap_or_default())
    {
        None | Some("same-origin" | "none") => Ok(()),
        Some(site) => Err(refused(site)),
    }
}

/// Refuses bodies that a form on another site can send without a CORS preflight. The body of a file may be of any type but
/// those of forms, for no page sends one without such a preflight.
fn known_body(headers: &HeaderMap, is_of_file: bool) -> Result<(), Problem> {
    let said = headers
        .get(CONTENT_TYPE)
        .map(|said| said.to_str().unwrap_or_default());
    let media = said.map(|said| {
        said.split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase()
    });
    let is_binary_event = headers.contains_key("ce-id");
    match media {
        Some(media) if BODIES.contains(&media.as_str()) => Ok(()),
        Some(media) if is_of_file && !FORMS.contains(&media.as_str()) => Ok(()),
        Some(media) if is_of_file => Err(Problem::new(Code::BadArgument, format!("a file is no `{media}`"))
            .hint("send the file as it is, with another content type, such as `text/plain`")),
        // The body of such an event may be anything, and no form can send the header.
        _ if is_binary_event => Ok(()),
        Some(media) => Err(
            Problem::new(Code::BadArgument, format!("a body of `{media}` is not read here"))
                .hint("send JSON, as `content-type: application/json`"),
        ),
        // No page can send a request that changes something without saying whose it is.
        None if !headers.contains_key(ORIGIN) && !headers.contains_key("sec-fetch-site") => Ok(()),
        None => Err(
            Problem::new(Code::BadArgument, "the request does not say what its body is")
                .hint("send JSON, as `content-type: application/json`"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn status(method: &str, headers: &[(&str, &str)]) -> Option<u16> {
        let mut request = Request::builder().method(method).uri("/v1/instances");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let checked = check(&parts, &["data.example.org".to_owned()], "");
        checked
            .err()
            .map(|refused| refused.into_response().status().as_u16())
    }

    const JSON: (&str, &str) = ("content-type", "application/json");

    #[test]
    fn only_known_hosts_are_served() {
        for host in [
            "localhost",
            "localhost:80",
            "127.0.0.1:9",
            "[::1]:8080",
            "DATA.example.org:443",
        ] {
            assert_eq!(status("GET", &[("host", host)]), None, "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.nip.io",
            "[::2]",
            "",
            "localhost:80:80",
        ] {
            assert_eq!(status("GET", &[("host", host)]), Some(421), "{host}");
        }
        assert_eq!(status("GET", &[]), Some(421));
        assert_eq!(
            status("GET", &[("host", "localhost"), ("host", "localhost")]),
            Some(421)
        );
    }

    #[test]
    fn pages_of_others_change_nothing() {
        let own = ("host", "localhost:8080");
        assert_eq!(status("POST", &[own, JSON]), None);
        assert_eq!(
            status("POST", &[own, JSON, ("origin", "http://localhost:8080")]),
            None
        );
        for origin in [
            "http://evil.example",
            "null",
            "http://localhost:8081",
            "http://localhost",
            "ftp://localhost:8080",
        ] {
            assert_eq!(
                status("POST", &[own, JSON, ("origin", origin)]),
                Some(403),
                "{origin}"
            );
        }
        for site in ["cross-site", "same-site", ""] {
            assert_eq!(
                status("POST", &[own, JSON, ("sec-fetch-site", site)]),
                Some(403),
                "{site}"
            );
        }
        for body in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "",
        ] {
            assert_eq!(
                status("POST", &[own, ("content-type", body)]),
                Some(415),
                "{body}"
            );
        }
        for (body, answer) in [
            ("text/plain", None),
            ("application/octet-stream", None),
            ("application/x-www-form-urlencoded", Some(415)),
            ("multipart/form-data; boundary=x", Some(415)),
        ] {
            assert_eq!(status("PUT", &[own, ("content-type", body)]), answer, "{body}");
            let other = [own, ("content-type", body), ("origin", "http://evil.example")];
            assert_eq!(status("PUT", &other), Some(403), "{body}");
        }
        assert_eq!(status("POST", &[own]), None);
        assert_eq!(
            status("POST", &[own, ("origin", "http://localhost:8080")]),
            Some(415)
        );
        assert_eq!(
            status("POST", &[own, ("ce-id", "1"), ("content-type", "text/plain")]),
            None
        );
    }
}
