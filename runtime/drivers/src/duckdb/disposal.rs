//! Moves of outputs into the trash and out of it, as part of other work.

use uuid::Uuid;

use super::names::{Edit, Entry, Folded, Names};
use super::partitions;
use super::schema;
use super::transaction::Work;
use super::trash;
use crate::olap::{Failure, OutputKind, Tag, Thrown, Trashed, trash_table};

/// The most replaced outputs that are kept per resource: enough for a few edits on a branch, and the way back to
/// another.
pub(super) const MOST_REPLACED: usize = 10;

/// A table to be moved to the trash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Throw {
    pub(super) entry: Entry,
    pub(super) tag: Tag,
    pub(super) why: Thrown,
    pub(super) bytes: Option<u64>,
    pub(super) protected: bool,
    /// True if its owner has notes of partitions.
    pub(super) partitioned: bool,
}

impl Throw {
    /// Moves the table. Its details must be written by [`trash::note`] before the owner's record is replaced.
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

    /// Returns the changes of the known schema after the commit.
    pub(super) fn edits(&self, trashed: Trashed) -> Vec<Edit> {
        let build = trashed.tag.build;
        let mut edits = vec![Edit::Remove(Folded::new(&self.entry.name)), Edit::Thrown(trashed)];
        if self.partitioned {
            edits.push(Edit::Partitioned(build));
        }
        edits
    }
}

/// Returns the builds of moved tables that are already in the trash, with the same content.
pub(super) fn doubles(names: &Names, throw: &[Throw]) -> Vec<Uuid> {
    let builds = throw.iter().map(|throw| throw.tag.build);
    builds.filter(|build| names.trashed(*build).is_some()).collect()
}

/// Restores a table from the trash with its partitions. The caller removes it from the trash's notes
/// ([`trash::forget`]).
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
