//! The health of resources, and the root causes behind it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use watershed_api::documents::{Health, Phase, ResourceName};
use watershed_core::{Error, ErrorKind, Key, Required, Row, RunResult, Settled, Stage, Timestamp};
use watershed_workloads::service::Trouble;

use super::copies::Copies;
use super::{Entry, freshness};

/// Health and root causes of all resources in one reading of the catalog.
pub(crate) struct HealthReport {
    by_uid: HashMap<watershed_core::Uid, ResourceHealth>,
}

/// The health of one resource.
#[derive(Debug, Clone)]
pub(crate) struct ResourceHealth {
    pub(crate) health: Health,
    pub(crate) phase: Phase,
    /// Names of the root causes that keep the resource from being built.
    pub(crate) blocked_by: Vec<ResourceName>,
    /// The trouble of the service's replica that is worst off.
    pub(crate) trouble: Option<Trouble>,
}

impl ResourceHealth {
    /// Returns the health of a resource that was not evaluated yet.
    pub(crate) fn unknown() -> Self {
        Self {
            health: Health::NeverBuilt,
            phase: Phase::Pending,
            blocked_by: Vec::new(),
            trouble: None,
        }
    }

    /// Returns the resource's own error, or that of a replica for a service.
    pub(crate) fn error<'a>(&'a self, row: &'a Row) -> Option<&'a Error> {
        let own = own_error(row).map(Arc::as_ref);
        own.or_else(|| self.trouble.as_ref().and_then(|trouble| trouble.error.as_ref()))
    }
}

impl HealthReport {
    /// Evaluates all resources together, in time proportional to resources, refs and the causes named.
    pub(crate) fn from_entries(entries: &[Entry]) -> Self {
        let live = entries.iter().filter(|entry| !entry.row.intents.is_deleted());
        let live: HashMap<Key, &Entry> = live.map(|entry| (entry.row.key(), entry)).collect();
        let now = Timestamp::from(std::time::SystemTime::now());
        let mut judge = Judge::new(now, |key| live.get(key).copied(), |_| None);
        let copies = Copies::of(entries);
        let judged = entries
            .iter()
            .map(|entry| (entry.row.uid, judge.health(entry, copies.trouble(&entry.row))));
        Self {
            by_uid: judged.collect(),
        }
    }

    /// Returns the health of a row's resource; none if the report lacks the resource.
    pub(crate) fn get(&self, row: &Row) -> Option<&ResourceHealth> {
        self.by_uid.get(&row.uid)
    }
}

/// Returns the resource's own error; none if it failed only because a ref did.
pub(crate) fn own_error(row: &Row) -> Option<&Arc<Error>> {
    row.error.as_ref().filter(|error| !is_dependency(error))
}

/// Returns true if an error is the failure of a ref. A ref that names nothing is an error of its own.
pub(crate) fn is_dependency(error: &Error) -> bool {
    matches!(error.kind, ErrorKind::Dependency(_)) && error.code.as_ref() != MISSING_REF
}

/// The error code of a ref that names nothing.
const MISSING_REF: &str = "missing-ref";

fn phase(entry: &Entry) -> Phase {
    match entry.status.stage {
        Stage::Settled(_) => Phase::Idle,
        Stage::Pending => Phase::Pending,
        Stage::Running { .. } => Phase::Running,
    }
}

/// Returns true if a resource can't be used yet although it has no error.
fn is_unready(row: &Row) -> bool {
    row.unready.is_some() && row.error.is_none()
}

/// Returns the first health that applies, in order of precedence. `keeps` is the health due to root causes, if any.
fn health(entry: &Entry, keeps: Option<Health>, has_read_older: bool, now: Timestamp) -> Health {
    let row = &entry.row;
    let settled = match &entry.status.stage {
        Stage::Settled(settled) => Some(settled),
        _ => None,
    };
    if matches!(settled, Some(Settled::Unsupported)) {
        Health::Unsupported
    } else if row.paused {
        Health::Paused
    } else if own_error(row).is_some() || matches!(settled, Some(Settled::Unreadable(_) | Settled::OnCycle)) {
        Health::Failed
    } else if let Some(kept) = keeps {
        kept
    } else if is_unready(row) {
        Health::Unready
    } else if row.last_success.is_none() {
        Health::NeverBuilt
    } else if is_behind(row) || has_read_older || freshness::is_stale(row, now) {
        Health::Stale
    } else {
        Health::Ok
    }
}

/// Returns true if no completed run has seen the latest spec and refresh requests.
fn is_behind(row: &Row) -> bool {
    // Where nobody was asked, nothing is known to be behind.
    let Some(run) = &row.last_run else { return false };
    let answered = run
        .seen
        .as_ref()
        .is_some_and(|seen| seen.spec_version == row.spec_version && seen.refreshes == row.refreshes);
    !answered || run.result == RunResult::Cancelled
}

