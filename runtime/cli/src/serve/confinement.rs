//! The empty working folder of a service, which lets confined projects read their own files by relative paths.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use watershed::WorkingFolder;
use watershed_api::Exit;

use crate::failure::Failure;

/// The most names that are tried for the folder.
const TRIES: u32 = 100;

/// The working folder of this process, which is removed when this is dropped.
pub(super) struct Confinement {
    pub(super) folder: WorkingFolder,
    /// The locked folder: what removes old temporary files passes over a folder that is locked.
    _lock: File,
}

impl Confinement {
    /// Makes an empty folder and makes it the working folder of the process.
    ///
    /// # Errors
    /// When the folder can't be made, or lies in the folder of a project, which could then write into it.
    pub(super) fn begin<'a>(projects: impl IntoIterator<Item = &'a Path>) -> Result<Self, Failure> {
        let refused = |error: io::Error| Failure {
            exit: Exit::NotNow,
            error: anyhow::Error::new(error).context("can't make an empty folder to work in"),
            hint: Some("name another folder for temporary files in `TMPDIR`".into()),
        };
        let folder = make(&std::env::temp_dir()).map_err(refused)?;
        let begun = enter(&folder, projects);
        if begun.is_err() {
            let _ = fs::remove_dir(&folder);
        }
        begun.map_err(refused)
    }
}

impl Drop for Confinement {
    fn drop(&mut self) {
        // A folder that is left behind is empty.
        let _ = fs::remove_dir(self.folder.path());
    }
}

/// Makes a folder of a new name, which only its owner may enter.
fn make(within: &Path) -> io::Result<PathBuf> {
    let process = std::process::id();
    let mut made = Err(io::ErrorKind::AlreadyExists.into());
    for number in 0..TRIES {
        let folder = within.join(format!("watershed-{process}-{number}"));
        made = DirBuilder::new().mode(0o700).create(&folder).map(|()| folder);
        match &made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            _ => break,
        }
    }
    made
}

fn enter<'a>(folder: &Path, projects: impl IntoIterator<Item = &'a Path>) -> io::Result<Confinement> {
    let working_folder = WorkingFolder::new(folder)?;
    for project in projects {
        if working_folder.path().starts_with(project) {
            let message = format!(
                "the folder for temporary files lies in the project `{}`",
                project.display()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
    }
    let lock = File::open(working_folder.path())?;
    lock.try_lock()?;
    std::env::set_current_dir(working_folder.path())?;
    Ok(Confinement {
        folder: working_folder,
        _lock: lock,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_in_a_project_is_refused_and_a_name_that_is_taken_is_passed_over() {
        let temp = tempfile::tempdir().unwrap();
        let (first, second) = (make(temp.path()).unwrap(), make(temp.path()).unwrap());
        assert_ne!(first, second);
        let project = temp.path().canonicalize().unwrap();
        let refused = enter(&first, [project.as_path()]).err().unwrap();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    }
}
