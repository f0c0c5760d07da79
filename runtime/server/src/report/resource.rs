//! One resource as documents show it.

use std::sync::Arc;

use watershed_api::documents::{
    At, Diagnostic, LastRun, Link, Outcome, Reason, ResourceDocument, ResourceError, ResourceName, Severity,
    Time, Warning, Work,
};
use watershed_core::{
    Cause, Error, Key, LastRun as StoredRun, Reason as StoredReason, Row, RunResult, Trigger,
};
use watershed_reconcilers::model::STALE_INPUT;

use super::health::{ResourceHealth, is_dependency};
use super::{data_tests, kinds, run_id};

/// Returns the document of one resource, with its work in this command and the warnings in its files.
pub(crate) fn document(
    row: &Row,
    resource_health: &ResourceHealth,
    work: Work,
    warnings: Vec<Warning>,
) -> ResourceDocument {
    ResourceDocument {
        kind: row.kind.to_string(),
        name: row.name.to_string(),
        refs: row
            .refs
            .iter()
            .map(|r| ResourceName::new(r.kind.as_str(), r.name.as_str()))
            .collect(),
        declared_as: kinds::declared_as(row),
        paths: row.paths.iter().map(ToString::to_string).collect(),
        selected: true,
        phase: resource_health.phase,
        health: resource_health.health,
        error: resource_health.error(row).map(failure),
        blocked_by: resource_health.blocked_by.clone(),
        unready: row
            .unready
            .as_deref()
            .map(str::to_owned)
            .filter(|_| row.error.is_none() && resource_health.error(row).is_none()),
        warnings,
        work,
        last_run: row
            .last_run
            .as_ref()
            .map(|run| last_run(run, &row.key(), row.error.as_ref())),
        runs_total: row.runs_total,
        next_run_at: super::next_run::time_of(row),
        spec_version: row.spec_version.0,
        state_version: row.state_version.0,
        result: kinds::result(row),
        tests: data_tests::from_row(row),
        guessed: None,
        spec: None,
    }
}

/// Converts the error of a run for documents.
pub(crate) fn failure(error: &Error) -> ResourceError {
    ResourceError {
        code: error.code.to_string(),
        message: error.message.to_string(),
        hint: error.hint.as_ref().map(ToString::to_string),
        details: error.details.as_ref().map(ToString::to_string),
        at: error.place.as_ref().map(|place| At {
            path: place.path.to_string(),
            line: place.line,
            column: place.column,
        }),
        retryable: error.kind == watershed_core::ErrorKind::Transient,
    }
}

/// Converts a stored run for documents; `error` is the error that it left on its resource.
pub(crate) fn last_run(run: &StoredRun, key: &Key, error: Option<&Arc<Error>>) -> LastRun {
    LastRun {
        id: run_id(run.epoch.0, run.id.0),
        reason: reason_of(run.reason.trigger),
        cause: cause(&run.reason),
        chain: chain(&run.reason, key),
        started_at: Time::from_millis(run.started_at.0),
        duration_ms: Time::from_millis(run.ended_at.0).since_ms(Time::from_millis(run.started_at.0)),
        outcome: outcome(run.result, error.map(Arc::as_ref)),
    }
}

/// Converts the result of a run to an outcome.
pub(crate) fn outcome(result: RunResult, error: Option<&Error>) -> Outcome {
    match result {
        RunResult::Cancelled => Outcome::Cancelled,
        RunResult::Failed if error.is_some_and(is_built_all_the_same) => Outcome::Done,
        RunResult::Failed if error.is_some_and(is_dependency) => Outcome::Skipped,
        RunResult::Failed => Outcome::Failed,
        RunResult::Done(work) => match work_of(work) {
            Work::Built | Work::Restored | Work::Renamed | Work::Dropped => Outcome::Done,
            Work::Checked | Work::None => Outcome::Unchanged,
        },
    }
}

