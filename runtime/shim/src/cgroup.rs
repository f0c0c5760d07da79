//! Control groups that limit memory, where the system delegates them to this user.
//!
//! A group of ours is made below the shim's own or below the one above it, if that is marked as delegated (systemd's
//! `Delegate=yes`, with `DelegateSubgroup=` so that it holds no process itself). Elsewhere there is none: the caller
//! falls back to a limit of the data of each process.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::start_id::StartId;

/// The folder of control groups in which this shim may create groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Delegated {
    parent: PathBuf,
    instance: String,
}

impl Delegated {
    /// Finds the delegated folder; none if no group in it could limit memory.
    pub(crate) fn find(instance: &str) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let own = mount_point(&mounts)?.join(own);
        Some(Self {
            parent: parent_of_groups(&own)?.to_owned(),
            instance: instance.to_owned(),
        })
    }

    /// Creates the control group of a start with a memory limit in bytes.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn make(&self, id: &StartId, bytes: u64) -> io::Result<()> {
        let group = self.group(id);
        match fs::create_dir(&group) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        fs::write(group.join("memory.max"), bytes.to_string())?;
        // Without swap, where the kernel knows it: a limit that swaps is none.
        let _ = fs::write(group.join("memory.swap.max"), "0");
        Ok(())
    }

    /// Moves a process into the control group of its start.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn enter(&self, id: &StartId, pid: u32) -> io::Result<()> {
        fs::write(self.group(id).join("cgroup.procs"), pid.to_string())
    }

    /// Kills all processes in the control group of a start, tagged or not.
    pub(crate) fn kill(&self, id: &StartId) {
        let _ = fs::write(self.group(id).join("cgroup.kill"), "1");
    }

    /// Returns true if the kernel killed a process of the start at its memory limit.
    pub(crate) fn was_out_of_memory(&self, id: &StartId) -> bool {
        let events = fs::read_to_string(self.group(id).join("memory.events"));
        events.is_ok_and(|events| oom_kills(&events) > 0)
    }

    /// Removes the control group of a start. Returns false while processes remain in it.
    pub(crate) fn remove(&self, id: &StartId) -> bool {
        match fs::remove_dir(self.group(id)) {
            Err(error) => error.kind() == io::ErrorKind::NotFound,
            Ok(()) => true,
        }
    }

    /// Lists the starts that have a control group.
    pub(crate) fn list(&self) -> Vec<StartId> {
        let prefix = format!("watershed-{}-", self.instance);
        let entries = fs::read_dir(&self.parent).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let ids = names.filter_map(|name| name.strip_prefix(&prefix)?.parse().ok());
        ids.collect()
    }

    fn group(&self, id: &StartId) -> PathBuf {
        self.parent.join(format!("watershed-{}-{id}", self.instance))
    }
}

/// Returns the group in which new groups may be created: the shim's own, or its parent if that is delegated.
fn parent_of_groups(own: &Path) -> Option<&Path> {
    let above = own.parent().filter(|above| is_marked(above));
    let mut candidates = [Some(own), above].into_iter().flatten();
    candidates.find(|folder| limits_memory(folder))
}

/// Returns the mount point of the unified cgroup hierarchy.
fn mount_point(mounts: &str) -> Option<PathBuf> {
    let lines = mounts.lines().filter_map(|line| line.split_once(" - "));
    let unified = lines.filter(|(_, of_type)| of_type.starts_with("cgroup2 "));
    let points = unified.filter_map(|(place, _)| place.split(' ').nth(4));
    points.map(PathBuf::from).next()
}

/// Returns true if a group's manager has marked it as delegated.
fn is_marked(folder: &Path) -> bool {
    let mut value = [0_u8; 8];
    ["user.delegate", "trusted.delegate"].iter().any(|name| {
        let read = rustix::fs::getxattr(folder, *name, &mut value[..]);
        read.is_ok_and(|length| value.get(..length) == Some(&b"1"[..]))
    })
}

/// Returns true if groups inside this one can limit memory, after enabling the controller if permitted.
fn limits_memory(folder: &Path) -> bool {
    let has = |file: &str| {
        let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
        text.split_ascii_whitespace().any(|word| word == "memory")
    };
    if !has("cgroup.controllers") {
        return false;
    }
    if !has("cgroup.subtree_control") {
        // Refused by the kernel for a group that holds processes.
        let _ = fs::write(folder.join("cgroup.subtree_control"), "+memory");
    }
    has("cgroup.subtree_control")
}

fn oom_kills(events: &str) -> u64 {
    let counts = events.lines().filter_map(|line| line.strip_prefix("oom_kill "));
    counts.filter_map(|count| count.trim().parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchy_and_its_counts_are_read_as_the_kernel_writes_them() {
        let mounts = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - tmpfs tmpfs rw\n\
                      41 30 0:27 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
        assert_eq!(mount_point(mounts), Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(oom_kills("low 0\noom 3\noom_kill 2\noom_group_kill 0\n"), 2);
    }

    /// Covers W17: only delegated groups are used.
    #[test]
    fn groups_are_made_where_the_system_delegates_memory_and_nowhere_else() {
        use rustix::fs::{XattrFlags, setxattr};
        let folder = tempfile::tempdir().unwrap();
        let (unit, own) = (folder.path().join("unit"), folder.path().join("unit/main"));
        fs::create_dir_all(&own).unwrap();
        for (folder, controllers, below) in [(&unit, "cpu memory", "memory"), (&own, "cpu memory", "")] {
            fs::write(folder.join("cgroup.controllers"), controllers).unwrap();
            fs::write(folder.join("cgroup.subtree_control"), below).unwrap();
        }
        assert_eq!(parent_of_groups(&own), None, "another manager's");
        if setxattr(&unit, "user.delegate", b"1", XattrFlags::empty()).is_ok() {
            assert_eq!(parent_of_groups(&own), Some(unit.as_path()));
            fs::write(unit.join("cgroup.controllers"), "cpu").unwrap();
            assert_eq!(parent_of_groups(&own), None, "it has no memory to give");
        }
        fs::write(own.join("cgroup.subtree_control"), "memory").unwrap();
        assert_eq!(parent_of_groups(&own), Some(own.as_path()));
    }

    /// Covers W14: a delete leaves no group behind.
    #[test]
    fn groups_are_named_by_instance_and_start_and_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let groups = |instance: &str| Delegated {
            parent: folder.path().to_owned(),
            instance: instance.to_owned(),
        };
        let id = StartId::new("u-1", 4).unwrap();
        groups("a").make(&id, 4096).unwrap();
        assert_eq!(groups("a").list(), std::slice::from_ref(&id));
        assert!(groups("b").list().is_empty());
        let limit = folder.path().join("watershed-a-u-1:4/memory.max");
        assert_eq!(fs::read_to_string(limit).unwrap(), "4096");
        assert!(groups("b").remove(&id));
        assert!(!groups("a").remove(&id), "something is in it still");
    }
}
