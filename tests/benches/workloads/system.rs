//! Processes as the system tells of them.

use std::collections::BTreeSet;
use std::fs;

/// The parent of a process.
pub(super) fn parent(pid: i32) -> i32 {
    fields(pid)[1].parse().unwrap()
}

/// Milliseconds of processor time that a process has used.
pub(super) fn cpu_ms(pid: i32) -> f64 {
    let fields = fields(pid);
    let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
    // Ticks are hundredths of a second wherever there is a `/proc`.
    (ticks(11) + ticks(12)) * 10.0
}

/// Kibibytes of proportional memory of a process.
pub(super) fn pss_kib(pid: i32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().trim().parse().unwrap()
}

/// The children of a process.
pub(super) fn children(pid: i32) -> BTreeSet<i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// This process.
pub(super) fn own() -> i32 {
    std::process::id().try_into().unwrap()
}

/// The fields of `stat` behind the name: the state first, the parent second.
fn fields(pid: i32) -> Vec<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, rest) = stat.rsplit_once(')').unwrap();
    rest.split_whitespace().map(str::to_owned).collect()
}
