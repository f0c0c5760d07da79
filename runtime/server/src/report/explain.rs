//! Explanations: the root causes that hold a project up, each once.

mod retries;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use watershed_api::documents::{
    Blocker, Diagnostic, ExplainDocument, Explained, Health, ResourceError, ResourceName, RootCause,
    Severity, Time, Work,
};
use watershed_core::{Explanation, Key, RetryPolicy, Settled, Stage, Subject, Uid};
use watershed_workloads::job;
use watershed_workloads::service::{self, Trouble};

use super::document::{Project, findings};
use super::health::{HealthReport, ResourceHealth};
use super::hints::nearest;
use super::{Entry, Hidden, freshness, next_run, resource};

/// Most causes in one answer: more than a person fixes before looking again.
const MOST_CAUSES: usize = 100;

/// The advice for a ref to what no file declares.
const DECLARE: &str = "write a file that declares it, or change what refers to it";

/// The source of stages: a running controller, or storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    /// A controller runs the project.
    Live,
    /// No process runs the project; only what is stored is known.
    AtRest,
}

/// The input of an explanation: the resources, their health and the findings in files.
pub(crate) struct Inquiry<'a> {
    project: &'a Project,
    entries: &'a [Entry],
    life: Life,
    now: Time,
    health_report: HealthReport,
    findings: Vec<Diagnostic>,
    by_name: BTreeMap<ResourceName, &'a Entry>,
    /// The number of resources that each root cause keeps from being built.
    kept_back: BTreeMap<ResourceName, u64>,
}

/// The controller's explanations of some resources, by uid.
pub(crate) type Explanations = HashMap<Uid, Explanation>;

impl<'a> Inquiry<'a> {
    pub(crate) fn new(project: &'a Project, entries: &'a [Entry], life: Life) -> Self {
        let health_report = HealthReport::from_entries(entries);
        let mut kept_back = BTreeMap::new();
        for resource_health in entries.iter().filter_map(|entry| health_report.get(&entry.row)) {
            for name in &resource_health.blocked_by {
                *kept_back.entry(name.clone()).or_default() += 1;
            }
        }
        let by_name = entries.iter().map(|entry| (name_of(entry), entry)).collect();
        Self {
            project,
            entries,
            life,
            now: Time::now(),
            health_report,
            findings: findings(entries),
            by_name,
            kept_back,
        }
    }

    /// Returns the pending and retrying resources whose explanation the answer needs from the controller.
    pub(crate) fn to_ask(&self, about: Option<&Entry>) -> Vec<Uid> {
        let roots: Vec<&Entry> = match about {
            Some(entry) => std::iter::once(entry).chain(self.blockers(entry)).collect(),
            None => self.roots().into_iter().chain(self.first_pending()).collect(),
        };
        let unsaid = |entry: &&&Entry| {
            use Settled::Retrying;
            matches!(entry.status.stage, Stage::Pending | Stage::Settled(Retrying))
        };
        let uids = roots.iter().filter(unsaid).map(|entry| entry.row.uid);
        uids.take(MOST_CAUSES).collect()
    }

    /// Returns the explanation of one resource, or of all.
    pub(crate) fn answer(&self, about: Option<&Entry>, said: &Explanations) -> ExplainDocument {
        let mut causes = match about {
            Some(entry) => self.causes_of(entry, said),
            None => self.all_causes(said),
        };
        let more = causes.len().saturating_sub(MOST_CAUSES);
        causes.truncate(MOST_CAUSES);
        ExplainDocument {
            schema: ExplainDocument::SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            project: self.project.name.clone(),
            root: self.project.root.display().to_string(),
            environment: self.project.environment.clone(),
            live: self.life == Life::Live,
            resource: about.and_then(|entry| {
                let policy = retries::policy(entry, said);
                Some(explained(entry, self.health_report.get(&entry.row)?, policy))
            }),
            causes,
            more: more as u64,
        }
    }

