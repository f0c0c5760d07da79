//! Wishes: the work that commands ask for.

use watershed_api::request::{PartitionChoice, Selection};
use watershed_controller::Refresh;

/// The work that a command asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wish {
    /// The work that the start of the controller has asked for already.
    Start,
    /// Everything once more, after what is under way.
    Everything,
    /// These once more, by `--select`.
    Selected(Selection),
    /// These, by name.
    Reconcile(Vec<String>),
    /// The work of these.
    Refresh(Which, Refresh, Reach),
    /// Partitions of these, by name.
    Partitions(Vec<String>, PartitionChoice),
    /// The held edits of these, by name.
    Approve(Vec<String>),
    /// The failed ones of these, by name.
    Retry(Vec<String>),
}

/// The way in which resources of a refresh were said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Which {
    /// By name.
    Named(Vec<String>),
    /// By `--select`.
    Selected(Selection),
}

/// The reach of a refresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Those named.
    Named,
    /// Also everything that reads them, however far away.
    Downstream,
}
