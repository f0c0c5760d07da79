//! The HTTP client of notifiers: no redirects, no proxy, bounded in time and in what it reads.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{RequestBuilder, StatusCode, Url};
use rustls::{ClientConfig, RootCertStore};
use watershed_schedule::jiff;

use super::DeliveryError;
use crate::policy;

/// The time that a call may take: receivers queue, they don't work while one waits.
const CALL_WITHIN: Duration = Duration::from_secs(10);
/// The most bytes of an answer that are read.
const ANSWER_MAX: usize = 64 * 1024;

/// A client of HTTP receivers. Cheap to clone; nothing of it is global.
#[derive(Clone, Debug)]
pub struct Client {
    client: reqwest::Client,
}

/// The client can't be made.
#[derive(Debug, thiserror::Error)]
#[error("can't make an HTTP client: {0}")]
pub struct ClientError(String);

/// An address is refused. It is not shown: it may hold a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It is no URL.
    #[error("the address is no URL such as `https://example.org/hook`")]
    NoUrl,
    /// It is not encrypted, and leaves the machine.
    #[error("the address must begin with `https`; plain HTTP goes to this machine alone")]
    Unencrypted,
}

/// The answer of a receiver.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Vec<u8>,
}

impl Client {
    /// Returns a client that trusts the authorities of the web.
    ///
    /// # Errors
    /// When TLS can't be configured.
    pub fn new() -> Result<Self, ClientError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let roots = RootCertStore {
            roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
        };
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| ClientError(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            // A redirected message would go where nobody said that it should.
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .timeout(CALL_WITHIN)
            .build()
            .map_err(|error| ClientError(error.to_string()))?;
        Ok(Self { client })
    }

    /// Begins a POST of JSON.
    pub(super) fn post(&self, to: &Url, body: Vec<u8>) -> RequestBuilder {
        let request = self.client.post(to.clone());
        request.header("content-type", "application/json").body(body)
    }

    /// Begins a GET.
    pub(super) fn get(&self, from: &Url) -> RequestBuilder {
        self.client.get(from.clone())
    }
}

/// Sends a request; any status but 2xx is a failure.
pub(super) async fn send(request: RequestBuilder) -> Result<Answer, DeliveryError> {
    let mut response = request.send().await.map_err(|error| unreachable(&error))?;
    let status = response.status();
    if !status.is_success() {
        return Err(refused(status, response.headers()));
    }
    let mut body = Vec::new();
    // A receiver that has said yes has the message, whatever becomes of the rest of its answer.
    while let Ok(Some(chunk)) = response.chunk().await {
        if body.len() + chunk.len() > ANSWER_MAX {
            break;
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Answer { status, body })
}

/// Reads an address: HTTPS, or HTTP on this machine.
pub(super) fn address(text: &str) -> Result<Url, AddressError> {
    let url = Url::parse(text.trim()).map_err(|_| AddressError::NoUrl)?;
    let host = url.host_str().ok_or(AddressError::NoUrl)?;
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback(host) => Ok(url),
        "http" => Err(AddressError::Unencrypted),
        _ => Err(AddressError::NoUrl),
    }
}

/// Returns true if a host is this machine.
#[must_use]
pub fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn refused(status: StatusCode, headers: &HeaderMap) -> DeliveryError {
    let more = match status.is_redirection() {
        true => ", and redirects are not followed",
        false => "",
    };
    let message = format!("it was answered with {status}{more}");
    DeliveryError {
        retry_after: retry_after(headers),
        ..DeliveryError::of(policy::of_status(status.as_u16()), message)
    }
}

/// Reads `Retry-After`: seconds, or a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let parser = jiff::fmt::rfc2822::DateTimeParser::new();
    let until = parser.parse_timestamp(text).ok()?;
    Some(Duration::try_from(until.duration_since(jiff::Timestamp::now())).unwrap_or_default())
}

/// A failure before any answer, without the address: it may hold a secret.
fn unreachable(error: &reqwest::Error) -> DeliveryError {
    DeliveryError::transient(match () {
        () if error.is_connect() => "can't connect",
        () if error.is_timeout() => "it took too long to answer",
        () => "the connection ended before an answer",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_encrypted_unless_they_stay_on_the_machine() {
        let fine = [
            "https://example.org/x",
            "http://127.0.0.1:9/x",
            "http://localhost/x",
            "http://[::1]/x",
        ];
        for text in fine {
            assert!(address(text).is_ok(), "{text}");
        }
        let refused = [
            ("http://example.org/x", AddressError::Unencrypted),
            ("http://127.0.0.1.example.org/", AddressError::Unencrypted),
            ("ftp://example.org/x", AddressError::NoUrl),
            ("example.org", AddressError::NoUrl),
            ("", AddressError::NoUrl),
        ];
        for (text, error) in refused {
            assert_eq!(address(text), Err(error), "{text}");
        }
    }
}
