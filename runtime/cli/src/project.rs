//! The location of a command's project, with its state folder.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use watershed_api::Exit;
use watershed_compilers::MANIFESTS;
use watershed_reconcilers::model::sample::Sample;

use super::args::Shared;
use super::failure::Failure;
use watershed::program::{state_name, state_problem};
use watershed::state_folder::{STATE_FOLDER, StateFolder};

/// The location of a project, with the options on the command line that concern it.
#[derive(Debug, Clone)]
pub(super) struct Location {
    /// The project's folder, absolute.
    pub root: PathBuf,
    /// The project's state folder.
    pub state: StateFolder,
    /// Name of the project's environment.
    pub environment: String,
    /// Variables from the command line.
    pub variables: BTreeMap<String, String>,
    /// True if the project is confined to its folder and its state.
    pub sandbox: bool,
    /// The part of every source that is read; none for all of it.
    pub sample: Option<Sample>,
}

impl Location {
    /// Finds the project: the positional argument, `--project`, or from here upwards.
    ///
    /// In a sandbox its folder becomes the working folder of this process, as the engine looks for relative paths there
    /// first.
    pub(super) fn find(shared: &Shared, positional: Option<&Path>) -> Result<Self, Failure> {
        let root = match positional.or(shared.dir.as_deref()) {
            Some(folder) => named(folder)?,
            None => from_here_upwards()?,
        };
        let state_root = match &shared.state_dir {
            Some(folder) => std::path::absolute(folder).map_err(|error| unreadable(folder, error))?,
            None => root.join(STATE_FOLDER),
        };
        let state_name = state_name(&shared.environment, shared.sample);
        let state = StateFolder::new(state_root, &state_name).map_err(|error| state_problem(&error))?;
        if shared.sandbox {
            // Before anything is locked or made there: it would be made where the link leads.
            state.refuse_links(&root).map_err(|error| state_problem(&error))?;
            std::env::set_current_dir(&root).map_err(|error| unreadable(&root, error))?;
        }
        let variables = shared
            .variables
            .iter()
            .map(|v| (v.key.clone(), v.value.clone()))
            .collect();
        Ok(Self {
            root,
            state,
            environment: shared.environment.clone(),
            variables,
            sandbox: shared.sandbox,
            sample: shared.sample,
        })
    }
}

/// The manifest's name in projects of dbt.
pub(super) const DBT_MANIFEST: &str = "dbt_project.yml";
/// The hint for a project of dbt.
pub(super) const DBT: &str = "this is a project of dbt: `watershed init NEW-FOLDER` writes one of ours, to which its models \
                              and seeds are moved; docs/from-dbt.md says what each becomes";

/// Returns true if a folder holds a project's manifest.
pub(super) fn is_project(folder: &Path) -> bool {
    MANIFESTS.iter().any(|name| folder.join(name).is_file())
}

fn named(folder: &Path) -> Result<PathBuf, Failure> {
    let root = folder
        .canonicalize()
        .map_err(|error| match resource_hint(folder) {
            Some(hint) => unreadable(folder, error).hint(hint),
            None => unreadable(folder, error),
        })?;
    if is_project(&root) {
        return Ok(root);
    }
    // To whom the folder is closed it is not one without a project.
    if let Err(error) = root.join(MANIFESTS[0]).try_exists()
        && error.kind() == ErrorKind::PermissionDenied
    {
        return Err(unreadable(folder, error));
    }
    if root.is_file() {
        let failure = Failure::usage(format!(
            "`{}` is a file, not a project's folder",
            folder.display()
        ));
        return Err(match folder.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => {
                failure.hint(format!("try `{}`", parent.display()))
            }
            _ => failure,
        });
    }
    // A project whose manifest was deleted is still one: the parse says what is missing.
    if root.join(STATE_FOLDER).is_dir() {
        return Ok(root);
    }
    let failure = Failure::usage(format!(
        "no project in `{}`: it has no `watershed.yaml`",
        folder.display()
    ));
    if root.join(DBT_MANIFEST).is_file() {
        return Err(failure.hint(DBT));
    }
    Err(failure.hint(format!("`watershed init {}` writes one", folder.display())))
}

/// Returns a hint that a bare word may name a resource of the project, not a folder.
fn resource_hint(folder: &Path) -> Option<String> {
    let is_bare = folder.components().count() == 1;
    let name = folder
        .to_str()
        .filter(|_| is_bare && from_here_upwards().is_ok())?;
    Some(format!("did you mean `watershed reconcile {name}`?"))
}

fn from_here_upwards() -> Result<PathBuf, Failure> {
    let here = std::env::current_dir().map_err(|error| unreadable(Path::new("."), error))?;
    let found = here.ancestors().find(|folder| is_project(folder));
    let is_of_dbt = || here.ancestors().any(|folder| folder.join(DBT_MANIFEST).is_file());
    found.map(Path::to_path_buf).ok_or_else(|| {
        Failure::usage("no project here: neither this folder nor one above it has a `watershed.yaml`").hint(
            match is_of_dbt() {
                true => DBT,
                false => "`watershed init` writes a project, `-C DIR` names one somewhere else",
            },
        )
    })
}

fn unreadable(folder: &Path, error: std::io::Error) -> Failure {
    let context = format!("can't open the folder `{}`", folder.display());
    Failure {
        exit: Exit::Usage,
        error: anyhow::Error::new(error).context(context),
        hint: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_manifest_that_the_compiler_reads_makes_a_folder_a_project() {
        for manifest in MANIFESTS {
            let folder = tempfile::tempdir().unwrap();
            assert!(!is_project(folder.path()));
            std::fs::write(folder.path().join(manifest), "").unwrap();
            assert!(is_project(folder.path()), "{manifest}");
        }
    }
}
