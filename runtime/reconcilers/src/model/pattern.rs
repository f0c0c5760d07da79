//! Patterns of the paths of a model's local files, for file watchers.

use std::path::{Path, PathBuf};

use globset::GlobMatcher;
use watershed_drivers::files;

/// A path or glob pattern, with the folder that contains all its matches.
#[derive(Debug, Clone)]
pub struct Pattern {
    folder: PathBuf,
    below: Below,
}

#[derive(Debug, Clone)]
enum Below {
    File(PathBuf),
    Matches { matcher: GlobMatcher, depth: usize },
}

impl Pattern {
    /// Creates the pattern of `text`, relative to `root`; none if it is no valid pattern.
    #[must_use]
    pub fn new(root: &Path, text: &str) -> Option<Self> {
        let Some(base) = files::glob_base(text) else {
            let file = root.join(text);
            let folder = resolved(file.parent()?);
            let below = Below::File(folder.join(file.file_name()?));
            return Some(Self { folder, below });
        };
        Some(Self {
            folder: resolved(&root.join(base)),
            below: Below::Matches {
                matcher: files::matcher(files::below(text, base), text).ok()?,
                depth: files::depth(text, base),
            },
        })
    }

    /// Returns the folder that contains all matches.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the number of levels of folders below [`folder`](Self::folder) that can contain matches.
    #[must_use]
    pub fn depth(&self) -> usize {
        match &self.below {
            Below::File(_) => 0,
            Below::Matches { depth, .. } => depth.saturating_sub(1),
        }
    }

    /// Returns true if an event at a path may change the set of matches. An event of a folder affects everything
    /// inside.
    #[must_use]
    pub fn concerns(&self, path: &Path, is_folder: bool) -> bool {
        if self.folder.starts_with(path) {
            return true;
        }
        match &self.below {
            Below::File(file) => path == file,
            Below::Matches { matcher, .. } => path
                .strip_prefix(&self.folder)
                .is_ok_and(|below| is_folder || matcher.is_match(below)),
        }
    }
}

/// Returns a path without links and `..` as far as it exists, the form in which watchers report it.
fn resolved(folder: &Path) -> PathBuf {
    let Some((there, real)) = folder
        .ancestors()
        .find_map(|above| Some((above, above.canonicalize().ok()?)))
    else {
        return folder.to_owned();
    };
    let missing = folder.strip_prefix(there).unwrap_or(Path::new(""));
    if missing.as_os_str().is_empty() {
        real
    } else {
        real.join(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_concerns_what_it_matches_and_the_folders_around() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("p/data")).unwrap();
        let of = |text: &str| Pattern::new(&root.join("p"), text).unwrap();
        let file = |pattern: &Pattern, path: &str| pattern.concerns(&root.join(path), false);
        let csv = of("../p/data/*.csv");
        assert_eq!((csv.folder(), csv.depth()), (root.join("p/data").as_path(), 0));
        assert!(file(&csv, "p/data/a.csv"));
        assert!(!file(&csv, "p/data/a.txt"));
        assert!(!file(&csv, "p/data/deep/a.csv"));
        assert!(csv.concerns(&root.join("p"), true));
        let deep = of("data/**/*.csv");
        assert!(file(&deep, "p/data/x/y/a.csv"));
        assert!(deep.concerns(&root.join("p/data/x"), true));
        let plain = of("data/none/a.csv");
        assert!(file(&plain, "p/data/none/a.csv"));
        assert!(!file(&plain, "p/data/none/b.csv"));
        assert!(plain.concerns(&root.join("p/data/none"), true));
    }
}
