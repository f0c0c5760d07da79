//! The runtime of instances: what they share, and how projects are opened.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use tracing_subscriber::Layer;
use tracing_subscriber::registry::LookupSpan;
use watershed_controller::store::Store;
use watershed_drivers::watch::{WatchError, Watcher};
use watershed_locks::Unpoisoned as _;

use super::{Directory, Instance, Links, OpenError, Options, names};
use crate::hiding::Hiding;

/// A factory of instances: opens projects, with what all of them share.
///
/// What its instances share is the tokio runtime on which they are opened, and one watcher of files, for systems
/// bound how many a process may have. Clones are the same runtime.
#[derive(Clone, Default)]
pub struct Runtime {
    pub(super) watcher: Arc<Mutex<Option<Watcher>>>,
    pub(super) directory: Option<Arc<dyn Directory>>,
    pub(super) links: Option<Arc<dyn Links>>,
    pub(super) store: Option<names::NamedStore>,
    /// The secrets of the projects that it has open.
    pub(super) hiding: Hiding,
    #[cfg(feature = "http")]
    pub(super) readers: crate::slots::Pool,
    #[cfg(feature = "otel")]
    pub(crate) traces: Option<crate::telemetry::Traces>,
}

impl Runtime {
    /// Returns a runtime for any number of instances.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the users of the embedder, in whose names alerts and reports may run (`for`).
    #[must_use]
    pub fn with_directory(mut self, directory: impl Directory) -> Self {
        self.directory = Some(Arc::new(directory));
        self
    }

    /// Adds links to the files of reports, served by the embedder: messages have them in the place of paths.
    #[must_use]
    pub fn with_links(mut self, links: impl Links) -> Self {
        self.links = Some(Arc::new(links));
        self
    }

    /// Stores catalogs in a store of the embedder, each under the [name](Options::name) of its instance.
    ///
    /// Without it every project has a file of its own in its state folder. The rest of the state stays in that folder.
    #[must_use]
    pub fn with_store(mut self, store: impl Store) -> Self {
        self.store = Some(names::NamedStore::new(store));
        self
    }

    /// Puts the runs of its instances into traces, below the requests that they go back to.
    #[cfg(feature = "otel")]
    #[must_use]
    pub fn with_traces(mut self, traces: crate::telemetry::Traces) -> Self {
        self.traces = Some(traces);
        self
    }

    /// Keeps what invocations of its instances say, as a part of the subscriber of the process: without one nothing is kept.
    /// What other runtimes do is passed over.
    pub fn log_layer<S>(&self) -> impl Layer<S> + Send + Sync
    where
        S: tracing::Subscriber + for<'a> LookupSpan<'a>,
    {
        crate::logs::layer(self.hiding.clone())
    }

    /// Returns a text without the secrets of any project that it has open.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.hiding.redact(text)
    }

    pub(super) fn watcher(&self) -> Result<Watcher, WatchError> {
        let mut watcher = self.watcher.lock().unpoisoned();
        if watcher.is_none() {
            *watcher = Some(Watcher::new()?);
        }
        watcher.clone().ok_or_else(|| unreachable!("it was made above"))
    }

    /// Locks a project's state folder, opens its catalog and begins to converge it.
    ///
    /// Neither the engine's file nor a table is touched before there is work.
    ///
    /// # Errors
    /// When the state folder can't be used, belongs to another process, is damaged or is from a newer version. Then
    /// nothing was changed.
    pub async fn open(&self, options: impl Into<Options>) -> Result<Instance, OpenError> {
        let mut options: Options = options.into();
        // A relative folder could be a word of any text, from which the folder is taken off.
        if let Ok(root) = std::path::absolute(&options.root) {
            options.root = root;
        }
        let state = options.state_folder()?;
        options.refuse_links(&state)?;
        let lock = state.try_own()?.ok_or_else(|| OpenError::Owned(state.path()))?;
        self.open_owned(options, state, lock).await
    }
}
