//! `run`, `reconcile`, `refresh`, `approve`, `retry`: commands that change the state folder.

use std::time::Instant;

use watershed_api::documents::Time;
use watershed_api::operations::ops;
use watershed_api::request::{NamedRun, PartitionChoice, RefreshRequest, RunRequest, Selection};
use watershed_api::{Exit, Operation as _, Request};

use super::args::{Format, Operate, Reconcile, Refresh, Run, Shared};
use super::console::{Console, Verbosity, choose_format};
use super::failure::{Failure, OwnerEnded};
use super::metrics_file;
use super::present::Presenter;
use super::project::Location;
use super::session::{self, Purpose, Session};
use super::signals;
use watershed::Options;
use watershed::program::{Stop, check_selection, forget_early_end};
use watershed::socket::Connection;
use watershed::state_folder::Lock;

/// Runs the command `run`.
pub(super) fn run(console: &mut Console, shared: &Shared, args: &Run) -> Result<Exit, Failure> {
    let began = Instant::now();
    let selection = args.choice.selection();
    let Some(file) = &args.metrics_file else {
        let location = Location::find(shared, args.folder.as_deref())?;
        return work_at(console, shared, &location, selection, ops::Run::request);
    };
    // Before the working folder may become another one.
    let here = std::env::current_dir().unwrap_or_default();
    let location = Location::find(shared, args.folder.as_deref())?;
    let ended = work_at(console, shared, &location, selection, ops::Run::request);
    let exit = ended.as_ref().map_or_else(|failure| failure.exit, |exit| *exit);
    // What the run came to is told first: that its numbers can't be written is the smaller harm.
    match (
        metrics_file::write(shared, &location, &here, file, exit, began.elapsed()),
        ended,
    ) {
        (Err(failure), Ok(Exit::Converged)) => Err(failure),
        (Err(failure), ended) => {
            console.failure(&failure);
            ended
        }
        (Ok(()), ended) => ended,
    }
}

/// Runs the command `reconcile`.
pub(super) fn reconcile(console: &mut Console, shared: &Shared, args: &Reconcile) -> Result<Exit, Failure> {
    let names = args.names.clone();
    work(console, shared, |run| {
        ops::Reconcile::request(NamedRun { names, run })
    })
}

/// Runs the command `refresh`.
pub(super) fn refresh(console: &mut Console, shared: &Shared, args: &Refresh) -> Result<Exit, Failure> {
    let location = Location::find(shared, None)?;
    work_at(console, shared, &location, args.choice.selection(), |run| {
        ops::Refresh::request(RefreshRequest {
            names: args.names.clone(),
            full: args.full,
            downstream: args.downstream,
            partitions: match args.errored {
                true => Some(PartitionChoice::Errored),
                false => Some(args.partition.clone())
                    .filter(|keys| !keys.is_empty())
                    .map(PartitionChoice::Keys),
            },
            run,
        })
    })
}

/// Runs the command `approve`.
pub(super) fn approve(console: &mut Console, shared: &Shared, args: &Operate) -> Result<Exit, Failure> {
    let names = args.names.clone();
    work(console, shared, |run| {
        ops::Approve::request(NamedRun { names, run })
    })
}

/// Runs the command `retry`.
pub(super) fn retry(console: &mut Console, shared: &Shared, args: &Operate) -> Result<Exit, Failure> {
    let names = args.names.clone();
    work(console, shared, |run| {
        ops::Retry::request(NamedRun { names, run })
    })
}

fn work(
    console: &mut Console,
    shared: &Shared,
    request: impl FnOnce(RunRequest) -> Request,
) -> Result<Exit, Failure> {
    let location = Location::find(shared, None)?;
    work_at(console, shared, &location, Selection::default(), request)
}

