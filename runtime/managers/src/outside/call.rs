//! Calls: the JSON document that a command reads from standard input, or an HTTP service as its request.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use watershed_controller::Timestamp;
use watershed_schedule::jiff;

use crate::manager::Manager;
use crate::manager::view::View;
use crate::record::record_of;

/// The version of the document. It rises when a field changes its meaning; readers ignore unknown fields.
pub const VERSION: u32 = 1;

/// The input of a step or a look.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Call {
    /// The version of this document.
    pub version: u32,
    /// The resource that the step or look is about.
    pub resource: CalledResource,
    /// The desired stage, from the file or an event.
    pub desired: String,
    /// The stage that was last observed or reached.
    pub stage: String,
    /// The name of the action to perform; none for a look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The number of the attempt, from 1. With uid and step it identifies the attempt; a repetition after a crash has
    /// the same number.
    pub attempt: u32,
    /// True from the cleanup deadline on, when obstacles to removal must be removed too.
    pub force: bool,
    /// The data that were last observed, or reported by a later step.
    pub data: Map<String, Value>,
    /// The window that applies, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<CalledWindow>,
    /// The existing parts of the resource.
    pub parts: Vec<CalledPart>,
    /// The last event that had an effect, in the format of CloudEvents 1.0; none if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<Value>,
}

/// The resource that a call is about.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct CalledResource {
    /// The name of the resource.
    pub name: String,
    /// The identity of the resource, with which things outside are marked. It stays the same through renames.
    pub uid: String,
    /// The epoch of the calling program; a later program has a higher one.
    pub epoch: u64,
    /// The values from the resource's file, unchanged.
    pub values: Value,
}

/// The window in a call, with instants (RFC 3339).
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct CalledWindow {
    /// The start of the lead.
    pub opening: String,
    /// The start of the window itself, after the lead.
    pub start: String,
    /// The end of the window itself, before the teardown.
    pub end: String,
    /// The cleanup deadline, from which nothing may be left.
    pub deadline: String,
}

/// An existing part of the resource that a call is about.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct CalledPart {
    /// The name of the part.
    pub name: String,
    /// The stage of the part; none before its first look, and for kinds without stages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
}

impl Call {
    /// Returns the call for a look, or for an action if `is_step`, with the values of the file and the known data.
    pub fn new<M: Manager>(view: &View<M>, values: Value, data: Map<String, Value>, is_step: bool) -> Self {
        let window = view.window().map(|window| CalledWindow {
            opening: instant(window.opening),
            start: instant(window.start),
            end: instant(window.end),
            deadline: instant(window.deadline),
        });
        let owned = view.owned().iter().map(|owned| &owned.resource);
        let parts = owned.filter(|row| row.kind.as_str() != crate::EVENT_KIND);
        Self {
            version: VERSION,
            resource: CalledResource {
                name: view.name().to_owned(),
                uid: view.uid().to_string(),
                epoch: view.epoch().0,
                values,
            },
            desired: view.desired().to_string(),
            stage: view.stage().to_string(),
            step: is_step.then(|| view.action().to_owned()),
            attempt: view.attempt(),
            force: view.force(),
            data,
            window,
            parts: parts
                .map(|row| CalledPart {
                    name: row.name.as_str().to_owned(),
                    stage: row
                        .state
                        .as_deref()
                        .and_then(|state| record_of(state).ok())
                        .map(|record| record.stage.to_string()),
                })
                .collect(),
            event: view.event().map(crate::CloudEvent::to_structured),
        }
    }
}

/// Returns the instant in RFC 3339; empty if it is out of range.
fn instant(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0).map_or_else(|_| String::new(), |at| at.to_string())
}
