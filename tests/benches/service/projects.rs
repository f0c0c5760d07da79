//! Projects that are made for measurements.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A project in a folder that goes away.
pub(crate) struct Project {
    folder: TempDir,
    models: usize,
}

impl Project {
    fn empty() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("watershed.yaml"), "").unwrap();
        Self { folder, models: 0 }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    /// Has all models select another number.
    pub(crate) fn edit(&self, edit: usize) {
        let folder = self.folder.path().join("models");
        fs::create_dir_all(&folder).unwrap();
        for n in 0..self.models {
            let text = format!("-- @materialize: true\nSELECT {n} AS n, {edit} AS edit\n");
            fs::write(folder.join(format!("m{n}.sql")), text).unwrap();
        }
    }
}

/// Resources that cost the engine nothing.
pub(crate) fn themes(number: usize) -> Project {
    let project = Project::empty();
    let folder = project.folder.path().join("themes");
    fs::create_dir(&folder).unwrap();
    for n in 0..number {
        write(
            &folder.join(format!("t{n}.yaml")),
            "type: theme\nlight: {primary: '#112233'}\n",
        );
    }
    project
}

/// Models, each a table of one row.
pub(crate) fn models(number: usize) -> Project {
    let mut project = Project::empty();
    project.models = number;
    project.edit(0);
    project
}

/// Returns the statement of so many rows of four columns.
pub(crate) fn select_rows(number: usize) -> String {
    format!(
        "SELECT range AS id, range % 1000 AS kind, range * 0.5::DOUBLE AS amount, 'word ' || range % 100 AS word \
         FROM range({number})"
    )
}

/// A view of so many rows.
pub(crate) fn rows(number: usize) -> Project {
    let project = Project::empty();
    let folder = project.folder.path().join("models");
    fs::create_dir(&folder).unwrap();
    write(&folder.join("many.sql"), &select_rows(number));
    project
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
}

/// Writes projects of ten views into the folders `p0`, `p1`, ...
pub(crate) fn write_small(folder: &Path, number: usize) {
    write_views(folder, number, 10);
}

/// Writes projects of so many views into the folders `p0`, `p1`, ...
pub(crate) fn write_views(folder: &Path, number: usize, views: usize) {
    for n in 0..number {
        let models = folder.join(format!("p{n}/models"));
        fs::create_dir_all(&models).unwrap();
        fs::write(models.join("../watershed.yaml"), "").unwrap();
        for model in 0..views {
            fs::write(
                models.join(format!("m{model}.sql")),
                format!("SELECT {model} AS n\n"),
            )
            .unwrap();
        }
    }
}
