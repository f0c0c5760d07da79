//! The local data files that models read, and who reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use watershed_controller::Uid;
use watershed_controller::resource::Row;
use watershed_drivers::watch::Tree;
use watershed_proto::{Message as _, ModelSpec, ModelState};
use watershed_reconcilers::model::{self, pattern::Pattern};

/// Returns the file patterns that a model's last build read through objects made by migrations.
fn through(row: &Row) -> Vec<String> {
    let state = row
        .state
        .as_deref()
        .and_then(|state| ModelState::decode(state).ok());
    state.map(|state| state.made_files).unwrap_or_default()
}

/// The local data files that models read.
#[derive(Debug)]
pub(super) struct DataFiles {
    root: PathBuf,
    models: BTreeMap<Uid, Reads>,
}

#[derive(Debug)]
struct Reads {
    spec: Arc<[u8]>,
    /// File patterns that the model reads through objects made by migrations.
    through: Vec<String>,
    patterns: Vec<Pattern>,
}

impl DataFiles {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            models: BTreeMap::new(),
        }
    }

    /// Records the files that a resource reads. Returns true if they are others than before.
    pub(super) fn learn(&mut self, row: &Row) -> bool {
        if row.kind.as_str() != model::KIND || row.intents.is_deleted() {
            return self.forget(row.uid);
        }
        let through = through(row);
        if self
            .models
            .get(&row.uid)
            .is_some_and(|reads| reads.spec == row.spec && reads.through == through)
        {
            return false;
        }
        let said = ModelSpec::decode(row.spec.as_ref()).map(|spec| spec.local_files);
        let said = said.unwrap_or_default();
        let said = said.iter().map(|files| &files.pattern).chain(&through);
        let patterns: Vec<Pattern> = said.filter_map(|text| Pattern::new(&self.root, text)).collect();
        let is_news = !patterns.is_empty() || self.reads(row.uid);
        let spec = Arc::clone(&row.spec);
        let reads = Reads {
            spec,
            through,
            patterns,
        };
        self.models.insert(row.uid, reads);
        is_news
    }

    /// Forgets a resource that is gone. Returns true if it read any file.
    pub(super) fn forget(&mut self, uid: Uid) -> bool {
        let read = self.reads(uid);
        self.models.remove(&uid);
        read
    }

    /// Returns the folders of the data files, except those inside `project`.
    pub(super) fn trees(&self, project: &Tree) -> Vec<Tree> {
        let mut deepest: BTreeMap<&Path, usize> = BTreeMap::new();
        for pattern in self.patterns().filter(|pattern| !project.holds(pattern.folder())) {
            let depth = deepest.entry(pattern.folder()).or_default();
            *depth = pattern.depth().max(*depth);
        }
        let tree = |(root, depth): (&Path, usize)| {
            let whole = Tree::whole(root);
            Tree {
                depth: depth.min(whole.depth),
                ..whole
            }
        };
        deepest.into_iter().map(tree).collect()
    }

    /// Returns true if a model reads the file or folder at a path.
    pub(super) fn is_read(&self, path: &Path, is_folder: bool) -> bool {
        self.patterns().any(|pattern| pattern.concerns(path, is_folder))
    }

    /// Lists the readers of touched paths; the flag of each path is true if it is or was a folder.
    pub(super) fn readers(&self, touched: &[(&Path, bool)]) -> BTreeSet<Uid> {
        let reads = |patterns: &[Pattern]| {
            touched
                .iter()
                .any(|(path, is_folder)| patterns.iter().any(|pattern| pattern.concerns(path, *is_folder)))
        };
        let readers = self.models.iter().filter(|(_, of)| reads(&of.patterns));
        readers.map(|(uid, _)| *uid).collect()
    }

    /// Returns all models that read local files.
    pub(super) fn all_readers(&self) -> BTreeSet<Uid> {
        let readers = self.models.iter().filter(|(_, of)| !of.patterns.is_empty());
        readers.map(|(uid, _)| *uid).collect()
    }

    fn reads(&self, uid: Uid) -> bool {
        self.models
            .get(&uid)
            .is_some_and(|reads| !reads.patterns.is_empty())
    }

    fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        self.models.values().flat_map(|reads| &reads.patterns)
    }
}
