//! Reasons to build a model again that its spec allows, and the effect that it lets an edit have.

use watershed_core::Timestamp;
use watershed_proto::{ModelChangeMode, ModelSpec};

use super::{
    plan::{OnEdit, Triggers},
    record::Record,
    schedule,
};

/// Returns true if builds add to the rows that are there. A model with partitions is built as a whole so far, or every
/// build would add all of them again.
pub(super) fn adds_rows(spec: &ModelSpec) -> bool {
    spec.incremental && spec.partitions.is_none()
}

/// Returns the reasons that count now for an output with this record.
pub(super) fn triggers(spec: &ModelSpec, record: &Record, now: Timestamp) -> Triggers {
    let said = spec.refresh_schedule.as_ref();
    let mark = Timestamp(record.built_at_ms);
    Triggers {
        inputs: said.is_none_or(|said| said.ref_update && !said.disable),
        files: said.is_none_or(|said| !said.disable),
        due: schedule::of(spec).is_some_and(|it| schedule::is_due(&it, mark, now)),
    }
}

/// Returns the effect of another definition on an output with this record.
pub(super) fn on_edit(spec: &ModelSpec, record: &Record) -> OnEdit {
    match spec.change_mode() {
        ModelChangeMode::Manual => OnEdit::Hold,
        ModelChangeMode::Patch => OnEdit::Keep,
        ModelChangeMode::Unspecified | ModelChangeMode::Reset => {
            match spec.protect.unwrap_or(record.incremental) {
                true => OnEdit::Hold,
                false => OnEdit::Reset,
            }
        }
    }
}
