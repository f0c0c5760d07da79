//! The processes that a project runs beside its data, as the system lists them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::sandbox::Sandbox;

/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// One process of a job or service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    /// Its pid.
    pub(crate) pid: i32,
    /// The uid of its replica or job.
    pub(crate) uid: String,
    /// The number of its start.
    pub(crate) counter: u64,
    /// Its environment.
    pub(crate) environment: BTreeMap<String, String>,
}

/// The processes that a project runs, but for its own and the parent: those with a tag that work below its folder.
pub(crate) fn programs(project: &Sandbox) -> Vec<Program> {
    let folder = project.path().canonicalize().expect("the folder is there");
    let read = |pid: i32| {
        let text = fs::read(format!("/proc/{pid}/environ")).ok()?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let environment: BTreeMap<String, String> = text
            .split('\0')
            .filter_map(|entry| entry.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let (uid, counter) = start_of(environment.get("WATERSHED_PROCESS")?)?;
        let cwd = fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
        (cwd.starts_with(&folder) && is_alive(pid)).then_some(Program {
            pid,
            uid,
            counter,
            environment,
        })
    };
    all().into_iter().filter_map(read).collect()
}

/// The pids of those processes.
pub(crate) fn pids(project: &Sandbox) -> BTreeSet<i32> {
    programs(project).into_iter().map(|one| one.pid).collect()
}

/// The uid and the number in a tag.
pub(crate) fn start_of(tag: &str) -> Option<(String, u64)> {
    let (uid, counter) = tag.split('/').nth(1)?.split_once(':')?;
    Some((uid.to_owned(), counter.parse().ok()?))
}

/// The pids of the parent of a project's processes: none, one, or two for a moment.
pub(crate) fn shims(project: &Sandbox) -> Vec<i32> {
    let folder = project.path().canonicalize().expect("the folder is there");
    let is_ours = |pid: &i32| {
        let text = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let arguments: Vec<&[u8]> = text.split(|byte| *byte == 0).collect();
        let folder = folder.as_os_str().as_encoded_bytes();
        arguments.get(1) == Some(&&b"shim"[..])
            && arguments.get(2).is_some_and(|path| path.starts_with(folder))
    };
    all()
        .into_iter()
        .filter(is_ours)
        .filter(|pid| is_alive(*pid))
        .collect()
}

fn all() -> Vec<i32> {
    let listed = fs::read_dir("/proc").expect("processes are listed").flatten();
    listed
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Returns true if a process is there and has not ended.
pub(crate) fn is_alive(pid: i32) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    state
        .rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Kills a process. One that has ended meanwhile is left alone.
pub(crate) fn kill(pid: i32) {
    let pid = Pid::from_raw(pid).expect("a pid");
    let _ = kill_process(pid, Signal::KILL);
}

/// Waits until something holds that no event tells: processes of others come and go by themselves.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LONG, "waited in vain: {what}");
        pause(Duration::from_millis(20));
    }
}

/// Lets time pass.
#[expect(
    clippy::disallowed_methods,
    reason = "what is waited for is outside of the program, or the moment itself is what is tested"
)]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}
