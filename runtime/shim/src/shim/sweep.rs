//! The sweep of what ended starts have left: found by tag, by mark, or as children of the shim, and killed.

use std::collections::BTreeSet;

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, pidfd_open, pidfd_send_signal,
    waitid, waitpid,
};

use super::Shim;
use crate::clock;
use crate::journal::Life;
use crate::mark::Mark;
use crate::procfs::{self, Belonging};
use crate::start_id::StartId;

/// The time between two looks for what an ended start has left.
const SWEEP_EVERY_MS: u64 = 20;

/// Listing all processes takes milliseconds where there are many. It gets at most one part in so many of the time, and
/// serves all who wait for it.
const SWEEP_SHARE: u64 = 10;

/// Looks that are made even if nothing is found: a process shows no environment for a moment while it begins another
/// program.
pub(super) const LOOKS: u32 = 2;

/// Looks without end would hide a process that forks faster than it is killed; after these it is reported.
const MAX_SWEEPS: u32 = 200;

/// The search for what an ended start has left.
#[derive(Debug)]
pub(super) struct Sweep {
    due: u64,
    looks: u32,
    /// Looks that are made even if nothing is found.
    at_least: u32,
}

impl Sweep {
    pub(super) fn due(&self) -> u64 {
        self.due
    }
}

/// The processes that a look has killed.
#[derive(Debug, Default)]
struct Killed {
    /// The starts that they carried the tag of.
    of: BTreeSet<StartId>,
    /// True if there were others, which any of the ended starts may have left.
    others: bool,
}

impl Shim {
    /// Begins to look for what a start has left.
    pub(super) fn sweep_for(&mut self, id: StartId, at_least: u32) {
        let sweep = Sweep {
            due: clock::since_boot_ms(),
            looks: 0,
            at_least,
        };
        self.sweeps.insert(id, sweep);
    }

    /// Looks for what ended starts have left, if it is time, and kills that.
    pub(super) fn sweep(&mut self, now: u64) {
        if now < self.sweeps_from || !self.sweeps.values().any(|sweep| now >= sweep.due) {
            return;
        }
        let killed = self.kill_left();
        let took = clock::since_boot_ms().saturating_sub(now);
        self.sweeps_from = now + took * SWEEP_SHARE;
        self.reap_orphans();
        let mut given_up = Vec::new();
        let groups = self.groups.as_ref();
        self.sweeps.retain(|id, sweep| {
            if now < sweep.due {
                return true;
            }
            sweep.looks += 1;
            let group_left = groups.is_some_and(|groups| !groups.remove(id));
            let was_dirty = killed.others || killed.of.contains(id);
            let goes_on = sweep.looks < sweep.at_least || was_dirty || group_left;
            if sweep.looks >= MAX_SWEEPS && goes_on {
                given_up.push(id.clone());
                return false;
            }
            sweep.due = now + SWEEP_EVERY_MS;
            goes_on
        });
        for id in given_up {
            self.log
                .line(&format!("what {id} has left can't be killed: it goes on"));
        }
    }

    /// Kills the processes of starts that don't live, as far as each can be told.
    fn kill_left(&mut self) -> Killed {
        let found = match procfs::belonging_to(&self.table.instance) {
            Ok(found) => found,
            Err(error) => {
                self.log.line(&format!("processes can't be listed: {error}"));
                Vec::new()
            }
        };
        let mut killed = Killed::default();
        let marks = self.living_marks();
        for (pid, belonging) in found {
            let is_left = match &belonging {
                Belonging::Tag(tag) => self.sweeps.contains_key(&tag.id) && !self.lives(&tag.id),
                Belonging::Mark(mark) => !marks.contains(mark),
            };
            if !is_left {
                continue;
            }
            kill_if_still(pid, &belonging, &self.table.instance);
            match belonging {
                Belonging::Tag(tag) => drop(killed.of.insert(tag.id)),
                Belonging::Mark(_) => killed.others = true,
            }
        }
        for pid in self.strangers() {
            // A child keeps its pid until it is reaped.
            let _ = kill_process(pid, Signal::KILL);
            killed.others = true;
        }
        killed
    }

    fn lives(&self, id: &StartId) -> bool {
        self.table.get(id).is_some_and(|entry| entry.lives())
    }

    /// The marks of the starts that live.
    pub(super) fn living_marks(&self) -> BTreeSet<Mark> {
        let living = self.table.iter().filter(|(_, entry)| entry.lives());
        living.map(|(id, _)| Mark::of(&self.table.instance, id)).collect()
    }

    /// The children that escaped their parents and carry neither tag nor mark, when no start lives that they can be of: none
    /// that is older than they are.
    fn strangers(&self) -> Vec<Pid> {
        let living = self.table.iter().filter(|(_, entry)| entry.lives());
        let oldest = living
            .map(|(_, entry)| match entry.life {
                Life::Running { start_time, .. } => start_time,
                _ => 0,
            })
            .min();
        let is_stranger = |pid: &Pid| {
            let stat = procfs::stat(*pid).filter(|stat| !stat.has_ended);
            let is_left = stat.is_some_and(|stat| oldest.is_none_or(|oldest| oldest > stat.start_time));
            is_left && procfs::belonging(*pid, &self.table.instance).is_none()
        };
        self.orphans().into_iter().filter(is_stranger).collect()
    }

    /// Reaps ended processes that escaped their parents.
    pub(super) fn reap_orphans(&mut self) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if !matches!(waitid(WaitId::All, options), Ok(Some(_))) {
            return;
        }
        for pid in self.orphans() {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }

    /// The children that are no start's own process.
    fn orphans(&self) -> Vec<Pid> {
        let mut children = procfs::children().unwrap_or_default();
        children.retain(|pid| !self.children.contains_key(&pid.as_raw_pid().unsigned_abs()));
        children
    }

    /// Returns true if something may live that no start's own process is the parent of.
    pub(super) fn has_orphans(&self) -> bool {
        procfs::children().is_none() || !self.orphans().is_empty()
    }
}

/// Kills a process that still belongs to what it was found to belong to: the descriptor is taken first, so the pid can't be
/// another's by then.
fn kill_if_still(pid: Pid, belonging: &Belonging, instance: &str) {
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else {
        return;
    };
    if procfs::belonging(pid, instance).as_ref() == Some(belonging) {
        let _ = pidfd_send_signal(&pidfd, Signal::KILL);
    }
}
