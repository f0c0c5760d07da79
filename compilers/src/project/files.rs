//! The project's files and what part each has.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{FileEvent, FileProblem, Project};
use crate::{env_file::EnvFile, group::Content, manifest, resource::Kind};

/// Folders and files at the root that never count.
const IGNORED: [&str; 9] = [
    "tmp",
    ".git",
    "node_modules",
    ".DS_Store",
    ".vscode",
    ".idea",
    ".rillcloud",
    ".github",
    ".watershed",
];

/// What part a file has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Manifest,
    Env(EnvFile),
    /// One of the files of a stem.
    Member {
        stem: String,
    },
    /// A file that is a resource of its own, by where it stands.
    Document {
        kind: Kind,
        name: String,
    },
}

/// The part of a path; none when it does not count.
pub(super) fn part(path: &str) -> Option<Part> {
    if is_below(path, IGNORED) {
        return None;
    }
    if manifest::PATHS.contains(&path) {
        return Some(Part::Manifest);
    }
    if let Some(env) = EnvFile::of(path) {
        return Some(Part::Env(env));
    }
    if let Some(stem) = [".sql", ".yaml", ".yml"]
        .iter()
        .find_map(|end| path.strip_suffix(end))
    {
        return Some(Part::Member {
            stem: stem.to_owned(),
        });
    }
    document(path)
}

fn document(path: &str) -> Option<Part> {
    let skills = path
        .strip_prefix("skills/")
        .or_else(|| path.strip_prefix(".agents/skills/"));
    let skill = skills
        .and_then(|rest| rest.strip_suffix("/SKILL.md"))
        .filter(|name| !name.contains('/'));
    if let Some(name) = skill {
        return Some(Part::Document {
            kind: Kind::Skill,
            name: name.to_owned(),
        });
    }
    let locale = path
        .strip_prefix("translations/")
        .and_then(|rest| rest.strip_suffix(".json"));
    let name = locale.filter(|name| !name.contains('/'))?;
    Some(Part::Document {
        kind: Kind::Translation,
        name: name.to_owned(),
    })
}

/// Whether a file may count for a project, by its path: what is worth listing, reading and watching. Paths that the
/// manifest ignores are not known here.
pub fn is_relevant(path: &str) -> bool {
    part(clean(path)).is_some()
}

/// Whether a path is one of the folders or files, or stands in one.
fn is_below<'a>(path: &str, folders: impl IntoIterator<Item = &'a str>) -> bool {
    folders.into_iter().any(|folder| {
        path.strip_prefix(folder)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

fn clean(path: &str) -> &str {
    path.strip_prefix("./").unwrap_or(path).trim_start_matches('/')
}

type Stored = Result<Arc<[u8]>, FileProblem>;

/// All files that may count, with their contents.
#[derive(Debug, Default)]
pub(super) struct Files {
    stored: BTreeMap<String, Stored>,
    ignored: Vec<String>,
    counted: usize,
}

impl Files {
    /// Takes events; answers the paths of which anything changed.
    pub(super) fn take(&mut self, events: impl IntoIterator<Item = FileEvent>) -> BTreeSet<String> {
        let mut changed = BTreeSet::new();
        for event in events {
            let (path, stored) = match event {
                FileEvent::Written { path, content } => (path, Some(Ok(content))),
                FileEvent::Removed { path } => (path, None),
                FileEvent::Unreadable { path, problem } => (path, Some(Err(problem))),
            };
            let path = clean(&path).to_owned();
            if part(&path).is_none() || self.stored.get(&path) == stored.as_ref() {
                continue;
            }
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

    /// Sets what the manifest ignores; answers whether that changed.
    pub(super) fn ignore(&mut self, paths: &[String]) -> bool {
        if self.ignored == paths {
            return false;
        }
        self.ignored = paths.to_vec();
        self.counted = self.paths().count();
        true
    }

    fn is_ignored(&self, path: &str) -> bool {
        !manifest::PATHS.contains(&path) && is_below(path, self.ignored.iter().map(String::as_str))
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

    /// A file that counts.
    pub(super) fn get(&self, path: &str) -> Option<Content<'_>> {
        let stored = self.stored.get(path).filter(|_| !self.is_ignored(path))?;
        Some(stored.as_ref().map(AsRef::as_ref))
    }

    pub(super) fn content(&self, path: &str) -> Option<&[u8]> {
        self.stored.get(path).and_then(|stored| stored.as_deref().ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_ignored_by_whole_names() {
        for path in [
            ".git/a.sql",
            "tmp/x/a.yaml",
            ".watershed/a.sql",
            "node_modules/a.yaml",
            "a.txt",
            "a.SQL",
        ] {
            assert!(!is_relevant(path), "{path}");
        }
        for path in [
            "a.sql",
            "/models/a.yaml",
            "tmpx/a.sql",
            "models/tmp/a.sql",
            ".env",
            "x/.dev.env",
        ] {
            assert!(is_relevant(path), "{path}");
        }
    }

    #[test]
    fn documents_are_named_by_where_they_stand() {
        let skill = Part::Document {
            kind: Kind::Skill,
            name: "x".into(),
        };
        assert_eq!(part("skills/x/SKILL.md"), Some(skill));
        assert_eq!(part("skills/x/y/SKILL.md"), None);
        let words = Part::Document {
            kind: Kind::Translation,
            name: "nb".into(),
        };
        assert_eq!(part("translations/nb.json"), Some(words));
    }
}
