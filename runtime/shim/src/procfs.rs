//! Information about processes from `/proc`.

use std::fs::{self, File};
use std::io::{self, Read};

use rustix::process::Pid;

use crate::mark::Mark;
use crate::tag::Tag;

/// The most bytes of an environment that are read; starts have smaller ones (see `protocol::frame::MAX_FRAME`).
const MAX_ENVIRONMENT: u64 = 2 << 20;

/// Returns the identity of this boot and pid namespace: a restarted container has a new one, since its processes are
/// gone although the machine runs on.
///
/// # Errors
/// When `/proc` can't be read.
pub(crate) fn boot_id() -> io::Result<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let pids = fs::read_link("/proc/self/ns/pid")?;
    Ok(format!("{}/{}", boot.trim(), pids.display()))
}

/// Returns a new unique identity.
///
/// # Errors
/// When `/proc` can't be read.
pub(crate) fn fresh_id() -> io::Result<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    Ok(text.trim().to_owned())
}

/// The used fields of a process's `stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    /// True in state `Z` or `X`: the process has ended, and only its exit status remains.
    pub(crate) has_ended: bool,
    /// Id of the process group.
    pub(crate) group: u32,
    /// Clock ticks between boot and the start of the process; with pid and boot, the identity of the process.
    pub(crate) start_time: u64,
}

/// Returns the stat of a process; `None` if there is no such process.
pub(crate) fn stat(pid: Pid) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    parse_stat(&text)
}

fn parse_stat(text: &str) -> Option<Stat> {
    // The name, in parentheses, may hold blanks and parentheses of its own.
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let has_ended = matches!(fields.next()?, "Z" | "X");
    Some(Stat {
        has_ended,
        group: fields.nth(1)?.parse().ok()?,
        start_time: fields.nth(16)?.parse().ok()?,
    })
}

/// Returns the tag of a process; `None` if it has none, is gone, or belongs to another user.
pub(crate) fn tag(pid: Pid) -> Option<Tag> {
    let file = File::open(format!("/proc/{}/environ", pid.as_raw_pid())).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_ENVIRONMENT).read_to_end(&mut bytes).ok()?;
    Tag::in_environment(&bytes)
}

/// Returns the soft limit of file locks of a process; `None` if it has none, or is gone.
pub(crate) fn locks(pid: Pid) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{}/limits", pid.as_raw_pid())).ok()?;
    parse_locks(&text)
}

fn parse_locks(limits: &str) -> Option<u64> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max file locks"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// Evidence that a process belongs to a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Belonging {
    /// The tag in its environment.
    Tag(Tag),
    /// The mark in its resource limit, without a tag.
    Mark(Mark),
}

/// Returns the evidence that a process belongs to a start of an instance; none if the process shows no evidence, is
/// gone or is another user's.
pub(crate) fn belonging(pid: Pid, instance: &str) -> Option<Belonging> {
    if let Some(tag) = tag(pid).filter(|tag| tag.instance == instance) {
        return Some(Belonging::Tag(tag));
    }
    Mark::read(locks(pid)?, instance).map(Belonging::Mark)
}

/// Lists all processes that belong to starts of an instance.
///
/// # Errors
/// When `/proc` can't be listed.
pub(crate) fn belonging_to(instance: &str) -> io::Result<Vec<(Pid, Belonging)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let pid = name.to_str().and_then(|name| name.parse().ok());
        let Some(pid) = pid.and_then(Pid::from_raw) else {
            continue;
        };
        found.extend(belonging(pid, instance).map(|belonging| (pid, belonging)));
    }
    Ok(found)
}

/// Lists the children of this process, which has one thread; `None` if the kernel does not provide the list.
pub(crate) fn children() -> Option<Vec<Pid>> {
    let text = fs::read_to_string("/proc/thread-self/children").ok()?;
    let pids = text.split_ascii_whitespace();
    Some(pids.filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_locks_is_read_among_others() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max address space         unlimited            unlimited            bytes     \n\
                      Max file locks            12345                unlimited            locks     \n\
                      Max pending signals       31                   31                   signals   \n";
        assert_eq!(parse_locks(limits), Some(12_345));
        assert_eq!(parse_locks(&limits.replace("12345", "unlimited")), None);
        assert_eq!(parse_locks(""), None);
    }

    #[test]
    fn a_stat_is_read_past_a_name_with_blanks_and_parentheses() {
        let text = "42 (a) b (c) S 1 40 40 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 777 1 2 3";
        let expected = Stat {
            has_ended: false,
            group: 40,
            start_time: 777,
        };
        assert_eq!(parse_stat(text), Some(expected));
        assert_eq!(parse_stat("42 (a"), None);
        assert!(stat(rustix::process::getpid()).is_some_and(|stat| !stat.has_ended));
    }
}
