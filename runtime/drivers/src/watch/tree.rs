//! The folders that belong to a watched tree.

use std::fs;
use std::path::{Path, PathBuf};

use super::WatchError;

/// Deepest folder that is followed: further down is a loop of links, most likely.
const DEEPEST: usize = 64;

/// A folder with those below it. What is not there yet is watched for in the nearest folder above that is.
#[derive(Debug, Clone)]
pub struct Tree {
    /// The uppermost folder, absolute.
    pub root: PathBuf,
    /// The depth in folders below it; 0 for the folder alone.
    pub depth: usize,
    /// Returns whether a folder of that name directly below the root is left out.
    pub ignored: fn(&str) -> bool,
}

impl Tree {
    /// A folder with all that are below it.
    #[must_use]
    pub fn whole(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            depth: DEEPEST,
            ignored: |_| false,
        }
    }

    /// A folder alone.
    #[must_use]
    pub fn single(root: impl Into<PathBuf>) -> Self {
        Self {
            depth: 0,
            ..Self::whole(root)
        }
    }

    /// Returns whether a folder belongs to it, or waits for its root to be made.
    #[must_use]
    pub fn holds(&self, folder: &Path) -> bool {
        if let Ok(below) = folder.strip_prefix(&self.root) {
            let first = below.iter().next().and_then(|name| name.to_str());
            return below.iter().count() <= self.depth && !first.is_some_and(self.ignored);
        }
        self.nearest() == Some(folder)
    }

    /// The root, or its nearest existing ancestor.
    fn nearest(&self) -> Option<&Path> {
        self.root.ancestors().find(|folder| folder.is_dir())
    }

    /// Visits the folders, each before what is in it, and links to files.
    pub(super) fn walk(
        &self,
        visit: &mut dyn FnMut(Found<'_>) -> Result<(), WatchError>,
    ) -> Result<(), WatchError> {
        loop {
            let Some(there) = self.nearest() else {
                return Ok(());
            };
            if there == self.root {
                return self.descend(there, Reached::Folders, 0, visit);
            }
            visit(Found::Folder(there, Reached::Folders))?;
            // What was made before that folder was watched is told by nobody.
            if self.nearest() == Some(there) {
                return Ok(());
            }
        }
    }

    fn descend(
        &self,
        folder: &Path,
        way: Reached,
        depth: usize,
        visit: &mut dyn FnMut(Found<'_>) -> Result<(), WatchError>,
    ) -> Result<(), WatchError> {
        visit(Found::Folder(folder, way))?;
        // One that went meanwhile is told by the folder above.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if depth == 0 && name.to_str().is_some_and(self.ignored) {
                continue;
            }
            let below = match entry.file_type() {
                Ok(kind) if kind.is_dir() => way,
                // A link to a folder is a folder here, as it is for whoever lists.
                Ok(kind) if kind.is_symlink() && leads_down(&entry.path()) => Reached::Links,
                Ok(kind) if kind.is_symlink() && !entry.path().is_dir() => {
                    visit(Found::Link(&entry.path()))?;
                    continue;
                }
                _ => continue,
            };
            if depth < self.depth {
                self.descend(&entry.path(), below, depth + 1, visit)?;
            }
        }
        Ok(())
    }
}

/// A thing that belongs to a tree.
#[derive(Debug, Clone, Copy)]
pub(super) enum Found<'a> {
    /// A folder.
    Folder(&'a Path, Reached),
    /// A link to a file, or to nothing.
    Link(&'a Path),
}

/// The way in which a folder was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    /// Through folders alone.
    Folders,
    /// Through a link: it may be reached, and told, by another path as well.
    Links,
}

/// Returns whether a link leads to a folder that is not above it.
fn leads_down(link: &Path) -> bool {
    let Ok(target) = link.canonicalize() else {
        return false;
    };
    let parent = link.parent().and_then(|parent| parent.canonicalize().ok());
    target.is_dir() && !parent.is_some_and(|parent| parent.starts_with(&target))
}
