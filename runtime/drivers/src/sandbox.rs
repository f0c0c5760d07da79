//! Sandboxes: the folders to which an engine is confined, and the addresses that are fetched for it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::objects::{Access, Prefix, is_within};

/// The folders to which access is confined, whose paths contain no symbolic links, and the addresses that may be asked.
///
/// The engine itself reaches no network: a prefix would not hold it, for it follows redirects and `..`, and takes endpoints and
/// proxies from secrets that a project makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    folders: Vec<PathBuf>,
    reach: Vec<Prefix>,
}

/// The empty working folder of a process that runs several projects.
///
/// The engine looks for a relative path in the working folder of the process before it looks in the project, so a folder
/// in which nothing is found lets each project read its own files. What a statement leaves there is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkingFolder(PathBuf);

impl WorkingFolder {
    /// Takes a folder, which the process has to make its working folder. Nobody may write there but root.
    ///
    /// # Errors
    /// When the folder is not there, or has anything in it.
    pub fn new(folder: impl AsRef<Path>) -> io::Result<Self> {
        let folder = folder.as_ref().canonicalize()?;
        if fs::read_dir(&folder)?.next().is_some() {
            let message = format!("`{}` is not empty", folder.display());
            return Err(io::Error::new(io::ErrorKind::DirectoryNotEmpty, message));
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o500))?;
        }
        Ok(Self(folder))
    }

    /// Returns the folder's path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Removes whatever was left in the folder. Returns the names, in no order.
    ///
    /// # Errors
    /// When something can't be listed or removed.
    pub fn clear(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            let removed = match entry.file_type()?.is_dir() {
                true => fs::remove_dir_all(entry.path()),
                false => fs::remove_file(entry.path()),
            };
            match removed {
                // Another statement was quicker.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => {
                    removed?;
                    names.push(entry.file_name().to_string_lossy().into_owned());
                }
            }
        }
        Ok(names)
    }
}

impl Sandbox {
    /// Creates a sandbox of these folders, whose links are resolved once, now.
    pub fn new(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        let real = |folder: PathBuf| real_path(&folder).unwrap_or(folder);
        Self {
            folders: folders.into_iter().map(real).collect(),
            reach: Vec::new(),
        }
    }

    /// Sets the addresses of stores and web servers that may be asked; none by default.
    #[must_use]
    pub fn reaching(mut self, prefixes: Vec<Prefix>) -> Self {
        self.reach = prefixes;
        self
    }

    /// Returns true if an address may be asked with this access.
    pub fn reaches(&self, access: &Access, address: &str) -> bool {
        let holds_file = access.authorities.as_deref().is_none_or(|file| self.holds(file));
        holds_file && is_within(&self.reach, access, address)
    }

    /// Returns the folders of the sandbox.
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// Returns a link in one of the folders that leads to nothing; none if there is no such link.
    ///
    /// The engine resolves links to what is there, and would write through this one, wherever it leads.
    pub fn dangling_link(&self) -> Option<PathBuf> {
        let entries = self.folders.iter().flat_map(walkdir::WalkDir::new).flatten();
        let mut links = entries.filter(walkdir::DirEntry::path_is_symlink);
        links
            .find(|link| !link.path().exists())
            .map(walkdir::DirEntry::into_path)
    }

    /// Returns true if an absolute path, with its links resolved, is inside one of the folders. For a missing path, its
    /// nearest existing ancestor counts.
    pub fn holds(&self, path: &Path) -> bool {
        real_path(path).is_some_and(|real| self.folders.iter().any(|folder| real.starts_with(folder)))
    }
}

/// Returns a symbolic link among a path and all that lies below it, which is looked at without following any; none if there
/// is none.
pub fn first_link(path: &Path) -> Option<PathBuf> {
    if path.is_symlink() {
        return Some(path.to_path_buf());
    }
    let mut links = walkdir::WalkDir::new(path)
        .into_iter()
        .flatten()
        .filter(walkdir::DirEntry::path_is_symlink);
    links.next().map(walkdir::DirEntry::into_path)
}

/// Resolves the links in a path whose end may be missing; none if the missing part goes upwards.
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
        assert_eq!(sandbox.dangling_link(), None);
        symlink(place("not-there"), place("project/data/dangling")).unwrap();
        let project = place("project").canonicalize().unwrap();
        assert_eq!(sandbox.dangling_link(), Some(project.join("data/dangling")));
    }
}
