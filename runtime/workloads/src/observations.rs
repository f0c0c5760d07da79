//! Observations: the latest known state of each workload's process, and the state that its reconciler has seen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use watershed_locks::Unpoisoned;

use crate::backend::{Error, News, Observation, Phase};

/// Time that a reconciler waits for the first listing before it reports the backend as unreachable.
const FIRST_LISTING: Duration = Duration::from_secs(15);

/// A backend with the result of its last listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendStatus {
    /// Name of the backend.
    pub name: &'static str,
    /// True once a listing has succeeded.
    pub is_listed: bool,
    /// Error of the last listing; none if it succeeded.
    pub error: Option<Error>,
}

/// The latest observations of all workloads.
pub(crate) struct Observations {
    table: Mutex<Table>,
    /// Names of backends that were listed at least once.
    listed: watch::Sender<BTreeSet<&'static str>>,
    /// Errors of backends whose last listing failed.
    absent: Mutex<BTreeMap<&'static str, Error>>,
    /// Channel with the clock of the last change, for invocations that wait.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct Table {
    /// Observations of a workload, by uid.
    entries: BTreeMap<String, Entry>,
    /// Logical clock that increases with each change by an answer, so that a listing which began earlier does not undo
    /// the change.
    clock: u64,
}

struct Entry {
    latest: Option<Observation>,
    /// Observation that the reconciler saw last; none if there was no process.
    seen: Option<Observation>,
    /// True once a reconciler has read the observation.
    is_seen: bool,
    /// Clock at the last answer about the workload.
    noted: u64,
}

impl Default for Observations {
    fn default() -> Self {
        Self {
            table: Mutex::default(),
            listed: watch::Sender::default(),
            absent: Mutex::default(),
            changes: watch::Sender::new(0),
        }
    }
}

impl Observations {
    /// Returns the latest observation of a workload and marks it as seen by its reconciler.
    pub(crate) fn see(&self, uid: &str) -> Option<Observation> {
        let mut table = self.lock();
        let entry = table.entries.entry(uid.to_owned()).or_insert_with(Entry::new);
        entry.is_seen = true;
        entry.seen = entry.latest.clone();
        entry.latest.clone()
    }

    /// Returns the latest observation without marking it as seen.
    pub(crate) fn peek(&self, uid: &str) -> Option<Observation> {
        self.lock().entries.get(uid)?.latest.clone()
    }

    /// Records a backend's answer. An answer about an earlier start than the known one is ignored.
    pub(crate) fn note(&self, observation: Observation) {
        let mut table = self.lock();
        table.clock += 1;
        let noted = table.clock;
        let uid = observation.id.uid().to_owned();
        let entry = table.entries.entry(uid).or_insert_with(Entry::new);
        let is_older = entry
            .latest
            .as_ref()
            .is_some_and(|latest| latest.id.counter() > observation.id.counter());
        // An end that came while the answer was on its way stands.
        let is_over = entry.latest.as_ref().is_some_and(|latest| {
            latest.id == observation.id && !latest.phase.is_alive() && observation.phase.is_alive()
        });
        if !is_older && !is_over {
            entry.latest = Some(observation);
        }
        entry.noted = noted;
        self.changes.send_replace(noted);
    }

    /// Forgets the observation of a workload.
    pub(crate) fn forget(&self, uid: &str) {
        let mut table = self.lock();
        table.clock += 1;
        let noted = table.clock;
        let entry = table.entries.entry(uid.to_owned()).or_insert_with(Entry::new);
        (entry.latest, entry.seen, entry.noted) = (None, None, noted);
    }

    /// Removes a workload that no longer exists.
    pub(crate) fn remove(&self, uid: &str) {
        self.lock().entries.remove(uid);
    }

    /// Returns a channel that changes with every observation.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Records that a backend was listed.
    pub(crate) fn note_listed(&self, backend: &'static str) {
        self.absent.lock().unpoisoned().remove(backend);
        self.listed.send_if_modified(|listed| listed.insert(backend));
    }

    /// Records that listing a backend failed.
    pub(crate) fn note_absent(&self, backend: &'static str, error: Error) {
        self.absent.lock().unpoisoned().insert(backend, error);
    }

