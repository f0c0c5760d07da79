//! The operator's hands: why something is not running, stop and go, numbers.

use std::collections::HashMap;
use std::time::Duration;

use watershed_api::documents::{
    OperateDocument, Operated, Operation, Phase, ProcessStats, StatsDocument, Time,
};
use watershed_api::request::StatsForm;
use watershed_api::{Answer, Code, Exit, Problem};
use watershed_controller::resource::{Revision, Stage, Target};
use watershed_controller::stats::Stats;
use watershed_controller::store::SqliteStore;
use watershed_controller::{Controller, Handle, RequestError, Select, Uid};

use super::{INSTANCE, Instance, OpenError};
use crate::report::document::Project;
use crate::report::explain::{Explanations, Inquiry, Life};
use crate::report::metrics::{self, Source};
use crate::report::{Entry, messages, names};
use crate::state_folder::StateFolder;

/// The time for which a cancelled run is waited for before the state of things is reported.
const STOPS_WITHIN: Duration = Duration::from_secs(5);
/// The time in which the store has to take changes made by hand.
const GRACE: Duration = Duration::from_secs(10);

impl Instance {
    /// Says why a resource is not running, or what keeps the project back.
    pub(super) async fn explain(&self, name: Option<&str>) -> Result<Answer, Problem> {
        let entries = self.entries();
        let about = name
            .map(|name| names::resolve_with_deleted(&entries, name))
            .transpose()?;
        let inquiry = Inquiry::new(&self.project, &entries, Life::Live);
        let mut said = Explanations::new();
        for uid in inquiry.to_ask(about) {
            match self.controller.explain(Target::Uid(uid)).await {
                Ok(explanation) => drop(said.insert(uid, explanation)),
                // Gone since: what was read of it is all there is.
                Err(RequestError::Refused(watershed_controller::Refusal::Unknown(_))) => {}
                Err(error) => return Err(super::converge::refused(&error)),
            }
        }
        Ok(Answer::Explain(Box::new(inquiry.answer(about, &said))))
    }

    /// Pauses, resumes or cancels resources.
    pub(super) async fn operate(&self, operation: Operation, typed: &[String]) -> Result<Answer, Problem> {
        operate(
            self.controller.as_ref(),
            &self.project,
            operation,
            typed,
            Life::Live,
        )
        .await
    }

    /// The numbers.
    pub(super) fn stats(&self, form: StatsForm) -> Answer {
        let stats = self.controller.stats();
        if form == StatsForm::Prometheus {
            let source = Source::Process {
                dropped: crate::logs::dropped(),
            };
            let last = self.last_success(&stats);
            return Answer::Prometheus(metrics::page(
                &self.project,
                &stats,
                &self.entries(),
                source,
                last,
            ));
        }
        Answer::Stats(Box::new(stats_document(
            &self.project,
            &stats,
            &self.entries(),
            Life::Live,
        )))
    }

    /// Returns the time when all was well last: now, if it has been so since everything settled.
    fn last_success(&self, stats: &Stats) -> Option<Time> {
        let kept = crate::success::last(self.state_path())?;
        let settled = stats.last_convergence.as_ref().map_or(0, |last| last.at.0);
        let rests = stats.running == 0 && stats.pending.values().sum::<u64>() == 0;
        Some(if rests && kept.millis() >= settled {
            Time::now()
        } else {
            kept
        })
    }

    /// Keeps the time of a convergence of the whole project, if it ended well.
    pub(super) fn note_success(&self, exit_code: u8) {
        if exit_code == Exit::Converged.code() {
            crate::success::note(self.state_path(), Time::now());
        }
    }
}

