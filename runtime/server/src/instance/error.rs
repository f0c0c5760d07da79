//! Reasons why an instance is not opened or closed.

use std::path::PathBuf;

use watershed_controller::shutdown::ShutdownError;
use watershed_controller::{EditError, StartError};

use crate::state_folder;

/// The reason why an instance can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process uses the state folder.
    #[error("the state folder `{}` is used by another process", .0.display())]
    Owned(PathBuf),
    /// Another instance of this process has the name, in the same store.
    #[error("the name `{0}` is used by another instance of this process")]
    NameInUse(String),
    /// The state folder can't be made or locked.
    #[error(transparent)]
    State(#[from] state_folder::Error),
    /// The catalog can't be opened.
    #[error(transparent)]
    Catalog(#[from] watershed_controller::store::StoreError),
    /// The engine's file is damaged, another process has it open, or a newer version of the engine wrote it. Nothing was
    /// touched.
    #[error(transparent)]
    Engine(watershed_drivers::olap::OpenError),
    /// The place of the data that the project names can't be used.
    #[error("{}", .0.message)]
    Home(Box<watershed_api::Problem>),
    /// The controller did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The calls of managed resources can't be made.
    #[error("can't prepare the calls of managed resources")]
    Calls(#[from] watershed_reconcilers::managed::CallsError),
    /// The project could not be declared to the controller.
    #[error("can't declare the project")]
    Declare(#[source] EditError),
    /// The disk of the catalog is full.
    #[error("the disk of the state folder is full")]
    Full(#[source] ShutdownError),
}

impl From<watershed_api::Problem> for OpenError {
    fn from(problem: watershed_api::Problem) -> Self {
        Self::Home(Box::new(problem))
    }
}

/// The reason why an instance was not closed in order. It is closed all the same.
#[derive(Debug, thiserror::Error)]
pub enum CloseError {
    /// The controller did not stop in order.
    #[error(transparent)]
    Controller(#[from] ShutdownError),
    /// The engine did not close in order; what was built is safe.
    #[error("can't close the engine")]
    Engine(#[from] watershed_drivers::olap::Failure),
}
