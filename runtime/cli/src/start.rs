//! `start`: converges, and goes on while files are edited.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use watershed_api::Exit;
use watershed_api::documents::Time;
use watershed_api::request::RunRequest;
use watershed_drivers::volume::Volume;

use super::args::{Format, LogFormat, Shared, Start};
use super::console::{Console, choose_format};
use super::failure::Failure;
use super::listen::{Listening, Network, Place};
use super::present::Presenter;
use super::project::Location;
use super::{memory, session, signals};
use crate::render::palette::DIM;
use crate::render::units::clock;
use watershed::program::{Stayed, Stop, early_end, forget_early_end};
use watershed::state_folder::Lock;
use watershed::{Files, Instance, Options};

/// The interval at which a project's folder is looked for after it was removed, since nothing can be watched.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Disk space that must become free after a disk was full before work is tried again, in bytes.
const MORE_ROOM: u64 = 1 << 20;

/// The time after which work is tried again on a full disk all the same: room that came between the write that failed and
/// the first look at the disk shows as no more than there was.
const TRY_AGAIN_AFTER: Duration = Duration::from_mins(5);

/// Runs the command `start`.
pub(super) fn start(console: &mut Console, shared: &Shared, args: &Start) -> Result<Exit, Failure> {
    // Whoever collects logs as JSON gets what happens as JSON too, with its dates.
    let usual = match shared.log_format {
        LogFormat::Json => Format::Jsonl,
        LogFormat::Text => Format::Text,
    };
    let format = choose_format(shared, &[Format::Text, Format::Json, Format::Jsonl], usual)?;
    refuse_address(args)?;
    let location = Location::find(shared, args.folder.as_deref())?;
    if format == Format::Json {
        console.note("the document comes at the end; `--format jsonl` writes what happens as it happens\n");
    }
    super::block_on(async {
        let stop = Stop::default();
        signals::stop_on_signals(stop.clone())?;
        loop {
            let lock = session::own(&location, shared.wait.map(|wait| wait.0)).await?;
            let began = Time::now();
            match once(console, shared, args, &location, lock, format, &stop).await {
                Ok(Some(exit)) => return Ok(exit),
                Ok(None) => {}
                Err(failure) if is_full(&location, began) => {
                    // Whoever reads the note makes room at once, which must count as more than there was.
                    let free = free_bytes(&location);
                    say_full(console, shared, &failure);
                    if let Some(exit) = until_room(&location, free, &stop).await {
                        return Ok(exit);
                    }
                    continue;
                }
                Err(failure) => return Err(failure),
            }
            console.note("the state folder was removed: everything begins anew\n");
            while !location.root.is_dir() {
                tokio::select! {
                    () = stop.asked() => return Ok(stop.exit().unwrap_or(Exit::Interrupted)),
                    () = tokio::time::sleep(LOOK_EVERY) => {}
                }
            }
        }
    })
}

/// Returns true if the instance that began at a time ended because the disk was full.
fn is_full(location: &Location, began: Time) -> bool {
    early_end(&location.state.path()).is_some_and(|ended| ended.at >= began)
}

/// Says that the disk is full and that nobody has to start the program again, in the form that its logs have.
fn say_full(console: &mut Console, shared: &Shared, failure: &Failure) {
    let then = "everything goes on by itself when there is room";
    match shared.log_format {
        LogFormat::Json => tracing::error!("{:#}; {then}", failure.error),
        LogFormat::Text => {
            console.failure(failure);
            console.note(&format!("{then}\n"));
        }
    }
}

/// Returns the free bytes of the state folder's disk; 0 if that is unknown.
fn free_bytes(location: &Location) -> u64 {
    Volume::at_path(&location.state.path()).map_or(0, |volume| volume.free)
}

/// Refuses an address in the place of the project's folder: `--listen` takes one after `=` alone.
fn refuse_address(args: &Start) -> Result<(), Failure> {
    let folder = args.folder.as_deref().filter(|folder| !folder.exists());
    let address = folder
        .and_then(Path::to_str)
        .filter(|text| text.parse::<SocketAddr>().is_ok());
    match address.filter(|_| args.listen.is_some()) {
        Some(address) => {
            let message = format!("`{address}` stands where the project's folder does");
            Err(Failure::usage(message).hint(format!("`--listen={address}` listens there")))
        }
        None => Ok(()),
    }
}

