//! Backends of a project, connected under the epoch of its controller.

use std::sync::{Arc, Mutex};

use tokio::sync::watch;
use watershed_locks::Unpoisoned;

use crate::backend::{Backend, Connect, Error};
use crate::program::Program;

/// All process backends of a project, such as containers and local processes, connected on demand.
pub(crate) struct Backends {
    all: Vec<Box<dyn Connect>>,
    /// True if no backend is connected: no process is started, checked or stopped.
    is_confined: bool,
    connected: Mutex<Option<Connected>>,
    /// Epoch under which the first reconciler acted; none before, when there is nothing to watch.
    epoch: watch::Sender<Option<u64>>,
}

/// Backends connected under one epoch.
#[derive(Clone)]
struct Connected {
    epoch: u64,
    local: Option<Arc<dyn Backend>>,
    containers: Option<Arc<dyn Backend>>,
}

impl Backends {
    pub(crate) fn new(all: Vec<Box<dyn Connect>>, is_confined: bool) -> Self {
        Self {
            all,
            is_confined,
            connected: Mutex::new(None),
            epoch: watch::Sender::new(None),
        }
    }

    /// Waits for the first reconciler. Returns the epoch under which it acts.
    pub(crate) async fn epoch(&self) -> u64 {
        let mut epoch = self.epoch.subscribe();
        let known = epoch.wait_for(Option::is_some).await;
        known.ok().and_then(|epoch| *epoch).unwrap_or_default()
    }

    /// Returns the backends that were used so far.
    pub(crate) fn used(&self) -> Vec<Arc<dyn Backend>> {
        let connected = self.connected.lock().unpoisoned();
        let used = connected.clone();
        used.map_or_else(Vec::new, |one| {
            [one.local, one.containers].into_iter().flatten().collect()
        })
    }

    /// Returns the backend that runs a program.
    ///
    /// # Errors
    /// When there is none of that sort, or it can't be connected.
    pub(crate) fn for_program(&self, program: &Program, epoch: u64) -> Result<Arc<dyn Backend>, Error> {
        self.backend_of_sort(program.docker.is_some(), epoch)
    }

    /// Connects and returns all backends.
    ///
    /// # Errors
    /// When one can't be connected.
    pub(crate) fn all(&self, epoch: u64) -> Result<Vec<Arc<dyn Backend>>, Error> {
        let connected = self.at(epoch)?;
        Ok([connected.local, connected.containers]
            .into_iter()
            .flatten()
            .collect())
    }

    /// Returns the backend for containers, or the one for local programs.
    ///
    /// # Errors
    /// When there is none, or it can't be connected.
    pub(crate) fn backend_of_sort(&self, containers: bool, epoch: u64) -> Result<Arc<dyn Backend>, Error> {
        let connected = self.at(epoch)?;
        let (found, message) = match containers {
            true => (connected.containers, "containers can't be run here"),
            false => (connected.local, "local processes can't be run here"),
        };
        found.ok_or_else(|| Error::Unsupported {
            backend: if containers { "docker" } else { "process" },
            message: message.to_owned(),
        })
    }

    fn at(&self, epoch: u64) -> Result<Connected, Error> {
        if self.is_confined {
            return Err(Error::Confined);
        }
        let mut connected = self.connected.lock().unpoisoned();
        if let Some(found) = connected.as_ref().filter(|found| found.epoch >= epoch) {
            return Ok(found.clone());
        }
        let of_sort = |containers: bool| {
            let found = self.all.iter().find(|one| one.runs_containers() == containers);
            found.map(|one| one.connect(epoch)).transpose()
        };
        let made = Connected {
            epoch,
            local: of_sort(false)?,
            containers: of_sort(true)?,
        };
        *connected = Some(made.clone());
        self.epoch.send_replace(Some(epoch));
        Ok(made)
    }
}
