//! Conversion of a replica's state to outcomes, errors and texts.

use std::time::Duration;

use watershed_api::hint;
use watershed_controller::{Context, Error, Outcome, Timestamp};
use watershed_core::{ErrorKind, SourcePosition};

use super::ReplicaReconciler;
use super::record::{ReplicaRecord, ReplicaSpec, Stage};
use crate::policy::exit::{Exit, StartFailure};

use super::advance::told;

/// Returns the outcome of the invocation.
///
/// # Errors
/// When it waits for another start, and when it has failed.
pub(super) fn outcome(
    context: &Context<ReplicaReconciler>,
    record: &ReplicaRecord,
    is_changed: bool,
    wake: Option<Timestamp>,
) -> Result<Outcome, Error> {
    if let Some(mut error) = failure_of(context.spec(), record) {
        if error.kind == ErrorKind::Transient {
            error.retry_after = wake.map(|next| wait(context.now(), next));
        }
        return Err(error);
    }
    let outcome = if is_changed {
        Outcome::changed()
    } else {
        Outcome::unchanged()
    };
    let outcome = Outcome {
        retrigger: wake,
        requeue_after: wake.map(|next| wait(context.now(), next)),
        ..outcome
    };
    if record.is_ready() {
        return Ok(outcome);
    }
    let why = match record.stage {
        Stage::Running => "its checks do not pass yet".to_owned(),
        Stage::Pending if record.failed_start.is_some() => record.reason.replace('_', " "),
        stage => stage.as_str().replace('_', " "),
    };
    Ok(outcome.unready(why))
}

/// Returns the error of a replica that is backing off or has failed; none for others.
pub(crate) fn failure_of(spec: &ReplicaSpec, record: &ReplicaRecord) -> Option<Error> {
    let waits = match record.stage {
        Stage::BackingOff => true,
        Stage::Pending if is_retried(record) => true,
        Stage::Failed => false,
        _ => return None,
    };
    let subject = format!("replica {} of service/{}", spec.number, spec.service);
    let (code, message, hint) = match (&record.failed_start, &record.last_exit) {
        (Some(failed), _) => (
            start_code(failed.failure),
            format!("{subject} could not be started: {}", failed.message),
            None,
        ),
        _ if record.reason == "stopped_by_check" => (
            "stopped-by-check",
            format!("{subject} was stopped by a check"),
            Some(hint_at_logs(spec)),
        ),
        (None, Some(exit)) => {
            let end = told(exit.exit);
            let after = seconds(exit.after_ms);
            let count = record.exits.count;
            let message = match count {
                0 | 1 => format!("{subject} exited with {end} after {after}"),
                _ => format!("{subject} exited {count} times in a row, last with {end} after {after}"),
            };
            let code = match record.reason.as_str() {
                "crash_loop_back_off" => "crash-loop",
                _ => exit_code(exit.exit),
            };
            (code, message, Some(hint_at_logs(spec)))
        }
        (None, None) => ("exited", format!("{subject} has failed"), None),
    };
    let mut error = match waits {
        true => Error::transient(code, message),
        false => Error::permanent(code, message),
    };
    error.hint = hint.map(Into::into);
    error.place = spec.path.as_deref().map(|path| SourcePosition {
        path: path.into(),
        line: 1,
        column: 1,
    });
    Some(error)
}

/// Returns true if the replica waits for another attempt to start, not for memory.
fn is_retried(record: &ReplicaRecord) -> bool {
    record.starts.count > 0
        && record
            .failed_start
            .as_ref()
            .is_some_and(|failed| failed.failure != StartFailure::InsufficientResources)
}

fn hint_at_logs(spec: &ReplicaSpec) -> String {
    let (service, number) = (&spec.service, spec.number);
    let options = [("replica", &*number.to_string()), ("previous", "")];
    let logs = hint::operation_with("logs", [&**service], &options);
    format!("see {logs}, then {}", hint::operation("retry", [&**service]))
}

/// Returns the wait until a time as a duration, so that setting the clock back does not prolong it.
pub(crate) fn wait(now: Timestamp, until: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(until.0.saturating_sub(now.0)).unwrap_or(0))
}

/// Formats a duration in milliseconds as seconds: `0.4 s`.
pub(crate) fn seconds(ms: u64) -> String {
    match ms {
        0..10_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{} s", ms / 1_000),
    }
}

/// Returns the error code of an exit.
pub(crate) fn exit_code(exit: Option<Exit>) -> &'static str {
    match exit {
        Some(Exit::Signal(_)) => "killed",
        Some(Exit::OutOfMemory) => "out-of-memory",
        Some(Exit::Timeout) => "timeout",
        _ => "exited",
    }
}

/// Returns the error code of a failed start.
pub(crate) fn start_code(failure: StartFailure) -> &'static str {
    match failure {
        StartFailure::ProgramMissing => "program-missing",
        StartFailure::NotExecutable => "not-executable",
        StartFailure::BadCommand => "bad-command",
        StartFailure::BadFolder => "bad-folder",
        StartFailure::ImageMissing | StartFailure::ImageForbidden => "image-missing",
        StartFailure::PortBusy => "port-busy",
        StartFailure::ForkFailed => "fork-failed",
        StartFailure::BadOutput => "bad-output",
        StartFailure::PullInterrupted => "image-pull",
        StartFailure::EngineUnreachable => "engine-unreachable",
        StartFailure::InsufficientResources => "insufficient-resources",
        StartFailure::EngineRefused => "engine-refused",
    }
}
