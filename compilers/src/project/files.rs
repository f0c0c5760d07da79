//! The files of the project, with their contents.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::Project;
use crate::{
    file::{FileEvent, FileProblem, MANIFESTS, clean, is_below, part},
    read::group::Content,
};

type Stored = Result<Arc<[u8]>, FileProblem>;

/// All relevant files with their contents, including those that the manifest ignores.
#[derive(Debug, Default)]
pub(super) struct Files {
    stored: BTreeMap<String, Stored>,
    ignored: Vec<String>,
    counted: usize,
}

impl Files {
    /// Applies events; returns the paths of files that changed.
    pub(super) fn take(&mut self, events: impl IntoIterator<Item = FileEvent>) -> BTreeSet<String> {
        let mut changed = BTreeSet::new();
        for event in events {
            let (path, stored) = match event {
                FileEvent::Written { path, content } => (path, Some(Ok(content))),
                FileEvent::Removed { path } => (path, None),
                FileEvent::Unreadable { path, problem } => (path, Some(Err(problem))),
            };
            let path = clean(&path).to_owned();
            // Watchers report more than changes, and the same file several times. Equal bytes are dropped here, before
            // anything is parsed.
            if part(&path).is_none() || self.stored.get(&path) == stored.as_ref() {
                continue;
            }
            // Ignored files are kept as well, for another manifest may count them without a further event.
            let counts = usize::from(!self.is_ignored(&path));
            match stored {
                Some(stored) => {
                    let is_new = self.stored.insert(path.clone(), stored).is_none();
                    self.counted += if is_new { counts } else { 0 };
                }
                None => {
                    self.stored.remove(&path);
                    self.counted -= counts;
                }
            }
            changed.insert(path);
        }
        changed
    }

    /// Sets the paths that the manifest ignores; returns true if they changed.
    pub(super) fn ignore(&mut self, paths: &[String]) -> bool {
        if self.ignored == paths {
            return false;
        }
        self.ignored = paths.to_vec();
        self.counted = self.paths().count();
        true
    }

    pub(super) fn is_ignored(&self, path: &str) -> bool {
        !MANIFESTS.contains(&path) && is_below(path, self.ignored.iter().map(String::as_str))
    }

    pub(super) fn over_limit(&self) -> bool {
        self.counted > Project::MAX_FILES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.counted == 0
    }

    pub(super) fn count(&self) -> usize {
        self.counted
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.stored
            .keys()
            .map(String::as_str)
            .filter(|path| !self.is_ignored(path))
    }

    /// Returns the content of a file that is not ignored.
    pub(super) fn get(&self, path: &str) -> Option<Content<'_>> {
        let stored = self.stored.get(path).filter(|_| !self.is_ignored(path))?;
        Some(stored.as_ref().map(AsRef::as_ref))
    }

    pub(super) fn content(&self, path: &str) -> Option<&[u8]> {
        self.stored.get(path).and_then(|stored| stored.as_deref().ok())
    }
}
