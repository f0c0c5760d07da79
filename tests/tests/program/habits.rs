//! Habits of people and editors: ways to save, folders that move, branches that are switched.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::json;

use crate::going::Going;
use crate::sandbox::Sandbox;

fn project() -> Sandbox {
    Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/a.sql", "-- @materialize: true\nSELECT 1 AS n\n"),
        (
            "models/b.sql",
            "-- @materialize: true\nSELECT n + 1 AS n FROM a\n",
        ),
    ])
}

fn a(n: u32) -> String {
    format!("-- @materialize: true\nSELECT {n} AS n\n")
}

/// The uid of a model's output goes with its life: a save must not end one and begin another.
fn runs(project: &Sandbox, name: &str) -> serde_json::Value {
    let status = project.call(&["status", name, "--json"]).json();
    status["resources"][0]["runs_total"].clone()
}

#[test]
fn a_save_by_rename_is_an_edit() {
    let project = project();
    let mut start = Going::settled(&project);
    for n in 2..5 {
        project.write("models/.a.sql.tmp", &a(n));
        project.rename("models/.a.sql.tmp", "models/a.sql");
        assert_eq!(start.done(), "a:built b:built");
    }
    assert_eq!(runs(&project, "a"), json!(4));
}

#[test]
fn a_save_that_keeps_the_old_file_beside_is_an_edit() {
    let project = project();
    let mut start = Going::settled(&project);
    for n in 2..5 {
        // As vim does: a file to see whether it may write here, the old one aside, the new one, the old one gone.
        project.write("models/4913", "");
        project.remove("models/4913");
        project.rename("models/a.sql", "models/a.sql~");
        project.write("models/a.sql", &a(n));
        project.remove("models/a.sql~");
        assert_eq!(start.done(), "a:built b:built");
    }
    assert_eq!(runs(&project, "a"), json!(4));
}

#[test]
fn a_save_that_writes_twice_is_one_edit() {
    let project = project();
    let mut start = Going::settled(&project);
    project.write("models/a.sql", "");
    project.write("models/a.sql", &a(2));
    assert_eq!(start.done(), "a:built b:built");
    assert_eq!(project.query("SELECT n FROM b")["rows"], json!([[3]]));
}

#[test]
fn what_editors_leave_beside_a_file_is_none() {
    let project = project();
    let mut start = Going::settled(&project);
    project.write("models/.a.sql.swp", "SELECT 99");
    project.write("models/#a.sql#", "SELECT 99");
    project.write("models/._a.sql", "\u{0}\u{5}");
    std::os::unix::fs::symlink("user@host.1:2", project.path().join("models/.#a.sql"))
        .expect("a link can be made");
    project.write("models/a.sql", &a(2));
    let round = start.round();
    assert_eq!(
        (round.done().as_str(), round.exit_code()),
        ("a:built b:built", Some(0))
    );
    assert_eq!(round.told("diagnostic"), [""; 0]);
}

#[test]
fn a_folder_that_moves_within_the_project_changes_no_name() {
    let project = project();
    let mut start = Going::settled(&project);
    project.rename("models", "moved");
    assert_eq!(start.round().done(), "");
    project.write("moved/a.sql", &a(2));
    assert_eq!(start.done(), "a:built b:built");
    project.write("moved/deep/c.sql", &a(3));
    assert_eq!(start.done(), "c:built");
}

#[test]
fn a_folder_that_is_moved_away_takes_its_models_with_it_and_brings_them_back() {
    let project = project();
    let away = tempfile::tempdir_in(project.path().parent().expect("it has a folder"))
        .expect("a folder can be made");
    let away = away.path().join("models");
    let mut start = Going::settled(&project);
    project.write("other/c.sql", &a(3));
    start.until_done(&["c:built"]);
    let here = project.path().join("models");
    fs::rename(&here, &away).expect("it can be moved");
    start.until_done(&["a:dropped", "b:dropped"]);
    fs::write(away.join("a.sql"), a(5)).expect("it can be written");
    fs::rename(&away, &here).expect("it can be moved");
    start.until_done(&["a:built", "b:built"]);
    project.write("models/a.sql", &a(6));
    start.until_done(&["a:built", "b:built"]);
    assert_eq!(project.query("SELECT n FROM b")["rows"], json!([[7]]));
}

