//! A reconciler without its types, as the loop runs it.

use std::sync::Arc;

use tokio::task::AbortHandle;
use tracing::Instrument;
use watershed_core::{Error, InvocationId, Outcome, Phase, Returned, Row, Start};

use crate::call::Signal;
use crate::context::{Context, Link};
use crate::handle::Shared;
use crate::message::DecodeError;
use crate::panics;
use crate::reconciler::Reconciler;
use crate::resource::{spec_of, state_of};
use crate::store::BoxFuture;
use crate::task;

/// Runs the invocations of one kind.
pub(crate) trait Runner: Send + Sync {
    /// Runs one invocation to its end.
    fn run(&self, start: Box<Start>, link: Arc<Link>) -> BoxFuture<'static, Result<Outcome, Error>>;

    /// Whether the bytes of a row can be read.
    fn check(&self, row: &Row) -> Result<(), DecodeError>;
}

/// A reconciler with its types.
pub(crate) struct Typed<R>(Arc<R>);

impl<R: Reconciler> Typed<R> {
    pub(crate) fn new(reconciler: R) -> Self {
        Self(Arc::new(reconciler))
    }
}

impl<R: Reconciler> Runner for Typed<R> {
    fn run(&self, start: Box<Start>, link: Arc<Link>) -> BoxFuture<'static, Result<Outcome, Error>> {
        let reconciler = Arc::clone(&self.0);
        Box::pin(async move {
            let unreadable = |error: DecodeError| Error::permanent(UNREADABLE, error.to_string());
            let spec = spec_of(&start.resource).map_err(unreadable)?;
            let state = state_of(&start.resource).map_err(unreadable)?;
            let phase = start.phase;
            let context = Context::new(start, spec, state, link);
            match phase {
                Phase::Reconcile => reconciler.reconcile(context).await,
                Phase::Rename => reconciler.rename(context).await,
                Phase::Delete => reconciler.delete(context).await,
            }
        })
    }

    fn check(&self, row: &Row) -> Result<(), DecodeError> {
        spec_of::<R::Spec>(row)?;
        state_of::<R::State>(row).map(drop)
    }
}

/// The code of the error on a resource whose bytes can't be read.
pub(crate) const UNREADABLE: &str = "unreadable";

/// An invocation that has not returned.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) link: Arc<Link>,
    task: AbortHandle,
}

impl Running {
    /// Starts an invocation in a task of its own, under a span that names it.
    pub(crate) fn start(start: Box<Start>, runner: &dyn Runner, shared: &Arc<Shared>) -> Self {
        let link = Arc::new(Link::new(Arc::clone(shared)));
        let invocation = start.invocation;
        let span = tracing::info_span!(
            "invocation",
            resource.kind = %start.resource.kind,
            resource.name = %start.resource.name,
            invocation = invocation.0,
            spec_version = start.resource.spec_version.0,
            reason = start.reason.why.as_str(),
        );
        let run = runner.run(start, Arc::clone(&link));
        let report = report(invocation, run, Arc::clone(&link));
        let task = task::spawn(report.instrument(span)).abort_handle();
        Self { link, task }
    }

    /// Drops the invocation where it stands: the controller has stopped and nobody asks for its outcome.
    pub(crate) fn abort(&self) {
        self.task.abort();
    }
}

async fn report(invocation: InvocationId, run: BoxFuture<'static, Result<Outcome, Error>>, link: Arc<Link>) {
    let result = match panics::catch(run).await {
        Ok(Ok(outcome)) => Returned::Done(outcome),
        Ok(Err(error)) => Returned::Failed(error),
        Err(message) => Returned::Panicked(message),
    };
    link.signal(Signal::Returned { invocation, result });
}