fn name_of(key: &Key) -> ResourceName {
    ResourceName {
        kind: key.kind.to_string(),
        name: key.name.to_string(),
    }
}

/// The root causes that block a resource.
pub(crate) type Causes = Arc<BTreeSet<Key>>;

/// An evaluator of health, which finds root causes by following refs from blocked to failed resources.
///
/// `live` finds the resource that a ref stands for, `kept` the causes that are known from before and have not changed.
pub(crate) struct Judge<L, K> {
    now: Timestamp,
    live: L,
    kept: K,
    known: HashMap<watershed_core::Uid, Causes>,
}

impl<'a, L, K> Judge<L, K>
where
    L: Fn(&Key) -> Option<&'a Entry>,
    K: Fn(watershed_core::Uid) -> Option<Causes>,
{
    /// Returns an evaluator without known causes.
    pub(crate) fn new(now: Timestamp, live: L, kept: K) -> Self {
        Self {
            now,
            live,
            kept,
            known: HashMap::new(),
        }
    }

    /// Returns the health of a resource; `trouble` is the trouble of a service's replicas.
    pub(crate) fn health(&mut self, entry: &'a Entry, trouble: Option<Trouble>) -> ResourceHealth {
        let blocked_by = self.blockers_of(entry);
        let keeps = self.worst(&blocked_by);
        let has_failed = trouble.as_ref().is_some_and(|trouble| trouble.error.is_some());
        ResourceHealth {
            health: match health(entry, keeps, self.are_older_in(&entry.row), self.now) {
                found @ (Health::Paused | Health::Unsupported | Health::Blocked) => found,
                _ if has_failed => Health::Failed,
                found => found,
            },
            phase: phase(entry),
            blocked_by,
            trouble,
        }
    }

    /// Returns the known root causes of a resource; none if they were never looked for.
    pub(crate) fn causes(&self, uid: watershed_core::Uid) -> Option<Causes> {
        self.known.get(&uid).cloned()
    }

    /// Returns true if a resource that this one reads has changed since this one last ran.
    fn are_older_in(&self, row: &Row) -> bool {
        let seen = row.last_run.as_ref().and_then(|run| run.seen.as_ref());
        // Of another spec, the refs may be others.
        let Some(seen) = seen.filter(|seen| seen.refs.len() == row.refs.len()) else {
            return false;
        };
        let now = row.refs.iter().map(|to| (self.live)(&to.key()));
        let now = now.map(|entry| entry.map(|entry| (entry.row.uid, entry.row.state_version)));
        now.zip(seen.refs.iter()).any(|(now, seen)| now != seen.target)
    }

    /// Returns the health that the root causes give a resource: unready if all causes are merely unready, otherwise
    /// blocked.
    fn worst(&self, causes: &[ResourceName]) -> Option<Health> {
        let is_unready = |cause: &ResourceName| {
            let key = Key::new(cause.kind.as_str(), cause.name.as_str());
            (self.live)(&key).is_some_and(|entry| is_unready(&entry.row))
        };
        match (causes.is_empty(), causes.iter().all(is_unready)) {
            (true, _) => None,
            (false, true) => Some(Health::Unready),
            (false, false) => Some(Health::Blocked),
        }
    }

    fn blockers_of(&mut self, entry: &'a Entry) -> Vec<ResourceName> {
        match &entry.status.stage {
            Stage::Settled(Settled::WaitingForName { key, .. }) => return vec![name_of(key)],
            Stage::Settled(Settled::WaitingForRef(reference)) => {
                let causes = self.above(entry);
                return match causes.is_empty() {
                    true => vec![name_of(&reference.key())],
                    false => causes.iter().map(name_of).collect(),
                };
            }
            _ => {}
        }
        let error = entry.row.error.as_deref().filter(|error| is_dependency(error));
        let Some(ErrorKind::Dependency(reference)) = error.map(|error| &error.kind) else {
            return Vec::new();
        };
        let causes = self.above(entry);
        if causes.is_empty() {
            return vec![name_of(&reference.key())];
        }
        causes.iter().map(name_of).collect()
    }

    /// Returns the root causes of a blocked resource, found with an explicit stack since chains may be long. Cycles
    /// end.
    fn above(&mut self, start: &'a Entry) -> Causes {
        let mut stack = vec![(Arc::clone(&start.row), Visit::Begin)];
        while let Some((row, visit)) = stack.pop() {
            match visit {
                Visit::Begin if self.known.contains_key(&row.uid) => {}
                Visit::Begin => {
                    let kept = (self.kept)(row.uid);
                    let is_kept = kept.is_some();
                    self.known.insert(row.uid, kept.unwrap_or_default());
                    if is_kept {
                        continue;
                    }
                    let blocked = self.parents(&row).filter(|parent| !is_root(&parent.row));
                    let next: Vec<_> = blocked
                        .map(|parent| (Arc::clone(&parent.row), Visit::Begin))
                        .collect();
                    stack.push((row, Visit::End));
                    stack.extend(next);
                }
                Visit::End => {
                    let causes = self.gather(&row);
                    self.known.insert(row.uid, causes);
                }
            }
        }
        self.known.get(&start.row.uid).cloned().unwrap_or_default()
    }

    /// Returns the resources that this one reads and that block it.
    fn parents<'b>(&'b self, row: &'b Row) -> impl Iterator<Item = &'a Entry> + 'b {
        row.refs.iter().filter_map(|reference| {
            let parent = (self.live)(&reference.key())?;
            let waits = matches!(parent.status.stage, Stage::Settled(Settled::WaitingForRef(_)));
            let is_unready = reference.required == Required::Ready && parent.row.unready.is_some();
            (parent.row.error.is_some() || waits || is_unready).then_some(parent)
        })
    }

    fn gather(&self, row: &Row) -> Causes {
        let mut own = BTreeSet::new();
        let mut inherited: Vec<&Causes> = Vec::new();
        for parent in self.parents(row) {
            match is_root(&parent.row) {
                true => drop(own.insert(parent.row.key())),
                false => inherited.extend(self.known.get(&parent.row.uid)),
            }
        }
        // Most have one parent that is blocked: its set is shared rather than copied down a chain.
        match (own.is_empty(), inherited.as_slice()) {
            (true, [only]) => Arc::clone(only),
            _ => {
                own.extend(inherited.into_iter().flat_map(|causes| causes.iter().cloned()));
                Arc::new(own)
            }
        }
    }
}

