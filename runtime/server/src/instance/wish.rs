//! The work that a command asks of an instance.

use watershed_api::request::{PartitionChoice, Selection};
use watershed_controller::Refresh;

/// The work that a command asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wish {
    /// The work of the controller's start, which is requested already.
    Start,
    /// A new reconcile of everything, after the work under way.
    Everything,
    /// A new reconcile of the resources that `--select` matches.
    Selected(Selection),
    /// A reconcile of the named resources.
    Reconcile(Vec<String>),
    /// A refresh of resources and, if asked for, of their dependents.
    Refresh(Which, Refresh, Reach),
    /// A refresh of partitions of the named models.
    Partitions(Vec<String>, PartitionChoice),
    /// The approval of held edits of the named resources.
    Approve(Vec<String>),
    /// A retry of the named resources that have failed.
    Retry(Vec<String>),
}

/// The resources to refresh, as the user gave them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Which {
    /// Resources given by name.
    Named(Vec<String>),
    /// Resources that `--select` matches.
    Selected(Selection),
}

/// The extent of a refresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The given resources alone.
    Named,
    /// The given resources with their transitive dependents.
    Downstream,
}
