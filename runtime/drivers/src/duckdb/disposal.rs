//! Moving outputs into the trash and out of it, as a part of other work.

use uuid::Uuid;

use super::names::{Edit, Entry, Folded, Names};
use super::partitions;
use super::schema;
use super::transaction::Work;
use super::trash;
use crate::olap::{Failure, OutputKind, Tag, Thrown, Trashed, trash_table};

/// Outputs of one resource that builds took the place of: a few edits on one branch, and the way back to another.
pub(super) const MOST_REPLACED: usize = 10;

/// A table that goes to the trash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Throw {
    pub(super) entry: Entry,
    pub(super) tag: Tag,
    pub(super) why: Thrown,
    pub(super) bytes: Option<u64>,
    pub(super) protected: bool,
    /// Its owner has notes of partitions.
    pub(super) partitioned: bool,
}

impl Throw {
    /// Moves the table. What is known of it follows with [`trash::note`], before its owner leaves another record.
    pub(super) fn carry_out(&self, work: &Work<'_>) -> Result<Trashed, Failure> {
        let Self { entry, tag, .. } = self;
        schema::rename_object(work, entry, *tag, &trash_table(tag.build))?;
        if self.partitioned {
            partitions::lay_aside(work, tag.uid, tag.build)?;
        }
        Ok(Trashed {
            tag: *tag,
            name: entry.name.clone(),
            why: self.why,
            at_ms: trash::now_ms(),
            rows: None,
            bytes: self.bytes,
            record: None,
            protected: self.protected,
        })
    }

    /// The edits of the schema once that is committed.
    pub(super) fn edits(&self, trashed: Trashed) -> Vec<Edit> {
        let build = trashed.tag.build;
        let mut edits = vec![Edit::Remove(Folded::new(&self.entry.name)), Edit::Thrown(trashed)];
        if self.partitioned {
            edits.push(Edit::Partitioned(build));
        }
        edits
    }
}

/// The outputs of the trash that were made by the builds of tables which are to go there: they hold the same.
pub(super) fn doubles(names: &Names, throw: &[Throw]) -> Vec<Uuid> {
    let builds = throw.iter().map(|throw| throw.tag.build);
    builds.filter(|build| names.trashed(*build).is_some()).collect()
}

/// Gives a table of the trash its place among the outputs. Its partitions come with it; that it is not in the trash any
/// more is left to be noted ([`trash::forget`]).
pub(super) fn take_back(
    work: &Work<'_>,
    trashed: &Trashed,
    (to, tag): (&str, Tag),
    partitioned: bool,
) -> Result<(), Failure> {
    let entry = Entry {
        name: trash_table(trashed.tag.build),
        kind: OutputKind::Table,
        tag: Some(trashed.tag),
    };
    schema::rename_object(work, &entry, tag, to)?;
    if partitioned {
        partitions::give(work, trashed.tag.build, tag.uid)?;
    }
    Ok(())
}
