//! Programs that write without end, ignore their end, or leave their group.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use futures::future::join_all;

use crate::callers::{RUNNERS, Runner};

/// Long enough for whatever is to end by itself.
const LONG: Duration = Duration::from_secs(60);
/// A deadline that a program misses, and not while it begins.
const MISSED: Duration = Duration::from_secs(3);

/// Waits until the process whose pid a script wrote into a file is gone, or only its exit status is left.
fn ends(folder: &Path, name: &str) {
    let pid = fs::read_to_string(folder.join(name)).unwrap();
    let stat = format!("/proc/{}/stat", pid.trim());
    let begun = Instant::now();
    while fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z")) {
        assert!(begun.elapsed() < LONG, "{name} lives on");
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn output_without_end_is_not_kept_and_ends_with_its_program() {
    join_all(RUNNERS.map(|runner| async move {
        let folder = tempfile::tempdir().unwrap();
        let script = "echo $$ > pid; exec yes";
        let said = runner.run(folder.path(), script, MISSED).await.unwrap_err();
        let expected = match runner {
            // Nobody reads its output.
            Runner::Notifier => "it took longer than 3 s",
            Runner::Step => "its answer is longer than 262144 bytes",
            Runner::Plain => "its output is longer than 1000 bytes",
        };
        assert_eq!(said, expected);
        ends(folder.path(), "pid");
    }))
    .await;
}

#[tokio::test]
async fn errors_without_end_are_not_kept_and_end_with_their_program() {
    join_all(RUNNERS.map(|runner| async move {
        let folder = tempfile::tempdir().unwrap();
        let script = "echo $$ > pid; exec yes >&2";
        let said = runner.run(folder.path(), script, MISSED).await.unwrap_err();
        assert!(
            said == "it was dropped" || said == "it took longer than 3 s",
            "{runner:?}: {said}"
        );
        ends(folder.path(), "pid");
    }))
    .await;
}

#[tokio::test]
async fn a_child_that_left_its_group_ends_with_a_failed_program() {
    join_all(RUNNERS.map(|runner| async move {
        let folder = tempfile::tempdir().unwrap();
        // Its parent is gone too: nothing but the mark tells whose it was.
        let script = "setsid sh -c 'setsid sleep 1000 >/dev/null 2>&1 & echo $! > gone' & wait $!; exit 3";
        let said = runner.run(folder.path(), script, LONG).await.unwrap_err();
        assert_eq!(said, "exit 3", "{runner:?}");
        ends(folder.path(), "gone");
    }))
    .await;
}

#[tokio::test]
async fn a_program_that_ignores_its_end_is_killed_with_its_children() {
    join_all(RUNNERS.map(|runner| async move {
        let folder = tempfile::tempdir().unwrap();
        let script = "trap '' TERM; sleep 1000 & echo $! > child; echo $$ > pid; wait";
        let said = runner.run(folder.path(), script, MISSED).await.unwrap_err();
        assert!(!said.starts_with("exit"), "{runner:?}: {said}");
        ends(folder.path(), "pid");
        ends(folder.path(), "child");
    }))
    .await;
}
