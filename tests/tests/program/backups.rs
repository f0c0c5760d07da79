//! Everything that an environment keeps, in one file and back.

use std::collections::BTreeMap;
use std::fs;

use serde_json::json;

use crate::connected::has_extension;
use crate::going::Going;
use crate::lake_outages::in_a_store;
use crate::sandbox::{Sandbox, files_below};

const PROJECT: &[(&str, &str)] = &[
    ("watershed.yaml", "env: {greeting: hello-there}\n"),
    ("data/a.csv", "x\n1\n"),
    (
        "sources/a.yaml",
        "type: source\nconnector: local_file\npath: data/a.csv\n",
    ),
    (
        "models/kept.yaml",
        "type: model\nincremental: true\nsql: SELECT x FROM a\n",
    ),
    (
        "models/b.sql",
        "-- @materialize: true\nSELECT x, '{{ .env.greeting }}' AS word FROM a\n",
    ),
    ("models/c.sql", "SELECT x FROM b\n"),
];

/// A project with rows that no build could make again.
fn project() -> Sandbox {
    let sandbox = Sandbox::with(PROJECT);
    sandbox.run(0);
    sandbox.write("data/a.csv", "x\n2\n");
    sandbox.run(0);
    sandbox
}

/// The file of a backup, which is no part of the project.
const KEPT: &str = "tmp/kept.backup";

