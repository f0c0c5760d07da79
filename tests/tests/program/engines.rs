//! Projects that were built with another version of the engine.
//!
//! Each `testdata/engines/duckdb-VERSION.tar.gz` is a small project with the state folder that `watershed run` left,
//! made by a build that was linked with that version.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::sandbox::Sandbox;

/// Versions of which a project is kept.
const VERSIONS: &[&str] = &["1.5.6"];

/// Tables and rows of these projects.
const TABLES: &[&str] = &[
    "days: {'day': 2024-02-28, 'places': 1, 'degrees': -3.5} {'day': 2024-02-29, 'places': 2, 'degrees': -1.25} {'day': 2024-03-01, 'places': 1, 'degrees': 24.0}",
    "kinds: {'list': [1, 2, NULL], 'struct': {'a': 1, 'b': x}, 'instant': '2024-03-10 02:30:00+00', 'text': ø, 'huge': 170141183460469231731687303715884105727}",
    "measures: {'day': 2024-02-28, 'place': Oslo, 'degrees': -3.50} {'day': 2024-02-29, 'place': Havana, 'degrees': NULL} {'day': 2024-02-29, 'place': Oslo, 'degrees': -1.25} {'day': 2024-03-01, 'place': Lord Howe, 'degrees': 24.00}",
];

#[test]
fn a_file_that_another_version_of_the_engine_wrote_is_read() {
    for version in VERSIONS {
        let project = unpacked(version);
        let rows = project.query("SELECT places FROM days ORDER BY day")["rows"].take();
        assert_eq!(rows, json!([[1], [2], [1]]), "written by {version}");
    }
}

#[test]
fn a_project_that_another_version_of_the_engine_built_goes_on() {
    for version in VERSIONS {
        let project = unpacked(version);
        project.expect_run(0, version);
        assert_eq!(project.tables(), TABLES, "written by {version}");

        project.edit("models/days.sql", "count(*)", "10 + count(*)");
        project.expect_run(0, version);
        let rows = project.query("SELECT places FROM days ORDER BY day")["rows"].take();
        assert_eq!(rows, json!([[11], [12], [11]]), "written by {version}");
    }
}

/// The project that a version built.
fn unpacked(version: &str) -> Sandbox {
    let sandbox = Sandbox::with(&[]);
    let status = Command::new("tar")
        .arg("-xzf")
        .arg(archive(version))
        .arg("-C")
        .arg(sandbox.path())
        .status();
    assert!(status.expect("tar can be started").success());
    sandbox
}

fn archive(version: &str) -> PathBuf {
    let engines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/engines");
    engines.join(format!("duckdb-{version}.tar.gz"))
}
