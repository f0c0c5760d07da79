//! Conversion of errors to problems: of opening, closing and using an instance.

use std::io::ErrorKind;
use std::path::Path;

use watershed_api::documents::{EndedEarly, Time};
use watershed_api::{Code, Problem, hint};
use watershed_controller::shutdown::ShutdownError;
use watershed_controller::store::StoreError;
use watershed_controller::{Refusal, RequestError, StartError, WaitError};
use watershed_drivers::olap;
use watershed_drivers::volume::{Bytes, Volume};

use super::{CloseError, OpenError};
use crate::state_folder::ended_early;
use crate::{chain, state_folder};

/// Converts the error of an instance that can't be opened; its state lies in `folder`.
pub fn open_problem(error: OpenError, folder: &Path) -> Problem {
    match error {
        OpenError::State(error) => state_problem(&error),
        OpenError::Catalog(error) | OpenError::Start(StartError::Store { source: error, .. }) => {
            store_problem(&error, folder)
        }
        OpenError::Full(_) => no_room(folder),
        OpenError::Start(StartError::Catalog { .. }) => {
            Problem::new(Code::StateUnreadable, chain(&error)).hint(damaged())
        }
        OpenError::Engine(error) => {
            let code = match error {
                olap::OpenError::Locked { .. } => Code::HeldElsewhere,
                _ => Code::StateUnreadable,
            };
            let failure = olap::Failure::Open(error);
            Problem {
                hint: failure.hint().map(Into::into),
                ..Problem::new(code, chain(&failure))
            }
        }
        OpenError::Home(problem) => *problem,
        OpenError::Owned(_) => Problem::new(Code::HeldElsewhere, chain(&error)),
        OpenError::NameInUse(_) => Problem::new(Code::AlreadyExists, chain(&error)),
        OpenError::Calls(_) | OpenError::Declare(_) | OpenError::Start(StartError::Options(_)) => {
            Problem::new(Code::Unavailable, chain(&error))
        }
    }
}

/// Converts the error of a catalog that can't be opened.
fn store_problem(error: &StoreError, folder: &Path) -> Problem {
    if error.is_full() {
        return no_room(folder);
    }
    match error {
        error if error.is_damage() => Problem::new(Code::StateUnreadable, chain(error)).hint(damaged()),
        StoreError::Newer { .. } => Problem::new(Code::StateUnreadable, chain(error))
            .hint("use the newer version of watershed; nothing was touched"),
        error => Problem::new(Code::Unavailable, chain(error)),
    }
}

/// Converts the error of a state folder that can't be used.
pub fn state_problem(error: &state_folder::Error) -> Problem {
    match error {
        state_folder::Error::Environment(_) => Problem::new(Code::BadArgument, chain(error)),
        state_folder::Error::Write { source, .. } | state_folder::Error::Lock { source, .. }
            if source.kind() == ErrorKind::PermissionDenied =>
        {
            Problem::new(Code::Unavailable, chain(error)).hint(format!(
                "run the command as the user who owns the folder; {} keeps a state of your own",
                hint::option("state-dir", "DIR")
            ))
        }
        _ => Problem::new(Code::Unavailable, chain(error)).hint(format!(
            "{} keeps state somewhere else",
            hint::option("state-dir", "DIR")
        )),
    }
}

/// Converts the error of an instance that did not close in order; its state lies in `folder`.
pub fn close_problem(error: &CloseError, folder: &Path) -> Problem {
    match error {
        CloseError::Controller(ShutdownError::StoreFull { .. }) => no_room(folder),
        error => Problem::new(Code::Unavailable, chain(error)),
    }
}

/// Returns the hint for a catalog that contradicts itself.
pub(super) fn damaged() -> String {
    format!(
        "nothing was touched; {} sets aside what is damaged, and {} builds it anew",
        hint::operation_with("doctor", [], &[("repair", "")]),
        hint::operation("run", [])
    )
}

/// Returns the problem of a full disk, and leaves a note in the state folder that this process ends because of it.
fn no_room(folder: &Path) -> Problem {
    let context = "the disk of the state folder is full";
    let message = match Volume::at_path(folder) {
        Ok(volume) if volume.missing() > 0 => {
            let missing = Bytes(volume.missing());
            format!("{context}: {volume}, at least {missing} more are needed")
        }
        Ok(volume) => format!("{context}, or may hold no more of yours: {volume}"),
        Err(_) => context.to_owned(),
    };
    // The catalog, which is on that disk, can't tell.
    ended_early::note(
        folder,
        &EndedEarly {
            at: Time::now(),
            message: message.clone(),
        },
    );
    Problem::new(Code::Unavailable, message).hint(format!(
        "make room there and run again, nothing that was built is lost; {} gives back what the engine's file holds without \
         need, {} keeps state on another disk",
        hint::operation("gc", []),
        hint::option("state-dir", "DIR"),
    ))
}

/// Converts the error of a wait that ended early.
///
/// The request itself stands, and its work goes on: `deadline-passed` says only that nobody waits any more.
pub fn unfinished(error: &WaitError) -> Problem {
    match error {
        WaitError::Deadline(_) => Problem::new(Code::DeadlinePassed, error.to_string()),
        WaitError::Refused(refusal) => refused_by(refusal),
    }
}

/// Converts the error of a request that the controller refuses.
pub(crate) fn refused(error: &RequestError) -> Problem {
    let RequestError::Refused(refusal) = error;
    refused_by(refusal)
}

fn refused_by(refusal: &Refusal) -> Problem {
    let code = match refusal {
        Refusal::Unknown(_) => Code::UnknownName,
        Refusal::Ambiguous { .. } => Code::AmbiguousName,
        Refusal::ShuttingDown => Code::Stopping,
        Refusal::OutcomeUnknown => Code::OutcomeUnknown,
        Refusal::LeaseLost | Refusal::NotUnderstood => Code::HeldElsewhere,
        Refusal::Unattended => Code::Unattended,
        _ => Code::Unavailable,
    };
    Problem::new(code, refusal.to_string())
}

/// Converts a failure of the engine.
pub(crate) fn engine_problem(failure: &olap::Failure) -> Problem {
    let code = match failure {
        olap::Failure::Open(olap::OpenError::Damaged { .. } | olap::OpenError::Newer { .. }) => {
            Code::StateUnreadable
        }
        olap::Failure::Open(olap::OpenError::Locked { .. }) => Code::HeldElsewhere,
        _ => Code::Unavailable,
    };
    let refusal = Problem::new(code, failure.to_string());
    match failure.hint() {
        Some(hint) => refusal.hint(hint),
        None => refusal,
    }
}
