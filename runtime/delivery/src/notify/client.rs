//! HTTP receivers: the client that calls them, checks of their addresses, and their answers.

use std::net::IpAddr;
use std::time::Duration;

use watershed_outside::http::{
    self, CallError, Client, ClientError, Egress, Failure, Refused, Request, Route, Settings, StatusCode,
    Url, header::HeaderMap,
};

use super::DeliveryError;
use crate::policy;

/// Time limit of a call. Receivers are expected to queue messages, not to process them meanwhile.
const CALL_WITHIN: Duration = Duration::from_secs(10);
/// The most bytes of an answer that are read.
const ANSWER_MAX: usize = 64 * 1024;

/// The error of a receiver's address that is refused. Its text omits the address, which may contain a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The address is no URL.
    #[error("the address is no URL such as `https://example.org/hook`")]
    NoUrl,
    /// The address is not HTTPS and not on this machine.
    #[error("the address must begin with `https`; plain HTTP goes to this machine alone")]
    Unencrypted,
}

/// Status, headers and body that a receiver returned.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Vec<u8>,
}

/// Creates the client for HTTP receivers, which connects to what the policy allows and trusts the authorities of the web. Redirects are not followed, so that
/// a message reaches no unnamed receiver.
///
/// # Errors
/// When TLS can't be configured.
pub fn client(egress: Egress) -> Result<Client, ClientError> {
    Client::new(Settings {
        connect_within: None,
        within: Some(CALL_WITHIN),
        body_max: ANSWER_MAX,
        route: Route::Direct(egress),
        ..Settings::default()
    })
}

/// Sends a request; any status outside 2xx is an error.
pub(super) async fn send(request: Request) -> Result<Answer, DeliveryError> {
    let answer = request.send().await.map_err(|error| unreachable(&error))?;
    let status = answer.status();
    if !status.is_success() {
        return Err(refused(status, answer.headers()));
    }
    // A receiver that has said yes has the message, whatever becomes of the rest of its answer.
    let body = answer.body().await.unwrap_or_else(|cut| cut.read);
    Ok(Answer { status, body })
}

/// Parses an address: HTTPS, or HTTP on this machine. What a restricted client may reach without encryption is its
/// policy's.
pub(super) fn address(client: &Client, text: &str) -> Result<Url, AddressError> {
    let url = Url::parse(text.trim()).map_err(|_| AddressError::NoUrl)?;
    let host = url.host_str().ok_or(AddressError::NoUrl)?;
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback(host) || client.is_restricted() => Ok(url),
        "http" => Err(AddressError::Unencrypted),
        _ => Err(AddressError::NoUrl),
    }
}

/// Returns true if a host name or address is a loopback one.
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
        retry_after: http::retry_after(headers),
        ..DeliveryError::of(policy::of_status(status.as_u16()), message)
    }
}

/// Converts an error before any answer, omitting the address, which may contain a secret.
fn unreachable(error: &CallError) -> DeliveryError {
    DeliveryError::transient(match error.failure() {
        Failure::Connect => "can't connect",
        Failure::Timeout => "it took too long to answer",
        Failure::Broken => "the connection ended before an answer",
        Failure::Refused(refused) => return not_allowed(refused),
    })
}

/// Returns the error of an address that the policy of outgoing connections does not allow.
pub(super) fn not_allowed(refused: Refused) -> DeliveryError {
    DeliveryError::permanent(format!("{} ({refused})", Refused::CODE))
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
        let client = client(Egress::default()).unwrap();
        for text in fine {
            assert!(address(&client, text).is_ok(), "{text}");
        }
        let refused = [
            ("http://example.org/x", AddressError::Unencrypted),
            ("http://127.0.0.1.example.org/", AddressError::Unencrypted),
            ("ftp://example.org/x", AddressError::NoUrl),
            ("example.org", AddressError::NoUrl),
            ("", AddressError::NoUrl),
        ];
        for (text, error) in refused {
            assert_eq!(address(&client, text), Err(error), "{text}");
        }
    }
}
