//! The name of the caller in whose name a task makes its calls.

use std::future::Future;
use std::sync::Arc;

use watershed_core::Call;

tokio::task_local! {
    /// Name of the caller, as the history shows it.
    static ORIGIN: Arc<str>;
}

/// Runs a future whose calls of any handle carry the name of a caller, which the history shows as the origin of what the
/// calls request. Tasks that the future spawns carry none.
///
/// Cancel-safe if the future is.
pub async fn on_behalf_of<F: Future>(origin: impl Into<Arc<str>>, future: F) -> F::Output {
    ORIGIN.scope(origin.into(), future).await
}

/// Adds the name of the task's caller to a call that changes or requests something.
pub(super) fn named(call: Call) -> Call {
    let is_told = matches!(
        call,
        Call::Apply(_)
            | Call::ApplyAndAwait(_)
            | Call::Reconcile(_)
            | Call::Refresh { .. }
            | Call::Retry(_)
            | Call::Resume(_)
            | Call::ReconcileOnce(_)
    );
    match ORIGIN.try_with(Arc::clone) {
        Ok(origin) if is_told => Call::By {
            origin,
            call: Box::new(call),
        },
        _ => call,
    }
}
