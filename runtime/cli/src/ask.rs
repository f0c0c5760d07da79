//! Requests of commands: sent to the owner of the folder, or carried out here while nobody owns it.

use std::time::Duration;

use tokio::sync::mpsc::Receiver;
use tokio::task::JoinHandle;
use watershed_api::operations::Manner;
use watershed_api::{Exit, Operation, Reply, Request};

use super::args::{Format, Shared};
use super::console::Console;
use super::failure::Failure;
use super::present::Presenter;
use super::project::Location;
use super::session::{self, Purpose, Session};
use crate::render::palette::WARN;
use watershed::program::{AtRest, Hold};
use watershed::socket::Service as _;
use watershed::state_folder::Lock;

/// Sends a request to the project and shows the answer.
pub(super) fn ask(
    console: &mut Console,
    shared: &Shared,
    format: Format,
    request: Request,
) -> Result<Exit, Failure> {
    ask_at(console, shared, &Location::find(shared, None)?, format, request)
}

/// Sends a request to a project whose location is known, and shows the answer.
pub(super) fn ask_at(
    console: &mut Console,
    shared: &Shared,
    location: &Location,
    format: Format,
    request: Request,
) -> Result<Exit, Failure> {
    super::block_on(async {
        let Answers {
            parts,
            working,
            doubt,
        } = answers(shared, location, request).await?;
        if let Some(doubt) = doubt {
            console.note(&format!("{WARN}warning{WARN:#}: {}\n", doubt.message()));
            console.note("what follows is what was stored last\n");
        }
        let presenter = Presenter::new(console, format, location.root.clone());
        let shown = presenter.show(parts).await;
        end(working);
        shown
    })
}

/// Sends a request and returns the output, without showing anything.
pub(super) async fn output<O: Operation>(
    shared: &Shared,
    location: &Location,
    input: O::Input,
) -> Result<O::Output, Failure> {
    let Answers {
        mut parts, working, ..
    } = answers(shared, location, O::request(input)).await?;
    let ended = ended::<O>(&mut parts).await;
    end(working);
    ended
}

/// Waits for the final reply and returns the output.
pub(super) async fn ended<O: Operation>(parts: &mut Receiver<Reply>) -> Result<O::Output, Failure> {
    let ended = loop {
        match parts.recv().await {
            Some(Reply::Done(answer)) => break O::output(*answer),
            Some(Reply::Refused(problem)) => return Err(problem.into()),
            Some(_) => {}
            None => break None,
        }
    };
    ended.ok_or_else(|| {
        let message = "the process that owns the folder gave no answer";
        Failure::new(Exit::NotNow, message).hint("run the command again")
    })
}

/// The parts of an answer as they come, and the work behind them.
struct Answers {
    parts: Receiver<Reply>,
    /// The task of the work, if this process does it; none if the owner does.
    working: Option<JoinHandle<()>>,
    /// The reason why stored state is shown instead of the current one; none if it is current.
    doubt: Option<Failure>,
}

/// Aborts work whose answer nobody waits for any more.
fn end(working: Option<JoinHandle<()>>) {
    if let Some(working) = working {
        working.abort();
    }
}

async fn answers(shared: &Shared, location: &Location, request: Request) -> Result<Answers, Failure> {
    let wait: Option<Duration> = shared.wait.map(|wait| wait.0);
    // Where nothing was ever run there is no folder to share, and none is made for a look.
    let session = match location.state.exists() || makes_folder(&request) {
        true => Some(Session::open(location, purpose(&request), wait).await),
        false => None,
    };
    let (hold, doubt) = match session {
        None => (Hold::Empty, None),
        Some(Ok(Session::Here(lock))) => (Hold::Locked(lock), None),
        Some(Ok(Session::There(connection))) => {
            return Ok(Answers {
                parts: connection.ask(&request).await,
                working: None,
                doubt: None,
            });
        }
        Some(Err(failure)) if session::is_silence(&failure) && is_stored(&request) => {
            (Hold::Stored, Some(failure))
        }
        Some(Err(failure)) => return Err(failure),
    };
    let (parts, working) = here(shared, location, hold, request);
    Ok(Answers {
        parts,
        working: Some(working),
        doubt,
    })
}

/// Carries out a request that reads at most the project's files, without locking the state folder.
pub(super) fn from_files(shared: &Shared, location: &Location, request: Request) -> Receiver<Reply> {
    here(shared, location, Hold::Empty, request).0
}

/// Carries out a request in this process, which has locked the state folder.
pub(super) fn with_lock(
    shared: &Shared,
    location: &Location,
    lock: Lock,
    request: Request,
) -> Receiver<Reply> {
    here(shared, location, Hold::Locked(lock), request).0
}

fn here(
    shared: &Shared,
    location: &Location,
    hold: Hold,
    request: Request,
) -> (Receiver<Reply>, JoinHandle<()>) {
    let place = AtRest::new(super::options(shared, location), location.state.clone(), hold);
    let (working, parts) = session::spawn(|replies| async move { place.serve(request, replies).await });
    (parts, working)
}

fn purpose(request: &Request) -> Purpose {
    match request.info().manner {
        // Where nothing runs nothing is cancelled, so nobody is kept out for that.
        Manner::Works if !matches!(request, Request::Cancel(_)) => Purpose::Work,
        _ => Purpose::Look,
    }
}

/// Returns true if the operation creates a state folder where there is none.
fn makes_folder(request: &Request) -> bool {
    matches!(request, Request::Gc(_) | Request::Restore(_))
}

/// Returns true if the catalog alone answers the request, so that the owner need not be asked.
fn is_stored(request: &Request) -> bool {
    use Request::{Explain, Graph, History, Status};
    matches!(request, Status(_) | Graph(_) | History(_) | Explain(_))
}
