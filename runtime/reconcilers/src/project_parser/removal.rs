//! Parses that remove most of a project, which may be due to a checkout in progress.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use watershed_compilers::{MANIFESTS, Project};
use watershed_core::{Batch, Change, Key, Row, Target, Uid};
use watershed_proto::{Diagnostic, Severity};

use crate::model;

/// The code of the finding about a parse that removes most of a project.
pub const REMOVAL_CODE: &str = "many-removed";

/// The time without changes after which a large removal is accepted.
pub(super) const QUIET: Duration = Duration::from_secs(1);
/// The number of waits after which a large removal is accepted even though files keep changing.
pub(super) const MOST_WAITS: usize = 60;
/// The number of models that may be removed at once without a wait.
const FEW: usize = 5;

/// The counts of removed models and of all models in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Removal {
    removed: usize,
    all: usize,
}

impl Removal {
    /// Counts the models that a batch removes from a catalog with the given rows.
    pub(super) fn new(batch: &Batch, rows: &[Arc<Row>]) -> Self {
        let live = rows.iter().filter(|row| !row.intents.is_deleted());
        let models = live.filter(|row| row.kind.as_str() == model::KIND);
        let by_key: BTreeMap<Key, Uid> = models.map(|row| (row.key(), row.uid)).collect();
        let uids: BTreeSet<Uid> = by_key.values().copied().collect();
        let deleted = batch
            .edits
            .iter()
            .filter(|edit| matches!(edit.change, Change::Delete | Change::ForceDelete))
            .filter(|edit| match &edit.target {
                Target::Uid(uid) => uids.contains(uid),
                Target::Key(key) => by_key.contains_key(key),
                // A parse names its resources in full.
                Target::Name(_) => false,
            });
        Self {
            removed: deleted.count(),
            all: uids.len(),
        }
    }

    /// Returns true if the batch removes more than half of the models, and more than a few.
    fn is_large(self) -> bool {
        self.removed > FEW && self.removed * 2 > self.all
    }

    /// Returns a finding about a large removal, at the project's manifest; none for a small one.
    pub(super) fn finding(self, project: &Project) -> Option<Diagnostic> {
        let manifest = project.paths().find(|path| MANIFESTS.contains(path));
        self.is_large()
            .then(|| self.told(manifest.unwrap_or(MANIFESTS[0])))
    }

    fn told(self, manifest: &str) -> Diagnostic {
        let Self { removed, all } = self;
        Diagnostic {
            severity: Severity::Warning.into(),
            code: REMOVAL_CODE.to_owned(),
            path: manifest.to_owned(),
            line: 1,
            column: 1,
            end_line: 1,
            end_column: 1,
            message: format!("the files of {removed} of {all} models are gone"),
            hint: "their tables go to the trash: they come back without a build when the files do".to_owned(),
            ..Diagnostic::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use watershed_core::Edit;

    use super::*;

    fn removal(models: usize, removed: usize) -> Removal {
        let row = |place: usize| {
            let uid = Uid(uuid::Uuid::from_u128(place as u128 + 1));
            Arc::new(Row::new(uid, model::KIND, format!("m{place}").as_str()))
        };
        let rows: Vec<_> = (0..models).map(row).collect();
        let edits = rows.iter().take(removed).map(|row| Edit::delete(row.uid));
        let batch = Batch {
            edits: edits.collect(),
        };
        Removal::new(&batch, &rows)
    }

    #[test]
    fn more_than_half_and_more_than_a_few_are_a_large_removal() {
        assert!(removal(6, 6).is_large());
        assert!(removal(11, 6).is_large());
        assert!(!removal(12, 6).is_large(), "half of them");
        assert!(!removal(5, 5).is_large(), "a few");
        assert_eq!(
            removal(11, 6).told("rill.yaml").message,
            "the files of 6 of 11 models are gone"
        );
    }

    #[test]
    fn other_kinds_and_other_edits_do_not_count() {
        let other = Uid(uuid::Uuid::from_u128(99));
        let theme = Arc::new(Row::new(other, "theme", "t"));
        let batch = Batch {
            edits: vec![Edit::delete(other)],
        };
        assert_eq!(Removal::new(&batch, &[theme]), Removal { removed: 0, all: 0 });
    }
}
