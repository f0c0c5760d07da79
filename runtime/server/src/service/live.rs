//! A project that this process runs.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use watershed_api::{Code, Owner, Problem, Request};
use watershed_controller::history::HistoryRow;
use watershed_controller::store::SqliteReader;
use watershed_controller::{Select, Uid};
use watershed_drivers::olap::{Access, TrashLimits};
use watershed_outputs::secrets::Secrets;

use super::opened::Opened;
use super::place::{Hands, Place, Running};
use super::questions::Asking;
use super::{Principal, serve};
use crate::instance::{Control, Instance, Options, Stop};
use crate::out::Out;
use crate::report::document::Project;
use crate::report::explain::Life;
use crate::report::{Entry, Listing};
use crate::socket::{Replies, Service};
use crate::state_folder::StateFolder;

/// A running instance, and the right of the caller to stop it.
pub(crate) struct Live<'a> {
    pub(crate) instance: &'a Instance,
    pub(crate) control: Control,
}

impl<'a> Live<'a> {
    /// Returns the place for callers who can't stop the instance.
    pub(crate) fn of(instance: &'a Instance) -> Self {
        Self {
            instance,
            control: Control::Foreign,
        }
    }
}

impl Place for Live<'_> {
    fn running(&self) -> Result<Running<'_>, Problem> {
        Ok(Running {
            instance: self.instance,
            control: &self.control,
        })
    }

    fn catalog(&self) -> Option<SqliteReader> {
        let is_own = self.instance.claim.is_none();
        is_own.then(|| SqliteReader::new(self.instance.state.catalog()))
    }

    fn is_locked(&self) -> bool {
        false
    }

    fn options(&self) -> &Options {
        &self.instance.options
    }

    fn state(&self) -> &StateFolder {
        &self.instance.state
    }

    fn project(&self) -> &Project {
        &self.instance.project
    }

    fn life(&self) -> Life {
        Life::Live
    }

    async fn listing(&self) -> Result<Listing, Problem> {
        let listing = self.instance.controller().list(Select::all());
        Ok(Listing {
            entries: listing.resources.into_iter().map(Entry::from).collect(),
            revision: listing.revision,
        })
    }

    async fn past(&self, of: Option<Uid>, limit: u32) -> Result<Vec<HistoryRow>, Problem> {
        let controller = self.instance.controller();
        let runs = match of {
            Some(uid) => controller.history(uid, limit).await,
            None => controller.recent_history(limit).await,
        };
        runs.map_err(|error| Problem::new(Code::StateUnreadable, error.to_string()))
    }

    fn known_secrets(&self) -> Secrets {
        self.instance.outputs.secrets().clone()
    }

    async fn secrets(&self) -> Secrets {
        self.known_secrets()
    }

    async fn engine(&self, _: Access) -> Result<Opened, Problem> {
        Ok(Opened {
            engine: Arc::clone(&self.instance.engine),
            is_own: false,
        })
    }

    async fn trash_limits(&self) -> TrashLimits {
        let limits = self.instance.engine.trash().map(|trash| trash.limits());
        limits.unwrap_or_default()
    }

    async fn asking(&self, _: &[Entry]) -> Result<Asking, Problem> {
        Ok(Asking::of(self.instance))
    }

    async fn hands(&self) -> Result<Hands, Problem> {
        Ok(Hands {
            handle: self.instance.controller().clone(),
            own: None,
        })
    }

    fn leaving(&self) -> CancellationToken {
        self.instance.leaving.clone()
    }
}

impl Instance {
    /// Does the work of the command that opened this instance. Stopping it stops the controller.
    #[doc(hidden)]
    pub async fn own(&self, request: Request, stop: Stop, replies: Replies) {
        let place = Live {
            instance: self,
            control: Control::Own(stop),
        };
        serve(&place, &Principal::Local, request, &Out::new(replies)).await;
    }
}

impl Service for Instance {
    async fn serve(&self, request: Request, replies: Replies) {
        serve(&Live::of(self), &Principal::Local, request, &Out::new(replies)).await;
    }

    fn owner(&self) -> Option<Owner> {
        Some(self.as_owner())
    }
}
