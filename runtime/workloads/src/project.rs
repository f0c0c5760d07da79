//! Folders of a project: its root, and the output of its programs.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use watershed_core::Error;

use crate::backend::StartId;
use crate::{output, results};

/// The folders of a project.
#[derive(Debug, Clone)]
pub(crate) struct Project {
    /// Root of the project, below which programs start.
    pub(crate) root: PathBuf,
    /// Output folder of programs.
    pub(crate) output: PathBuf,
}

/// Environment variables that programs inherit (rule W17).
const INHERITED: [&str; 3] = ["PATH", "HOME", "LANG"];

impl Project {
    /// Returns the environment variables that all programs get.
    pub(crate) fn environment(&self) -> BTreeMap<String, String> {
        let value = |name: &&str| Some(((*name).to_owned(), std::env::var(name).ok()?));
        INHERITED.iter().filter_map(value).collect()
    }

    /// Returns the resolved path of a folder below the root.
    ///
    /// # Errors
    /// When it is not there, or lies outside.
    pub(crate) fn below(&self, path: &str) -> Result<PathBuf, Error> {
        below(&self.root, path)
    }

    /// Returns the output file of a start, after removing the files of starts before the previous one.
    pub(crate) fn output(&self, start: &StartId) -> PathBuf {
        output::prune(&self.output, start.uid(), start.counter().saturating_sub(1));
        output::file_of(&self.output, start.uid(), start.counter())
    }

    /// Removes the output of all earlier starts; the backend removes that of this start.
    pub(crate) fn remove_earlier_output(&self, start: &StartId) {
        output::prune(&self.output, start.uid(), start.counter());
    }

    /// Copies the output of a start, or of the one before if there is none yet, to a place where the start of another workload
    /// has its own, and removes what is there of lower numbers.
    pub(crate) fn keep_output(&self, start: &StartId, uid: &str, number: u64) {
        let before = start.counter().saturating_sub(1);
        let files =
            [start.counter(), before].map(|counter| output::file_of(&self.output, start.uid(), counter));
        let has_lines = |path: &&PathBuf| std::fs::metadata(path).is_ok_and(|file| file.len() > 0);
        let Some(from) = files.iter().find(has_lines) else {
            return;
        };
        let to = output::file_of(&self.output, uid, number);
        let copied = std::fs::create_dir_all(self.output.join(uid)).and_then(|()| std::fs::copy(from, &to));
        if let Err(error) = copied {
            tracing::warn!(%error, "the output of a release that is taken back can't be kept");
        }
        output::prune(&self.output, uid, number);
    }

    /// Removes the output of all starts of a workload that the backend does not know.
    pub(crate) fn remove_output(&self, uid: &str) {
        // There is none if it never wrote anything.
        let _ = std::fs::remove_dir_all(self.output.join(uid));
    }

    /// Removes the results of a replica's checks.
    pub(crate) fn remove_results(&self, uid: &str) {
        results::remove(&self.output, uid);
    }

    /// Removes check results of replicas that no longer exist.
    pub(crate) fn sweep_results(&self, is_there: impl Fn(&str) -> bool) {
        results::sweep(&self.output, is_there);
    }
}

/// Returns the resolved path of a file below a root.
///
/// # Errors
/// When it is not there, or lies outside.
fn below(root: &Path, path: &str) -> Result<PathBuf, Error> {
    let bad = |message: String| Error::permanent("bad-folder", message);
    let leaves = Path::new(path)
        .components()
        .any(|part| !matches!(part, Component::Normal(_) | Component::CurDir));
    if leaves {
        return Err(bad(format!("\"{path}\" leads out of the project")));
    }
    let root = root
        .canonicalize()
        .map_err(|error| bad(format!("the project's root can't be used: {error}")))?;
    let found = root
        .join(path)
        .canonicalize()
        .map_err(|error| bad(format!("\"{path}\" can't be used: {error}")))?;
    match found.starts_with(&root) {
        true => Ok(found),
        false => Err(bad(format!("\"{path}\" is a link out of the project"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_one_of_the_project_with_its_links_followed() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("app")).unwrap();
        std::os::unix::fs::symlink("/tmp", root.path().join("out")).unwrap();
        assert!(below(root.path(), "").is_ok());
        assert!(below(root.path(), "./app").is_ok());
        for wrong in ["/", "..", "app/../..", "out", "missing"] {
            assert_eq!(
                &*below(root.path(), wrong).unwrap_err().code,
                "bad-folder",
                "{wrong}"
            );
        }
    }
}
