//! The current graph, kept in the state of its resource.

use watershed_core::Uid;
use watershed_stategraph::{Fingerprint, Graph, PersistFuture, Persister};

use super::{GraphReconciler, GraphState, Renderer};
use crate::workers::reconciler::context::Context;

/// Returns the name of a resource's graph: its uid, so that a rename changes nothing.
pub(super) fn graph_name(uid: Uid) -> String {
    uid.to_string()
}

pub(super) fn uid_of(graph: &str) -> Option<Uid> {
    uuid::Uuid::parse_str(graph).ok().map(Uid)
}

/// Persister that writes the graph as the state of an invocation's resource, and waits until it is durable.
pub(super) struct InState<R: Renderer> {
    context: Context<GraphReconciler<R>>,
    /// Fingerprint of the graph in the catalog, so that an unchanged graph is not written again; none before the first
    /// write.
    written: Option<Fingerprint>,
}

impl<R: Renderer> InState<R> {
    pub(super) fn new(context: Context<GraphReconciler<R>>) -> Self {
        let written = context.state().map(|state| state.0.fingerprint());
        Self { context, written }
    }
}

impl<R: Renderer> Persister<R::Value> for InState<R> {
    fn persist(&mut self, current: &Graph<R::Value>) -> PersistFuture {
        let fingerprint = Some(current.fingerprint());
        if self.written == fingerprint {
            return Box::pin(std::future::ready(Ok(())));
        }
        self.written = fingerprint;
        let (context, state) = (self.context.clone(), GraphState(current.clone()));
        Box::pin(async move {
            context
                .set_state(&state)
                .await
                .map_err(|error| error.to_string())?;
            context.committed().await.map_err(|error| error.to_string())
        })
    }
}