/// Waits until the disk has more free space than it had by a fixed amount, for a bounded time, or until the program is
/// stopped.
async fn until_room(location: &Location, free: u64, stop: &Stop) -> Option<Exit> {
    let path = location.state.path();
    let wanted = free + MORE_ROOM;
    let latest = Instant::now() + TRY_AGAIN_AFTER;
    loop {
        tokio::select! {
            () = stop.asked() => return Some(stop.exit().unwrap_or(Exit::Interrupted)),
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        let volume = Volume::at_path(&path).ok();
        let enough = volume.is_none_or(|volume| volume.missing() == 0 && volume.free >= wanted);
        if enough || Instant::now() >= latest {
            return None;
        }
    }
}

/// Returns the line that everything was stopped in order, which covers the terminal's echo of Ctrl-C.
fn end(at: Time) -> String {
    let begin = if std::io::stderr().is_terminal() { "\r" } else { "" };
    format!("{begin}  {DIM}{}  ended{DIM:#}\n", clock(at))
}

/// Begins to answer over HTTP, where an address was given for that.
async fn listen(
    console: &mut Console,
    args: &Start,
    instance: &Arc<Instance>,
    stop: &Stop,
) -> Result<Option<Listening>, Failure> {
    let Some(address) = args.listen else {
        return Ok(None);
    };
    let place = Place::new(Network::loopback(address), "", &[], &args.reached)?;
    let service = place.service().with(instance.name(), Arc::clone(instance));
    let listening = Listening::begin(console, &place, service, stop).await?;
    instance.answers_at(listening.pages()(instance.name()));
    Ok(Some(listening))
}

/// Runs one instance to its end; no exit code if it lost its state folder.
async fn once(
    console: &mut Console,
    shared: &Shared,
    args: &Start,
    location: &Location,
    lock: Lock,
    format: Format,
    stop: &Stop,
) -> Result<Option<Exit>, Failure> {
    let options = Options {
        files: Files::Watched,
        // A program that looks at the tables closes them again, and nobody waits for this process to end.
        engine_patience: Duration::MAX,
        ..super::options(shared, location)
    };
    let run = RunRequest {
        variables: location.variables.clone(),
        fail_fast: shared.fail_fast,
        warn_error: shared.warn_error,
        all: shared.all,
        events: console.events(format),
        progress: console.shows_progress(format),
        ..RunRequest::default()
    };
    let (instance, listener) =
        session::open_instance(&console.runtime, &location.state, options, lock).await?;
    let listening = match listen(console, args, &instance, stop).await {
        Ok(listening) => listening,
        Err(failure) => {
            session::close_instance(&instance, listener, &location.state).await?;
            return Err(failure);
        }
    };
    forget_early_end(&location.state.path());
    let frugal = tokio::spawn(memory::give_back_after_work(Arc::clone(&instance)));
    let sharing = tokio::spawn({
        let instance = Arc::clone(&instance);
        async move { instance.share_file().await }
    });
    let (working, replies) = session::spawn({
        let (instance, stop) = (Arc::clone(&instance), stop.clone());
        |replies| async move { instance.stay(&run, &stop, replies).await }
    });
    let shown = Presenter::new(console, format, location.root.clone())
        .show(replies)
        .await;
    if shown.as_ref().is_err_and(Failure::is_output) {
        // A reader who went away wants no more: what runs is stopped in order.
        stop.ask(watershed::program::Stopping::Interrupted);
    }
    let stayed = working.await;
    if let Some(listening) = listening {
        listening.end().await;
    }
    for beside in [frugal, sharing] {
        beside.abort();
        // It holds the instance, and with that the state folder.
        let _ = beside.await;
    }
    let closed = session::close_instance(&instance, listener, &location.state).await;
    match stayed {
        Ok(Stayed::Lost) => {
            if let Err(failure) = closed {
                tracing::warn!(error = failure.message, "what was removed did not close in order");
            }
            Ok(None)
        }
        Ok(Stayed::Stopped) => {
            let exit = session::ended(shown, stop)?;
            closed?;
            if format == Format::Text {
                console.note(&end(Time::now()));
            }
            Ok(Some(exit))
        }
        Err(panic) => Err(Failure::new(
            Exit::NotNow,
            format!("the work ended by a defect of the program: {panic}"),
        )),
    }
}
