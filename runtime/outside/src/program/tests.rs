//! Shell programs that write without end, start others, or ignore signals.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::*;

/// Time limit for programs that end by themselves.
const LONG: Duration = Duration::from_secs(60);

/// Creates a shell script in a folder, with a short grace period.
fn script(folder: &Path, text: &str) -> Program {
    let command = ["sh", "-c", text].map(str::to_owned);
    let mut program = Program::new(folder, &command).unwrap();
    program.pass_on();
    program.grace = Duration::from_millis(300);
    program
}

/// Waits until a process has ended.
fn ends(pid: &str) {
    let begun = Instant::now();
    while fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z")) {
        assert!(begun.elapsed() < LONG, "{pid} lives on");
        std::thread::yield_now();
    }
}

fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.strip_suffix('\n')?.to_owned())
}

/// Waits for a line that a script writes to a file.
async fn appears(path: &Path) -> String {
    let begun = Instant::now();
    loop {
        if let Some(text) = read(path) {
            return text;
        }
        assert!(begun.elapsed() < LONG, "{} does not appear", path.display());
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_program_gets_what_its_caller_says_and_a_mark() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = script(folder.path(), "cat; env >&2; exit 3");
    program.variables([("MODE", "first"), ("MODE", "second")]);
    program.input = b"input".to_vec();
    program.output = Keep::First(5);
    program.errors = Keep::Last(100_000);
    let ended = program.run().await.unwrap();
    assert_eq!(
        (ended.output.as_slice(), &*ended.how()),
        (&b"input"[..], "exit 3")
    );
    let environment = String::from_utf8(ended.errors.clone()).unwrap();
    assert!(environment.contains("MODE=second\n"), "{environment}");
    assert!(
        environment.contains(&format!("{MARK_VARIABLE}={}\n", program.mark())),
        "{environment}"
    );
    assert!(!environment.contains("CARGO"), "{environment}");
}

#[tokio::test]
async fn the_last_bytes_are_kept_of_a_stream_and_its_last_line_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = script(folder.path(), "seq 100000 >&2; echo '  why  ' >&2; echo >&2");
    program.errors = Keep::Last(64);
    let ended = program.run().await.unwrap();
    assert_eq!(
        (ended.errors.len(), ended.last_line().as_deref()),
        (64, Some("why"))
    );
}

#[tokio::test]
async fn output_without_end_ends_the_program_also_one_that_does_not_listen() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = script(
        folder.path(),
        "trap '' TERM PIPE; echo $$ > pid; while :; do echo y; done",
    );
    program.output = Keep::First(1000);
    let error = program.run().await.unwrap_err();
    assert!(matches!(error, RunError::TooMuch(1000)), "{error}");
    ends(&read(&folder.path().join("pid")).unwrap());
}

#[tokio::test]
async fn a_program_that_is_ended_may_tidy_up_before() {
    let folder = tempfile::tempdir().unwrap();
    let text = "trap 'echo tidied > tidied; exit' TERM; echo $$ > pid; echo too much; sleep 1000 & wait";
    let mut program = script(folder.path(), text);
    program.output = Keep::First(0);
    program.grace = LONG;
    program.run().await.unwrap_err();
    assert_eq!(read(&folder.path().join("tidied")).as_deref(), Some("tidied"));
    ends(&read(&folder.path().join("pid")).unwrap());
}

#[tokio::test]
async fn a_program_that_takes_too_long_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = script(folder.path(), "sleep 1000");
    program.within = Some(Duration::from_millis(50));
    let error = program.run().await.unwrap_err();
    assert!(matches!(error, RunError::TooLong(_)), "{error}");
}

#[tokio::test]
async fn whatever_ignores_its_end_or_left_the_group_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let text = "trap '' TERM; echo $$ > leader; \
                sh -c 'echo $$ > child; sleep 1000' & \
                setsid sh -c 'setsid sleep 1000 & echo $! > gone' & wait $!; \
                until [ -s child ]; do :; done; echo too much; wait";
    let mut program = script(folder.path(), text);
    program.output = Keep::First(0);
    let error = program.run().await.unwrap_err();
    assert!(matches!(error, RunError::TooMuch(0)), "{error}");
    for name in ["leader", "child", "gone"] {
        ends(&read(&folder.path().join(name)).unwrap());
    }
}

#[tokio::test]
async fn of_a_dropped_run_nothing_survives() {
    let folder = tempfile::tempdir().unwrap();
    let program = script(
        folder.path(),
        "trap '' TERM; setsid sleep 1000 & echo $! > child; echo $$ > leader; wait",
    );
    let leader = tokio::select! {
        _ = program.run() => panic!("it does not end by itself"),
        leader = appears_in(folder.path(), "leader") => leader,
    };
    ends(&leader);
    ends(&read(&folder.path().join("child")).unwrap());
}

#[tokio::test]
async fn what_is_left_running_ends_unless_it_is_released_and_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = script(folder.path(), "rm -f child; sleep 1000 & echo $! > child");
    // The child keeps standard output open.
    program.output = Keep::First(1000);
    drop(program.run().await.unwrap());
    ends(&read(&folder.path().join("child")).unwrap());
    program.run().await.unwrap().release();
    let child = read(&folder.path().join("child")).unwrap();
    assert!(Path::new("/proc").join(&child).exists());
    assert!(end_marked(program.mark()));
    ends(&child);
    assert!(!end_marked("no such mark"));
}

#[tokio::test]
async fn a_child_that_loads_another_file_just_then_ends_too() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("again"), "exec sh ./again").unwrap();
    let program = script(folder.path(), "setsid sh ./again & echo $! > child");
    for _ in 0..100 {
        drop(program.run().await.unwrap());
        ends(&read(&folder.path().join("child")).unwrap());
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_is_not_worth_another_attempt() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Program::new(folder.path(), &[]).is_none());
    for name in ["./missing", "no-such-program-anywhere"] {
        let program = Program::new(folder.path(), &[name.to_owned()]).unwrap();
        let error = program.run().await.unwrap_err();
        assert!(error.is_permanent(), "{name}: {error}");
    }
}

async fn appears_in(folder: &Path, name: &str) -> String {
    appears(&folder.join(name)).await
}
