//! Conversion of rows of the catalog to documents.
//!
//! Everything here is a function of rows that were read before: nothing waits or asks the controller.
//!
//! | module | holds |
//! |---|---|
//! | [`copies`] | replicas of services, and their failures |
//! | [`data_tests`] | tests of models, and their results |
//! | [`explain`] | the reasons why resources are not running: root causes |
//! | [`freshness`] | models whose rows are too old |
//! | [`health`] | the health of resources, and its root causes |
//! | [`resource`] | one resource as documents show it |
//! | [`difference`] | the changes of declarations between two readings |
//! | [`made`] | dependencies of models on migrations |
//! | [`metrics`] | metrics for Prometheus |
//! | [`next_run`] | the time of the next scheduled run of a resource |
//! | [`stale_input`] | models that were built from old rows of a failed ref |
//! | [`own_names`] | outputs whose name hides a view of the engine |
//! | [`names`] | resolution of typed names to resources |
//! | [`document`] | the result document of a command |
//! | [`problems`] | problems of a project, each once |
//! | [`summary`] | counts of a command's work and outcomes |

pub(crate) mod copies;
pub(crate) mod data_tests;
pub(crate) mod difference;
pub(crate) mod document;
pub(crate) mod explain;
pub(crate) mod freshness;
pub(crate) mod health;
pub(crate) mod hints;
pub(crate) mod kinds;
pub(crate) mod made;
pub(crate) mod messages;
pub(crate) mod metrics;
pub(crate) mod names;
mod next_run;
mod own_names;
pub(crate) mod problems;
pub(crate) mod resource;
mod stale_input;
pub(crate) mod summary;

use std::sync::Arc;

use watershed_core::{Revision, Row, Settled, Stage, Status};

/// A resource as it was read: its stored row and its status.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The resource's row, as the catalog stores it.
    pub(crate) row: Arc<Row>,
    /// The resource's status; settled where no controller runs.
    pub(crate) status: Status,
}

/// One reading of the catalog.
#[derive(Debug, Clone, Default)]
pub(crate) struct Listing {
    /// The resources, hidden ones included.
    pub(crate) entries: Vec<Entry>,
    /// The revision at which the resources were read.
    pub(crate) revision: Revision,
}

impl From<watershed_controller::Resource> for Entry {
    fn from(resource: watershed_controller::Resource) -> Self {
        Self {
            row: resource.row,
            status: resource.status,
        }
    }
}

impl Entry {
    /// Returns the entry of a resource in a folder without an owner, where nothing runs.
    pub(crate) fn at_rest(row: Arc<Row>) -> Self {
        let settled = match &row.error {
            Some(_) => Settled::Failed,
            None if kinds::is_supported(row.kind.as_str()) => Settled::Idle,
            None => Settled::Unsupported,
        };
        Self {
            row,
            status: Status {
                stage: Stage::Settled(settled),
                reason: None,
                progress: None,
            },
        }
    }

    /// Returns true if documents list the resource: it is visible, and not deleted unless its delete failed.
    pub(crate) fn is_listed(&self, hidden: Hidden) -> bool {
        let gone = self.row.intents.is_deleted() && self.row.error.is_none();
        !gone && (hidden == Hidden::Show || !self.row.hidden || self.is_left())
    }

    /// Returns true if the resource was deleted and its outside object could not be removed.
    fn is_left(&self) -> bool {
        health::own_error(&self.row).is_some() && kinds::managed::is_managed(&self.row)
    }
}

/// Returns the id of a run, unique in the catalog.
pub(crate) fn run_id(epoch: u64, invocation: u64) -> String {
    format!("{epoch}-{invocation}")
}

/// The treatment of hidden resources in documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hidden {
    /// Hidden resources are left out.
    Leave,
    /// Hidden resources are shown (`--all`).
    Show,
}

impl Hidden {
    /// Shows hidden resources if `--all` was given.
    pub(crate) fn unless(all: bool) -> Self {
        if all { Self::Show } else { Self::Leave }
    }
}

#[cfg(test)]
pub(crate) mod fixture;
