//! The place where a project is, as handlers see it: a process that runs it, or a folder that nobody runs.

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

/// A project as an owner and a folder at rest have it in common. Work that only an owner can do goes through
/// [`running`](Place::running).
pub(crate) trait Place: Send + Sync {
    /// Returns the instance that runs the project.
    ///
    /// # Errors
    /// `unattended`, where none does.
    fn running(&self) -> Result<Running<'_>, Problem>;

    /// Returns the reader of the catalog's file; none where nothing was ever run, or the catalog is in a store of the embedder's.
    fn catalog(&self) -> Option<SqliteReader>;

    /// Returns true if nobody else can use the state folder meanwhile.
    fn is_locked(&self) -> bool;

    /// Returns the options of the project.
    fn options(&self) -> &Options;

    /// Returns the state folder.
    fn state(&self) -> &StateFolder;

    /// Returns what documents say of the project.
    fn project(&self) -> &Project;

    /// Tells whether a process runs the project.
    fn life(&self) -> Life;

    /// Lists the resources, hidden ones included; where nothing was ever run, those that the files declare.
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

    /// Returns the secrets that are known without a look at the files. What is learned of them later is known from then on.
    fn known_secrets(&self) -> Secrets;

    /// Returns the secrets of the project as its files state them now.
    fn secrets(&self) -> impl Future<Output = Secrets> + Send;

    /// Returns the engine, whether its file is there or not.
    ///
    /// # Errors
    /// `held-elsewhere`, where the folder is another process's.
    fn engine(&self, access: Access) -> Result<Opened, Problem>;

    /// Returns the bounds of the trash.
    fn trash_limits(&self) -> impl Future<Output = TrashLimits> + Send;

    /// Returns what it takes to ask questions about rows.
    ///
    /// # Errors
    /// As [`built_engine`].
    fn asking(&self, entries: &[Entry]) -> impl Future<Output = Result<Asking, Problem>> + Send;

    /// Returns the controller through which the catalog is changed by hand. Where no process runs the project, nothing runs
    /// there either: the change takes effect later.
    ///
    /// # Errors
    /// `unattended`, where nothing was ever run; and when the catalog can't be opened.
    fn hands(&self) -> impl Future<Output = Result<Hands, Problem>> + Send;

    /// Resolves when the place is about to be closed, and everything that follows ends.
    fn leaving(&self) -> CancellationToken;
}

/// An instance that runs, and what the one who asks may end.
#[derive(Clone, Copy)]
pub(crate) struct Running<'a> {
    /// The instance.
    pub(crate) instance: &'a Instance,
    /// The right to stop the instance with the work.
    pub(crate) control: &'a Control,
}

/// Returns the engine of a place where something was built.
///
/// # Errors
/// `not-built`, where there is no file; and those of [`Place::engine`].
pub(crate) fn built_engine(place: &impl Place, access: Access) -> Result<Opened, Problem> {
    let opened = place.engine(access)?;
    if place.life() == Life::AtRest && !place.state().engine().exists() {
        return Err(not_built());
    }
    Ok(opened)
}

/// Returns the end of the last process, if it could not store what it did; none where a process runs the project.
pub(crate) fn early_end(place: &impl Place) -> Option<EndedEarly> {
    match place.life() {
        Life::AtRest => ended_early::read(&place.state().path()),
        Life::Live => None,
    }
}

/// Returns the problem of who asks about rows before there are any.
pub(crate) fn not_built() -> Problem {
    Problem::new(
        Code::NotBuilt,
        "nothing was built yet, so there is nothing to ask",
    )
    .hint(format!("{} builds the project", hint::operation("run", [])))
}

/// A controller through which the catalog is changed by hand.
pub(crate) struct Hands {
    /// The controller.
    pub(crate) handle: Handle,
    /// The controller that was started for this change alone; none where the project runs.
    pub(crate) own: Option<Arc<Controller>>,
}

impl Hands {
    /// Ends the change: what was written is stored.
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

/// The time in which the store has to take changes made by hand.
const GRACE: std::time::Duration = std::time::Duration::from_secs(10);
