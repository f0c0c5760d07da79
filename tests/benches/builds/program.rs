//! The program as a person calls it: whole processes, from their start to their end.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use watershed_tests::measure::time;
use watershed_tests::server::extensions;

/// Returns the command of the program in a project.
pub(crate) fn command(project: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_watershed-under-test"));
    command
        .args(arguments)
        .current_dir(project)
        .env("NO_COLOR", "1")
        .env("WATERSHED_EXTENSIONS", extensions());
    command
}

/// Moves the state of a project out of the way. Nothing is removed: the system finds room for new files more slowly
/// where thousands went a moment ago.
pub(crate) fn set_state_aside(project: &Path) {
    let state = project.join(".watershed");
    if state.exists() {
        let aside = tempfile::tempdir_in(project.parent().expect("a folder")).expect("a folder");
        fs::rename(state, aside.keep().join("state")).expect("it can be moved");
    }
}

/// Calls it. Panics if it fails.
pub(crate) fn call(project: &Path, arguments: &[&str]) -> Duration {
    let (took, output) = time(|| command(project, arguments).output().expect("it starts"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    took
}

/// Runs the project, and returns the number of tables that were built: a view is made again without reading rows.
pub(crate) fn run(project: &Path) -> (Duration, usize) {
    let (took, output) = time(|| command(project, &["run", "--json"]).output().expect("it starts"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
    let resources = document["resources"].as_array().expect("a list");
    let built = resources
        .iter()
        .filter(|resource| resource["work"] == "built" && resource["result"]["type"] == "table")
        .count();
    (took, built)
}

/// The most memory of a process until it ends, in megabytes.
pub(crate) fn peak_mb(mut command: Command) -> f64 {
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let file = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        let status = fs::read_to_string(&file).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
        peak = peak.max(kilobytes.unwrap_or_default());
        if let Some(ended) = child.try_wait().expect("a child") {
            assert!(ended.success(), "it ends well");
            return peak as f64 / 1024.0;
        }
        #[allow(clippy::disallowed_methods, reason = "the system tells nobody of a peak")]
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A process that keeps the project, until it is dropped.
pub(crate) struct Started(Child);

impl Started {
    /// Starts it and waits until everything is settled.
    pub(crate) fn new(project: &Path) -> Self {
        let mut command = command(project, &["start", "--format", "jsonl"]);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        lines.next();
        // It writes on; nobody reads it, and it must not wait.
        std::thread::spawn(move || lines.for_each(drop));
        call(project, &["run"]);
        Self(child)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
