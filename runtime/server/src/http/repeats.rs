//! Calls with an `Idempotency-Key`: the first answer is given again, and nothing is done twice.
//!
//! 1. A key belongs to its principal, and to one call: verb, path, query, body and the caller's access.
//! 2. The key is stored before the work, and the answer before it leaves.
//! 3. While a call is carried out, another one under its key is refused.
//! 4. An answer that says "later" (429, 5xx) is not kept, so that the key can be used again.

use std::collections::BTreeMap;
use std::future::Future;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::header::{CONTENT_TYPE, ETAG, LOCATION};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use watershed_api::documents::Time;
use watershed_api::http::Accepted;
use watershed_api::{Code, Problem};
use watershed_callers::state::{Answer, Begun, CallKey, KEY_MAX, KEYS_MAX, State, StateError};

use super::answers::Unanswered;
use super::body::read;
use super::caller::Caller;
use super::service::Service;
use super::trail::{Trail, unkept};

/// Header with the key of a call.
const KEY: &str = "idempotency-key";
/// Header of an answer that is given again.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// The largest answer that is kept, in bytes.
const ANSWER_MAX: usize = 1 << 20;
/// Headers that are kept with an answer.
const KEPT: [HeaderName; 3] = [CONTENT_TYPE, LOCATION, ETAG];

/// Body that is kept in the place of an answer's own, as an extension of the response: one without a secret.
#[derive(Debug, Clone)]
pub(super) struct KeptAs(pub(super) Vec<u8>);

/// Carries out a call once for each key. Without a key it is carried out as it is.
pub(super) async fn once<F>(
    service: &Service,
    caller: &Caller,
    parts: &Parts,
    body: Body,
    trail: &Trail,
    work: impl FnOnce(Body) -> F,
) -> Result<Response, Unanswered>
where
    F: Future<Output = Result<Response, Unanswered>>,
{
    let Some(key) = key(parts)? else {
        return work(body).await;
    };
    let body = read(body, service.gate()).await?;
    let digest = digest(parts, &body, caller);
    let call = CallKey {
        principal: caller.name(),
        key: &key,
        call: &digest,
    };
    let state = match service.state() {
        Some(state) => state,
        None => {
            let made = service.keys().of_process().await;
            made.map_err(|error| unkept("the key of the call", &error))?
        }
    };
    let working = service.keys().work_on(&call);
    let begun = state
        .begin(call, || working.is_none(), Time::now().millis())
        .await
        .map_err(|error| unkept("the key of the call", &error))?;
    let working = match (begun, working) {
        (Begun::Now, Some(working)) => working,
        (Begun::Before(answer), _) => {
            trail.void();
            return Ok(replayed(answer));
        }
        (begun, _) => return Err(refused(&begun, &key)),
    };
    let answered = work(Body::from(body)).await;
    let ended = end(state, call, answered, service.base()).await;
    drop(working);
    ended
}

/// Returns the key of a call; none if it has none.
fn key(parts: &Parts) -> Result<Option<String>, Problem> {
    let mut given = parts.headers.get_all(KEY).iter();
    let Some(first) = given.next() else {
        return Ok(None);
    };
    // The draft of the header's standard writes the key in quotes.
    let text = first.to_str().unwrap_or_default().trim();
    let text = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or(text);
    if given.next().is_some() || text.is_empty() || text.len() > KEY_MAX {
        let message = format!("the header `Idempotency-Key` is one text of 1 to {KEY_MAX} bytes");
        return Err(Problem::new(Code::BadArgument, message).hint("a UUID does well"));
    }
    Ok(Some(text.to_owned()))
}

