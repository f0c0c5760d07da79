//! The place of a project, as handlers see it: a running instance, or a folder at rest.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use watershed_api::documents::EndedEarly;
use watershed_api::{Code, Problem, hint};
use watershed_controller::history::HistoryRow;
use watershed_controller::store::SqliteReader;
use watershed_controller::{Controller, Handle, Uid};
use watershed_drivers::olap::{Access, TrashLimits};
use watershed_outputs::secrets::Secrets;

use super::opened::Opened;
use super::questions::Asking;
use crate::instance::{Control, Instance, Options};
use crate::report::document::Project;
use crate::report::explain::Life;
use crate::report::{Entry, Listing};
use crate::state_folder::{StateFolder, ended_early};

/// A project as operations see it, whether it runs or is at rest.
///
/// Work that only an owner can do goes through [`running`](Place::running).
pub(crate) trait Place: Send + Sync {
    /// Returns the instance that runs the project.
    ///
    /// # Errors
    /// `unattended`, where none does.
    fn running(&self) -> Result<Running<'_>, Problem>;

    /// Returns a reader of the catalog's file; none if nothing was ever run, or the embedder's store has the catalog.
    fn catalog(&self) -> Option<SqliteReader>;

    /// Returns true if no other process can use the state folder during the operation.
    fn is_locked(&self) -> bool;

    /// Returns the options of the project.
    fn options(&self) -> &Options;

    /// Returns the state folder.
    fn state(&self) -> &StateFolder;

    /// Returns the description of the project for documents.
    fn project(&self) -> &Project;

    /// Returns the source of the resources' stages: a running controller, or storage.
    fn life(&self) -> Life;

    /// Lists all resources, hidden ones included; the declared ones if nothing was ever run.
    ///
    /// # Errors
    /// When the catalog or the files can't be read.
    fn listing(&self) -> impl Future<Output = Result<Listing, Problem>> + Send;

    /// Returns past runs, the latest first: of one resource, or of all.
    ///
    /// # Errors
    /// When the catalog can't be read.
    fn past(
        &self,
        of: Option<Uid>,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<HistoryRow>, Problem>> + Send;

    /// Returns the secrets that are known without reading the files; those learned later are added to the same set.
    fn known_secrets(&self) -> Secrets;

    /// Returns the secrets of the project as its files now state them.
    fn secrets(&self) -> impl Future<Output = Secrets> + Send;

    /// Returns the engine, even if its file does not exist yet.
    ///
    /// # Errors
    /// `held-elsewhere`, where the folder is another process's.
    fn engine(&self, access: Access) -> impl Future<Output = Result<Opened, Problem>> + Send;

    /// Returns the limits of the trash: size and age.
    fn trash_limits(&self) -> impl Future<Output = TrashLimits> + Send;

    /// Returns the engine with everything that questions about rows need.
    ///
    /// # Errors
    /// As [`built_engine`].
    fn asking(&self, entries: &[Entry]) -> impl Future<Output = Result<Asking, Problem>> + Send;

    /// Returns a controller for changing the catalog by hand.
    ///
    /// Where no process runs the project, nothing runs there either: the change takes effect later.
    ///
    /// # Errors
    /// `unattended`, where nothing was ever run; and when the catalog can't be opened.
    fn hands(&self) -> impl Future<Output = Result<Hands, Problem>> + Send;

    /// Returns a token that is cancelled when the place is about to be closed, which ends all followers.
    fn leaving(&self) -> CancellationToken;
}

/// A running instance, and the right of the caller to stop it.
#[derive(Clone, Copy)]
pub(crate) struct Running<'a> {
    /// The instance that runs the project.
    pub(crate) instance: &'a Instance,
    /// The right to stop the instance with the work.
    pub(crate) control: &'a Control,
}

/// Returns the engine of a place; fails if nothing was ever built in it.
///
/// # Errors
/// `not-built`, where there is no file; and those of [`Place::engine`].
pub(crate) async fn built_engine(place: &impl Place, access: Access) -> Result<Opened, Problem> {
    let opened = place.engine(access).await?;
    let is_file = opened.engine.own_file().is_ok();
    if place.life() == Life::AtRest && is_file && !place.state().engine().exists() {
        return Err(not_built());
    }
    Ok(opened)
}

/// Returns the note of the last process if it ended early; none while a process runs the project.
pub(crate) fn early_end(place: &impl Place) -> Option<EndedEarly> {
    match place.life() {
        Life::AtRest => ended_early::read(&place.state().path()),
        Life::Live => None,
    }
}

/// Returns the problem of a question about rows before anything was built.
pub(crate) fn not_built() -> Problem {
    Problem::new(
        Code::NotBuilt,
        "nothing was built yet, so there is nothing to ask",
    )
    .hint(format!("{} builds the project", hint::operation("run", [])))
}

/// A controller for changing the catalog by hand.
pub(crate) struct Hands {
    /// The handle of the controller.
    pub(crate) handle: Handle,
    /// The controller if it was started for this change alone; none where the project runs.
    pub(crate) own: Option<Arc<Controller>>,
}

impl Hands {
    /// Completes the change: returns once it is stored.
    ///
    /// # Errors
    /// That of the change, or else when the catalog can't be closed in order.
    pub(crate) async fn end<T>(self, changed: Result<T, Problem>) -> Result<T, Problem> {
        let Some(controller) = self.own else {
            return changed;
        };
        match controller.shutdown(GRACE).await {
            Ok(()) => changed,
            Err(error) => changed.and(Err(Problem::new(Code::Unavailable, error.to_string()))),
        }
    }
}

/// The time that the store has to commit a change by hand.
const GRACE: std::time::Duration = std::time::Duration::from_secs(10);
