//! The folders that an engine is confined to.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Folders beyond which nothing is reached, as they really are: no part of their paths is a symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    folders: Vec<PathBuf>,
}

impl Sandbox {
    /// A sandbox of these folders. Links among their parts are followed now, once.
    pub fn new(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        let real = |folder: PathBuf| real_path(&folder).unwrap_or(folder);
        Self {
            folders: folders.into_iter().map(real).collect(),
        }
    }

    /// Returns the folders.
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// Returns whether an absolute path, with its links followed, lies in one of the folders. What is not there lies
    /// where its nearest folder that is there does.
    pub fn holds(&self, path: &Path) -> bool {
        real_path(path).is_some_and(|real| self.folders.iter().any(|folder| real.starts_with(folder)))
    }
}

/// The path without links, of which an end may be missing; none if it goes up from what is missing.
fn real_path(path: &Path) -> Option<PathBuf> {
    let mut missing: Vec<&OsStr> = Vec::new();
    let mut there = path;
    loop {
        if let Ok(real) = there.canonicalize() {
            return Some(missing.iter().rev().fold(real, |path, name| path.join(name)));
        }
        missing.push(there.file_name()?);
        there = there.parent()?;
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn paths_are_held_by_where_they_lead() {
        let temp = tempfile::tempdir().unwrap();
        let place = |path: &str| temp.path().join(path);
        fs::create_dir_all(place("project/data")).unwrap();
        fs::create_dir_all(place("project-of-others")).unwrap();
        fs::write(place("secret"), "").unwrap();
        symlink(place("project"), place("link")).unwrap();
        symlink(place("secret"), place("project/data/out")).unwrap();
        symlink(place("project/data"), place("in")).unwrap();
        let sandbox = Sandbox::new([place("link")]);
        for inside in [
            "project",
            "project/data/new/deep.csv",
            "link/data/a.csv",
            "in/a.csv",
            "project/data/../a",
        ] {
            assert!(sandbox.holds(&place(inside)), "{inside}");
        }
        for outside in [
            "secret",
            "project/../secret",
            "project/data/out",
            "project-of-others/a.csv",
            "project/missing/../../secret",
            "nowhere",
        ] {
            assert!(!sandbox.holds(&place(outside)), "{outside}");
        }
        assert!(!sandbox.holds(Path::new("/")));
    }
}
