//! The supervisor from outside: what ends is started again, what runs is found again, and nothing is left at the end.

#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

struct Supervisor {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Supervisor {
    fn start(folder: &Path, commands: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_supervisor"))
            .arg(folder)
            .args(commands)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let lines = BufReader::new(process.stdout.take().expect("it is piped")).lines();
        Self { process, lines }
    }

    /// Waits for a line that begins so, and returns the rest of it.
    fn until(&mut self, begin: &str) -> String {
        loop {
            let line = self.lines.next().expect("it goes on").expect("text");
            if let Some(rest) = line.strip_prefix(begin) {
                return rest.trim().to_owned();
            }
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn is_alive(pid: &str) -> bool {
    Path::new("/proc").join(pid).join("exe").exists()
}

#[test]
fn commands_are_kept_running_found_again_and_stopped() {
    let folder = tempfile::tempdir().expect("a folder");
    let commands = ["sleep 100000", "sleep 1; exit 3"];
    let mut supervisor = Supervisor::start(folder.path(), &commands);
    let pid = supervisor.until("sleep 100000: running");
    supervisor.until("sleep 1; exit 3: backing_off");
    drop(supervisor);
    assert!(is_alive(&pid), "it outlives a supervisor that is killed");

    let mut supervisor = Supervisor::start(folder.path(), &commands);
    assert_eq!(supervisor.until("sleep 100000: running"), pid);
    let interrupted = Command::new("kill")
        .args(["-INT", &supervisor.process.id().to_string()])
        .status();
    assert!(interrupted.expect("there is a program `kill`").success());
    assert!(supervisor.process.wait().expect("it ends").success());
    assert!(!is_alive(&pid), "nothing is left");
}
