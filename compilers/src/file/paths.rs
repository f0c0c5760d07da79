//! Classification of a project's paths.

use crate::resource::Kind;

/// The paths at which a project's manifest may be.
pub const MANIFESTS: [&str; 4] = ["rill.yaml", "rill.yml", "watershed.yaml", "watershed.yml"];

/// Folders and files at the root that are always ignored.
pub const IGNORED: [&str; 9] = [
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

/// An `.env` file, by the environments it applies to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EnvFile {
    /// `.env`, which applies to all environments.
    Plain,
    /// `.NAME.env`, which applies to the environment of that name.
    Of(String),
}

impl EnvFile {
    /// Recognises an `.env` file by the last part of its path.
    pub(crate) fn from_path(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or(path);
        if name == ".env" {
            return Some(EnvFile::Plain);
        }
        let environment = name.strip_prefix('.')?.strip_suffix(".env")?;
        (!environment.is_empty() && !environment.contains('.')).then(|| EnvFile::Of(environment.to_owned()))
    }
}

/// The role of a file in a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Manifest,
    Env(EnvFile),
    /// A file among the SQL and YAML files of a stem.
    Member {
        stem: String,
    },
    /// A file that is a resource by itself; its folder tells the kind.
    Document {
        kind: Kind,
        name: String,
    },
}

/// Returns the role of a path; none if the file is ignored.
pub(crate) fn part(path: &str) -> Option<Part> {
    if is_below(path, IGNORED) {
        return None;
    }
    if MANIFESTS.contains(&path) {
        return Some(Part::Manifest);
    }
    if let Some(env) = EnvFile::from_path(path) {
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

/// Returns true if the file at a path may belong to a project, and so is worth reading and watching. Paths that the
/// manifest ignores are not considered.
pub fn is_relevant(path: &str) -> bool {
    part(clean(path)).is_some()
}

/// Returns true if a path equals one of `folders` or lies below one.
pub(crate) fn is_below<'a>(path: &str, folders: impl IntoIterator<Item = &'a str>) -> bool {
    folders.into_iter().any(|folder| {
        path.strip_prefix(folder)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// Returns a path without a leading `./` or slashes.
pub(crate) fn clean(path: &str) -> &str {
    path.strip_prefix("./").unwrap_or(path).trim_start_matches('/')
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

    #[test]
    fn files_are_recognised_by_name() {
        assert_eq!(EnvFile::from_path("a/.env"), Some(EnvFile::Plain));
        assert_eq!(EnvFile::from_path(".dev.env"), Some(EnvFile::Of("dev".into())));
        assert_eq!(EnvFile::from_path("x.env"), None);
        assert_eq!(EnvFile::from_path("..env"), None);
    }
}