#[test]
fn a_project_that_is_moved_away_and_back_goes_on() {
    let project = project();
    let mut start = Going::settled(&project);
    let away = project.path().with_file_name("away");
    fs::rename(project.path(), &away).expect("it can be moved");
    assert_eq!(
        start.round().told("diagnostic"),
        ["project-missing watershed.yaml:1"]
    );
    fs::write(away.join("models/a.sql"), a(2)).expect("it can be written");
    fs::rename(&away, project.path()).expect("it can be moved");
    start.until_done(&["a:built", "b:built"]);
    project.write("models/a.sql", &a(3));
    start.until_done(&["a:built", "b:built"]);
}

#[test]
fn a_project_that_is_removed_and_made_again_begins_anew() {
    let project = project();
    let mut start = Going::settled(&project);
    fs::remove_dir_all(project.path()).expect("it can be removed");
    fs::create_dir(project.path()).expect("it can be made");
    project.write("watershed.yaml", "");
    project.write("models/a.sql", &a(5));
    start.until_done(&["a:built"]);
    // The first of the new life; an edit is seen in it as well.
    project.write("models/a.sql", &a(6));
    start.until_done(&["a:built"]);
    assert_eq!(project.query("SELECT n FROM a")["rows"], json!([[6]]));
    start.stop();
    assert_eq!(project.tables(), ["a: {'n': 6}"]);
}

#[test]
fn a_state_folder_that_is_removed_is_made_again() {
    let project = project();
    let mut start = Going::settled(&project);
    project.forget();
    start.until_done(&["a:built", "b:built"]);
    assert_eq!(project.query("SELECT n FROM b")["rows"], json!([[2]]));
    start.stop();
    assert_eq!(project.done(0), "");
}

#[test]
fn a_switch_of_branches_is_one_batch() {
    let project = project();
    let git = |arguments: &[&str]| git(project.path(), arguments);
    git(&["init", "-q", "-b", "main"]);
    for n in 0..60 {
        project.write(
            &format!("models/m{n:02}.sql"),
            &format!("SELECT {n} AS n, (SELECT count(*) FROM a) AS c\n"),
        );
    }
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "one"]);
    git(&["checkout", "-q", "-b", "other"]);
    for n in 0..60 {
        let (old, new) = (format!("models/m{n:02}.sql"), format!("models/n{n:02}.sql"));
        git(&["mv", &old, &new]);
    }
    project.write("models/a.sql", &a(2));
    git(&["rm", "-q", "-f", "models/n00.sql"]);
    git(&["commit", "-q", "-am", "two"]);
    let mut start = Going::settled(&project);
    for (branch, prefix, n, work) in [
        ("main", 'm', 60, "built"),
        ("other", 'n', 59, "restored"),
        ("main", 'm', 60, "restored"),
    ] {
        git(&["checkout", "-q", branch]);
        let round = start.round();
        let done = round.done();
        assert!(done.contains(&format!("a:{work}")), "{done}");
        // What keeps its text keeps its rows under another name; all of it in the one round.
        assert_eq!(done.matches(":renamed").count(), 59, "{done}");
        let models =
            format!("SELECT count(*) FROM information_schema.tables WHERE table_name LIKE '{prefix}__'");
        assert_eq!(project.query(&models)["rows"], json!([[n]]));
    }
    start.stop();
    assert_eq!(project.done(0), "");
}

fn git(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@localhost",
            "-c",
            "commit.gpgsign=false",
        ])
        .args(arguments)
        .current_dir(folder);
    let output = command.output().expect("git can be called");
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The system keeps so many events for who does not take them, and forgets the rest.
#[cfg(target_os = "linux")]
#[test]
fn more_events_than_the_system_keeps_lead_to_a_look_at_everything() {
    let kept = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").expect("it can be read");
    let kept: u32 = kept.trim().parse().expect("it is a number");
    let project = project();
    let mut start = Going::settled(&project);
    start.signal(Signal::STOP);
    for number in 0..kept / 2 {
        project.write(["models/noise", "models/more"][number as usize % 2], "");
    }
    // What is told of these is forgotten.
    project.write("models/a.sql", &a(2));
    project.write("models/late/c.sql", "SELECT n FROM b\n");
    start.signal(Signal::CONT);
    start.until_done(&["a:built", "b:built", "c:built"]);
    project.write("models/late/c.sql", "SELECT n + 1 AS n FROM b\n");
    assert_eq!(start.done(), "c:built", "a folder that nobody told of is watched");
}
