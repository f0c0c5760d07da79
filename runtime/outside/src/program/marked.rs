//! Processes with a program's mark in their environment, including those that left its group and whose parents have
//! ended.
//!
//! Not found are those that emptied or overwrote their environment, and all of them where the system shows no `/proc`.

use std::fs::{self, File};
use std::io::Read;

use rustix::process::{Pid, Signal, getpgid, kill_process, kill_process_group};

/// Name of the environment variable with a program's mark.
pub const MARK_VARIABLE: &str = "WATERSHED_RUN";

/// The most bytes that are read of a process's environment.
const ENVIRONMENT_MAX: u64 = 2 << 20;
/// The most times that processes are listed for one kill: a process forked during one listing is found by the next.
const ROUNDS: usize = 8;

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
    pids.filter(|pid| has_entry(*pid, entry).unwrap_or_default())
        .collect()
}

/// Returns true if a process has an entry in its environment; none if the process is gone or belongs to another user.
fn has_entry(pid: Pid, entry: &[u8]) -> Option<bool> {
    let file = File::open(format!("/proc/{}/environ", pid.as_raw_pid())).ok()?;
    let mut bytes = Vec::new();
    file.take(ENVIRONMENT_MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes.split(|byte| *byte == 0).any(|found| found == entry))
}
