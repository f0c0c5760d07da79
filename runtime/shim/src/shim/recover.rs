//! Recovery at the start of a shim: processes and records of an earlier one.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::sweep::LOOKS;
use super::{JOURNAL_RETRY_MS, Shim};
use crate::clock;
use crate::journal::{Life, Record};
use crate::procfs::{self, Belonging, Stat};
use crate::protocol::{End, MemoryGuard};
use crate::start_id::StartId;

/// The most looks for the process of an intended start that was not found. If its shim was killed between fork and
/// exec, the process gets its tag only at exec. It is killed then, since its start was reported as ended.
const LATE_LOOKS: u32 = 50;

/// A process with a tag.
#[derive(Clone, Copy)]
struct TaggedProcess {
    pid: Pid,
    stat: Stat,
}

impl Shim {
    /// Adopts living processes, records the end of others, and continues unfinished stops.
    ///
    /// # Errors
    /// When `/proc` can't be read, or processes can't be watched.
    pub(super) fn recover(&mut self) -> io::Result<()> {
        let boot = procfs::boot_id()?;
        if self.table.boot != boot {
            let at_ms = clock::unix_ms();
            self.record(Record::Boot { boot, at_ms });
        }
        let mut tagged: BTreeMap<StartId, Vec<TaggedProcess>> = BTreeMap::new();
        let mut marked = BTreeSet::new();
        for (pid, belonging) in procfs::belonging_to(&self.table.instance)? {
            let tag = match belonging {
                Belonging::Tag(tag) => tag,
                Belonging::Mark(mark) => {
                    marked.insert(mark);
                    continue;
                }
            };
            if let Some(stat) = procfs::stat(pid).filter(|stat| !stat.has_ended) {
                tagged
                    .entry(tag.id)
                    .or_default()
                    .push(TaggedProcess { pid, stat });
            }
        }
        let living: Vec<StartId> = self
            .table
            .iter()
            .filter(|(_, entry)| entry.lives())
            .map(|(id, _)| id.clone())
            .collect();
        for id in living {
            self.recover_one(&id, tagged.get(&id).map(Vec::as_slice).unwrap_or_default())?;
        }
        if self.journal.sync().is_err() {
            // What was found can be found again.
            self.journal_retry = Some(clock::since_boot_ms() + JOURNAL_RETRY_MS);
        }
        self.store_exits();
        self.forget_stopped(self.table.iter().map(|(id, _)| id.clone()).collect());
        self.recover_stray(tagged.into_keys().collect());
        if !marked.is_subset(&self.living_marks()) {
            // Whose they were is not known, and need not be: any look finds them.
            self.log.line("something without a tag was left: it is killed");
            if let Ok(unknown) = StartId::new("unknown", 0) {
                self.sweep_for(unknown, LOOKS);
            }
        }
        self.recover_lifetime();
        if self.table.epoch_is_over && self.table.living() > 0 {
            let reason = crate::protocol::StopReason::LeaseExpired;
            self.stop_all(reason, rustix::process::Signal::KILL, 0);
        }
        Ok(())
    }

    fn recover_one(&mut self, id: &StartId, tagged: &[TaggedProcess]) -> io::Result<()> {
        let Some(entry) = self.table.get(id) else {
            return Ok(());
        };
        let has_stop = entry.stop.is_some();
        let looks = if matches!(entry.life, Life::Starting) {
            LATE_LOOKS
        } else {
            1
        };
        let output = entry.output.clone();
        let found = match entry.life {
            Life::Running { pid, start_time } => {
                let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
                pid.and_then(|pid| watched(pid, start_time))
            }
            // The leader of its group, and the first of those.
            _ => {
                let is_leader =
                    |found: &&TaggedProcess| found.stat.group == found.pid.as_raw_pid().unsigned_abs();
                let first = tagged
                    .iter()
                    .filter(is_leader)
                    .min_by_key(|found| found.stat.start_time);
                let watched = first.and_then(|found| watched(found.pid, found.stat.start_time));
                if let (Some(found), Some(_)) = (first, &watched) {
                    let has_group = self
                        .groups
                        .as_ref()
                        .is_some_and(|groups| groups.list().contains(id));
                    self.record(Record::Started {
                        id: id.clone(),
                        pid: found.pid.as_raw_pid().unsigned_abs(),
                        start_time: found.stat.start_time,
                        memory: if has_group {
                            MemoryGuard::Cgroup
                        } else {
                            MemoryGuard::None
                        },
                    });
                }
                watched
            }
        };
        let Some(pidfd) = found else {
            self.saw(id.clone(), End::Unknown, None);
            self.sweep_for(id.clone(), looks);
            return Ok(());
        };
        let token = self.poll.add(&pidfd)?;
        self.pidfds.insert(token, id.clone());
        self.adopted.insert(id.clone(), pidfd);
        if let Some(output) = output {
            let now = clock::since_boot_ms();
            self.outputs.add(id, &output, self.poll.inotify(), now);
        }
        if has_stop {
            // Nobody knows whether it was sent.
            self.signal_stop(id);
        }
        Ok(())
    }

    /// Kills processes of starts that have ended, and removes their control groups.
    fn recover_stray(&mut self, tagged: BTreeSet<StartId>) {
        let groups = self
            .groups
            .as_ref()
            .map(|groups| groups.list())
            .unwrap_or_default();
        for id in tagged.into_iter().chain(groups) {
            if self.table.get(&id).is_none_or(|entry| !entry.lives()) && !self.sweeps.contains_key(&id) {
                self.log
                    .line(&format!("something of {id} was left: it is killed"));
                if let Some(groups) = &self.groups {
                    groups.kill(&id);
                }
                self.sweep_for(id, LOOKS);
            }
        }
    }
}

/// Returns a descriptor of a process if its start time matches.
fn watched(pid: Pid, start_time: u64) -> Option<std::os::fd::OwnedFd> {
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let stat = procfs::stat(pid)?;
    (stat.start_time == start_time && !stat.has_ended).then_some(pidfd)
}
