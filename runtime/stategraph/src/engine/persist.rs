//! Persistence of the current graph during a call.
//!
//! One write is under way at most; it has all that ended before it began. An operation that could not be
//! found again after a crash starts only when its item is stored as creating, modifying or deleting: every
//! create, of which an older graph says nothing, and whatever the handler cannot observe.

use std::future::Future;
use std::pin::Pin;

use super::operate::Desking;
use crate::graph::Graph;
use crate::planner::{CallError, Start};
use crate::value::Value;

/// A pending write of the current graph; the error is for people.
pub type PersistFuture = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// A store for the current graph.
///
/// ```
/// use watershed_stategraph::{Graph, Persister, PersistFuture};
/// struct File(std::path::PathBuf);
/// impl Persister<serde_json::Value> for File {
///     fn persist(&mut self, current: &Graph<serde_json::Value>) -> PersistFuture {
///         let (path, bytes) = (self.0.clone(), serde_json::to_vec(current));
///         Box::pin(async move {
///             let bytes = bytes.map_err(|error| error.to_string())?;
///             std::fs::write(path, bytes).map_err(|error| error.to_string())
///         })
///     }
/// }
/// ```
pub trait Persister<V: Value>: Send {
    /// Begins to store the graph as it is now. The calling convergence polls the future to its end before it requests
    /// another.
    fn persist(&mut self, current: &Graph<V>) -> PersistFuture;
}

/// Reason why a call that stores its graph did not finish.
///
/// ```
/// # mod warehouse { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/warehouse.rs.in")); }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use serde_json::Value;
/// # use tokio_util::sync::CancellationToken;
/// use watershed_stategraph::{Extent, Graph, Persister, PersistFuture, PersistError};
/// struct FullDisk;
/// impl Persister<Value> for FullDisk {
///     fn persist(&mut self, _: &Graph<Value>) -> PersistFuture {
///         Box::pin(async { Err("no space left".to_owned()) })
///     }
/// }
/// let (executor, intended, never) = (warehouse::executor(), warehouse::intended()?, CancellationToken::new());
/// let (mut current, mut disk, all) = (Graph::new("warehouse"), FullDisk, Extent::Everything);
/// let call = executor.converge_persisted(&mut current, Some(&intended), &all, &mut disk, &never);
/// match call.await {
///     Err(PersistError::NotStored(why)) => assert_eq!(why, "no space left"),
///     other => panic!("{other:?}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PersistError {
    /// The graphs are invalid. No operation has run.
    #[error("the graphs cannot be converged")]
    Refused(#[from] CallError),
    /// The graph could not be stored. Running operations have ended or continue, and no others were started.
    #[error("the current graph could not be stored: {0}")]
    NotStored(String),
}

/// Persistence of a graph, with the operations that wait for it.
pub(super) struct Store<'a, V: Value> {
    persister: &'a mut dyn Persister<V>,
    writing: Option<PersistFuture>,
    /// The graph's change counter when the last write began.
    written: u64,
    /// Operations to start once the write under way has ended.
    covered: Vec<Start<V>>,
}

impl<'a, V: Value> Store<'a, V> {
    pub(super) fn new(persister: &'a mut dyn Persister<V>, current: &Graph<V>) -> Self {
        Self {
            persister,
            writing: None,
            written: current.changes(),
            covered: Vec::new(),
        }
    }

    /// Begins a write if anything has changed and none is under way.
    pub(super) fn write(&mut self, current: &Graph<V>, desking: &mut Desking<'_, V>) {
        if self.writing.is_none() && (current.changes() != self.written || !desking.parked.is_empty()) {
            self.written = current.changes();
            self.covered = std::mem::take(&mut desking.parked);
            self.writing = Some(self.persister.persist(current));
        }
    }

    pub(super) fn is_writing(&self) -> bool {
        self.writing.is_some()
    }

    /// Waits for the write under way, or forever if there is none; returns the operations that waited for it. Cancel
    /// safe.
    pub(super) async fn written(&mut self) -> (Result<(), String>, Vec<Start<V>>) {
        let Some(writing) = &mut self.writing else {
            return std::future::pending().await;
        };
        let result = writing.await;
        self.writing = None;
        (result, std::mem::take(&mut self.covered))
    }
}
