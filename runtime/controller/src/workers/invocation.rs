//! Reconcilers without their types, as the loop runs them.

use std::fmt;
use std::sync::Arc;

use tokio::sync::mpsc;
use tracing::Instrument;
use watershed_core::{Error, ErrorKind, Outcome, Phase, Returned, Row, Start, Work};

use crate::inbox::call::Signal;
use crate::inbox::shared::Shared;
use crate::store::BoxFuture;
use crate::tasks;
use crate::tasks::panics;
use crate::types::message::DecodeError;
use crate::types::resource::Resource;
use crate::workers::reconciler::Reconciler;
use crate::workers::reconciler::context::{Context, InvocationChannel};

/// The future of an invocation, which reports its end to the loop by itself.
pub(crate) type Run = BoxFuture<'static, ()>;

/// A runner of one kind's invocations.
pub(crate) trait Runner: Send + Sync {
    /// Runs one invocation to its end, and reports the result.
    fn run(&self, start: Box<Start>, channel: Arc<InvocationChannel>) -> Run;

    /// Checks that the bytes of a row can be decoded; returns true if the resource may rest.
    fn check(&self, row: &Row) -> Result<bool, DecodeError>;
}

/// A runner that decodes spec and state for a reconciler.
pub(crate) struct TypedRunner<R> {
    reconciler: Arc<R>,
    /// True if invocations run on threads that may block.
    blocks: bool,
}

impl<R: Reconciler> TypedRunner<R> {
    pub(crate) fn new(reconciler: R, blocks: bool) -> Self {
        Self {
            reconciler: Arc::new(reconciler),
            blocks,
        }
    }
}

impl<R: Reconciler> Runner for TypedRunner<R> {
    fn run(&self, start: Box<Start>, channel: Arc<InvocationChannel>) -> Run {
        let span = tracing::info_span!(
            "invocation",
            resource.kind = %start.resource.kind,
            resource.name = %start.resource.name,
            resource.uid = %start.resource.uid,
            epoch = start.epoch.0,
            invocation = start.invocation.0,
            spec_version = start.resource.spec_version.0,
            reason = start.reason.trigger.as_str(),
        );
        if let Some(observer) = channel.observer() {
            observer.begins(&span, &start.reason);
        }
        let (reconciler, blocks) = (Arc::clone(&self.reconciler), self.blocks);
        let run = async move {
            let invocation = start.invocation;
            tracing::debug!(phase = ?start.phase, reason = start.reason.trigger.as_str(), "began");
            let invoked = run(reconciler, start, Arc::clone(&channel));
            let invoked = panics::catch(invoked);
            let result = match if blocks {
                tasks::where_it_may_block(invoked).await
            } else {
                invoked.await
            } {
                Ok(Ok(outcome)) => Returned::Done(outcome),
                Ok(Err(error)) => Returned::Failed(error),
                Err(message) => Returned::Panicked(message),
            };
            log_result(&result, channel.is_cancelled());
            if let (Some(observer), Some(code)) = (channel.observer(), failure(&result)) {
                observer.failed(&tracing::Span::current(), code);
            }
            channel.signal(Signal::Returned { invocation, result });
        };
        Box::pin(run.instrument(span))
    }

    fn check(&self, row: &Row) -> Result<bool, DecodeError> {
        let spec = Resource::spec_of::<R::Spec>(row)?;
        let state = Resource::state_of::<R::State>(row)?;
        let may_rest = || self.reconciler.may_rest(row.uid, &spec, state.as_ref());
        // It is looked at, and its own run says what is wrong with it.
        Ok(panics::caught(may_rest).unwrap_or_else(|message| {
            tracing::error!(
                resource.kind = %row.kind,
                resource.name = %row.name,
                resource.uid = %row.uid,
                "`may_rest` panicked, and the resource is looked at: {message}"
            );
            false
        }))
    }
}

/// Returns the code of a failure; none for other ends, among them runs that were skipped for a dependency.
fn failure(result: &Returned) -> Option<&str> {
    match result {
        Returned::Failed(error) if matches!(error.kind, ErrorKind::Dependency(_)) => None,
        Returned::Failed(error) => Some(&error.code),
        Returned::Panicked(_) => Some("panic"),
        Returned::Done(_) => None,
    }
}

/// Logs the end of an invocation: for debugging if there was nothing to do, at higher levels otherwise.
fn log_result(result: &Returned, is_cancelled: bool) {
    match result {
        _ if is_cancelled => tracing::info!("cancelled"),
        Returned::Done(outcome) if matches!(outcome.work, Work::Checked | Work::None) => {
            tracing::debug!("found nothing to do");
        }
        Returned::Done(outcome) => tracing::info!(work = ?outcome.work, "done"),
        Returned::Failed(error) if matches!(error.kind, ErrorKind::Dependency(_)) => {
            tracing::info!(code = %error.code, "skipped: {}", error.message);
        }
        Returned::Failed(error) => {
            tracing::warn!(code = %error.code, "failed: {}", error.message);
        }
        Returned::Panicked(message) => tracing::error!("panicked: {message}"),
    }
}

/// Runs one invocation with its types.
pub(crate) async fn run<R: Reconciler>(
    reconciler: Arc<R>,
    start: Box<Start>,
    channel: Arc<InvocationChannel>,
) -> Result<Outcome, Error> {
    let unreadable = |error: DecodeError| Error::permanent(UNREADABLE, error.to_string());
    let spec = Resource::spec_of(&start.resource).map_err(unreadable)?;
    let state = Resource::state_of(&start.resource).map_err(unreadable)?;
    let phase = start.phase;
    let context = Context::new(start, spec, state, channel);
    match phase {
        Phase::Reconcile => reconciler.reconcile(context).await,
        Phase::Rename => reconciler.rename(context).await,
        Phase::Delete => reconciler.delete(context).await,
    }
}

/// Error code of a resource whose bytes can't be read.
pub(crate) const UNREADABLE: &str = "unreadable";

/// A started invocation that no worker has begun.
pub(crate) struct Invocation {
    start: Box<Start>,
    runner: Arc<dyn Runner>,
    channel: Arc<InvocationChannel>,
}

impl fmt::Debug for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Invocation").field(&self.start.invocation).finish()
    }
}

impl Invocation {
    pub(crate) fn new(
        start: Box<Start>,
        runner: Arc<dyn Runner>,
        shared: &Arc<Shared>,
        signals: &mpsc::UnboundedSender<Signal>,
    ) -> Self {
        Self {
            start,
            runner,
            channel: Arc::new(InvocationChannel::new(Arc::clone(shared), signals.clone())),
        }
    }

    /// Returns the channel by which loop and invocation communicate.
    pub(crate) fn channel(&self) -> Arc<InvocationChannel> {
        Arc::clone(&self.channel)
    }

    /// Returns the future of the whole invocation.
    pub(crate) fn run(self) -> Run {
        self.runner.run(self.start, self.channel)
    }
}
