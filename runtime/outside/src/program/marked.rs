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
/// The longest wait for a process that loads another file, in milliseconds.
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
/// While the process loads another file (`execve`), its environment is not there, and what is being read of the one before
/// ends early. Then it is read again.
fn has_entry(pid: Pid, entry: &[u8]) -> bool {
    let mut waited = 0;
    while waited < LOADING_MS {
        let Some(environment) = read(pid, "environ") else {
            return false;
        };
        if environment.split(|byte| *byte == 0).any(|found| found == entry) {
            return true;
        }
        let stat = read(pid, "stat").unwrap_or_default();
        waited += match lacking(&stat, environment.len()) {
            Lacking::All => return false,
            Lacking::Some => 1,
            // Some processes have none, and not everybody waits for each of them.
            Lacking::Perhaps => LOADING_MS / 10,
        };
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

/// Whether an environment that lacks an entry was read whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lacking {
    /// It was, or the process has ended, or is a thread of the kernel.
    All,
    /// It was not.
    Some,
    /// It is empty, or the process is about to write where it ends.
    Perhaps,
}

fn read(pid: Pid, name: &str) -> Option<Vec<u8>> {
    let file = File::open(format!("/proc/{}/{name}", pid.as_raw_pid())).ok()?;
    let mut bytes = Vec::new();
    file.take(ENVIRONMENT_MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Tells from the `stat` of a process whether so many bytes are all of its environment. See `proc_pid_stat(5)`: fields 23
/// (bytes of memory), 50 and 51 (where the environment begins and ends).
fn lacking(stat: &[u8], bytes: usize) -> Lacking {
    let stat = String::from_utf8_lossy(stat);
    // The name, in parentheses, may hold blanks and parentheses of its own; field 3 follows it.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let fields: Vec<_> = fields.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).and_then(|field| field.parse::<u64>().ok());
    let [memory, start, end] = [23, 50, 51].map(|number| field(number).unwrap_or(0));
    let whole = end.saturating_sub(start).min(ENVIRONMENT_MAX);
    match (memory, end) {
        (0, _) => Lacking::All,
        (_, 0) => Lacking::Some,
        _ if whole == 0 => Lacking::Perhaps,
        _ if whole == bytes as u64 => Lacking::All,
        _ => Lacking::Some,
    }
}
