//! The part that is known to this process alone: nothing of it is missed by the next one.

use std::collections::BTreeMap;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::label::Order;
use super::observe::Details;
use crate::backend::{Observation, StartId, Stop};

/// The part that is known to this process alone.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) newest_epoch: u64,
    /// By container.
    pub(super) details: BTreeMap<String, Details>,
    /// The containers of starts, as last listed.
    pub(super) containers: BTreeMap<StartId, String>,
    /// Starts that are being made, and those that could not be.
    pub(super) making: BTreeMap<StartId, Making>,
    /// Stops under way.
    pub(super) stops: BTreeMap<StartId, Ending>,
    /// Commands of checks that outlived their time, by the start and the command.
    pub(super) overdue: BTreeMap<(StartId, Vec<String>), String>,
}

/// A start that is being made, or that could not be.
#[derive(Debug)]
pub(super) struct Making {
    pub(super) observation: Observation,
    /// Set when it is not wanted any more.
    pub(super) cancel: CancellationToken,
    /// The order to stop it.
    pub(super) stop: Option<Stop>,
}

/// A stop under way.
#[derive(Debug)]
pub(super) struct Ending {
    pub(super) order: watch::Sender<Order>,
}