/// Pauses or resumes resources of a folder that this process holds: a controller that knows no kind runs nothing.
///
/// # Errors
/// When a name is unknown or means several, or the catalog can't be opened.
pub(crate) async fn operate_alone(
    project: &Project,
    state: &StateFolder,
    operation: Operation,
    typed: &[String],
) -> Result<Result<Answer, Problem>, OpenError> {
    let store = SqliteStore::open(state.catalog()).await?;
    let controller = Controller::builder()
        .instance(INSTANCE)
        .store(store)
        .start()
        .await?;
    let answer = operate(controller.as_ref(), project, operation, typed, Life::AtRest).await;
    Ok(match controller.shutdown(GRACE).await {
        Ok(()) => answer,
        Err(error) => answer.and(Err(Problem::new(Code::Unavailable, error.to_string()))),
    })
}

async fn operate(
    handle: &Handle,
    project: &Project,
    operation: Operation,
    typed: &[String],
    life: Life,
) -> Result<Answer, Problem> {
    let entries = listed(handle);
    let named: Result<Vec<&Entry>, Problem> =
        typed.iter().map(|name| names::resolve(&entries, name)).collect();
    let mut resources = Vec::new();
    for entry in named? {
        let uid = entry.row.uid;
        let done = match operation {
            Operation::Pause => handle.pause(uid).await,
            Operation::Resume => handle.resume(uid).await,
            Operation::Cancel => handle.cancel(uid).await,
            // They say more than a name.
            Operation::Scale
            | Operation::Restart
            | Operation::Rollback
            | Operation::Set
            | Operation::Event
            | Operation::Snooze => Ok(()),
        };
        done.map_err(|error| super::converge::refused(&error))?;
        if operation == Operation::Cancel {
            until_stopped(handle, entry).await;
        }
        resources.push(operated(operation, entry, handle, life));
    }
    Ok(document(project, operation, resources, life))
}

/// Waits a while until the run that was cancelled has returned.
async fn until_stopped(handle: &Handle, entry: &Entry) {
    let stopped = |found: Option<&watershed_controller::Resource>| {
        !found.is_some_and(|found| matches!(found.status.stage, Stage::Running { cancelled: true, .. }))
    };
    // What has not returned by then is told so.
    let _ = handle.wait_until(entry.row.key(), stopped, STOPS_WITHIN).await;
}

fn operated(operation: Operation, before: &Entry, handle: &Handle, life: Life) -> Operated {
    let now = handle.get(before.row.uid).ok();
    let moved = !matches!(before.status.stage, Stage::Settled(_));
    let changed = match operation {
        Operation::Pause => !before.row.paused,
        Operation::Resume => before.row.paused,
        Operation::Cancel => moved,
        Operation::Scale
        | Operation::Restart
        | Operation::Rollback
        | Operation::Set
        | Operation::Event
        | Operation::Snooze => false,
    };
    let phase = match now.as_ref().map(|now| &now.status.stage) {
        Some(Stage::Pending) if life == Life::Live => Phase::Pending,
        Some(Stage::Running { .. }) => Phase::Running,
        _ => Phase::Idle,
    };
    Operated {
        kind: before.row.kind.to_string(),
        name: before.row.name.to_string(),
        changed,
        paused: now.map_or(before.row.paused, |now| now.row.paused),
        phase,
        detail: String::new(),
    }
}

pub(super) fn listed(handle: &Handle) -> Vec<Entry> {
    let resources = handle.list(Select::all()).resources.into_iter();
    let entry = |resource: watershed_controller::Resource| Entry {
        row: resource.row,
        status: resource.status,
    };
    resources.map(entry).collect()
}

pub(super) fn document(
    project: &Project,
    command: Operation,
    resources: Vec<Operated>,
    life: Life,
) -> Answer {
    Answer::Operate(OperateDocument {
        schema: OperateDocument::SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command,
        project: project.name.clone(),
        root: project.root.display().to_string(),
        environment: project.environment.clone(),
        live: life == Life::Live,
        resources,
    })
}

