//! Calls: the document that a command reads from its standard input, and an HTTP call has as its body.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use watershed_controller::Timestamp;
use watershed_schedule::jiff;

use crate::manager::Manager;
use crate::manager::view::View;
use crate::record::record_of;

/// The version of the document. It rises when a field changes its meaning; readers ignore fields that they do not know.
pub const VERSION: u32 = 1;

/// Everything that a step or a look gets.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Call {
    /// The version of this document.
    pub version: u32,
    /// The resource.
    pub resource: CalledResource,
    /// The stage that is desired, by the file or an event.
    pub desired: String,
    /// The stage that was last observed or reached.
    pub stage: String,
    /// The action to perform; none for a look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The number of the attempt, from 1. With uid and step it identifies an attempt: a repetition after a crash has the
    /// same one.
    pub attempt: u32,
    /// Set from the cleanup deadline on: what is in the way is to be removed.
    pub force: bool,
    /// The data that were last observed, or reported by a step since.
    pub data: Map<String, Value>,
    /// The window that governs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<CalledWindow>,
    /// The parts that there are.
    pub parts: Vec<CalledPart>,
    /// The event that last had an effect, as CloudEvents 1.0 writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<Value>,
}

/// The resource of a call.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct CalledResource {
    /// The name.
    pub name: String,
    /// The identity, which stays through renames: what things outside are marked with.
    pub uid: String,
    /// The epoch of the program that calls: a later one's is higher.
    pub epoch: u64,
    /// The values of the file, unchanged.
    pub values: Value,
}

/// A window, as instants (RFC 3339).
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct CalledWindow {
    /// The beginning of the lead.
    pub opening: String,
    /// The start.
    pub start: String,
    /// The end.
    pub end: String,
    /// The cleanup deadline.
    pub deadline: String,
}

/// A part as its owner sees it.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct CalledPart {
    /// The name.
    pub name: String,
    /// The stage; none before the first look, and for parts of other kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
}

impl Call {
    /// Returns the call for a look, or for the action of a view, with the values of the file and the data that are known.
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

/// An instant as RFC 3339 writes it; empty if it is beyond what can be written.
fn instant(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0).map_or_else(|_| String::new(), |at| at.to_string())
}
