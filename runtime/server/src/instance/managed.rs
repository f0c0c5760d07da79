//! Managed resources of an instance: their calls, and the waits for them.

use std::collections::BTreeSet;

use tokio_util::sync::CancellationToken;
use watershed_compilers::ManagerSettings;
use watershed_controller::Handle;
use watershed_core::Row;
use watershed_managers::{AT_ONCE, Discovery};
use watershed_outputs::{secrets::Secrets, selection::Chosen};
use watershed_reconcilers::managed::{Calls, CallsError};

use super::Options;
use crate::report::kinds::managed;
use crate::state_folder::StateFolder;

/// Looks that fail in a row before a command that waits for a managed resource gives up.
const LOOKS: u32 = 5;

/// Returns the number of managed resources that are worked on at once; as many again are torn down.
pub(super) fn at_once(settings: &ManagerSettings) -> usize {
    let said = settings.at_once.and_then(|most| usize::try_from(most).ok());
    said.filter(|most| *most > 0).unwrap_or(AT_ONCE)
}

/// The target of log lines about orphans, outside objects without a resource, which the program shows.
const ORPHANS: &str = "watershed::orphans";

/// Logs each outside object that belongs to no resource once, until `leaving` is cancelled (M17).
pub(super) async fn tell_of_orphans(discovery: Discovery<Calls>, handle: Handle, leaving: CancellationToken) {
    let mut told = BTreeSet::new();
    let told_of = discovery.run(handle, |found| match found {
        Ok(found) => {
            for one in found {
                if told.insert(one.name.clone()) {
                    tracing::warn!(target: ORPHANS, "`{}` belongs to no managed resource; it is left alone", one.name);
                }
            }
        }
        Err(error) => tracing::warn!(target: ORPHANS, "things outside can't be listed: {}", error.message),
    });
    tokio::select! {
        () = told_of => {}
        () = leaving.cancelled() => {}
    }
}

/// Returns the client for the calls of a project's managed resources.
pub(super) fn of_project(
    options: &Options,
    state: &StateFolder,
    secrets: &Secrets,
    chosen: &Chosen,
    settings: ManagerSettings,
) -> Result<Calls, CallsError> {
    let calls = Calls::new(
        &options.root,
        &state.calls(),
        &options.environment,
        secrets.clone(),
        chosen.clone(),
        options.egress.clone(),
    )?;
    let calls = calls.discovering(settings.discover, settings.environment);
    Ok(calls.confined(options.sandbox || options.sample.is_some()))
}

/// Returns true if a managed resource is about to come nearer to its goal by itself. A window is not waited for.
pub(super) fn is_moving(row: &Row) -> bool {
    if row.error.is_some() || row.paused || row.intents.is_deleted() {
        return false;
    }
    managed::record(row).is_some_and(|record| record.is_under_way())
}

/// Returns true if so many looks have failed that a wait for the next is pointless.
pub(super) fn has_given_up(row: &Row) -> bool {
    let is_look = row
        .error
        .as_ref()
        .is_some_and(|error| &*error.code == "observe-unclear");
    is_look && managed::is_managed(row) && row.attempts >= LOOKS
}