    fn causes_of(&self, entry: &Entry, said: &Explanations) -> Vec<RootCause> {
        let blocked_by = self.health_report.get(&entry.row).filter(|resource_health| {
            let is_kept = matches!(resource_health.health, Health::Blocked | Health::Unready);
            matches!(entry.status.stage, Stage::Settled(_))
                && is_kept
                && !resource_health.blocked_by.is_empty()
        });
        let Some(resource_health) = blocked_by else {
            return vec![self.cause(entry, said)];
        };
        let causes = resource_health.blocked_by.iter();
        causes.map(|name| self.blocker(entry, name, said)).collect()
    }

    /// Returns all root causes of a project, those that hold up the most resources first.
    fn all_causes(&self, said: &Explanations) -> Vec<RootCause> {
        let mut causes: Vec<RootCause> = self
            .roots()
            .into_iter()
            .map(|entry| self.cause(entry, said))
            .collect();
        let unnamed: BTreeSet<&ResourceName> = self
            .kept_back
            .keys()
            .filter(|name| !self.by_name.contains_key(name))
            .collect();
        causes.extend(unnamed.into_iter().map(|name| self.missing(name)));
        if let Some(pending) = self.first_pending() {
            let cause = self.cause(pending, said);
            // What runs is told already.
            if !causes.iter().any(|told| told.resource == cause.resource) {
                causes.push(cause);
            }
        }
        causes.sort_by_key(|cause| {
            (
                std::cmp::Reverse(cause.keeps_back),
                cause.code,
                cause.resource.clone(),
            )
        });
        causes
    }

