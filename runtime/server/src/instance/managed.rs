//! Managed resources of an instance: what they call, and when they are waited for.

use watershed_core::Row;
use watershed_managers::AT_ONCE;
use watershed_reconcilers::chosen::Chosen;
use watershed_reconcilers::managed::{Calls, CallsError};
use watershed_reconcilers::secrets::Secrets;

use super::Options;
use crate::report::kinds::managed;
use crate::state_folder::StateFolder;

/// Passes at once, over what there is and over what is left of deleted ones.
pub(super) const CONCURRENCY: usize = 2 * AT_ONCE;
/// Looks that fail in a row before a command that ends when its work is done gives up.
const LOOKS: u32 = 5;

/// Returns the calls of a project's managed resources.
pub(super) fn of_project(
    options: &Options,
    state: &StateFolder,
    secrets: &Secrets,
    chosen: &Chosen,
) -> Result<Calls, CallsError> {
    let calls = Calls::new(
        &options.root,
        &state.calls(),
        &options.environment,
        secrets.clone(),
        chosen.clone(),
    )?;
    Ok(calls.confined(options.sandbox || options.sample.is_some()))
}

/// Returns true if a managed resource is about to come nearer to its goal by itself. A window is nothing to wait for.
pub(super) fn is_moving(row: &Row) -> bool {
    if row.error.is_some() || row.paused || row.intents.is_deleted() {
        return false;
    }
    managed::record(row).is_some_and(|record| record.is_under_way())
}

/// Returns true if a look has failed so often that the next one will hardly do better.
pub(super) fn has_given_up(row: &Row) -> bool {
    let is_look = row
        .error
        .as_ref()
        .is_some_and(|error| &*error.code == "observe-unclear");
    is_look && managed::is_managed(row) && row.attempts >= LOOKS
}
