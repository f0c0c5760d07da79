//! The place at which a client finds who signs people in (RFC 9728), for services whose people sign in at a provider.

use axum::http::header::{HOST, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use serde_json::json;

use super::super::answers;
use super::super::proxies::Client;
use super::super::service::Service;
use super::door::PATH;

/// The path of the document, also followed by that of the door.
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// Returns the document that a request asks for; none if it asks for something else, or nobody signs in.
pub(in crate::http) fn answer(service: &Service, parts: &Parts) -> Option<Response> {
    let issuer = service.issuer()?;
    let rest = parts.uri.path().strip_prefix(WELL_KNOWN)?;
    if !(rest.is_empty() || rest == PATH) || parts.method != axum::http::Method::GET {
        return None;
    }
    Some(answers::json(&json!({
        "resource": format!("{}{PATH}", own_address(service, parts)),
        "authorization_servers": [issuer],
        "bearer_methods_supported": ["header"],
        "resource_name": "Watershed",
    })))
}

/// Adds the address of the document to an answer of the door that asks for authentication.
pub(in crate::http) fn challenge(service: &Service, parts: &Parts, response: &mut Response) {
    let is_asked = response.status() == StatusCode::UNAUTHORIZED && parts.uri.path() == PATH;
    if service.issuer().is_none() || !is_asked {
        return;
    }
    let address = own_address(service, parts);
    let value = format!("Bearer resource_metadata=\"{address}{WELL_KNOWN}\"");
    if let Ok(value) = HeaderValue::from_str(&value) {
        response.headers_mut().insert(WWW_AUTHENTICATE, value);
    }
}

/// Returns the address of the service, as the client has called it. The host is one that the service knows.
fn own_address(service: &Service, parts: &Parts) -> String {
    let client = parts.extensions.get::<Client>();
    let scheme = match client.is_some_and(|client| client.is_encrypted) {
        true => "https",
        false => "http",
    };
    let called = || parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = called()
        .or_else(|| parts.uri.authority().map(|it| it.as_str()))
        .unwrap_or("localhost");
    format!("{scheme}://{host}{}", service.base())
}
