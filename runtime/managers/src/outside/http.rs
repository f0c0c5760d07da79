//! HTTP calls: requests with a call as their body and an answer as their response.

use std::collections::BTreeMap;
use std::time::Duration;

use watershed_controller::Error;
use watershed_outside::http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use watershed_outside::http::{
    self, BodyError, CallError, Client, ClientError, Egress, Failure, Method, Refused, Route, Settings,
    StatusCode, Url,
};

use super::answer::{ANSWER_MAX, Answer, BAD_ANSWER, FAILED};
use super::call::Call;
use super::command::too_long;

/// The longest wait that a server may ask for; longer ones are shortened.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);
/// The largest number of characters of an unreadable answer that an error shows.
const SHOWN: usize = 200;

/// A client of HTTP services. Cheap to clone, and without global state.
#[derive(Clone, Debug)]
pub struct Http {
    client: Client,
}

/// The target of an HTTP call.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Request {
    /// The method; POST if empty.
    pub method: String,
    /// The address, `http` or `https`.
    pub url: String,
    /// The additional headers, by name.
    pub headers: BTreeMap<String, String>,
}

impl Http {
    /// Returns a client that connects to what the policy allows, without proxies or redirects, since a redirected POST may lose its body or go to another host.
    /// The step's timeout limits the whole call.
    ///
    /// # Errors
    /// When TLS can't be configured.
    pub fn new(egress: Egress) -> Result<Self, ClientError> {
        let client = Client::new(Settings {
            body_max: ANSWER_MAX,
            route: Route::Direct(egress),
            ..Settings::default()
        })?;
        Ok(Self { client })
    }

    /// Sends a call and returns its answer. Cancel-safe: dropping the future closes the connection.
    ///
    /// # Errors
    /// The failure that the answer states, the status, or `bad-answer`. 408, 425, 429, 5xx and 202 are worth another try,
    /// after [`retry_after`](Error::retry_after) if `Retry-After` says so; any other status but 2xx is permanent.
    pub async fn call(&self, request: &Request, call: &Call) -> Result<Answer, Error> {
        let (method, url, headers) = parts_of(request)?;
        let body = serde_json::to_vec(call).map_err(|error| Error::permanent(FAILED, error.to_string()))?;
        let request = self.client.request(method, url).headers(headers).json(body);
        let answer = request
            .send()
            .await
            .map_err(|error| unreachable(FAILED, &error))?;
        let wait = http::retry_after(answer.headers()).map(|wait| wait.min(RETRY_AFTER_MAX));
        let status = answer.status();
        let body = answer.body().await.map_err(|error| cut_off(&error))?;
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

fn shown(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    line.unwrap_or_default()
        .chars()
        .filter(|c| !c.is_control())
        .take(SHOWN)
        .collect()
}

fn cut_off(error: &BodyError) -> Error {
    match &error.cause {
        Some(cause) => unreachable(BAD_ANSWER, cause),
        None => too_long(),
    }
}

fn unreachable(code: &'static str, error: &CallError) -> Error {
    if let Failure::Refused(refused) = error.failure() {
        return Error {
            hint: Some(Refused::HINT.into()),
            ..Error::permanent(Refused::CODE, refused.to_string())
        };
    }
    Error::transient(code, http::chain(error))
}
