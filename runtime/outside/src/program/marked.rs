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
/// The longest wait for processes that load another file, in milliseconds.
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

#[expect(
    clippy::disallowed_methods,
    reason = "no event tells that a process has loaded its file; a look a millisecond, and the wait is bounded"
)]
fn with_entry(entry: &[u8]) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    let mut left: Vec<Pid> = pids.filter_map(Pid::from_raw).collect();
    let mut found = Vec::new();
    for waited in 0..LOADING_MS {
        left.retain(|pid| match look(*pid, entry) {
            Look::Has => {
                found.push(*pid);
                false
            }
            Look::Lacks => false,
            Look::Part => true,
            // Some processes have none, and nobody waits long for them.
            Look::Nothing => waited < LOADING_MS / 10,
        });
        if left.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    found
}

/// Looks for an entry in a process's environment.
///
/// While the process loads another file (`execve`), its environment is not there, and what is being read of the one before
/// ends early. Then somebody has to look again.
fn look(pid: Pid, entry: &[u8]) -> Look {
    let Some(environment) = read(pid, "environ") else {
        return Look::Lacks;
    };
    match environment.split(|byte| *byte == 0).any(|found| found == entry) {
        true => Look::Has,
        false => lacking(&read(pid, "stat").unwrap_or_default(), environment.len()),
    }
}

/// The result of a look for an entry in a process's environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// The entry is there.
    Has,
    /// The entry is not there, or the process is gone, another user's, or a thread of the kernel.
    Lacks,
    /// A part of the environment was read.
    Part,
    /// The environment is empty, or the process is about to write where the environment ends.
    Nothing,
}

fn read(pid: Pid, name: &str) -> Option<Vec<u8>> {
    let file = File::open(format!("/proc/{}/{name}", pid.as_raw_pid())).ok()?;
    let mut bytes = Vec::new();
    file.take(ENVIRONMENT_MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Compares the length of an environment that lacks the entry with what `stat` says of the process. See `proc_pid_stat(5)`: fields
/// 23 (bytes of memory), 50 and 51 (where the environment begins and ends).
fn lacking(stat: &[u8], bytes: usize) -> Look {
    let stat = String::from_utf8_lossy(stat);
    // The name, in parentheses, may hold blanks and parentheses of its own; field 3 follows it.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let fields: Vec<_> = fields.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).and_then(|field| field.parse::<u64>().ok());
    let [memory, start, end] = [23, 50, 51].map(|number| field(number).unwrap_or(0));
    let whole = end.saturating_sub(start).min(ENVIRONMENT_MAX);
    match (memory, end) {
        (0, _) => Look::Lacks,
        (_, 0) => Look::Part,
        _ if whole == 0 => Look::Nothing,
        _ if whole == bytes as u64 => Look::Lacks,
        _ => Look::Part,
    }
}
