//! Jobs and services of an instance.

use std::path::Path;
use std::time::Duration;

use watershed_api::documents::Time;
use watershed_compilers::WorkloadSettings;
use watershed_controller::resource::Row;
use watershed_controller::{Resource, Select};
use watershed_outputs::{secrets::Secrets, selection::Chosen};
use watershed_reconcilers::programs::ProgramTemplates;
use watershed_workloads::backend::docker::{Address, Containers};
use watershed_workloads::replica::{ReplicaRecord, Stage};
use watershed_workloads::service::ServiceRecord;
use watershed_workloads::{JOBS_AT_ONCE, SCAN_INTERVAL, Service, Workloads, replica, service};

use super::settle::{Among, Halt, UNTIL_DONE};
use super::{Files, Instance, Options, managed, retry};
use crate::report::Entry;
use crate::state_folder::StateFolder;

/// The time for which a killed command's processes outlive it, in milliseconds (rule W13).
#[cfg(target_os = "linux")]
const LINGER_MS: u64 = 10_000;

/// The variable with the address of the container engine.
const DOCKER_HOST: &str = "DOCKER_HOST";

/// Returns the backend for the containers of a state folder.
pub(crate) fn containers(state: &Path) -> Containers {
    let host = std::env::var(DOCKER_HOST).ok();
    Containers::new(state, Address::from_host(host.as_deref()))
}

/// Returns the workloads of a project: its jobs and services, with their backends.
pub(super) fn open(
    options: &Options,
    state: &StateFolder,
    secrets: &Secrets,
    chosen: &Chosen,
    settings: WorkloadSettings,
) -> Workloads {
    let chosen = chosen.clone();
    let at_once = settings.jobs_at_once.and_then(|most| usize::try_from(most).ok());
    let builder = Workloads::builder(&options.root, state.programs())
        .interval(settings.interval_ms.map_or(SCAN_INTERVAL, Duration::from_millis))
        .jobs_at_once(at_once.unwrap_or(JOBS_AT_ONCE))
        .confined(options.sandbox || options.sample.is_some())
        .chooses(move |uid| chosen.holds(uid))
        .made(watershed_reconcilers::programs::made)
        .render(ProgramTemplates::new(secrets.clone(), &options.environment))
        .backend(containers(&state.path()));
    #[cfg(target_os = "linux")]
    let builder = {
        use watershed_shim::protocol::Lifetime;
        use watershed_workloads::backend::process::LocalProcesses;
        builder.backend(LocalProcesses {
            state_folder: state.path(),
            program: options.shim.clone(),
            arguments: vec!["shim".into(), state.path().into()],
            lifetime: match options.files {
                Files::Watched => Lifetime::Keep,
                Files::Once => Lifetime::Connected { linger_ms: LINGER_MS },
            },
        })
    };
    builder.build()
}

/// Waits for a retry that is due soon, or for a service or managed resource that is about to be ready.
///
/// Considers the resources that `of` accepts, and returns false if there is nothing to wait for.
pub(super) async fn wait_for_more(instance: &Instance, began: Time, of: &Among<'_>) -> Result<bool, Halt> {
    let mut changes = instance
        .controller
        .watch(instance.controller.list(Select::all()).revision);
    let retry = retry::next(instance.controller(), &instance.entries(), of).await?;
    let starting = longest_start(&instance.entries(), began, of);
    let is_starting = starting.is_some();
    if !is_starting && retry.is_none() {
        return Ok(false);
    }
    let longest = retry.into_iter().chain(starting).min();
    tokio::select! {
        () = tokio::time::sleep(longest.unwrap_or(UNTIL_DONE)) => {}
        // A controller that has ended says so to the wait that follows.
        _ = changes.next(), if is_starting => {}
    }
    Ok(true)
}

/// Returns the longest time to wait for a service or managed resource to become ready; none if there is nothing to wait
/// for.
fn longest_start(entries: &[Entry], began: Time, of: &Among<'_>) -> Option<Duration> {
    let time = |entry: &Entry| match managed::is_moving(&entry.row) {
        true => Some(UNTIL_DONE),
        false => time_to_start(entry, entries, began),
    };
    entries.iter().filter(|entry| of(entry)).filter_map(time).max()
}

/// Returns the time to wait for a service or replica that is not ready; none if it has failed or won't become ready.
///
/// A service that was never ready fails by itself when its time is over; one that was may not be ready for ever, so it
/// has that time from the beginning of the command on.
fn time_to_start(entry: &Entry, entries: &[Entry], began: Time) -> Option<Duration> {
    let row = &entry.row;
    if row.unready.is_none() || row.error.is_some() || row.intents.is_deleted() || row.paused {
        return None;
    }
    match row.kind.as_str() {
        service::KIND => {
            let record = Resource::state_of::<ServiceRecord>(row).ok().flatten()?;
            if record.replicas == 0 || record.is_over {
                return None;
            }
            left_to_start(row, record.first_start.is_some(), began)
        }
        replica::KIND => {
            let record = Resource::state_of::<ReplicaRecord>(row).ok().flatten()?;
            if matches!(record.stage, Stage::Completed | Stage::Failed | Stage::Gone) {
                return None;
            }
            let service = entries.iter().find(|entry| Some(entry.row.uid) == row.owner)?;
            left_to_start(&service.row, false, began)
        }
        _ => None,
    }
}

fn left_to_start(service: &Row, fails_by_itself: bool, began: Time) -> Option<Duration> {
    if fails_by_itself {
        return Some(UNTIL_DONE);
    }
    let spec = Resource::spec_of::<Service>(service).ok()?;
    let passed = Duration::from_millis(Time::now().since_ms(began));
    let left = service::time_to_be_ready(&spec.0).checked_sub(passed)?;
    (!left.is_zero()).then_some(left)
}