/// The answer to a cancel where nobody runs anything.
///
/// # Errors
/// When a name is unknown or means several, or something else than a cancel was asked for, which writes.
pub(super) fn nothing_runs(
    project: &Project,
    entries: &[Entry],
    operation: Operation,
    typed: &[String],
) -> Result<Answer, Problem> {
    let named: Result<Vec<&Entry>, Problem> =
        typed.iter().map(|name| names::resolve(entries, name)).collect();
    if operation != Operation::Cancel {
        let refusal = Problem::new(Code::Unattended, "nothing was run here yet, so nothing is stored");
        return Err(refusal.hint("`watershed run` builds the project"));
    }
    let resources = named?.into_iter().map(|entry| Operated {
        kind: entry.row.kind.to_string(),
        name: entry.row.name.to_string(),
        changed: false,
        paused: entry.row.paused,
        phase: Phase::Idle,
        detail: String::new(),
    });
    Ok(document(project, operation, resources.collect(), Life::AtRest))
}

/// Returns the reason why something is not running, by what is stored.
///
/// # Errors
/// When the name is unknown or means several.
pub(super) fn explain_at_rest(
    project: &Project,
    entries: &[Entry],
    name: Option<&str>,
) -> Result<Answer, Problem> {
    let about = name
        .map(|name| names::resolve_with_deleted(entries, name))
        .transpose()?;
    let inquiry = Inquiry::new(project, entries, Life::AtRest);
    Ok(Answer::Explain(Box::new(
        inquiry.answer(about, &HashMap::<Uid, _>::new()),
    )))
}

/// The numbers of what is stored in a folder.
pub(super) fn stats_at_rest(
    project: &Project,
    state: &StateFolder,
    entries: &[Entry],
    revision: Revision,
    form: StatsForm,
) -> Answer {
    let mut stats = Stats {
        revision,
        ..Stats::default()
    };
    for entry in entries {
        stats.add(&entry.row, &entry.status, 0);
    }
    match form {
        StatsForm::Document => {
            Answer::Stats(Box::new(stats_document(project, &stats, entries, Life::AtRest)))
        }
        StatsForm::Prometheus => {
            let last = crate::success::last(&state.path());
            Answer::Prometheus(metrics::page(project, &stats, entries, Source::Stored, last))
        }
    }
}

fn stats_document(project: &Project, stats: &Stats, entries: &[Entry], life: Life) -> StatsDocument {
    StatsDocument {
        schema: StatsDocument::SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        project: project.name.clone(),
        root: project.root.display().to_string(),
        environment: project.environment.clone(),
        process: (life == Life::Live).then(std::process::id),
        at: Time::now(),
        revision: stats.revision.0,
        resources: stats.resources,
        pending: stats.pending.clone(),
        pending_by_reason: stats.pending_by_reason.clone(),
        oldest_pending_ms: stats.oldest_pending_ms,
        running: stats.running,
        longest_running_ms: stats.longest_running_ms,
        stuck: stats.stuck,
        settled: stats.settled.clone(),
        failed: stats.failed,
        blocked: stats.blocked,
        paused: stats.paused,
        retries: stats.retries,
        alerts: messages::alerts(entries),
        notifications: messages::notifications(entries),
        process_stats: (life == Life::Live).then(|| process_stats(stats)),
    }
}

fn process_stats(stats: &Stats) -> ProcessStats {
    let converged = stats.last_convergence.as_ref();
    ProcessStats {
        invocations_started: stats.invocations.started,
        invocations_done: stats.invocations.done,
        invocations_failed: stats.invocations.failed,
        commits: stats.commits.tried,
        commits_failed: stats.commits.failed,
        commit_last_us: stats.commits.last_us,
        commit_longest_us: stats.commits.longest_us,
        loop_lag_last_us: stats.loop_lag.last_us,
        loop_lag_longest_us: stats.loop_lag.longest_us,
        lease_age_ms: stats.lease.as_ref().map(|lease| lease.age_ms),
        lease_term_ms: stats.lease.as_ref().map(|lease| lease.term_ms),
        last_convergence_at: converged.map(|last| Time::from_millis(last.at.0)),
        last_convergence_took_ms: converged.map(|last| last.took_ms),
        log_lines_dropped: crate::logs::dropped(),
    }
}
