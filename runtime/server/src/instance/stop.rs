//! The end of a command before all is done.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use watershed_api::Exit;

/// A request to stop a run in order, with the exit code that it then ends with.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    token: CancellationToken,
    exit: Arc<std::sync::OnceLock<Exit>>,
}

/// The way in which a run stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopping {
    /// By the end of its terminal.
    HungUp,
    /// By Ctrl-C.
    Interrupted,
    /// By a request to terminate.
    Terminated,
}

impl Stop {
    /// Asks for the stop. The first reason counts.
    pub fn ask(&self, why: Stopping) {
        let exit = match why {
            Stopping::HungUp => Exit::HungUp,
            Stopping::Interrupted => Exit::Interrupted,
            Stopping::Terminated => Exit::Terminated,
        };
        let _ = self.exit.set(exit);
        self.token.cancel();
    }

    /// Resolves when it was asked for. Cancel-safe.
    pub async fn asked(&self) {
        self.token.cancelled().await;
    }

    /// The exit code, once an end is requested.
    pub fn exit(&self) -> Option<Exit> {
        self.exit.get().copied()
    }
}

/// The control over the end of the controller.
#[derive(Debug, Clone)]
pub(crate) enum Control {
    /// This command owns it: stopping the command stops the controller.
    Own(Stop),
    /// It belongs to another command and goes on.
    Foreign,
}

/// Resolves when the command is asked to stop. Cancel-safe.
pub(super) async fn asked(control: &Control) {
    match control {
        Control::Own(stop) => stop.asked().await,
        Control::Foreign => std::future::pending().await,
    }
}
