//! Observers of invocations, such as those that trace them.

use watershed_core::Reason;

/// An observer of invocations, which puts them below the requests behind them, for instance. It holds up each.
pub trait InvocationObserver: Send + Sync + 'static {
    /// Is told of an invocation that is about to begin: its span and its reason.
    fn begins(&self, span: &tracing::Span, reason: &Reason);

    /// Is told of an invocation that has failed: its span and the code of its error, or `panic`.
    fn failed(&self, span: &tracing::Span, code: &str);
}
