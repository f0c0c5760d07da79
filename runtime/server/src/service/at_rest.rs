//! A state folder at rest: locked by this operation, not yet there, or with an owner that gives no answer.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;
use watershed_api::{Code, Problem, Request, hint};
use watershed_controller::history::HistoryRow;
use watershed_controller::resource::Revision;
use watershed_controller::store::{SqliteReader, SqliteStore};
use watershed_controller::{Controller, Uid};
use watershed_drivers::olap::{Access, TrashLimits};
use watershed_managers::EVENT_KIND;
use watershed_outputs::secrets::Secrets;

use super::opened::Opened;
use super::place::{Hands, Place, Running, not_built};
use super::questions::Asking;
use super::{Principal, serve};
use crate::instance::look::look;
use crate::instance::{Built, OpenError, Options, catalog, compiled, home, open, open_problem, secrets_of};
use crate::out::Out;
use crate::report::document::Project;
use crate::report::explain::Life;
use crate::report::{Entry, Listing};
use crate::socket::{Replies, Service};
use crate::state_folder::{Lock, StateFolder};

/// A project that no process runs.
pub struct AtRest {
    options: Options,
    state: StateFolder,
    project: Project,
    hold: Hold,
    secrets: OnceLock<Secrets>,
}

/// The access that an operation has to a state folder.
#[derive(Debug)]
pub enum Hold {
    /// The folder has no state: nothing was ever run in it.
    Empty,
    /// The folder is locked by this operation, for itself or shared with other readers.
    Locked(Lock),
    /// The folder is held by an owner: only what it stored can be read, without the engine.
    Stored,
}

impl AtRest {
    /// Returns the place of a project at rest, accessed by `hold`.
    pub fn new(options: Options, state: StateFolder, hold: Hold) -> Self {
        Self {
            project: options.project(),
            options,
            state,
            hold,
            secrets: OnceLock::new(),
        }
    }

    async fn begin_controller(&self) -> Result<Controller, OpenError> {
        let store = SqliteStore::open(self.state.catalog()).await?;
        let controller = Controller::builder()
            .instance(self.options.name.as_str())
            .store(store);
        // It knows no kind, so it runs nothing; events are stored for those that will take them.
        Ok(controller.passive_kind(EVENT_KIND).start().await?)
    }
}

impl Place for AtRest {
    fn running(&self) -> Result<Running<'_>, Problem> {
        let message = "no process runs the project, and this needs one";
        Err(Problem::new(Code::Unattended, message)
            .hint(format!("{} runs the project", hint::operation("start", []))))
    }

    fn catalog(&self) -> Option<SqliteReader> {
        let is_there = !matches!(self.hold, Hold::Empty);
        is_there.then(|| SqliteReader::new(self.state.catalog()))
    }

    fn is_locked(&self) -> bool {
        matches!(self.hold, Hold::Locked(_))
    }

    fn options(&self) -> &Options {
        &self.options
    }

    fn state(&self) -> &StateFolder {
        &self.state
    }

    fn project(&self) -> &Project {
        &self.project
    }

    fn life(&self) -> Life {
        Life::AtRest
    }

    async fn listing(&self) -> Result<Listing, Problem> {
        match self.catalog() {
            Some(catalog) => {
                let name = self.options.name.clone();
                let stored = look(move |runtime| runtime.block_on(catalog.read(&name))).await?;
                Ok(catalog::found(&stored))
            }
            None => {
                let compilation = compiled::compile(&self.options, &self.state).await?;
                Ok(Listing {
                    entries: compiled::entries(compilation.project(), Built::Never),
                    revision: Revision::default(),
                })
            }
        }
    }

    async fn past(&self, of: Option<Uid>, limit: u32) -> Result<Vec<HistoryRow>, Problem> {
        let Some(catalog) = self.catalog() else {
            return Ok(Vec::new());
        };
        let name = self.options.name.clone();
        look(move |runtime| match of {
            Some(uid) => runtime.block_on(catalog.history(&name, uid, limit)),
            None => runtime.block_on(catalog.recent(&name, limit)),
        })
        .await
    }

    fn known_secrets(&self) -> Secrets {
        let known = self.secrets.get_or_init(|| match self.is_locked() {
            true => secrets_of(&self.options, &self.state),
            false => Secrets::default(),
        });
        known.clone()
    }

    async fn secrets(&self) -> Secrets {
        let found = compiled::secrets_in_files(&self.options, self.known_secrets()).await;
        self.secrets.get_or_init(|| found.clone());
        found
    }

    async fn engine(&self, access: Access) -> Result<Opened, Problem> {
        if !self.is_locked() {
            return Err(not_built());
        }
        let home = home::find(&self.options, &self.state).await?;
        let engine = open::engine(&self.options, &self.state, home.home, access);
        engine.begin_with(home.sessions);
        Ok(Opened { engine, is_own: true })
    }

    async fn trash_limits(&self) -> TrashLimits {
        compiled::trash_limits(&self.options).await
    }

    async fn asking(&self, entries: &[Entry]) -> Result<Asking, Problem> {
        let opened = super::place::built_engine(self, Access::ReadOnly).await?;
        let secrets = self.secrets().await;
        let sessions = catalog::sessions(entries, &self.options, &secrets);
        opened.engine.begin_with(sessions);
        Ok(Asking::at_rest(&self.options, &self.state, opened, secrets))
    }

    async fn hands(&self) -> Result<Hands, Problem> {
        if !self.is_locked() {
            return Err(
                Problem::new(Code::Unattended, "nothing was run here yet, so nothing is stored")
                    .hint(format!("{} builds the project", hint::operation("run", []))),
            );
        }
        let controller = self.begin_controller().await;
        let controller = controller.map_err(|error| open_problem(error, &self.state.path()))?;
        Ok(Hands {
            handle: controller.handle(),
            own: Some(Arc::new(controller)),
        })
    }

    fn leaving(&self) -> CancellationToken {
        CancellationToken::new()
    }
}

impl Service for AtRest {
    async fn serve(&self, request: Request, replies: Replies) {
        serve(self, &Principal::Local, request, &Out::new(replies)).await;
    }
}
