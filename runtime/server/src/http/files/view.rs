//! The files of a project that callers may know of.

use std::path::Path;

use watershed_compilers::Project;
use watershed_reconcilers::project_parser::compilation::manifest;
use watershed_reconcilers::project_parser::folder::{is_ignored, is_project_file};

use crate::instance::{Instance, compiler_options};

/// The file with the variables of a project, which admins replace and nobody reads.
pub(super) const VARIABLES: &str = ".env";

/// The rules that decide which files of a project are readable.
pub(super) struct View {
    /// The project with its manifest and no other files.
    pub(super) project: Project,
    /// State folders inside the project, which are never readable.
    pub(super) state: Vec<String>,
}

impl View {
    pub(super) fn of(instance: &Instance) -> Self {
        let (options, state) = (&instance.options, &instance.state);
        let folders = [state.root().to_owned(), state.path()];
        let inside = folders.iter().filter_map(|folder| below(&options.root, folder));
        Self {
            project: manifest(&options.root, compiler_options(options)),
            state: inside.filter(|folder| !folder.is_empty()).collect(),
        }
    }

    /// Returns true if a reader may know that the file or folder exists.
    pub(super) fn holds(&self, path: &str) -> bool {
        let mut parts = path.split('/');
        let is_kept_back = |part: &str| {
            let is = |name: &str| part.eq_ignore_ascii_case(name);
            is(".git") || is(".watershed") || is_env(part)
        };
        let first = parts.clone().next().map(str::to_ascii_lowercase);
        !self.state.iter().any(|state| is_below(path, state))
            && !is_ignored(first.as_deref())
            && !parts.any(is_kept_back)
            && !self.project.ignores(path)
    }

    /// Returns true if the file belongs to the project.
    pub(super) fn has(&self, path: &str) -> bool {
        let is_page = path.rsplit('/').next().is_some_and(|name| {
            let stem = name.strip_suffix(".md");
            stem.is_some_and(|stem| !stem.is_empty() && !stem.starts_with(['.', '#']))
        });
        self.holds(path) && (is_page || is_project_file(Path::new(path)))
    }

    /// Returns true if the file is public.
    pub(super) fn shows(&self, path: &str) -> bool {
        let is_public = self
            .project
            .public_paths()
            .iter()
            .any(|folder| is_below(path, folder));
        is_public && self.holds(path) && !path.split('/').any(|part| part.starts_with('.'))
    }
}

/// Returns true if the path is the folder or lies inside the folder.
fn is_below(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns true if the name ends in `.env`; such files hold variables and are never readable.
fn is_env(name: &str) -> bool {
    name.len() >= 4
        && name.is_char_boundary(name.len() - 4)
        && name[name.len() - 4..].eq_ignore_ascii_case(".env")
}

/// Returns a path relative to a folder, `/` between parts; none if the path lies elsewhere.
fn below(root: &Path, path: &Path) -> Option<String> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (root, path) = (real(root), real(path));
    let parts = path.strip_prefix(root).ok()?.components();
    let parts: Vec<_> = parts.map(|part| part.as_os_str().to_string_lossy()).collect();
    Some(parts.join("/"))
}
