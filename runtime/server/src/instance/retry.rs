//! Retries of failed resources: those that are due soon, and those that somebody requests.

use std::collections::BTreeSet;
use std::time::Duration;

use watershed_api::Problem;
use watershed_api::documents::Time;
use watershed_controller::explain::Blocker;
use watershed_controller::resource::{Settled, Stage, Target};
use watershed_controller::{Handle, Refresh, RequestError, Uid};

use super::problem::refused;
use super::settle::{Among, Halt, settle};
use super::{Instance, managed};
use crate::report::kinds::managed::is_managed;
use crate::report::kinds::{is_alert_or_message, programs};
use crate::report::{Entry, names};

/// The time within which a due retry is waited for.
const SOON: Duration = Duration::from_secs(60);

/// Returns the time until the first retry of a failed run; none if no retry is due soon.
///
/// Deletes and renames that fail are tried again for ever, so they are no reason to wait.
pub(super) async fn next(
    handle: &Handle,
    entries: &[Entry],
    of: &Among<'_>,
) -> Result<Option<Duration>, Halt> {
    let mut next = None;
    // It was due before it could be waited for.
    let is_tried =
        |entry: &Entry| entry.row.error.is_some() && !matches!(entry.status.stage, Stage::Settled(_));
    if entries.iter().any(|entry| of(entry) && is_tried(entry)) {
        return Ok(Some(Duration::ZERO));
    }
    let retrying = entries.iter().filter(|entry| of(entry)).filter(|entry| {
        let marks = &entry.row.intents;
        let is_retrying = entry.status.stage == Stage::Settled(Settled::Retrying);
        let is_in_vain = managed::has_given_up(&entry.row);
        is_retrying && !is_in_vain && !marks.is_deleted() && !marks.is_renamed()
    });
    for entry in retrying {
        use watershed_controller::Refusal::Unknown;
        let wait = match handle.explain(Target::Uid(entry.row.uid)).await {
            Ok(explanation) => match explanation.because {
                Blocker::RetryIn(wait) => Some(wait),
                _ => Some(Duration::ZERO),
            },
            Err(RequestError::Refused(Unknown(_))) => None,
            Err(_) => return Err(Halt::Ended),
        };
        // Nobody makes room meanwhile.
        let is_full = entry
            .row
            .error
            .as_ref()
            .is_some_and(|error| &*error.code == "disk-full");
        let soon = wait.filter(|wait| *wait <= SOON && !is_full);
        next = [next, soon].into_iter().flatten().min();
    }
    Ok(next)
}

/// Retries failed resources, except those that already ran since the command began: a start asks for everything.
pub(super) async fn carry_out(
    instance: &Instance,
    names: &[String],
    began: Time,
    stored: &BTreeSet<Uid>,
) -> Result<(), Halt> {
    let entries = instance.entries();
    let named: Result<Vec<&Entry>, Problem> = names
        .iter()
        .map(|name| names::resolve_with_deleted(&entries, name))
        .collect();
    for entry in named? {
        instance.choice.chosen.add([entry.row.uid]);
        let run = entry.row.last_run.as_ref();
        let is_program = programs::is_program(&entry.row);
        let is_tried = match is_program {
            true => programs::has_run_since(&entry.row, began),
            false => run.is_some_and(|run| run.started_at.0 >= began.millis()),
        };
        let is_told = is_alert_or_message(&entry.row);
        // The process that did the work before has asked for it.
        if (is_told || is_program) && stored.contains(&entry.row.uid) {
            continue;
        }
        // A start looks at a managed resource that has failed, and lets its failure stand.
        if is_tried && !is_told && !is_managed(&entry.row) {
            continue;
        }
        // The end of a program is remembered until somebody asks for another try.
        if is_told || is_program {
            settle(vec![
                instance
                    .controller
                    .refresh(Target::Uid(entry.row.uid), Refresh::Plain)
                    .await,
            ])
            .await?;
            continue;
        }
        match instance.controller.retry(Target::Uid(entry.row.uid)).await {
            // It is gone by now, and so is what had failed.
            Ok(()) | Err(RequestError::Refused(watershed_controller::Refusal::Unknown(_))) => {}
            Err(error) => return Err(Halt::Refused(refused(&error))),
        }
    }
    Ok(())
}