fn back_up(sandbox: &Sandbox) {
    fs::create_dir_all(sandbox.path().join("tmp")).expect("a folder can be made");
    let said = sandbox.call(&["backup", KEPT]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
}

#[test]
fn what_was_backed_up_comes_back_and_nothing_is_built() {
    let sandbox = project();
    back_up(&sandbox);
    let before = sandbox.tables();
    let nowhere = sandbox.call(&["backup", "nowhere/kept.backup"]);
    assert_eq!(nowhere.code, Some(2), "{}", nowhere.stderr);
    assert!(
        nowhere.stderr.contains("/nowhere` is not there"),
        "{}",
        nowhere.stderr
    );
    let again = sandbox.call(&["backup", KEPT]);
    assert_eq!(again.code, Some(2), "{}", again.stdout);
    assert!(again.stderr.contains("`--force` replaces it"), "{}", again.stderr);

    // Into an empty folder.
    sandbox.forget();
    let said = sandbox.call(&["restore", KEPT, "--json"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert_eq!(said.json()["schema"], "watershed.backup/1");
    assert_eq!(said.json()["replaced"], false);
    assert_eq!(sandbox.tables(), before);
    assert_eq!(sandbox.done(0), "");

    // In the place of something else.
    sandbox.write("data/a.csv", "x\n3\n");
    sandbox.run(0);
    let refused = sandbox.call(&["restore", KEPT]);
    assert_eq!(refused.code, Some(2), "{}", refused.stdout);
    assert!(refused.stderr.contains("`--yes` agrees"), "{}", refused.stderr);
    let would = sandbox.call(&["restore", KEPT, "--dry-run"]);
    assert_eq!(would.code, Some(0), "{}", would.stderr);
    assert!(
        would.stdout.contains("in the place of what is there"),
        "{}",
        would.stdout
    );
    assert_eq!(sandbox.query("SELECT count(*) FROM kept")["rows"], json!([[3]]));
    assert_eq!(sandbox.call(&["restore", KEPT, "--yes"]).code, Some(0));
    assert_eq!(sandbox.tables(), before);
    sandbox.write("data/a.csv", "x\n2\n");
    assert_eq!(sandbox.done(0), "");
}

#[test]
fn a_backup_is_made_while_start_goes_on() {
    let sandbox = project();
    let mut start = Going::settled(&sandbox);
    back_up(&sandbox);
    let refused = sandbox.call(&["restore", KEPT, "--yes"]);
    assert_eq!(refused.code, Some(3), "{}", refused.stdout);
    assert!(refused.stderr.contains("watershed start"), "{}", refused.stderr);
    sandbox.write("data/a.csv", "x\n7\n");
    start.until_done(&["kept:built", "b:built"]);
    start.stop();
    assert_eq!(sandbox.call(&["restore", KEPT, "--yes"]).code, Some(0));
    sandbox.write("data/a.csv", "x\n2\n");
    assert_eq!(sandbox.done(0), "");
    assert_eq!(sandbox.query("SELECT count(*) FROM kept")["rows"], json!([[2]]));
}

#[test]
fn a_lake_in_a_database_and_a_store_is_backed_up_while_start_goes_on() {
    let Some((_server, _store, _line, project)) = in_a_store() else {
        return;
    };
    let rows = || project.query("SELECT count(*) FROM late")["rows"].clone();
    let mut start = Going::settled(&project);
    back_up(&project);
    project.edit("models/days.sql", "range(20)", "range(30)");
    start.until_done(&["days:built"]);
    start.stop();
    assert_eq!(rows(), json!([[19]]));
    let said = project.call(&["restore", KEPT, "--yes", "--json"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert_eq!(said.json().get("lost"), None);
    assert_eq!(rows(), json!([[9]]));
    assert_eq!(project.done(0), "days:built");
    assert_eq!(rows(), json!([[19]]));
}

#[test]
fn a_file_that_is_damaged_or_none_of_ours_touches_nothing() {
    let sandbox = project();
    back_up(&sandbox);
    let before = sandbox.tables();
    let path = sandbox.path().join(KEPT);
    let good = fs::read(&path).expect("the backup is there");
    let mut bad = good.clone();
    let middle = bad.len() / 2;
    bad[middle] ^= 1;
    for (content, code, says) in [
        (bad.as_slice(), 4, "it is damaged"),
        (&good[..middle], 4, "it is damaged"),
        (b"something else", 4, "it is no backup"),
        (b"watershed backup 99\n", 4, "a newer version"),
    ] {
        fs::write(&path, content).expect("the backup can be spoiled");
        let said = sandbox.call(&["restore", KEPT, "--yes"]);
        assert_eq!(said.code, Some(code), "{}", said.stderr);
        assert!(said.stderr.contains(says), "{}", said.stderr);
        assert_eq!(sandbox.tables(), before);
    }
    fs::remove_file(&path).expect("it can be removed");
    assert_eq!(sandbox.call(&["restore", KEPT, "--yes"]).code, Some(2));
    assert_eq!(sandbox.done(0), "");
}

/// Runs a command that is to die at a point, at its first visit or a later one. Returns whether it did.
fn dies(sandbox: &Sandbox, arguments: &[&str], point: &str, visits: usize) -> bool {
    let mut command = sandbox.command(arguments);
    let output = command
        .env("FAILPOINTS", format!("{point}={visits}*off->return"))
        .output()
        .expect("the program can be started");
    output.status.code().is_none()
}

#[test]
fn dead_at_any_point_of_a_backup_or_a_restore_the_old_state_or_the_new_one_is_whole() {
    let project = project();
    back_up(&project);
    let old = project.tables();
    project.write("data/a.csv", "x\n3\n");
    project.run(0);
    let new = project.tables();
    let mut deaths = BTreeMap::new();
    for point in watershed_drivers::BACKUP_CRASH_POINTS {
        for visits in 0..3 {
            let sandbox = project.copied();
            fs::create_dir_all(sandbox.path().join("tmp")).expect("a folder can be made");
            fs::copy(project.path().join(KEPT), sandbox.path().join(KEPT)).expect("a file can be copied");
            let command: &[&str] = match point.starts_with("backup") {
                true => &["backup", "--force", KEPT],
                false => &["restore", "--yes", KEPT],
            };
            if !dies(&sandbox, command, point, visits) {
                break;
            }
            *deaths.entry(*point).or_insert(0) += 1;
            let story = format!("dead at {point} after {visits} visits");
            // Whoever looks first finds the one or the other.
            let rows = sandbox.query("SELECT count(*) FROM kept")["rows"][0][0].clone();
            let committed = !point.starts_with("backup") && *point != "restore::before_commit";
            assert_eq!(rows, if committed { 2 } else { 3 }, "{story}");
            assert_eq!(
                sandbox.tables(),
                if committed { old.clone() } else { new.clone() },
                "{story}"
            );
            let kept = sandbox.call(&["restore", "--yes", KEPT]);
            assert_eq!(kept.code, Some(0), "{story}: {}", kept.stderr);
            let expected = if *point == "backup::after_rename" {
                &new
            } else {
                &old
            };
            assert_eq!(&sandbox.tables(), expected, "{story}");
        }
    }
    let visited: Vec<&str> = deaths.keys().copied().collect();
    let mut all = watershed_drivers::BACKUP_CRASH_POINTS.to_vec();
    all.sort_unstable();
    assert_eq!(visited, all);
}

#[test]
fn a_lake_comes_back_by_its_catalog_without_tables_whose_files_are_gone() {
    if !(has_extension("ducklake") && has_extension("sqlite_scanner")) {
        return;
    }
    let sandbox = Sandbox::with(PROJECT).in_lake_of_files();
    sandbox.run(0);
    sandbox.write("data/a.csv", "x\n2\n");
    sandbox.run(0);
    back_up(&sandbox);
    let before = sandbox.tables();
    sandbox.write("data/a.csv", "x\n7\n");
    sandbox.remove("models/c.sql");
    sandbox.run(0);
    let now = sandbox.tables();
    assert_ne!(now, before);

    let would = sandbox.call(&["restore", KEPT, "--dry-run"]);
    assert_eq!(would.code, Some(0), "{}", would.stderr);
    assert_eq!(sandbox.tables(), now);
    let said = sandbox.call(&["restore", KEPT, "--yes"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert_eq!(sandbox.tables(), before);
    sandbox.write("data/a.csv", "x\n2\n");
    sandbox.write("models/c.sql", "SELECT x FROM b\n");
    assert_eq!(sandbox.done(0), "");

    // The catalog and the state are lost, and some of the files.
    let lake = sandbox.path().join("lake");
    let gone = files_below(&lake);
    let gone = gone.iter().filter(|file| file.to_string_lossy().contains("/b/"));
    assert_ne!(gone.clone().count(), 0, "the rows of `b` stand in files");
    gone.for_each(|file| fs::remove_file(file).expect("a file can be removed"));
    for file in files_below(&lake) {
        if file.to_string_lossy().contains("catalog.sqlite") && !file.to_string_lossy().ends_with("parquet") {
            fs::remove_file(file).expect("the catalog can be removed");
        }
    }
    fs::remove_dir_all(sandbox.path().join(".watershed")).expect("the state can be removed");
    let said = sandbox.call(&["restore", KEPT, "--json"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    // Rows of before, which are in the trash, have stood in the same folder.
    let lost = said.json()["lost"].clone();
    assert_eq!(
        lost.as_array().and_then(|lost| lost.last()),
        Some(&json!("b")),
        "{lost}"
    );
    assert_eq!(sandbox.query("SELECT count(*) FROM kept")["rows"], json!([[2]]));
    assert_eq!(sandbox.done(0), "b:built");
    assert_eq!(sandbox.tables(), before);

    let other = Sandbox::with(PROJECT);
    other.run(0);
    let kept = sandbox.path().join(KEPT).display().to_string();
    let refused = other.call(&["restore", &kept, "--yes"]);
    assert_ne!(refused.code, Some(0), "{}", refused.stdout);
    assert!(
        refused.stderr.contains("not both of a lake"),
        "{}",
        refused.stderr
    );
}
