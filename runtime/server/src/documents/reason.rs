//! Reasons of runs. The words are the controller's: there is one list of them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use watershed_core::Trigger;

use super::ResourceName;

/// The reason why a run was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Reason(pub Trigger);

impl Reason {
    /// The word, as it stands in documents.
    pub fn as_str(self) -> &'static str {
        self.0.as_str()
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
            "enum": Trigger::ALL.map(Trigger::as_str),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_written_as_its_word() {
        for why in Trigger::ALL {
            let written = serde_json::to_value(Reason(why)).unwrap();
            assert_eq!(written, why.as_str());
        }
    }
}
