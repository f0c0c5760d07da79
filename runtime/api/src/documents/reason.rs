//! Reasons for runs, and causal chains.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::ResourceName;

/// The reason why a run was requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The controller started.
    Start,
    /// The resource was created.
    Created,
    /// The spec or the refs of the resource changed.
    Edited,
    /// The resource was renamed.
    Renamed,
    /// The resource was deleted.
    Deleted,
    /// A resource that a ref names was created or deleted.
    RefChanged,
    /// The resource's parents have finished.
    Parent,
    /// A caller requested the run.
    Requested,
    /// A caller requested that the work be done again.
    Refresh,
    /// The requeue time of the resource arrived.
    Retrigger,
    /// The resync interval of the resource's kind has passed.
    Resync,
    /// A failed run is retried.
    Retry,
    /// Something outside the catalog changed, such as a watched file.
    Nudge,
    /// The cause that blocked the run has ended.
    Recovered,
}

impl Reason {
    /// All reasons, in the order of the enum.
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

    /// Returns the name in documents, such as `ref_changed`.
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

    /// Returns true if the reason is a time, a retry or a change outside the catalog.
    pub fn is_timed(self) -> bool {
        matches!(self, Self::Retrigger | Self::Resync | Self::Retry | Self::Nudge)
    }
}

/// A link of the causal chain that led to a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// Resource for which a run was requested.
    pub resource: ResourceName,
    /// Reason for the request.
    pub reason: Reason,
    /// Files whose edit caused the request; null if unknown.
    pub origin: Option<String>,
    /// Number of links that are left out directly before this link.
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
