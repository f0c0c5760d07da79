//! Responses: documents, problems and files as HTTP responses.

use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::Value;
use watershed_api::http::ProblemDocument;
use watershed_api::{Answer, Problem};

use crate::instance::Instance;

/// Delay before a call may be repeated that the server did not take, in seconds.
const RETRY_AFTER_S: u64 = 1;

/// An error response: a problem as a JSON document.
#[derive(Debug)]
pub(super) struct Refused {
    document: Box<ProblemDocument>,
    /// Seconds after which the call may be repeated; none for the default of its status.
    retry_after_s: Option<u64>,
}

impl Refused {
    /// Returns the error response for a problem; `base` is the path prefix of its links.
    pub(super) fn new(problem: Problem, base: &str) -> Self {
        Self {
            document: Box::new(ProblemDocument::new(problem, base)),
            retry_after_s: None,
        }
    }

    /// Returns the same response as one to a caller who asks too often, and may ask again after a time.
    pub(super) fn too_many(mut self, wait: Duration) -> Self {
        self.retry_after_s = Some(wait.as_secs() + 1);
        self.with_status(StatusCode::TOO_MANY_REQUESTS)
    }

    /// Returns the same response with another HTTP status than the default of its code.
    pub(super) fn with_status(mut self, status: StatusCode) -> Self {
        self.document.status = status.as_u16();
        self
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        // 499 and the like have no name, and are statuses all the same.
        let status = StatusCode::from_u16(self.document.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self.document).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static(ProblemDocument::MEDIA_TYPE),
        );
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        let is_untaken = self.document.retryable && status == StatusCode::SERVICE_UNAVAILABLE;
        if let Some(seconds) = self.retry_after_s.or(is_untaken.then_some(RETRY_AFTER_S)) {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// The error of a route.
#[derive(Debug, Clone)]
pub(super) enum Unanswered {
    /// A problem, with the default HTTP status of its code.
    Problem(Problem),
    /// A problem with another HTTP status.
    Status(Problem, StatusCode),
    /// A problem of a version, with the ETag of the current one; none if there is no current version.
    Version(Problem, Option<String>),
}

impl Unanswered {
    /// Returns the error response; `base` is the path prefix of its links.
    pub(super) fn answer(self, base: &str) -> Response {
        match self {
            Self::Problem(problem) => Refused::new(problem, base).into_response(),
            Self::Status(problem, status) => Refused::new(problem, base).with_status(status).into_response(),
            Self::Version(problem, current) => {
                let mut response = Refused::new(problem, base).into_response();
                let current = current.and_then(|current| HeaderValue::from_str(&current).ok());
                response
                    .headers_mut()
                    .extend(current.map(|current| (ETAG, current)));
                response
            }
        }
    }
}

impl From<Problem> for Unanswered {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

/// Returns a document as JSON, without the path of the project's folder.
pub(super) fn document(document: &impl Serialize, instance: &Instance) -> Value {
    let mut value = serde_json::to_value(document).unwrap_or_default();
    let root = instance.project.root.display().to_string();
    strip(&mut value, &root);
    value
}

/// Returns the final document of an answer as JSON.
pub(super) fn of_answer(answer: &Answer, instance: &Instance) -> Value {
    let value = document(answer, instance);
    // The answer of an operation is written under its name, and what has several forms under the form's.
    let inner = only(value);
    match &inner {
        Value::Object(fields) if fields.len() == 1 && fields.contains_key("document") => only(inner),
        _ => inner,
    }
}

fn only(value: Value) -> Value {
    match value {
        Value::Object(fields) if fields.len() == 1 => {
            fields.into_iter().next().map_or(Value::Null, |(_, it)| it)
        }
        other => other,
    }
}

/// Removes the path of the project's folder from a text. Longer paths that only contain the same letters stay.
pub(super) fn without_folder(text: &str, root: &str) -> String {
    let is_name = |sign: char| sign.is_alphanumeric() || matches!(sign, '_' | '-');
    let (mut told, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(root).filter(|_| !root.is_empty()) {
        let (before, after) = (&rest[..at], &rest[at + root.len()..]);
        told.push_str(before);
        let is_part =
            before.ends_with(|sign: char| is_name(sign) || sign == '/') || after.starts_with(is_name);
        rest = match after.strip_prefix('/') {
            _ if is_part => {
                told.push_str(root);
                after
            }
            Some(below) => below,
            None => {
                told.push('.');
                after
            }
        };
    }
    told + rest
}

/// Removes the path of the project's folder from a document, except from rows of data.
fn strip(value: &mut Value, root: &str) {
    match value {
        Value::String(text) if text.contains(root) => *text = without_folder(text, root),
        Value::Array(values) => values.iter_mut().for_each(|value| strip(value, root)),
        Value::Object(fields) => {
            fields.remove("root");
            let told = fields
                .iter_mut()
                .filter(|(key, _)| !matches!(key.as_str(), "rows" | "totals"));
            told.for_each(|(_, value)| strip(value, root));
        }
        _ => {}
    }
}

/// Returns a problem without the path of the project's folder.
pub(super) fn problem(mut problem: Problem, instance: &Instance) -> Problem {
    let root = instance.project.root.display().to_string();
    problem.message = without_folder(&problem.message, &root);
    problem.hint = problem
        .hint
        .map(|hint| without_folder(hint.as_str(), &root).into());
    problem
}

/// Returns a JSON response from bytes that are already encoded.
pub(super) fn written(bytes: impl Into<Body>) -> Response {
    of_type("application/json", bytes)
}

/// Returns a response with an ETag, or 304 if the caller has this version already.
pub(super) fn versioned(media: &'static str, bytes: Vec<u8>, headers: &HeaderMap) -> Response {
    let version = etag(&bytes);
    let mut response = match has(headers, &version) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => of_type(media, bytes),
    };
    let named = HeaderValue::from_str(&version).map(|version| (ETAG, version));
    let kept = HeaderValue::from_static("private, no-cache");
    response
        .headers_mut()
        .extend(named.into_iter().chain([(CACHE_CONTROL, kept)]));
    response
}

/// Returns the ETag of a document or a file: a hash of its bytes.
pub(super) fn etag(bytes: &[u8]) -> String {
    let hash = blake3::hash(bytes).to_hex();
    format!("\"{}\"", &hash[..32])
}

/// Returns true if the header `If-None-Match` names this version.
pub(super) fn has(headers: &HeaderMap, version: &str) -> bool {
    let named = headers.get_all(IF_NONE_MATCH).iter();
    let mut named = named
        .filter_map(|named| named.to_str().ok())
        .flat_map(|named| named.split(','));
    named.any(|named| matches!(named.trim(), "*") || named.trim().trim_start_matches("W/") == version)
}

/// Returns a response with a media type.
pub(super) fn of_type(media: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    let media = HeaderValue::from_static(media);
    response.headers_mut().insert(CONTENT_TYPE, media);
    response
}

/// Returns a value as a JSON response.
pub(super) fn json(value: &impl Serialize) -> Response {
    Json(value).into_response()
}

#[cfg(test)]
mod tests {
    #[test]
    fn s_api5_the_folder_is_taken_off_and_names_of_the_same_letters_stay() {
        for (text, told) in [
            ("can't read /srv/shop/models/a.sql", "can't read models/a.sql"),
            ("no project in `/srv/shop`", "no project in `.`"),
            ("/srv/shop: gone, /srv/shop/a", ".: gone, a"),
            (
                "/srv/shop_next/a and /old/srv/shop/a",
                "/srv/shop_next/a and /old/srv/shop/a",
            ),
            ("nothing", "nothing"),
        ] {
            assert_eq!(super::without_folder(text, "/srv/shop"), told);
        }
    }
}
