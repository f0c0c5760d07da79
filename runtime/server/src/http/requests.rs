//! Asynchronous requests: work that continues after its response, stored until an hour after its end.
//!
//! A request is on disk before it is accepted, and its end is on disk before anybody sees the end. A process that dies in
//! between leaves requests without an end, which the next process carries out again: each request may be done twice.

mod journal;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use uuid::Uuid;
use watershed_api::documents::Time;
use watershed_api::http::{ProblemDocument, RequestDocument, RequestState};
use watershed_api::request::Events;
use watershed_api::{Answer, Code, Problem, Request};
use watershed_controller::request::on_behalf_of;
use watershed_locks::Unpoisoned;

use self::journal::{End, Journal, Kept};
use super::answers;
use super::limits::{Gate, Passed};
use crate::instance::Instance;

/// The most requests that are kept, finished or not.
const MOST_KEPT: usize = 10_000;
/// The most bytes of final documents that are kept.
const MOST_BYTES: u64 = 256 << 20;
/// Retention of a finished request.
const KEPT_FOR: Duration = Duration::from_secs(3_600);

/// The requests of an instance. Clones share them.
#[derive(Clone)]
pub(super) struct Requests(Arc<Shared>);

struct Shared {
    journal: Journal,
    known: Mutex<BTreeMap<Uuid, Known>>,
    gate: Arc<Gate>,
}

/// A request in memory. Ids are in order of acceptance.
struct Known {
    operation: String,
    accepted_at: Time,
    /// Name of the caller.
    caller: String,
    /// End of the request; none while the work goes on.
    end: watch::Sender<Option<Ended>>,
}

/// Time and size of a request's final document, which is on disk.
#[derive(Debug, Clone, Copy)]
struct Ended {
    at: Time,
    bytes: u64,
}

impl Requests {
    /// Loads the stored requests of an instance, and restarts the unfinished ones.
    pub(super) fn open(instance: &Arc<Instance>, gate: Arc<Gate>) -> Self {
        let journal = Journal::of(&instance.state.path());
        let found = journal.read();
        let requests = Self(Arc::new(Shared {
            journal,
            known: Mutex::default(),
            gate,
        }));
        for kept in found {
            let end = kept.end.map(|(at, bytes)| Ended { at, bytes });
            requests.remember(&kept.request, end);
            if end.is_none() {
                requests.go_on(instance, kept.request);
            }
        }
        requests
    }

    /// Stores a request, starts its work and returns its id.
    ///
    /// # Errors
    /// `busy`, and `unavailable` where the disk refuses; nothing is done then.
    pub(super) async fn start(
        &self,
        instance: &Arc<Instance>,
        request: Request,
        caller: &str,
    ) -> Result<Uuid, Problem> {
        let kept = Kept {
            id: Uuid::now_v7(),
            accepted_at: Time::now(),
            caller: caller.to_owned(),
            request,
        };
        self.admit(&kept)?;
        let id = kept.id;
        let stored = {
            let (shared, kept) = (Arc::clone(&self.0), kept.clone());
            tokio::task::spawn_blocking(move || shared.journal.store(&kept)).await
        };
        if let Err(problem) = stored.unwrap_or_else(|_| Err(defect())) {
            self.0.known.lock().unpoisoned().remove(&id);
            return Err(problem);
        }
        self.work(instance, kept, None);
        Ok(id)
    }

    /// Adds a request in memory, unless too many are unfinished.
    fn admit(&self, kept: &Kept) -> Result<(), Problem> {
        let running = |known: &&Known| known.end.borrow().is_none();
        let waiting = self.0.known.lock().unpoisoned().values().filter(running).count();
        if waiting >= self.0.gate.limits().requests_waiting {
            self.0.gate.count(Passed::Waiting);
            return Err(
                Problem::new(Code::Busy, format!("{waiting} requests wait already"))
                    .hint("wait until some of them are done"),
            );
        }
        self.remember(kept, None);
        self.forget_oldest();
        Ok(())
    }

    fn remember(&self, kept: &Kept, end: Option<Ended>) {
        let known = Known {
            operation: kept.request.info().name.to_owned(),
            accepted_at: kept.accepted_at,
            caller: kept.caller.clone(),
            end: watch::Sender::new(end),
        };
        self.0.known.lock().unpoisoned().insert(kept.id, known);
    }

    /// Restarts a request that an earlier process left unfinished.
    fn go_on(&self, instance: &Arc<Instance>, mut kept: Kept) {
        let since = kept.accepted_at;
        if let Some(run) = kept.request.run_mut() {
            run.goes_on_since = Some(since);
        }
        // What was let through before the process died is held no more, and its work is looked at.
        let instead = match &kept.request {
            Request::Approve(named) => Some(Request::Reconcile(named.clone())),
            _ => None,
        };
        self.work(instance, kept, instead);
    }