    /// Returns the root causes: resources that run, have failed, are paused, or were never built.
    fn roots(&self) -> Vec<&'a Entry> {
        let mut roots = Vec::new();
        let mut never_run = false;
        for entry in self.entries {
            let Some(resource_health) = self.health_report.get(&entry.row) else {
                continue;
            };
            let is_root = match (&entry.status.stage, resource_health.health) {
                (Stage::Running { .. }, _) => true,
                (Stage::Pending, _) => false,
                (Stage::Settled(Settled::Abandoned { .. } | Settled::Cancelled), _) => true,
                (_, Health::Failed | Health::Paused) => true,
                (_, Health::Unready) => resource_health.blocked_by.is_empty(),
                (_, Health::Stale) if stale_rows(entry).is_some() => true,
                // One stands for all that nobody has run yet.
                (_, Health::NeverBuilt | Health::Stale) if self.life == Life::AtRest => {
                    !std::mem::replace(&mut never_run, true)
                }
                _ => false,
            };
            // A service tells of its copies.
            if super::kinds::programs::is_copy(&entry.row) {
                continue;
            }
            // Who is hidden is not listed, but may be what keeps all others back.
            if is_root && (entry.is_listed(Hidden::Leave) || resource_health.health == Health::Failed) {
                roots.push(entry);
            }
        }
        roots
    }

    fn first_pending(&self) -> Option<&'a Entry> {
        self.entries
            .iter()
            .find(|entry| entry.status.stage == Stage::Pending)
    }

    fn blockers(&self, entry: &Entry) -> impl Iterator<Item = &'a Entry> {
        let names = self
            .health_report
            .get(&entry.row)
            .map(|resource_health| resource_health.blocked_by.as_slice());
        let names = names.unwrap_or_default();
        let found: Vec<&'a Entry> = names
            .iter()
            .filter_map(|name| self.by_name.get(name).copied())
            .collect();
        found.into_iter()
    }

    /// Returns the cause for which `blocked` waits, at the resource called `name`.
    fn blocker(&self, blocked: &Entry, name: &ResourceName, said: &Explanations) -> RootCause {
        match (self.by_name.get(name), &blocked.status.stage) {
            (_, Stage::Settled(Settled::WaitingForName { .. })) => {
                let told = format!("`{name}` has its name until a rename or a delete is done");
                let hint = format!("`watershed explain {name}` says what keeps that back");
                self.plain(Blocker::WaitingForName, name, told).hint(hint)
            }
            (Some(root), _) if root.row.unready.is_some() => self.cause(root, said),
            (Some(root), _) if root.row.error.is_none() && !is_moving(root) && !root.row.paused => {
                let told = format!(
                    "`{}` needs it to be there and ready, and it is not",
                    name_of(blocked)
                );
                let hint = format!("`watershed reconcile {name}` asks for it");
                self.plain(Blocker::WaitingForRef, name, told).hint(hint)
            }
            (Some(root), _) => self.cause(root, said),
            (None, _) => self.missing(name),
        }
    }

    fn missing(&self, name: &ResourceName) -> RootCause {
        let told = format!("no file declares `{name}`");
        self.plain(Blocker::MissingRef, name, told).hint(DECLARE)
    }

    /// Returns the cause that keeps a resource from running, other than the failure of another resource.
    fn cause(&self, entry: &Entry, said: &Explanations) -> RootCause {
        let id = name_of(entry);
        match &entry.status.stage {
            Stage::Running { cancelled: true, .. } => self
                .plain(Blocker::Stopping, &id, "it was cancelled and has not returned")
                .hint("it is given up on if it takes too long, and the rest goes on"),
            Stage::Running { .. } => self.plain(Blocker::Runs, &id, runs(entry)),
            Stage::Pending => match said.get(&entry.row.uid) {
                Some(explanation) => self.waits(entry, explanation),
                None => self.plain(Blocker::Next, &id, "it is about to start"),
            },
            Stage::Settled(settled) => self.settled(entry, settled, said),
        }
    }

    fn settled(&self, entry: &Entry, settled: &Settled, said: &Explanations) -> RootCause {
        let id = name_of(entry);
        match settled {
            Settled::Unsupported => {
                let told = format!("nothing here can run resources of kind `{}`", id.kind);
                self.plain(Blocker::Unsupported, &id, told)
            }
            Settled::Unreadable(error) => {
                let told = "what is stored of it can't be read, and is kept as it is";
                let cause = self.plain(Blocker::Unreadable, &id, told);
                let cause = cause.hint("use the version of watershed that wrote it");
                RootCause {
                    error: Some(resource::failure(error)),
                    ..cause
                }
            }
            Settled::Abandoned { key, .. } => self
                .plain(
                    Blocker::Abandoned,
                    &id,
                    format!("a run of `{key}` was cancelled and never returned"),
                )
                .hint("it goes on when that returns; where it never does, start the process anew"),
            Settled::WaitingForName { key, .. } => {
                let told = format!("`{key}` has its name until a rename or a delete is done");
                self.plain(Blocker::WaitingForName, &id, told)
            }
            Settled::WaitingForRef(reference) => {
                let told = format!("it needs `{}`, which is not there or not ready", reference.key());
                self.plain(Blocker::WaitingForRef, &id, told)
            }
            Settled::Cancelled => {
                self.plain(Blocker::Cancelled, &id, "a person stopped it")
                    .hint(match id.kind.as_str() {
                        // A run of a job that has ended is never made again but for another request.
                        job::KIND => format!("`watershed retry {id}` runs it again"),
                        _ => format!("`watershed reconcile {id}` asks for it again"),
                    })
            }
            _ if entry.row.paused => self.paused(entry),
            _ if self.has_failed(entry) => self.failed(entry, settled, said),
            _ => self.at_peace(entry),
        }
    }

    fn trouble(&self, entry: &Entry) -> Option<&Trouble> {
        self.health_report.get(&entry.row)?.trouble.as_ref()
    }

    fn has_failed(&self, entry: &Entry) -> bool {
        let resource_health = self.health_report.get(&entry.row);
        resource_health.is_some_and(|resource_health| resource_health.error(&entry.row).is_some())
    }

    /// Returns the time at which the next replica of a service is started.
    fn next_start(&self, entry: &Entry) -> Option<Time> {
        let next = self.trouble(entry)?.next?;
        Some(Time::from_millis(next.0))
    }

    fn paused(&self, entry: &Entry) -> RootCause {
        let id = name_of(entry);
        let cause = self
            .plain(Blocker::Paused, &id, "it is paused")
            .hint(format!("`watershed resume {id}` lets it go on"));
        RootCause {
            error: self.error(entry),
            ..cause
        }
    }

    fn failed(&self, entry: &Entry, settled: &Settled, said: &Explanations) -> RootCause {
        let id = name_of(entry);
        let error = self.error(entry);
        let is_of_copy = super::health::own_error(&entry.row).is_none();
        let at = error.as_ref().and_then(|error| error.at.clone());
        let retries = said.get(&entry.row.uid).and_then(|said| match said.because {
            watershed_core::Blocker::RetryIn(wait) => i64::try_from(wait.as_millis()).ok(),
            _ => None,
        });
        let is_cycle = error.as_ref().is_some_and(|error| error.code == "cycle");
        let is_of_tests = error
            .as_ref()
            .is_some_and(|error| error.code.starts_with("test-"));
        let code = match settled {
            Settled::OnCycle => Blocker::OnCycle,
            _ if is_cycle => Blocker::OnCycle,
            Settled::Retrying => Blocker::Retrying,
            _ if self.life == Life::Live && next_run::is_tried_again(&entry.row) => Blocker::Retrying,
            _ if is_of_copy && error.as_ref().is_some_and(|error| error.retryable) => Blocker::Retrying,
            _ => Blocker::Failed,
        };
        let retryable = error.as_ref().is_some_and(|error| error.retryable);
        let is_missing = error.as_ref().is_some_and(|error| error.code == "missing-ref");
        let is_cancelled = error.as_ref().is_some_and(|error| error.code == "cancelled");
        let hint = match (code, &at) {
            (Blocker::Failed, _) if is_missing => DECLARE.to_owned(),
            (Blocker::OnCycle, _) => "take one of these refs out".to_owned(),
            (Blocker::Failed, Some(_)) if is_of_tests => {
                format!(
                    "fix the rows or the test; `watershed test {id}` looks at the rows of the last good build"
                )
            }
            (Blocker::Failed, Some(at)) if !retryable && !is_cancelled => match self.life {
                Life::Live => format!("fix `{}`; it is built when that is saved", at.path),
                Life::AtRest => format!("fix `{}`, then `watershed run`", at.path),
            },
            _ if is_cancelled => format!("`watershed retry {id}` runs it again"),
            _ => format!("`watershed retry {id}` tries it now"),
        };
        let failure = match is_of_copy {
            true => "not all of its copies come up".to_owned(),
            false => retries::failure(entry, retries::policy(entry, said)),
        };
        let cause = self.plain(code, &id, failure).hint(hint);
        let until = retries.map(|wait| Time::from_millis(self.now.millis().saturating_add(wait)));
        RootCause {
            error,
            at,
            // What has given up is tried again at the next time of its schedule.
            until: until
                .or_else(|| self.next_start(entry))
                .or_else(|| next_run::time_of(&entry.row).filter(|_| self.life == Life::Live)),
            ..cause
        }
    }

    /// Returns the explanation of a settled resource without an error.
    fn at_peace(&self, entry: &Entry) -> RootCause {
        let id = name_of(entry);
        let health = self
            .health_report
            .get(&entry.row)
            .map(|resource_health| resource_health.health);
        // A service looks at itself when its time to become ready is over, which is no start of anything.
        let until = match id.kind == service::KIND {
            true => self.next_start(entry),
            false => entry.row.next_reconcile.map(|at| Time::from_millis(at.0)),
        };
        let until = until.filter(|_| self.life == Life::Live);
        let old_rows = stale_rows(entry).filter(|_| health == Some(Health::Stale));
        let cause = match (health, self.life, old_rows) {
            (_, _, Some(old)) => RootCause {
                hint: old.hint,
                ..self.plain(Blocker::Stale, &id, old.message)
            },
            (Some(Health::NeverBuilt), Life::AtRest, _) => self
                .plain(
                    Blocker::NeverRun,
                    &id,
                    "it was never run, and the project is not running",
                )
                .hint("`watershed run` builds it"),
            (Some(Health::Stale), Life::AtRest, _) => self
                .plain(
                    Blocker::Stale,
                    &id,
                    "its last run was stopped, and the project is not running",
                )
                .hint("`watershed run` brings it up to date"),
            (Some(Health::Unready), ..) => {
                let why = entry.row.unready.as_deref().unwrap_or("it can't be used yet");
                self.plain(Blocker::Unready, &id, why)
            }
            _ => match self.trouble(entry) {
                // It serves by its old release.
                Some(trouble) => self.plain(Blocker::Unready, &id, trouble.message.clone()),
                None => self.plain(Blocker::Idle, &id, "nothing asks for it: it is up to date"),
            },
        };
        RootCause { until, ..cause }
    }

    /// Translates the controller's explanation of a pending resource.
    fn waits(&self, entry: &Entry, said: &Explanation) -> RootCause {
        let root = said.waits_for.as_ref().unwrap_or(&said.subject);
        let id = subject(root);
        let own = said.waits_for.is_none();
        let whose = |text: &str| match own {
            true => text.to_owned(),
            false => format!("`{}` waits for it; {text}", name_of(entry)),
        };
        let (code, told, hint) = reason_to_wait(&said.because);
        let cause = self.plain(code, &id, whose(&told));
        match hint {
            Some(hint) => cause.hint(hint),
            None => cause,
        }
    }

    /// Returns the resource's error, as the finding in a file states it where there is such a finding.
    fn error(&self, entry: &Entry) -> Option<ResourceError> {
        let resource_health = self.health_report.get(&entry.row)?;
        let mut told = resource::document(&entry.row, resource_health, Work::None, Vec::new());
        resource::say_as_found(&mut told, &self.findings);
        told.error.map(|error| self.proposing(error))
    }

    /// Names the resource nearest to a table that is missing: in a first build the engine has no tables to propose.
    fn proposing(&self, error: ResourceError) -> ResourceError {
        let missing = error.message.strip_prefix("Table with name ");
        let missing = missing.and_then(|rest| rest.strip_suffix(" does not exist!"));
        let (Some(missing), None) = (missing, &error.hint) else {
            return error;
        };
        let names = self.by_name.keys().map(|id| id.name.as_str());
        let near = nearest(missing, names).filter(|near| *near != missing);
        let hint = near.map(|near| format!("did you mean `{near}`?"));
        ResourceError { hint, ..error }
    }

    fn plain(&self, code: Blocker, id: &ResourceName, message: impl Into<String>) -> RootCause {
        RootCause {
            code,
            resource: id.clone(),
            message: message.into(),
            hint: None,
            actions: Vec::new(),
            error: None,
            at: None,
            until: None,
            keeps_back: self.kept_back.get(id).copied().unwrap_or_default(),
        }
    }
}

