//! The task that renews a lease.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::{sleep, sleep_until, timeout};
use watershed_core::CommitError;

use crate::inbox::call::Signal;
use crate::inbox::shared::Shared;
use crate::store::Catalog;

/// Divisor of the lease's term: the time between renewals. Two attempts may fail before anything is held back.
const RENEW: u32 = 4;
/// Divisor of the lease's term: the pause after a failed renewal.
const RETRY: u32 = 16;

/// Renews the lease of a catalog until the lease is lost or the loop has ended.
pub(crate) async fn keep(
    catalog: Arc<dyn Catalog>,
    signals: mpsc::UnboundedSender<Signal>,
    shared: Arc<Shared>,
) {
    while let Some(lease) = catalog.lease() {
        sleep_until(lease.since + lease.term / RENEW).await;
        let signal = match timeout(lease.term / RENEW, catalog.renew()).await {
            Ok(Ok(())) => Signal::Renewed,
            Ok(Err(CommitError::LeaseLost)) => Signal::LeaseLost,
            Ok(Err(CommitError::Failed(message) | CommitError::Full(message))) => {
                tracing::warn!(error = %message, "the lease was not renewed: the renewal is tried again");
                sleep(lease.term / RETRY).await;
                continue;
            }
            Err(_) => {
                tracing::warn!("the store did not answer when the lease was to be renewed");
                continue;
            }
        };
        let lost = matches!(signal, Signal::LeaseLost);
        let is_heard = signals.send(signal).is_ok();
        shared.wake();
        if !is_heard || lost {
            return;
        }
    }
}