/// Returns true if a resource is blocked by others.
pub(crate) fn is_kept_back(entry: &Entry) -> bool {
    let waits = matches!(entry.status.stage, Stage::Settled(Settled::WaitingForRef(_)));
    waits || entry.row.error.as_deref().is_some_and(is_dependency)
}

/// Returns true if a resource is itself a root cause.
fn is_root(row: &Row) -> bool {
    own_error(row).is_some() || is_unready(row)
}

enum Visit {
    Begin,
    End,
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{blocked, entry, failed, model};
    use super::*;

    fn causes(entries: &[Entry], name: &str) -> Vec<String> {
        let health_report = HealthReport::from_entries(entries);
        let entry = entries
            .iter()
            .find(|entry| entry.row.name.as_str() == name)
            .unwrap();
        health_report
            .get(&entry.row)
            .unwrap()
            .blocked_by
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn a_blocked_resource_names_what_failed_far_above_it() {
        let entries = [
            entry(failed(model("root", &[]))),
            entry(blocked(model("a", &["root"]), "root")),
            entry(blocked(model("b", &["a"]), "a")),
            entry(blocked(model("c", &["b", "fine"]), "b")),
            entry(model("fine", &[])),
        ];
        assert_eq!(causes(&entries, "c"), ["model/root"]);
        assert_eq!(causes(&entries, "root"), [] as [&str; 0]);
        let health_report = HealthReport::from_entries(&entries);
        let health: Vec<Health> = entries
            .iter()
            .map(|e| health_report.get(&e.row).unwrap().health)
            .collect();
        use Health::{Blocked, Failed, Ok};
        assert_eq!(health, [Failed, Blocked, Blocked, Blocked, Ok]);
    }

    #[test]
    fn several_causes_are_all_named_once() {
        let entries = [
            entry(failed(model("x", &[]))),
            entry(failed(model("y", &[]))),
            entry(blocked(model("a", &["x", "y"]), "x")),
            entry(blocked(model("b", &["a", "x"]), "a")),
        ];
        assert_eq!(causes(&entries, "b"), ["model/x", "model/y"]);
    }

    #[test]
    fn a_cause_that_is_not_there_is_named_by_the_ref() {
        let entries = [entry(blocked(model("a", &["gone"]), "gone"))];
        assert_eq!(causes(&entries, "a"), ["model/gone"]);
    }

    #[test]
    fn a_long_chain_is_no_danger_to_the_stack() {
        let mut entries = vec![entry(failed(model("m0", &[])))];
        for number in 1..20_000 {
            let parent = format!("m{}", number - 1);
            entries.push(entry(blocked(model(&format!("m{number}"), &[&parent]), &parent)));
        }
        entries.reverse();
        assert_eq!(causes(&entries, "m19999"), ["model/m0"]);
    }
}
