//! Reasons of runs, in the words of the controller.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::ResourceName;

/// The reason why a run was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The controller started.
    Start,
    /// The resource was created.
    Created,
    /// The spec or the refs changed.
    Edited,
    /// The resource was renamed.
    Renamed,
    /// The resource was deleted.
    Deleted,
    /// A resource that a ref names appeared or went.
    RefChanged,
    /// The parents have finished.
    Parent,
    /// A caller requested the run.
    Requested,
    /// A caller requested the work to be done again.
    Refresh,
    /// The requeue time fell due.
    Retrigger,
    /// The resync interval of the kind passed.
    Resync,
    /// A failed run is tried again.
    Retry,
    /// Something outside moved.
    Nudge,
    /// The obstacle to the run is gone.
    Recovered,
}

impl Reason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 14] = [
        Self::Start,
        Self::Created,
        Self::Edited,
        Self::Renamed,
        Self::Deleted,
        Self::RefChanged,
        Self::Parent,
        Self::Requested,
        Self::Refresh,
        Self::Retrigger,
        Self::Resync,
        Self::Retry,
        Self::Nudge,
        Self::Recovered,
    ];

    /// Returns the word that stands in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Created => "created",
            Self::Edited => "edited",
            Self::Renamed => "renamed",
            Self::Deleted => "deleted",
            Self::RefChanged => "ref_changed",
            Self::Parent => "parent",
            Self::Requested => "requested",
            Self::Refresh => "refresh",
            Self::Retrigger => "retrigger",
            Self::Resync => "resync",
            Self::Retry => "retry",
            Self::Nudge => "nudge",
            Self::Recovered => "recovered",
        }
    }

    /// Returns true for reasons that come by the clock, or because something outside moved.
    pub fn is_timed(self) -> bool {
        matches!(self, Self::Retrigger | Self::Resync | Self::Retry | Self::Nudge)
    }
}

/// One step of what led to a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// The resource that was asked for.
    pub resource: ResourceName,
    /// The reason.
    pub reason: Reason,
    /// The files whose edit it was, where that is known.
    pub origin: Option<String>,
    /// The number of steps right before this one that are left out.
    pub omitted: u64,
}

impl JsonSchema for Reason {
    fn schema_name() -> Cow<'static, str> {
        "Reason".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "Why a run was asked for.",
            "enum": Self::ALL.map(Self::as_str),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_written_as_its_word() {
        for reason in Reason::ALL {
            let written = serde_json::to_value(reason).unwrap();
            assert_eq!(written, reason.as_str());
        }
    }
}
