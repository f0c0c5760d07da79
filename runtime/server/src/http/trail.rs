//! The audit of a call that may change something.
//!
//! The call is in the log before it is carried out: where the log can't be written nothing is changed. Its outcome is in the log
//! before the answer leaves.

use std::sync::{Arc, Mutex};

use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::Response;
use watershed_api::documents::Time;
use watershed_api::{Code, Problem};
use watershed_callers::state::{AuditEntry, Audited, State, StateError};
use watershed_locks::Unpoisoned as _;

use super::answers::Unanswered;
use super::caller::Caller;

/// The longest text of an entry that a caller chooses, in bytes.
const LONGEST: usize = 1_024;
/// The outcome of a call that was carried out.
const DONE: &str = "done";

/// The audit of one call.
pub(super) struct Trail {
    /// State with the log; none if the service keeps no log.
    state: Option<Arc<State>>,
    line: Mutex<Line>,
}

struct Line {
    entry: AuditEntry,
    /// Number of the entry in the log; none before the call is carried out.
    number: Option<i64>,
    /// True if nothing is done or refused, so that there is nothing to audit.
    is_void: bool,
}

impl Trail {
    /// Begins the audit of a caller's operation, before anything is known of it.
    pub(super) fn new(
        state: Option<Arc<State>>,
        caller: &Caller,
        instance: Option<&str>,
        operation: &str,
    ) -> Self {
        let entry = AuditEntry {
            at_ms: Time::now().millis(),
            principal: caller.name().to_owned(),
            protocol: caller.protocol().to_owned(),
            instance: instance.map(bounded),
            operation: operation.to_owned(),
            subject: None,
            request: None,
            outcome: None,
        };
        Self {
            state,
            line: Mutex::new(Line {
                entry,
                number: None,
                is_void: false,
            }),
        }
    }

    /// Sets the resources or the id that the operation is about.
    pub(super) fn about(&self, subject: &str) {
        self.line.lock().unpoisoned().entry.subject = Some(bounded(subject));
    }

    /// Sets that nothing is done: a look at what would be touched, or an answer that is given again.
    pub(super) fn void(&self) {
        self.line.lock().unpoisoned().is_void = true;
    }

    /// Stores that the operation is about to be carried out.
    ///
    /// # Errors
    /// `unavailable`, where the log can't be written. Nothing must be done then.
    pub(super) async fn begin(&self) -> Result<(), Problem> {
        let Some(state) = &self.state else {
            return Ok(());
        };
        let entry = self.line.lock().unpoisoned().entry.clone();
        let number = state.audit(&entry, Audited::CarriedOut).await;
        let number = number.map_err(|error| unkept("the audit log", &error))?;
        self.line.lock().unpoisoned().number = Some(number);
        Ok(())
    }

    /// Stores the outcome of the call. The future borrows no answer, whose body only one thread may read.
    pub(super) fn end<'t>(
        &'t self,
        answered: &Result<Response, Unanswered>,
    ) -> impl Future<Output = ()> + Send + use<'t> {
        let (outcome, request) = (outcome(answered), request(answered));
        async move {
            let Some(state) = &self.state else {
                return;
            };
            let (entry, number) = {
                let mut line = self.line.lock().unpoisoned();
                if line.is_void {
                    return;
                }
                (line.entry.outcome, line.entry.request) = (Some(outcome), request);
                (line.entry.clone(), line.number)
            };
            let stored = match number {
                Some(number) => state.audit_outcome(number, &entry).await,
                None => state.audit(&entry, Audited::Refused).await.map(drop),
            };
            // The call itself is in the log, and a refused one has changed nothing.
            if let Err(error) = stored {
                let operation = entry.operation;
                tracing::error!(%error, operation, "an outcome can't be written to the audit log");
            }
        }
    }
}

/// Returns the problem of a state that can't be written.
pub(super) fn unkept(what: &str, error: &StateError) -> Problem {
    Problem::new(
        Code::Unavailable,
        format!("{what} can't be written, so nothing was done: {error}"),
    )
    .hint("the disk of the service's state may be full")
}

fn outcome(answered: &Result<Response, Unanswered>) -> String {
    match answered {
        Ok(_) => DONE.to_owned(),
        Err(
            Unanswered::Problem(problem) | Unanswered::Status(problem, _) | Unanswered::Version(problem, _),
        ) => problem.code.name().to_owned(),
    }
}

/// Returns the id of the request that an answer names as its place.
fn request(answered: &Result<Response, Unanswered>) -> Option<String> {
    let response = answered.as_ref().ok()?;
    if !matches!(response.status(), StatusCode::ACCEPTED | StatusCode::OK) {
        return None;
    }
    let place = response.headers().get(LOCATION)?.to_str().ok()?;
    let (_, id) = place.rsplit_once("/requests/")?;
    Some(id.to_owned())
}

/// Returns a text, cut at its bound.
fn bounded(text: &str) -> String {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trail(state: &Arc<State>) -> Trail {
        let caller = Caller::owner("ann");
        Trail::new(Some(Arc::clone(state)), &caller, Some("shop"), "pause")
    }

    #[tokio::test]
    async fn s_api20_a_call_is_in_the_log_before_it_is_done_and_with_its_outcome_after() {
        let state = Arc::new(State::in_memory().await.unwrap());
        let last = async || state.audited(None, 1).await.unwrap().entries.into_iter().next();
        let (done, refused, void) = (trail(&state), trail(&state), trail(&state));
        void.void();
        void.end(&Ok(Response::default())).await;
        assert_eq!(last().await, None);
        done.about(&"é".repeat(LONGEST));
        done.begin().await.unwrap();
        let begun = last().await.unwrap();
        assert_eq!((begun.outcome, begun.subject.unwrap().len()), (None, LONGEST));
        done.end(&Ok(Response::default())).await;
        assert_eq!(last().await.unwrap().outcome.as_deref(), Some("done"));
        let problem = Problem::new(Code::NotAllowed, "no");
        refused.end(&Err(Unanswered::Problem(problem))).await;
        assert_eq!(last().await.unwrap().outcome.as_deref(), Some("not-allowed"));
        assert_eq!(state.audited(None, 9).await.unwrap().entries.len(), 2);
    }
}
