//! The process that carries out a command: this one, or the owner of the folder.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use watershed_api::documents::Command;
use watershed_api::{Exit, Problem, Reply};

use super::failure::Failure;
use super::project::Location;
use watershed::http::mcp::OwnerDesk;
use watershed::program::{Stop, close_problem, open_problem, state_problem};
use watershed::socket::{Address, ConnectError, Connection, Listener, Replies, replies};
use watershed::state_folder::{Lock, Patience, StateFolder};
use watershed::{Instance, Runtime};

/// The default of `--wait`: how long to wait for a folder or an engine's file that another process holds.
///
/// Longer than any look takes, shorter than a person's patience.
pub(super) const WAIT: Duration = Duration::from_secs(10);
/// The time that runs have to return when an instance is closed.
const GRACE: Duration = Duration::from_secs(10);

/// The purpose for which a command opens a state folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Changes the state, with an exclusive lock.
    Work,
    /// Reads the state, with a lock shared with other readers.
    Look,
}

/// The process that carries out a command.
pub(super) enum Session {
    /// This process, which has locked the folder.
    Here(Lock),
    /// The process that owns the folder, at the other end of a connection.
    There(Connection),
}

impl Session {
    /// Locks the folder, or connects to its owner; waits a while if neither is possible.
    pub(super) async fn open(
        location: &Location,
        purpose: Purpose,
        wait: Option<Duration>,
    ) -> Result<Self, Failure> {
        let patience = Patience::new(wait.unwrap_or(WAIT));
        loop {
            let lock = match purpose {
                Purpose::Work => location.state.try_own(),
                Purpose::Look => location.state.try_share(),
            };
            if let Some(lock) = lock.map_err(|error| state_problem(&error))? {
                return Ok(Self::Here(lock));
            }
            match Connection::open(&Address::for_folder(&location.state), patience.left()).await {
                Ok(connection) => {
                    refuse_unconfined(location, &connection)?;
                    return Ok(Self::There(connection));
                }
                // It has only just begun, is about to end, or is one that only looks.
                Err(ConnectError::Nobody | ConnectError::Silent { pid: None })
                    if patience.another_try().await => {}
                Err(error) => return Err(unreachable(location, error)),
            }
        }
    }
}

/// Returns true if the owner of the folder exists and gives no answer.
pub(super) fn is_silence(failure: &Failure) -> bool {
    matches!(failure.error.downcast_ref(), Some(ConnectError::Silent { .. }))
}

/// Refuses an owner that is not confined, if the command asks for a sandbox.
fn refuse_unconfined(location: &Location, connection: &Connection) -> Result<(), Failure> {
    match connection.owner() {
        Some(owner) if location.sandbox && !owner.sandbox => {
            let message = format!("{owner} works on this project without a sandbox");
            let hint = "stop it and start it with `--sandbox`, or leave `--sandbox` out";
            Err(Failure::new(Exit::NotNow, message).hint(hint))
        }
        _ => Ok(()),
    }
}

fn unreachable(location: &Location, error: ConnectError) -> Failure {
    let folder = location.state.path();
    let hint = match &error {
        ConnectError::Nobody => "wait until the other command has ended; `--wait D` waits longer".to_owned(),
        ConnectError::OtherVersion { .. } => "wait until it has ended, or use that version".to_owned(),
        ConnectError::Silent { pid: Some(pid) } => {
            format!("`kill -CONT {pid}` lets a stopped process go on; `--wait D` waits longer")
        }
        ConnectError::Silent { pid: None } => "`--wait D` waits longer".to_owned(),
        ConnectError::Socket(_) => "`--state-dir DIR` keeps state somewhere else".to_owned(),
    };
    let context = format!(
        "the state folder `{}` is used by another process",
        folder.display()
    );
    Failure {
        exit: Exit::NotNow,
        error: anyhow::Error::new(error).context(context),
        hint: Some(hint),
    }
}

/// Locks the folder exclusively, after a wait for commands that work on it. Fails at once if a process keeps it
/// converged.
pub(super) async fn own(location: &Location, wait: Option<Duration>) -> Result<Lock, Failure> {
    let patience = Patience::new(wait.unwrap_or(WAIT));
    loop {
        if let Some(lock) = location.state.try_own().map_err(|error| state_problem(&error))? {
            return Ok(lock);
        }
        let owner = match Connection::open(&Address::for_folder(&location.state), patience.left()).await {
            Ok(connection) => connection.owner().cloned(),
            Err(ConnectError::Nobody | ConnectError::Silent { pid: None }) => None,
            Err(error) => return Err(unreachable(location, error)),
        };
        if let Some(owner) = owner.filter(|owner| owner.command == Command::Start) {
            let message = format!("{owner} keeps the project converged already");
            let hint = "`watershed status` says how it stands; stop that process to start another";
            return Err(Failure::new(Exit::NotNow, message).hint(hint));
        }
        if !patience.another_try().await {
            return Err(unreachable(location, ConnectError::Nobody));
        }
    }
}

/// Opens an instance on a locked folder, and answers other processes on its socket.
pub(super) async fn open_instance(
    runtime: &Runtime,
    state: &StateFolder,
    options: watershed::Options,
    lock: Lock,
) -> Result<(Arc<Instance>, Option<Listener>), Problem> {
    let opened = runtime
        .open_owned(options, state.clone(), lock)
        .await
        .map_err(|error| open_problem(error, &state.path()))?;
    let instance = Arc::new(opened);
    // Without a socket others wait until this command has ended.
    let listener = Listener::bind(
        Address::for_folder(state),
        Arc::new(OwnerDesk::new(Arc::clone(&instance))),
    )
    .inspect_err(|error| tracing::warn!(%error, "can't listen on the folder's socket"));
    Ok((instance, listener.ok()))
}

/// Answers the waiting requests, then closes the instance.
pub(super) async fn close_instance(
    instance: &Instance,
    listener: Option<Listener>,
    state: &StateFolder,
) -> Result<(), Problem> {
    instance.end_followers();
    if let Some(listener) = listener {
        listener.finish().await;
    }
    let closed = instance.close(GRACE).await;
    closed.map_err(|error| close_problem(&error, &state.path()))
}

/// Returns the exit code of a command that has printed its output. A failure to write to a closed terminal counts as a
/// hangup.
pub(super) fn ended(shown: Result<Exit, Failure>, stop: &Stop) -> Result<Exit, Failure> {
    match shown {
        Err(failure) if failure.is_output() && stop.exit() == Some(Exit::HungUp) => Ok(Exit::HungUp),
        shown => shown,
    }
}

/// Starts work in a task, and returns the channel of its replies.
pub(super) fn spawn<F>(
    work: impl FnOnce(Replies) -> F,
) -> (tokio::task::JoinHandle<F::Output>, mpsc::Receiver<Reply>)
where
    F: Future<Output: Send> + Send + 'static,
{
    let (sender, receiver) = replies();
    // Ends with its last reply; a panic in it is seen by whoever awaits the handle.
    (tokio::spawn(work(sender)), receiver)
}
