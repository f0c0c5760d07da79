//! A test of several untrusted projects in one process, each of which reads its own files alone.
//!
//! The working folder is the process's and is empty, so this is a test binary of its own with one test.

#![expect(
    clippy::unwrap_used,
    reason = "what fails here fails the test, with its place"
)]

use std::path::Path;
use std::time::Duration;
use std::{env, fs};

use watershed::api::request::QueryRequest;
use watershed::{Instance, Options, Runtime, WorkingFolder};
use watershed_controller::Select;

const DEADLINE: Duration = Duration::from_secs(60);

/// Writes a project whose models read a file by a relative path, a glob and a view, and the neighbour's file in every
/// spelling.
fn project(root: &Path, row: &str, neighbour: &Path) {
    let theirs = neighbour.join("data/x.csv");
    let theirs = theirs.to_str().unwrap();
    for (file, text) in [
        ("watershed.yaml", String::new()),
        ("data/x.csv", format!("name\n{row}\n")),
        ("models/direct.sql", "SELECT * FROM 'data/x.csv'".into()),
        (
            "models/pattern.sql",
            "SELECT * FROM read_csv('data/*.csv')".into(),
        ),
        (
            "models/view.sql",
            "-- @materialize: false\nSELECT * FROM direct".into(),
        ),
        ("models/absolute.sql", format!("SELECT * FROM '{theirs}'")),
        (
            "models/upwards.sql",
            format!(
                "SELECT * FROM read_csv('../{}/data/x.csv')",
                neighbour.file_name().unwrap().to_str().unwrap()
            ),
        ),
        ("models/linked.sql", "SELECT * FROM read_csv('data/link')".into()),
        (
            "migrations/relative.sql",
            "-- @type: migration\nCOPY (SELECT 1 AS one) TO 'left.csv'".into(),
        ),
        (
            "migrations/folder.sql",
            "-- @type: migration\nEXPORT DATABASE 'everything'".into(),
        ),
        (
            "migrations/whole.sql",
            format!(
                "-- @type: migration\nCOPY (SELECT 1 AS one) TO '{}/out.csv'",
                root.display()
            ),
        ),
        (
            "migrations/theirs.sql",
            format!(
                "-- @type: migration\nCOPY (SELECT 1 AS one) TO '{}/out.csv'",
                neighbour.display()
            ),
        ),
    ] {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink(theirs, root.join("data/link")).unwrap();
}

fn errors(instance: &Instance) -> Vec<(String, String)> {
    let rows = instance.controller().list(Select::all()).resources;
    let failed = rows.into_iter().filter_map(|resource| {
        let error = resource.row.error.as_ref()?;
        Some((
            resource.row.name.as_str().to_owned(),
            format!("{}: {}", error.code, error.message),
        ))
    });
    let mut failed: Vec<_> = failed.collect();
    failed.sort();
    failed
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api40_confined_projects_of_one_process_read_their_own_files_and_nobody_elses() {
    let temp = tempfile::tempdir().unwrap();
    let at = |name: &str| temp.path().join(name);
    for name in ["shop", "depot", "empty"] {
        fs::create_dir(at(name)).unwrap();
    }
    project(&at("shop"), "of the shop", &at("depot"));
    project(&at("depot"), "of the depot", &at("shop"));
    let folder = WorkingFolder::new(at("empty")).unwrap();
    env::set_current_dir(folder.path()).unwrap();

    let runtime = Runtime::new();
    let open = |name: &str| Options {
        sandbox: true,
        working_folder: Some(folder.clone()),
        ..Options::new(at(name))
    };
    let (shop, depot) = tokio::join!(runtime.open(open("shop")), runtime.open(open("depot")));
    let (shop, depot) = (shop.unwrap(), depot.unwrap());
    for (instance, row, name) in [(&shop, "of the shop", "shop"), (&depot, "of the depot", "depot")] {
        instance.controller().wait_until_idle(DEADLINE).await.unwrap();
        for model in ["direct", "pattern", "view"] {
            let rows = instance
                .query(QueryRequest::new(format!("SELECT name FROM {model}")))
                .await;
            let rows = rows.unwrap();
            assert!(format!("{rows:?}").contains(row), "{name}: {model}: {rows:?}");
        }
        let refused = [
            "absolute", "folder", "linked", "relative", "theirs", "upwards", "whole",
        ];
        let failed = errors(instance);
        let names: Vec<&str> = failed.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, refused, "{name}: {failed:?}");
        // The neighbour exports into a folder of the same name: whoever clears it first may take it from under the other.
        let is_refused =
            |(name, error): &(String, String)| error.starts_with("outside-sandbox") || name == "folder";
        assert!(failed.iter().all(is_refused), "{name}: {failed:?}");
        assert!(!at(name).join("out.csv").exists());
    }
    assert!(
        fs::read_dir(folder.path()).unwrap().next().is_none(),
        "something was left"
    );
    WorkingFolder::new(temp.path()).expect_err("a folder with something in it is no working folder");
}
