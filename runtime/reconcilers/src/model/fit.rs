//! Outputs of the trash, held against what is wanted: what a run takes back, and what a forecast says of it.
//!
//! It is the same decision as about what stands: an output that would be left as it is, stood it there, is what a build would
//! make. Rows of an incremental model come back too where new ones are to be put into them, for no build could make those.

use watershed_drivers::olap::Trashed;

use super::{
    plan::{Decision, ExistingOutput, Object, OnEdit, Output, Triggers, Wanted, plan},
    record::{BuildId, Meaning, Record, Refreshes, Shape},
    triggers::has_left,
};

/// The use of an output of the trash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// It is what would be built.
    Same,
    /// Its rows are right, and new ones are to be put into them.
    Base,
}

/// An output of the trash, as one resource sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate<'a> {
    pub(super) record: &'a Record,
    /// The recorded definition fingerprinted by the present version; needed only if the versions differ.
    pub(super) refingerprinted: Option<&'a Meaning>,
    pub(super) build: BuildId,
    /// This resource threw it away itself.
    pub(super) is_own: bool,
    /// By its record, the schedule is due.
    pub(super) due: bool,
}

/// Returns the record of an output of the trash that a resource may take: its own, and what belongs to nobody.
pub(super) fn record(trashed: &Trashed, is_own: bool, has_owner: bool) -> Option<Record> {
    let record = trashed.record.as_deref().and_then(Record::decode)?;
    (is_own || !has_owner).then_some(Record {
        rows: trashed.rows,
        ..record
    })
}

/// Holds an output of the trash against what is wanted, contents of files known. `approvals` of the full refreshes so far let an edit
/// through, and asked for no other rows of what was built before.
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
