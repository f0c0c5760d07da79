//! Requests to stop a command before its work is done.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use watershed_api::Exit;

/// A request to stop a run in order, with the exit code of the stopped run.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    token: CancellationToken,
    exit: Arc<std::sync::OnceLock<Exit>>,
}

/// The reason for a stop, which determines the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopping {
    /// The terminal was closed.
    HungUp,
    /// Ctrl-C was pressed.
    Interrupted,
    /// The process was asked to terminate.
    Terminated,
}

impl Stop {
    /// Requests the stop. The first reason counts.
    pub fn ask(&self, why: Stopping) {
        let exit = match why {
            Stopping::HungUp => Exit::HungUp,
            Stopping::Interrupted => Exit::Interrupted,
            Stopping::Terminated => Exit::Terminated,
        };
        let _ = self.exit.set(exit);
        self.token.cancel();
    }

    /// Resolves when a stop is requested. Cancel-safe.
    pub async fn asked(&self) {
        self.token.cancelled().await;
    }

    /// Returns the exit code; none until a stop is requested.
    pub fn exit(&self) -> Option<Exit> {
        self.exit.get().copied()
    }
}

/// The right of a command to stop the controller.
#[derive(Debug, Clone)]
pub(crate) enum Control {
    /// The command owns the controller: stopping the command stops it too.
    Own(Stop),
    /// Another command owns the controller, which goes on after this one.
    Foreign,
}

/// Resolves when the command is asked to stop. Cancel-safe.
pub(super) async fn asked(control: &Control) {
    match control {
        Control::Own(stop) => stop.asked().await,
        Control::Foreign => std::future::pending().await,
    }
}
