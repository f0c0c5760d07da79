//! Folders of a watched tree.

use std::fs;
use std::path::{Path, PathBuf};

use super::WatchError;

/// The deepest followed folder; a deeper one is probably a loop of links.
const DEEPEST: usize = 64;

/// A folder with its subfolders to a depth. A missing root is awaited in its nearest existing ancestor.
#[derive(Debug, Clone)]
pub struct Tree {
    /// Absolute path of the root.
    pub root: PathBuf,
    /// Number of levels below the root; 0 for the root alone.
    pub depth: usize,
    /// Function that returns true for names of folders directly below the root to leave out.
    pub ignored: fn(&str) -> bool,
}

impl Tree {
    /// Creates a tree of a folder and all its subfolders.
    #[must_use]
    pub fn whole(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            depth: DEEPEST,
            ignored: |_| false,
        }
    }

    /// Creates a tree of a single folder.
    #[must_use]
    pub fn single(root: impl Into<PathBuf>) -> Self {
        Self {
            depth: 0,
            ..Self::whole(root)
        }
    }

    /// Returns true if a folder belongs to the tree, or is an ancestor in which the missing root is awaited.
    #[must_use]
    pub fn holds(&self, folder: &Path) -> bool {
        if let Ok(below) = folder.strip_prefix(&self.root) {
            let first = below.iter().next().and_then(|name| name.to_str());
            return below.iter().count() <= self.depth && !first.is_some_and(self.ignored);
        }
        self.nearest() == Some(folder)
    }

    /// Returns the root, or its nearest existing ancestor, if any.
    fn nearest(&self) -> Option<&Path> {
        self.root.ancestors().find(|folder| folder.is_dir())
    }

    /// Visits the folders of the tree, parents first, and links to files.
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

/// An item of a tree.
#[derive(Debug, Clone, Copy)]
pub(super) enum Found<'a> {
    /// A folder of the tree, and how it was reached.
    Folder(&'a Path, Reached),
    /// A link to a file, or a broken one.
    Link(&'a Path),
}

/// The way by which a folder was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    /// Through folders only.
    Folders,
    /// Through a link, so that events may report another path.
    Links,
}

/// Returns true if a link leads to a folder that is not its own ancestor.
fn leads_down(link: &Path) -> bool {
    let Ok(target) = link.canonicalize() else {
        return false;
    };
    let parent = link.parent().and_then(|parent| parent.canonicalize().ok());
    target.is_dir() && !parent.is_some_and(|parent| parent.starts_with(&target))
}