/// Converts the result of a run to the work that it did.
pub(crate) fn work(result: RunResult, error: Option<&Error>) -> Work {
    match result {
        RunResult::Done(work) => work_of(work),
        RunResult::Failed if error.is_some_and(is_built_all_the_same) => Work::Built,
        RunResult::Failed | RunResult::Cancelled => Work::None,
    }
}

/// Returns true if a blocked run has nevertheless built what an edit asked for.
fn is_built_all_the_same(error: &Error) -> bool {
    is_dependency(error) && error.code.as_ref() == STALE_INPUT
}

fn work_of(work: watershed_core::Work) -> Work {
    match work {
        watershed_core::Work::Built => Work::Built,
        watershed_core::Work::Restored => Work::Restored,
        watershed_core::Work::Renamed => Work::Renamed,
        watershed_core::Work::Dropped => Work::Dropped,
        watershed_core::Work::Checked => Work::Checked,
        watershed_core::Work::None => Work::None,
    }
}

/// Returns the origins of a request as `kind/name`; calls from outside are left out.
pub(crate) fn cause(reason: &StoredReason) -> Vec<String> {
    match reason.cause.as_ref() {
        Some(Cause::Resource { key, .. } | Cause::Invocation { key, .. }) => vec![key.to_string()],
        Some(Cause::Call(_)) | None => Vec::new(),
    }
}

/// Returns the causal chain of a request for this resource, as text.
pub(crate) fn chain(reason: &StoredReason, key: &Key) -> Vec<Link> {
    let links = reason.chain(key).into_iter();
    links
        .map(|link| Link {
            resource: ResourceName::new(link.key.kind.as_str(), link.key.name.as_str()),
            reason: reason_of(link.reason.trigger),
            origin: link.reason.origin.as_deref().map(str::to_owned),
            omitted: link.omitted.into(),
        })
        .collect()
}

/// Replaces a resource's error by the finding in a file that reports it, with its place.
pub(crate) fn say_as_found(resource: &mut ResourceDocument, findings: &[Diagnostic]) {
    let id = resource.id();
    let Some(error) = &mut resource.error else { return };
    let found = findings.iter().find(|finding| {
        finding.severity == Severity::Error
            && finding.code == error.code
            && finding.resource.as_ref() == Some(&id)
    });
    if let Some(found) = found.filter(|_| error.at.is_none()) {
        error.message.clone_from(&found.message);
        if error.hint.is_none() {
            error.hint.clone_from(&found.hint);
        }
        error.at = Some(At {
            path: found.path.clone(),
            line: found.line,
            column: found.column,
        });
    }
}

/// Returns the warnings about a resource among all findings.
pub(crate) fn warnings(findings: &[Diagnostic], row: &Row) -> Vec<Warning> {
    let concerns = |finding: &&Diagnostic| {
        finding.severity == Severity::Warning
            && finding.resource.as_ref().is_some_and(|resource| {
                resource.kind == row.kind.as_str() && row.name == resource.name.as_str().into()
            })
    };
    findings.iter().filter(concerns).map(warning).collect()
}

fn warning(finding: &Diagnostic) -> Warning {
    Warning {
        code: finding.code.clone(),
        message: finding.message.clone(),
        hint: finding.hint.clone(),
        at: Some(At {
            path: finding.path.clone(),
            line: finding.line,
            column: finding.column,
        }),
    }
}

/// Converts the trigger of a run to the reason in documents.
pub(crate) fn reason_of(trigger: Trigger) -> Reason {
    match trigger {
        Trigger::Start => Reason::Start,
        Trigger::Created => Reason::Created,
        Trigger::Edited => Reason::Edited,
        Trigger::Renamed => Reason::Renamed,
        Trigger::Deleted => Reason::Deleted,
        Trigger::RefChanged => Reason::RefChanged,
        Trigger::Parent => Reason::Parent,
        Trigger::Requested => Reason::Requested,
        Trigger::Refresh => Reason::Refresh,
        Trigger::Retrigger => Reason::Retrigger,
        Trigger::Resync => Reason::Resync,
        Trigger::Retry => Reason::Retry,
        Trigger::Nudge => Reason::Nudge,
        Trigger::Recovered => Reason::Recovered,
    }
}
