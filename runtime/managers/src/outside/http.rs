//! HTTP calls: requests with a call as their body, answered with an answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Method, Response, StatusCode, Url};
use rustls::{ClientConfig, RootCertStore};
use watershed_controller::Error;
use watershed_schedule::jiff;

use super::answer::{ANSWER_MAX, Answer, BAD_ANSWER, FAILED};
use super::call::Call;
use super::command::too_long;

/// The longest time in which a connection must come about. The whole call has the timeout of its step.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// The longest wait that a server may ask for: what it says is not checked by anybody.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);
/// The most characters of an answer that is no JSON which an error shows.
const SHOWN: usize = 200;

/// A client of HTTP services. Cheap to clone; nothing of it is global.
#[derive(Clone, Debug)]
pub struct Http {
    client: Client,
}

/// The client can't be made.
#[derive(Debug, thiserror::Error)]
#[error("can't make an HTTP client: {0}")]
pub struct HttpError(String);

/// The place to which a call goes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Request {
    /// The method; POST if it is empty.
    pub method: String,
    /// The address, `http` or `https`.
    pub url: String,
    /// Further headers.
    pub headers: BTreeMap<String, String>,
}

impl Http {
    /// Returns a client that follows no redirects and uses no proxy.
    ///
    /// # Errors
    /// When TLS can't be configured.
    pub fn new() -> Result<Self, HttpError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let roots = RootCertStore {
            roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
        };
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| HttpError(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            // A redirected POST would lose its body, or go where the file does not say.
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .connect_timeout(CONNECT_WITHIN)
            .build()
            .map_err(|error| HttpError(chain(&error)))?;
        Ok(Self { client })
    }

    /// Sends a call and returns its answer. Cancel-safe: of a dropped one the connection is closed.
    ///
    /// # Errors
    /// The failure that the answer states, the status, or `bad-answer`. 408, 425, 429, 5xx and 202 are worth another try,
    /// after [`retry_after`](Error::retry_after) if `Retry-After` says so; any other status but 2xx is permanent.
    pub async fn call(&self, request: &Request, call: &Call) -> Result<Answer, Error> {
        let (method, url, headers) = parts_of(request)?;
        let body = serde_json::to_vec(call).map_err(|error| Error::permanent(FAILED, error.to_string()))?;
        let response = self
            .client
            .request(method, url)
            .headers(headers)
            .body(body)
            .send();
        let response = response.await.map_err(|error| unreachable(&error))?;
        let (status, wait) = (response.status(), retry_after(response.headers()));
        let body = read(response).await?;
        judge(status, wait, &body)
    }
}

fn parts_of(request: &Request) -> Result<(Method, Url, HeaderMap), Error> {
    let bad = |what: &str| Error::permanent(FAILED, what.to_owned());
    let method = match request.method.as_str() {
        "" => Method::POST,
        word => Method::from_bytes(word.as_bytes()).map_err(|_| bad(&format!("\"{word}\" is no method")))?,
    };
    let url =
        Url::parse(&request.url).map_err(|error| bad(&format!("\"{}\" is no URL: {error}", request.url)))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad(&format!("\"{}\" is no address of HTTP", request.url)));
    }
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in &request.headers {
        let name =
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad(&format!("\"{name}\" is no header")))?;
        // Its value may be a secret.
        let value = HeaderValue::from_str(value)
            .map_err(|_| bad(&format!("the header \"{name}\" has no valid value")))?;
        headers.insert(name, value);
    }
    Ok((method, url, headers))
}

/// Reads the body, up to its bound.
async fn read(mut response: Response) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() > ANSWER_MAX => return Err(too_long()),
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Ok(body),
            Err(error) => return Err(unreachable(&error)),
        }
    }
}

fn judge(status: StatusCode, wait: Option<Duration>, body: &[u8]) -> Result<Answer, Error> {
    let is_again = matches!(status.as_u16(), 202 | 408 | 425 | 429 | 500..=599);
    if status.is_success() && !is_again {
        return Answer::read(body).map_err(|error| Error {
            details: Some(shown(body).into()),
            ..error
        });
    }
    let answer = Answer::read(body).unwrap_or_default();
    // An answer that says when to go on is as good as a header.
    let asked = answer.wait().ok().flatten();
    if status == StatusCode::ACCEPTED && (asked.is_some() || answer.awaits.is_some()) {
        return Ok(answer);
    }
    let mut error = answer.failure().unwrap_or_else(|| {
        let said = answer.message.clone().unwrap_or_else(|| shown(body));
        let mut message = format!("it was answered with {status}");
        if status.is_redirection() {
            message.push_str(", and redirects are not followed");
        } else if !said.is_empty() {
            message = format!("{message}: {said}");
        }
        match is_again {
            true => Error::transient(FAILED, message),
            false => Error::permanent(FAILED, message),
        }
    });
    error.retry_after = wait.or(asked);
    Err(error)
}

/// Reads `Retry-After`: seconds, or a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let parser = jiff::fmt::rfc2822::DateTimeParser::new();
            let until = parser.parse_timestamp(text).ok()?;
            Duration::try_from(until.duration_since(jiff::Timestamp::now())).unwrap_or_default()
        }
    };
    Some(wait.min(RETRY_AFTER_MAX))
}

fn shown(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    line.unwrap_or_default()
        .chars()
        .filter(|c| !c.is_control())
        .take(SHOWN)
        .collect()
}

fn unreachable(error: &reqwest::Error) -> Error {
    let code = if error.is_decode() { BAD_ANSWER } else { FAILED };
    Error::transient(code, chain(error))
}

/// An error with its causes, without the address: it may hold a secret.
fn chain(error: &reqwest::Error) -> String {
    let mut message = match () {
        () if error.is_connect() => "can't connect".to_owned(),
        () if error.is_timeout() => "it took too long".to_owned(),
        () => "the call failed".to_owned(),
    };
    let mut cause = std::error::Error::source(error);
    while let Some(found) = cause {
        message = format!("{message}: {found}");
        cause = found.source();
    }
    message
}
