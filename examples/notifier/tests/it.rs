//! The example from outside: each message once, in order, whatever was there before.

use std::fs;
use std::path::Path;
use std::process::Command;

fn run(folder: &Path, titles: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_notifier"));
    let status = command
        .arg(folder)
        .args(titles)
        .status()
        .expect("it can be started");
    assert!(status.success());
}

fn told(folder: &Path) -> Vec<String> {
    let text = fs::read_to_string(folder.join("told")).unwrap_or_default();
    let title = |line: &str| line.split_once(' ').map(|(_, title)| title.to_owned());
    text.lines().filter_map(title).collect()
}

#[test]
fn each_message_is_written_once_and_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    run(folder.path(), &["first", "second"]);
    assert_eq!(told(folder.path()), ["first", "second"]);
    run(folder.path(), &["first", "second", "third"]);
    assert_eq!(told(folder.path()), ["first", "second", "third"]);
}

#[test]
fn what_could_not_be_handed_over_waits_for_another_try() {
    let folder = tempfile::tempdir().expect("a folder");
    // A folder stands where the lines are to go.
    fs::create_dir(folder.path().join("told")).expect("a folder");
    run(folder.path(), &["later"]);
    fs::remove_dir(folder.path().join("told")).expect("it is empty");
    assert!(told(folder.path()).is_empty());
    assert!(folder.path().join("catalog.sqlite").is_file(), "it is stored");
}
