//! Answers, read up to a bound, and the reasons why there is none.

use std::error::Error;
use std::fmt::{self, Display};
use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Response, StatusCode};

use super::Refused;

/// An answer whose status and headers have been read, and whose body has not.
#[derive(Debug)]
pub struct Answer {
    response: Response,
    body_max: usize,
}

/// The kind of a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The address is not allowed.
    Refused(Refused),
    /// No connection was established: unknown host, nobody listening, or a certificate that is not trusted.
    Connect,
    /// A deadline passed.
    Timeout,
    /// The request can't be built, or the connection ended before the end of the answer.
    Broken,
}

/// The error of a failed call, without the URL, which may contain a secret.
#[derive(Debug)]
pub struct CallError {
    failure: Failure,
    cause: Option<reqwest::Error>,
}

/// The error of a body that was not read to its end.
#[derive(Debug)]
pub struct BodyError {
    /// Beginning of the body, at most as long as the client's bound.
    pub read: Vec<u8>,
    /// Failure of the read; `None` if the body exceeds the client's bound.
    pub cause: Option<CallError>,
}

impl Answer {
    pub(super) fn new(response: Response, body_max: usize) -> Self {
        Self { response, body_max }
    }

    /// Returns the HTTP status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// Returns the headers of the answer.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// Reads the whole body, up to the client's bound.
    ///
    /// # Errors
    /// When its end does not come, in time, or within the bound.
    pub async fn body(mut self) -> Result<Vec<u8>, BodyError> {
        let mut read = Vec::new();
        loop {
            let cause = match self.response.chunk().await {
                Ok(None) => return Ok(read),
                Ok(Some(chunk)) if chunk.len() <= self.body_max - read.len() => {
                    read.extend_from_slice(&chunk);
                    continue;
                }
                Ok(Some(chunk)) => {
                    let room = self.body_max - read.len();
                    read.extend(chunk.into_iter().take(room));
                    None
                }
                Err(error) => Some(CallError::from(error)),
            };
            return Err(BodyError { read, cause });
        }
    }
}

impl CallError {
    /// Returns the class by which callers distinguish failures.
    #[must_use]
    pub fn failure(&self) -> Failure {
        self.failure
    }
}

impl From<Refused> for CallError {
    fn from(refused: Refused) -> Self {
        Self {
            failure: Failure::Refused(refused),
            cause: None,
        }
    }
}

impl From<reqwest::Error> for CallError {
    fn from(error: reqwest::Error) -> Self {
        let refused = causes(&error).find_map(|cause| cause.downcast_ref::<Refused>().copied());
        let failure = match refused {
            Some(refused) => Failure::Refused(refused),
            None if error.is_connect() => Failure::Connect,
            None if error.is_timeout() => Failure::Timeout,
            None => Failure::Broken,
        };
        Self {
            failure,
            cause: Some(error),
        }
    }
}

impl Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.failure {
            Failure::Refused(refused) => refused.fmt(f),
            Failure::Connect => f.write_str("can't connect"),
            Failure::Timeout => f.write_str("it took too long"),
            Failure::Broken => f.write_str("the call failed"),
        }
    }
}

impl Error for CallError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match (self.failure, &self.cause) {
            (Failure::Refused(_), _) | (_, None) => None,
            // What it says itself is the address.
            (_, Some(cause)) => cause.source(),
        }
    }
}

/// Formats an error and its causes in one line.
#[must_use]
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let causes = causes(error).map(ToString::to_string);
    std::iter::once(error.to_string())
        .chain(causes)
        .collect::<Vec<_>>()
        .join(": ")
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let mut next = error.source();
    std::iter::from_fn(move || {
        let found = next?;
        next = found.source();
        Some(found)
    })
}

/// Reads `Retry-After`: seconds, or a date; zero if that has passed.
#[must_use]
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = httpdate::parse_http_date(text).ok()?;
    Some(until.duration_since(SystemTime::now()).unwrap_or_default())
}
