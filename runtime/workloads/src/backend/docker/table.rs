//! State that only this process has, and that the next one can do without.

use std::collections::BTreeMap;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::label::Order;
use super::observe::Details;
use crate::backend::{Observation, StartId, Stop};

/// State about containers that only this process has.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) newest_epoch: u64,
    /// Details of containers, by container id.
    pub(super) details: BTreeMap<String, Details>,
    /// Container ids of starts, from the last listing.
    pub(super) containers: BTreeMap<StartId, String>,
    /// Starts whose container is being created, or could not be.
    pub(super) making: BTreeMap<StartId, Making>,
    /// Stops in progress.
    pub(super) stops: BTreeMap<StartId, Ending>,
    /// Commands of checks that exceeded their time limit, by start and command.
    pub(super) overdue: BTreeMap<(StartId, Vec<String>), String>,
}

/// A start whose container is being created, or could not be.
#[derive(Debug)]
pub(super) struct Making {
    pub(super) observation: Observation,
    /// Cancelled when the container is no longer wanted.
    pub(super) cancel: CancellationToken,
    /// Stop that was ordered meanwhile; none if there was none.
    pub(super) stop: Option<Stop>,
}

/// A stop of one container in progress.
#[derive(Debug)]
pub(super) struct Ending {
    pub(super) order: watch::Sender<Order>,
}
