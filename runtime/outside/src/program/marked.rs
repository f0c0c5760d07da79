//! Processes with a program's mark in their environment, including those that left its group and whose parents have
//! ended.
//!
//! Not found are those that emptied or overwrote their environment, and all of them where the system shows no `/proc`.

use std::fs::{self, File};
use std::io::Read;
use std::time::Duration;

use rustix::process::{Pid, Signal, getpgid, kill_process, kill_process_group};

/// Name of the environment variable with a program's mark.
pub const MARK_VARIABLE: &str = "WATERSHED_RUN";

/// The most bytes that are read of a process's environment.
const ENVIRONMENT_MAX: u64 = 2 << 20;
/// The most times that processes are listed for one kill: a process forked during one listing is found by the next.
const ROUNDS: usize = 8;
/// The longest wait, in milliseconds, for a process that loads another file.
const LOADING_MS: usize = 100;

/// Kills a program with this mark and all its descendants. Returns true if there was any.
pub fn end_marked(mark: &str) -> bool {
    signal(mark, Signal::KILL)
}

/// Sends a signal to all processes with a mark and to the groups that they lead. Returns true if there was any.
pub(super) fn signal(mark: &str, signal: Signal) -> bool {
    // One that was killed has no environment any more.
    let rounds = if signal == Signal::KILL { ROUNDS } else { 1 };
    let entry = format!("{MARK_VARIABLE}={mark}");
    for round in 0..rounds {
        let found = with_entry(entry.as_bytes());
        if found.is_empty() {
            return round > 0;
        }
        for pid in found {
            // It may have ended by itself meanwhile.
            let _ = match getpgid(Some(pid)) {
                Ok(group) if group == pid => kill_process_group(pid, signal),
                _ => kill_process(pid, signal),
            };
        }
    }
    true
}

fn with_entry(entry: &[u8]) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    let pids = pids.filter_map(Pid::from_raw);
    pids.filter(|pid| has_entry(*pid, entry)).collect()
}

/// Returns true if a process has an entry in its environment; false if the process is gone or belongs to another user.
///
/// The environment of a process is not there while it loads another file (`execve`), so it is read again then.
fn has_entry(pid: Pid, entry: &[u8]) -> bool {
    for _ in 0..LOADING_MS {
        let Some(environment) = read(pid, "environ") else {
            return false;
        };
        if !environment.is_empty() {
            return environment.split(|byte| *byte == 0).any(|found| found == entry);
        }
        if !read(pid, "stat").is_some_and(|stat| is_loading(&stat)) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

fn read(pid: Pid, name: &str) -> Option<Vec<u8>> {
    let file = File::open(format!("/proc/{}/{name}", pid.as_raw_pid())).ok()?;
    let mut bytes = Vec::new();
    file.take(ENVIRONMENT_MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Returns true for a process that was read as one without an environment and is not: its environment has no place
/// yet, or got one since. Those that have ended and threads of the kernel have no memory. See `proc_pid_stat(5)`:
/// fields 23, 50 and 51.
fn is_loading(stat: &[u8]) -> bool {
    let stat = String::from_utf8_lossy(stat);
    // The name, in parentheses, may hold blanks and parentheses of its own; field 3 follows it.
    let Some((_, fields)) = stat.rsplit_once(')') else {
        return false;
    };
    let fields: Vec<_> = fields.split_ascii_whitespace().collect();
    let [memory_bytes, start, end] = [23, 50, 51].map(|field| fields.get(field - 3).copied());
    memory_bytes != Some("0") && (end == Some("0") || start != end)
}
