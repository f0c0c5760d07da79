//! The reasons to build a model again that its spec allows, and the effect of an edit on its rows.

use watershed_core::Timestamp;
use watershed_proto::{IncrementalOutput, IncrementalStrategy, ModelChangeMode, ModelSpec};

use super::{
    plan::{OnEdit, Triggers},
    record::Record,
    schedule,
};

/// Returns true if builds add to existing rows. With partitions, a build that replaces all rows needs every partition.
pub(super) fn adds_rows(spec: &ModelSpec) -> bool {
    let strategy = spec.incremental_output.as_ref().map(IncrementalOutput::strategy);
    spec.incremental && (spec.partitions.is_none() || strategy != Some(IncrementalStrategy::Overwrite))
}

/// Returns true if partitions failed in the last build.
pub(super) fn has_left(record: &Record) -> bool {
    record.partitions.is_some_and(|partitions| partitions.failed > 0)
}

/// Returns the reasons to build again that apply now, given the record of the output.
pub(super) fn triggers(spec: &ModelSpec, record: &Record, now: Timestamp) -> Triggers {
    let said = spec.refresh_schedule.as_ref();
    let mark = record.mark(now);
    Triggers {
        inputs: said.is_none_or(|said| said.ref_update && !said.disable),
        files: said.is_none_or(|said| !said.disable),
        due: schedule::from_spec(spec).is_some_and(|it| schedule::is_due(&it, mark, now)),
    }
}

/// Returns the effect of a changed definition on the output of a record.
pub(super) fn on_edit(spec: &ModelSpec, record: &Record) -> OnEdit {
    match spec.change_mode() {
        ModelChangeMode::Manual => OnEdit::Hold,
        ModelChangeMode::Patch => OnEdit::Keep,
        ModelChangeMode::Unspecified | ModelChangeMode::Reset => match is_protected(spec, record) {
            true => OnEdit::Hold,
            false => OnEdit::Reset,
        },
    }
}

/// Returns true if the rows of a record are kept until a person approves their loss: a new build may not bring them back.
pub(super) fn is_protected(spec: &ModelSpec, record: &Record) -> bool {
    spec.protect.unwrap_or(record.incremental)
}
