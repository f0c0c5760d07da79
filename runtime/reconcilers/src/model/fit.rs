//! Comparison of trashed outputs with the wanted one, to restore them in a run or to forecast that.
//!
//! It is the same decision as about what stands: an output that would be left as it is, stood it there, is what a build would
//! make. Rows of an incremental model come back too where new ones are to be put into them, for no build could make those.

use watershed_drivers::olap::Trashed;

use super::{
    plan::{Decision, ExistingOutput, Object, OnEdit, Output, Triggers, Wanted, plan},
    record::{BuildId, Meaning, Record, Refreshes, Shape},
    triggers::has_left,
};

/// The use that can be made of a trashed output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// The output is what would be built.
    Same,
    /// The rows are right, and new rows must be added.
    Base,
}

/// A trashed output as a candidate for one resource.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate<'a> {
    pub(super) record: &'a Record,
    /// The recorded definition's fingerprint by the current version; needed only if the versions differ.
    pub(super) refingerprinted: Option<&'a Meaning>,
    pub(super) build: BuildId,
    /// True if the resource itself trashed the output.
    pub(super) is_own: bool,
    /// True if the schedule is due by the record of the output.
    pub(super) due: bool,
}

/// Returns the record of a trashed output that a resource may take: its own, or one without an owner.
pub(super) fn record(trashed: &Trashed, is_own: bool, has_owner: bool) -> Option<Record> {
    let record = trashed.record.as_deref().and_then(Record::decode)?;
    (is_own || !has_owner).then_some(Record {
        rows: trashed.rows,
        ..record
    })
}

/// Returns the use of a trashed output for what is wanted, if there is any; contents of files must be known.
/// `approvals` counts the full refreshes that only approved edits, without asking for other rows.
pub(super) fn fit(wanted: &Wanted<'_>, candidate: &Candidate<'_>, approvals: u64) -> Option<Fit> {
    let record = candidate.record;
    let since = wanted.asked.full.saturating_sub(record.answered.full);
    let were_approvals = since == approvals.saturating_sub(record.approvals);
    let wanted = Wanted {
        // Another resource's counters mean nothing here.
        asked: match candidate.is_own {
            true if were_approvals => Refreshes {
                full: record.answered.full,
                ..wanted.asked
            },
            true => wanted.asked,
            false => record.answered,
        },
        triggers: Triggers {
            inputs: true,
            files: true,
            due: candidate.due,
        },
        on_edit: OnEdit::Reset,
        left: has_left(candidate.record),
        ..*wanted
    };
    let found = ExistingOutput::Own(Output {
        record: candidate.record,
        refingerprinted: candidate.refingerprinted,
        object: Object::Present {
            table: wanted.table,
            shape: Shape::Table,
            build: candidate.build,
        },
    });
    match plan(&wanted, &found) {
        Decision::Nothing => Some(Fit::Same),
        Decision::Add(_) => Some(Fit::Base),
        _ => None,
    }
}