/// Returns the finding that the rows of a resource are too old; none if they are not.
fn stale_rows(entry: &Entry) -> Option<Diagnostic> {
    freshness::finding(&entry.row).filter(|old| old.severity == Severity::Error)
}

fn is_moving(entry: &Entry) -> bool {
    !matches!(entry.status.stage, Stage::Settled(_))
}

fn runs(entry: &Entry) -> String {
    match &entry.status.progress {
        Some(progress) => format!("it runs: {progress}"),
        None => "it runs".to_owned(),
    }
}

/// Returns the reason that keeps a pending resource from starting, with a hint.
fn reason_to_wait(because: &watershed_core::Blocker) -> (Blocker, String, Option<String>) {
    let names = |subjects: &[Subject]| {
        let names: Vec<String> = subjects.iter().map(|s| subject(s).to_string()).collect();
        match names.is_empty() {
            true => String::new(),
            false => format!(": {}", names.join(", ")),
        }
    };
    let more = || {
        Some(format!(
            "{} lets more run at once",
            watershed_api::hint::option("jobs", "N")
        ))
    };
    match because {
        watershed_core::Blocker::Runs { cancelled: true, .. } => (
            Blocker::Stopping,
            "it was cancelled and has not returned".to_owned(),
            None,
        ),
        watershed_core::Blocker::Runs { .. } => (Blocker::Runs, "it runs".to_owned(), None),
        watershed_core::Blocker::AwaitsCommit(_) => (
            Blocker::AwaitsCommit,
            "what asked for it is being stored".to_owned(),
            None,
        ),
        watershed_core::Blocker::Gate(first) => {
            (Blocker::Gate, format!("`{}` comes first", subject(first)), None)
        }
        watershed_core::Blocker::DeletesFirst { count, running } => (
            Blocker::DeletesFirst,
            format!("deletes come first, {count} of them{}", names(running)),
            None,
        ),
        watershed_core::Blocker::RenamesFirst { count, running } => (
            Blocker::RenamesFirst,
            format!("renames come first, {count} of them{}", names(running)),
            None,
        ),
        watershed_core::Blocker::ControllerFull(limit) => (
            Blocker::ControllerFull,
            format!("{limit} run already, as many as may"),
            more(),
        ),
        watershed_core::Blocker::KindFull(limit) => (
            Blocker::KindFull,
            format!("{limit} of its kind run already, as many as may"),
            more(),
        ),
        watershed_core::Blocker::PoolFull(pool) => (
            Blocker::PoolFull,
            format!("all places of the pool `{pool}` are taken"),
            None,
        ),
        watershed_core::Blocker::RunsBelow(below) => (
            Blocker::RunsBelow,
            format!("`{}` reads it and has not returned", subject(below)),
            None,
        ),
        watershed_core::Blocker::NameInUse(other) => (
            Blocker::NameInUse,
            format!("`{}` runs under one of its names", subject(other)),
            None,
        ),
        watershed_core::Blocker::Settled(_)
        | watershed_core::Blocker::Cycle(_)
        | watershed_core::Blocker::RetryIn(_)
        | watershed_core::Blocker::Next => (Blocker::Next, "it is about to start".to_owned(), None),
    }
}