    /// Returns the backends that were asked, ordered by name.
    pub(crate) fn status(&self) -> Vec<BackendStatus> {
        let listed = self.listed.borrow().clone();
        let absent = self.absent.lock().unpoisoned().clone();
        let names: BTreeSet<&'static str> = listed.iter().chain(absent.keys()).copied().collect();
        let of = |name: &'static str| BackendStatus {
            name,
            is_listed: listed.contains(name),
            error: absent.get(name).cloned(),
        };
        names.into_iter().map(of).collect()
    }

    /// Returns the observations of all processes that are alive or being started, ordered by start.
    pub(crate) fn alive(&self) -> Vec<Observation> {
        let table = self.lock();
        let latest = table.entries.values().filter_map(|entry| entry.latest.as_ref());
        latest.filter(|one| one.phase.is_alive()).cloned().collect()
    }

    /// Waits until a backend was listed once. Returns false if the program is leaving, since no listing follows then.
    ///
    /// # Errors
    /// When that takes too long: it can't be reached.
    pub(crate) async fn listed(
        &self,
        backend: &'static str,
        leaving: &CancellationToken,
    ) -> Result<bool, Error> {
        let mut listed = self.listed.subscribe();
        let listed = timeout(FIRST_LISTING, listed.wait_for(|listed| listed.contains(backend)));
        match leaving.run_until_cancelled(listed).await {
            None => Ok(false),
            Some(Ok(Ok(_))) => Ok(true),
            Some(_) => {
                let absent = self.absent.lock().unpoisoned();
                let message = "its processes could not be listed".to_owned();
                let unknown = Error::Unreachable { backend, message };
                Err(absent.get(backend).cloned().unwrap_or(unknown))
            }
        }
    }

    /// Applies news about the end of a process. Returns false if its start is unknown.
    pub(crate) fn end(&self, news: &News) -> bool {
        let News::Ended {
            id,
            end,
            at,
            was_stopped,
        } = news
        else {
            return false;
        };
        let mut table = self.lock();
        table.clock += 1;
        let noted = table.clock;
        let Some(entry) = table.entries.get_mut(id.uid()) else {
            return false;
        };
        let Some(latest) = entry.latest.as_mut().filter(|latest| latest.id == *id) else {
            return false;
        };
        latest.stopping |= was_stopped;
        latest.phase = Phase::Ended { end: *end, at: *at };
        entry.noted = noted;
        self.changes.send_replace(noted);
        true
    }

    /// Returns the logical clock, for a listing that begins now.
    pub(crate) fn clock(&self) -> u64 {
        self.lock().clock
    }

    /// Applies listings that began at clock `began`. Returns the workloads whose observation differs from the one seen,
    /// and those never read. With `is_complete` false a backend did not answer, so nothing follows from processes
    /// missing in the listings.
    pub(crate) fn apply(&self, listed: Vec<Observation>, began: u64, is_complete: bool) -> Vec<String> {
        let mut newest: BTreeMap<String, Observation> = BTreeMap::new();
        for observation in listed {
            // In order of their ids, so the last one of a uid is the newest.
            newest.insert(observation.id.uid().to_owned(), observation);
        }
        let mut table = self.lock();
        for uid in newest.keys() {
            table.entries.entry(uid.clone()).or_insert_with(Entry::new);
        }
        let mut different = Vec::new();
        for (uid, entry) in &mut table.entries {
            let listed = newest.remove(uid);
            if entry.noted <= began && (is_complete || listed.is_some()) {
                entry.latest = listed;
            }
            if !entry.is_seen || entry.seen != entry.latest {
                different.push(uid.clone());
            }
        }
        if !different.is_empty() {
            self.changes.send_modify(|_| {});
        }
        different
    }

    /// Returns the number of workloads with known observations.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.lock().entries.len()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // Changes of an entry are assignments; a panic in between leaves nothing half done.
        self.table.lock().unpoisoned()
    }
}

impl Entry {
    fn new() -> Self {
        Self {
            latest: None,
            seen: None,
            is_seen: false,
            noted: 0,
        }
    }
}

/// Returns the uids of all workloads known to be alive.
pub(crate) fn living(observations: &Observations) -> BTreeSet<String> {
    let table = observations.lock();
    let alive = table.entries.iter().filter(|(_, entry)| {
        entry
            .latest
            .as_ref()
            .is_some_and(|latest| latest.phase.is_alive())
    });
    alive.map(|(uid, _)| uid.clone()).collect()
}

#[cfg(test)]
mod tests {
    use watershed_controller::Timestamp;

    use super::*;
    use crate::backend::{End, StartId};
    use crate::policy::exit::Exit;

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_the_first_listing_is_told_when_the_program_ends_before_it() {
        let (observations, leaving) = (Observations::default(), CancellationToken::new());
        let wait = observations.listed("one", &leaving);
        let mut wait = std::pin::pin!(wait);
        assert!(futures::poll!(wait.as_mut()).is_pending());
        leaving.cancel();
        assert_eq!(wait.await, Ok(false));

        observations.note_listed("one");
        assert_eq!(
            observations.listed("one", &CancellationToken::new()).await,
            Ok(true)
        );
        let error = Error::Confined;
        observations.note_absent("two", error.clone());
        let waited = observations.listed("two", &CancellationToken::new()).await;
        assert_eq!(waited, Err(error), "the bound, and the reason");
    }

    fn observed(counter: u64, phase: Phase) -> Observation {
        Observation {
            id: StartId::new("uid", counter).unwrap(),
            epoch: 1,
            backend_id: None,
            started: Timestamp(0),
            stopping: false,
            phase,
        }
    }

    fn end_of(counter: u64) -> News {
        News::Ended {
            id: StartId::new("uid", counter).unwrap(),
            end: End::Exit(Exit::Code(1)),
            at: Timestamp(1),
            was_stopped: false,
        }
    }

    fn lives(observations: &Observations) -> bool {
        let latest = observations.peek("uid").unwrap();
        latest.phase.is_alive()
    }

    /// Covers W2: news about an end that overtake the answer to the start.
    #[test]
    fn an_end_that_comes_before_the_answer_about_its_start_stands() {
        let observations = Observations::default();
        observations.note(observed(1, Phase::Starting));
        assert!(observations.end(&end_of(1)));
        observations.note(observed(1, Phase::Running));
        assert!(!lives(&observations));
        observations.note(observed(2, Phase::Running));
        assert!(lives(&observations), "the next start is another");
    }

    /// Covers W2: a listing that began before a change.
    #[test]
    fn a_listing_undoes_nothing_that_was_learned_since_it_began() {
        let observations = Observations::default();
        observations.note(observed(1, Phase::Running));
        let began = observations.clock();
        assert!(observations.end(&end_of(1)));
        observations.apply(vec![observed(1, Phase::Running)], began, true);
        assert!(!lives(&observations));
        let began = observations.clock();
        observations.apply(Vec::new(), began, false);
        assert!(observations.peek("uid").is_some(), "a backend did not answer");
        observations.apply(Vec::new(), began, true);
        assert_eq!(observations.peek("uid"), None, "a later one knows better");
    }
}