/// Returns the digest of a call, by which another one under its key is noticed.
fn digest(parts: &Parts, body: &Bytes, caller: &Caller) -> Vec<u8> {
    let access = serde_json::to_vec(caller.grants()).unwrap_or_default();
    let mut hasher = blake3::Hasher::new();
    let query = parts.uri.query().unwrap_or_default();
    for part in [
        parts.method.as_str().as_bytes(),
        parts.uri.path().as_bytes(),
        query.as_bytes(),
        &access,
        body,
    ] {
        hasher.update(&part.len().to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().as_bytes().to_vec()
}

fn refused(begun: &Begun, key: &str) -> Unanswered {
    match begun {
        Begun::Another => Problem::new(
            Code::KeyReused,
            format!("the key `{key}` was used for another call, or with another role"),
        )
        .hint("choose a new key for each call, and send it again with the same body")
        .into(),
        Begun::TooMany => Problem::new(
            Code::Busy,
            format!("you have more than {KEYS_MAX} keys of a day, or answers to them that are too large"),
        )
        .hint("keys are kept for 24 hours; calls that may be done twice need none")
        .into(),
        _ => Unanswered::Status(
            Problem::new(
                Code::Busy,
                format!("the call under the key `{key}` is still carried out"),
            )
            .hint("ask again in a moment"),
            StatusCode::CONFLICT,
        ),
    }
}

/// Returns a stored answer as a response.
fn replayed(answer: Answer) -> Response {
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or_default();
    let kept: BTreeMap<String, String> = serde_json::from_str(&answer.headers).unwrap_or_default();
    let headers = response.headers_mut();
    for (name, value) in kept {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
    response
}

/// Stores the answer to a call, and returns the answer.
async fn end(
    state: &State,
    call: CallKey<'_>,
    answered: Result<Response, Unanswered>,
    base: &str,
) -> Result<Response, Unanswered> {
    let (problem, response) = match answered {
        Ok(response) => (None, response),
        Err(unanswered) => {
            let shown = unanswered.clone().answer(base);
            (Some(unanswered), shown)
        }
    };
    let is_for_good = !response.status().is_server_error()
        && !matches!(
            response.status(),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT
        );
    let (response, answer) = match is_for_good {
        true => taken(response).await,
        false => (response, None),
    };
    let stored: Result<(), StateError> = match &answer {
        Some(answer) => state.answered(call, answer).await,
        None => state.forget(call).await,
    };
    // The work is done: whoever asks under the key again has it done once more.
    if let Err(error) = stored {
        tracing::error!(%error, "the answer to a call with a key can't be kept");
    }
    match problem {
        Some(problem) => Err(problem),
        None => Ok(response),
    }
}

/// Reads a response and returns the same one, with what is kept of it; none if it is too large to keep.
async fn taken(response: Response) -> (Response, Option<Answer>) {
    use axum::body::HttpBody as _;
    let kept_as = response.extensions().get::<KeptAs>().cloned();
    let is_small = response
        .body()
        .size_hint()
        .upper()
        .is_some_and(|size| size <= ANSWER_MAX as u64);
    let (parts, body) = response.into_parts();
    let headers: BTreeMap<&str, &str> = KEPT
        .iter()
        .filter_map(|name| Some((name.as_str(), parts.headers.get(name)?.to_str().ok()?)))
        .collect();
    let headers = serde_json::to_string(&headers).unwrap_or_default();
    let id = parts
        .headers
        .get(LOCATION)
        .and_then(|place| Some(place.to_str().ok()?.rsplit_once("/requests/")?.1.to_owned()));
    let status = parts.status.as_u16();
    let (body, answer) = match (is_small, id) {
        (true, _) => {
            let bytes = to_bytes(body, ANSWER_MAX).await.unwrap_or_default();
            let kept = kept_as.map_or_else(|| bytes.to_vec(), |KeptAs(kept)| kept);
            (Body::from(bytes), Some((status, kept)))
        }
        // What it ended with is too large: its id tells the rest.
        (false, Some(id)) => {
            let accepted = serde_json::to_vec(&Accepted { id }).unwrap_or_default();
            (body, Some((StatusCode::ACCEPTED.as_u16(), accepted)))
        }
        (false, None) => (body, None),
    };
    let answer = answer.map(|(status, body)| Answer {
        status,
        headers,
        body,
    });
    (Response::from_parts(parts, body), answer)
}