fn explained(entry: &Entry, resource_health: &ResourceHealth, policy: RetryPolicy) -> Explained {
    let (row, reason) = (&entry.row, entry.status.reason.as_deref());
    let reason = reason.filter(|_| is_moving(entry));
    Explained {
        kind: row.kind.to_string(),
        name: row.name.to_string(),
        phase: resource_health.phase,
        health: resource_health.health,
        reason: reason.map(|reason| resource::reason_of(reason.trigger)),
        cause: reason.map(resource::cause).unwrap_or_default(),
        chain: reason.map_or_else(Vec::new, |reason| resource::chain(reason, &row.key())),
        attempts: row.attempts,
        retry: retries::shown(policy),
        next_run_at: super::next_run::time_of(row),
        last_run: row
            .last_run
            .as_ref()
            .map(|run| resource::last_run(run, &row.key(), row.error.as_ref())),
        last_success_at: row.last_success.map(|at| Time::from_millis(at.0)),
    }
}

fn name_of(entry: &Entry) -> ResourceName {
    key_name(&entry.row.key())
}

fn subject(subject: &Subject) -> ResourceName {
    key_name(&subject.key)
}

fn key_name(key: &Key) -> ResourceName {
    ResourceName::new(key.kind.as_str(), key.name.as_str())
}

#[cfg(test)]
mod tests;
