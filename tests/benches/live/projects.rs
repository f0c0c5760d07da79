//! The projects that are measured.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Models of the large project.
const MODELS: usize = 1_000;

/// A project with the model that is edited: `text(n)` is its file after the n-th edit.
pub(crate) struct Project {
    folder: tempfile::TempDir,
    pub(crate) model: &'static str,
    pub(crate) file: &'static str,
    pub(crate) text: fn(usize) -> String,
}

impl Project {
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("project")
    }
}

pub(crate) fn flights() -> Project {
    let folder = tempfile::tempdir().unwrap();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/projects/flights");
    copy(&sample, &folder.path().join("project"));
    Project {
        folder,
        model: "edited",
        file: "models/4_summaries/edited.sql",
        text: |n| {
            format!("-- @materialize: true\nSELECT *, {n} AS edit FROM delays_by_carrier ORDER BY ALL\n")
        },
    }
}

/// Layers of a hundred models over one file; each reads one or two of the layer above, two of five are tables.
pub(crate) fn thousand() -> Project {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("project");
    fs::create_dir_all(root.join("models")).unwrap();
    fs::create_dir_all(root.join("data")).unwrap();
    fs::write(root.join("watershed.yaml"), "").unwrap();
    let mut rows = String::from("bucket,amount\n");
    for row in 0..1_000 {
        writeln!(rows, "{},{}", row % 20, row * 37 % 1_009).unwrap();
    }
    fs::write(root.join("data/raw.csv"), rows).unwrap();
    for model in 0..MODELS - 1 {
        let (layer, place) = (model / 100, model % 100);
        let (from, more) = match layer {
            0 => ("read_csv('data/raw.csv')".to_owned(), String::new()),
            _ => (
                name(layer - 1, place),
                format!(
                    " JOIN {} AS b USING (bucket)",
                    name(layer - 1, (place * 7 + 1) % 100)
                ),
            ),
        };
        let materialize = if (layer + place) % 5 < 2 {
            "-- @materialize: true\n"
        } else {
            ""
        };
        let text = format!(
            "{materialize}SELECT bucket, max(a.amount) AS amount FROM {from} AS a{more} GROUP BY bucket\n"
        );
        fs::write(root.join(format!("models/{}.sql", name(layer, place))), text).unwrap();
    }
    Project {
        folder,
        model: "edited",
        file: "models/edited.sql",
        text: |n| format!("-- @materialize: true\nSELECT *, {n} AS edit FROM m5_007\n"),
    }
}

fn name(layer: usize, place: usize) -> String {
    format!("m{layer}_{place:03}")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.file_name() == ".watershed" {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}