fn work_at(
    console: &mut Console,
    shared: &Shared,
    location: &Location,
    selection: Selection,
    request: impl FnOnce(RunRequest) -> Request,
) -> Result<Exit, Failure> {
    check_selection(&selection)?;
    let format = choose_format(shared, &[Format::Text, Format::Json, Format::Jsonl], Format::Text)?;
    let request = request(RunRequest {
        variables: location.variables.clone(),
        fail_fast: shared.fail_fast,
        warn_error: shared.warn_error,
        all: shared.all,
        selection,
        events: console.events(format),
        progress: console.shows_progress(format),
        goes_on_since: None,
    });
    let began = Time::now();
    super::block_on(async {
        let mut request = request;
        let wait = shared.wait.map(|wait| wait.0);
        let stop = Stop::default();
        let mut listens = false;
        loop {
            let session = Session::open(location, Purpose::Work, wait).await?;
            if !std::mem::replace(&mut listens, true) {
                signals::stop_on_signals(stop.clone())?;
            }
            match session {
                Session::Here(lock) => {
                    return here(console, shared, location, lock, request, format, &stop).await;
                }
                Session::There(connection) => {
                    let shown = there(console, location, connection, &request, format, &stop).await;
                    if !shown
                        .as_ref()
                        .is_err_and(|failure| failure.error.is::<OwnerEnded>())
                    {
                        return shown;
                    }
                    console.note("the process that did the work has ended; going on\n");
                    if let Some(run) = request.run_mut() {
                        run.goes_on_since = Some(began);
                    }
                }
            }
        }
    })
}

/// Does the work of a command in this process, which owns the folder.
async fn here(
    console: &mut Console,
    shared: &Shared,
    location: &Location,
    lock: Lock,
    request: Request,
    format: Format,
    stop: &Stop,
) -> Result<Exit, Failure> {
    let options = Options {
        // A refresh of some resources brings the others up to date too, as every command that works does.
        selection: match &request {
            Request::Run(run) => run.selection.clone(),
            _ => Selection::default(),
        },
        ..super::options(shared, location)
    };
    let runtime = console.runtime.clone();
    let opening = session::open_instance(&runtime, &location.state, options, lock);
    // It may wait for another program that has the engine's file open; nothing was begun then.
    let (instance, listener) = tokio::select! {
        biased;
        () = stop.asked() => return Ok(stop.exit().unwrap_or(Exit::Interrupted)),
        opened = opening => opened?,
    };
    forget_early_end(&location.state.path());
    let (working, replies) = session::spawn({
        let (instance, stop) = (std::sync::Arc::clone(&instance), stop.clone());
        |replies| async move { instance.own(request, stop, replies).await }
    });
    let shown = Presenter::new(console, format, location.root.clone())
        .show(replies)
        .await;
    // A reader who went away ends what is shown; what is being built ends in order all the same.
    let worked = working.await;
    let closed = session::close_instance(&instance, listener, &location.state).await;
    // The process ends: the system takes its memory back at once, which takes milliseconds piece by piece.
    std::mem::forget(instance);
    if let Err(panic) = worked {
        return Err(Failure::new(
            Exit::NotNow,
            format!("the work ended by a defect of the program: {panic}"),
        ));
    }
    let exit = session::ended(shown, stop)?;
    Ok(closed.map(|()| exit)?)
}

/// Sends the request to the owner of the folder, and shows its replies.
async fn there(
    console: &mut Console,
    location: &Location,
    connection: Connection,
    request: &Request,
    format: Format,
    stop: &Stop,
) -> Result<Exit, Failure> {
    if format == Format::Text && console.verbosity > Verbosity::Quiet {
        let owner = connection
            .owner()
            .map_or_else(|| "another process".to_owned(), ToString::to_string);
        console.note(&format!("{owner} is already running here; asked it to update\n"));
    }
    let replies = connection.ask(request).await;
    let presenter = Presenter::new(console, format, location.root.clone());
    tokio::select! {
        shown = presenter.show(replies) => shown,
        () = stop.asked() => Ok(stop.exit().unwrap_or(Exit::Interrupted)),
    }
}
