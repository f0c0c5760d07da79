//! Runs of a project, or of some of its resources.

use watershed_api::documents::{Command, RunDocument};
use watershed_api::request::{NamedRun, RefreshRequest, RunRequest};
use watershed_api::{Code, Problem, hint};
use watershed_controller::Refresh;

use crate::instance::{Control, Reach, Which, Wish};
use crate::out::Out;
use crate::service::Principal;
use crate::service::place::Place;

/// Runs everything that is out of date, or what is selected.
pub(crate) async fn run(
    place: &impl Place,
    _: &Principal,
    input: RunRequest,
    out: &Out,
) -> Result<RunDocument, Problem> {
    let wish = match (place.running()?.control, input.selection.is_empty()) {
        (Control::Own(_), _) => Wish::Start,
        (Control::Foreign, true) => Wish::Everything,
        (Control::Foreign, false) => Wish::Selected(input.selection.clone()),
    };
    work(place, Command::Run, wish, &input, out).await
}

/// Requests a reconcile of resources.
pub(crate) async fn reconcile(
    place: &impl Place,
    _: &Principal,
    input: NamedRun,
    out: &Out,
) -> Result<RunDocument, Problem> {
    let wish = Wish::Reconcile(input.names);
    work(place, Command::Reconcile, wish, &input.run, out).await
}

/// Refreshes resources, even if they are up to date.
pub(crate) async fn refresh(
    place: &impl Place,
    _: &Principal,
    input: RefreshRequest,
    out: &Out,
) -> Result<RunDocument, Problem> {
    let how = match input.full {
        true => Refresh::Full,
        false => Refresh::Plain,
    };
    let reach = match input.downstream {
        true => Reach::Downstream,
        false => Reach::Named,
    };
    let wish = match input.partitions {
        Some(choice) => Wish::Partitions(input.names, choice),
        None if input.run.selection.is_empty() => Wish::Refresh(Which::Named(input.names), how, reach),
        None => Wish::Refresh(Which::Selected(input.run.selection.clone()), how, reach),
    };
    work(place, Command::Refresh, wish, &input.run, out).await
}

/// Approves the held edits of resources and rebuilds them.
pub(crate) async fn approve(
    place: &impl Place,
    _: &Principal,
    input: NamedRun,
    out: &Out,
) -> Result<RunDocument, Problem> {
    let wish = Wish::Approve(input.names);
    work(place, Command::Approve, wish, &input.run, out).await
}

/// Retries failed resources now.
pub(crate) async fn retry(
    place: &impl Place,
    _: &Principal,
    input: NamedRun,
    out: &Out,
) -> Result<RunDocument, Problem> {
    let wish = Wish::Retry(input.names);
    work(place, Command::Retry, wish, &input.run, out).await
}

async fn work(
    place: &impl Place,
    command: Command,
    wish: Wish,
    run: &RunRequest,
    out: &Out,
) -> Result<RunDocument, Problem> {
    let running = place.running()?;
    if run.variables != running.instance.options.variables {
        let env = hint::option("env", "");
        let message = format!("the process that owns the folder has other variables ({env})");
        return Err(Problem::new(Code::HeldElsewhere, message).hint("wait until it has ended, or stop it"));
    }
    running
        .instance
        .converge(command, wish, run, running.control, out)
        .await
}