    fn work(&self, instance: &Arc<Instance>, mut kept: Kept, instead: Option<Request>) {
        if let Some(run) = kept.request.run_mut() {
            run.variables = instance.options.variables.clone();
            run.events = Events::News;
        }
        let (shared, instance) = (Arc::clone(&self.0), Arc::clone(instance));
        let origin: Arc<str> = format!("{} over HTTP, request {}", kept.caller, kept.id).into();
        instance.origins.note(&origin);
        tokio::spawn(async move {
            let working = async {
                let ended = instance.answer(kept.request).await;
                match (&ended, instead) {
                    (Err(_), Some(instead)) => instance.answer(instead).await,
                    _ => ended,
                }
            };
            let ended = on_behalf_of(origin, working).await;
            let Some(end) = end_of(ended, &instance) else {
                return;
            };
            let written = {
                let shared = Arc::clone(&shared);
                tokio::task::spawn_blocking(move || shared.journal.end(kept.id, &end)).await
            };
            match written {
                Ok(Ok(bytes)) => shared.tell(kept.id, bytes),
                // It is done again by the next process, which nothing here forbids.
                Ok(Err(problem)) => tracing::warn!("the end of a request can't be kept: {problem}"),
                Err(_) => {}
            }
        });
    }

    /// Waits until a request ends or the time is over. Cancel-safe.
    pub(super) async fn wait(&self, id: Uuid, patience: Duration) {
        let end = {
            let known = self.0.known.lock().unpoisoned();
            known.get(&id).map(|known| known.end.subscribe())
        };
        if let Some(mut end) = end {
            let _ = tokio::time::timeout(patience, end.wait_for(Option::is_some)).await;
        }
    }

    /// Returns the state of a request, with its final document or problem.
    ///
    /// # Errors
    /// `unknown-name`, where nothing is remembered under the id.
    pub(super) async fn get(&self, id: &str, base: &str) -> Result<RequestDocument, Problem> {
        self.of(None, id, base).await
    }

    /// Returns the state of a request of a caller, or of anybody if `asker` is none.
    ///
    /// # Errors
    /// `unknown-name`, where nothing is remembered under the id, and the same for a request of somebody else.
    pub(super) async fn of(
        &self,
        asker: Option<&str>,
        id: &str,
        base: &str,
    ) -> Result<RequestDocument, Problem> {
        let unknown = || {
            Problem::new(Code::UnknownName, format!("there is no request `{id}`"))
                .hint("requests are remembered for an hour after their end; `history` knows what ran")
        };
        let uuid: Uuid = id.parse().map_err(|_| unknown())?;
        let (operation, accepted_at, ended) = {
            let known = self.0.known.lock().unpoisoned();
            let known = known
                .get(&uuid)
                .filter(|known| asker.is_none_or(|asker| known.caller == asker));
            let known = known.ok_or_else(unknown)?;
            (known.operation.clone(), known.accepted_at, *known.end.borrow())
        };
        let mut document = RequestDocument {
            schema: RequestDocument::SCHEMA.to_owned(),
            id: uuid.to_string(),
            operation,
            accepted_at,
            state: RequestState::Running,
            document: None,
            problem: None,
        };
        if ended.is_none() {
            return Ok(document);
        }
        let shared = Arc::clone(&self.0);
        let read = tokio::task::spawn_blocking(move || shared.journal.read_end(uuid)).await;
        match read.unwrap_or_else(|_| Err(defect()))? {
            End::Done(value) => (document.state, document.document) = (RequestState::Done, Some(value)),
            End::Refused(problem) => {
                document.state = RequestState::Refused;
                document.problem = Some(ProblemDocument::new(problem, base));
            }
        }
        Ok(document)
    }

    /// Removes finished requests that are beyond the limits of age, number or size.
    fn forget_oldest(&self) {
        let mut known = self.0.known.lock().unpoisoned();
        let mut bytes: u64 = known
            .values()
            .filter_map(|known| Some(known.end.borrow().as_ref()?.bytes))
            .sum();
        let mut number = known.len();
        let oldest = Time::now().millis() - i64::try_from(KEPT_FOR.as_millis()).unwrap_or(i64::MAX);
        let mut forgotten = Vec::new();
        for (id, known) in known.iter() {
            let Some(ended) = *known.end.borrow() else {
                continue;
            };
            if number <= MOST_KEPT && bytes <= MOST_BYTES && ended.at.millis() >= oldest {
                // Those that follow ended later, or soon will.
                break;
            }
            number -= 1;
            bytes -= ended.bytes;
            forgotten.push(*id);
        }
        for id in &forgotten {
            known.remove(id);
        }
        drop(known);
        if !forgotten.is_empty() {
            let shared = Arc::clone(&self.0);
            tokio::task::spawn_blocking(move || shared.journal.forget(&forgotten));
        }
    }
}

impl Shared {
    /// Marks a request as finished, which wakes all who wait for its end.
    fn tell(&self, id: Uuid, bytes: u64) {
        let ended = Ended {
            at: Time::now(),
            bytes,
        };
        if let Some(known) = self.known.lock().unpoisoned().get(&id) {
            known.end.send_replace(Some(ended));
        }
    }
}

/// Returns the end of a request; none if the process stopped first, so that the next process repeats the work.
fn end_of(ended: Result<Answer, Problem>, instance: &Instance) -> Option<End> {
    match ended {
        Ok(answer) => Some(End::Done(answers::of_answer(&answer, instance))),
        Err(problem) if matches!(problem.code, Code::Stopping | Code::Interrupted) => None,
        Err(problem) => Some(End::Refused(answers::problem(problem, instance))),
    }
}

fn defect() -> Problem {
    Problem::new(Code::Defect, "the thread that keeps requests has panicked")
}
