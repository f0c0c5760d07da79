//! The sweep for leftovers of ended starts, found by tag, by mark or as children of the shim, and killed.

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

/// Interval between two looks for leftovers, in milliseconds.
const SWEEP_EVERY_MS: u64 = 20;

/// Pause after a listing of all processes as a multiple of its time, since a listing takes milliseconds if there are
/// many. One listing serves all sweeps.
const SWEEP_SHARE: u64 = 10;

/// The fewest looks of a sweep, even if nothing is found: during an exec, a process has no environment for a moment.
pub(super) const LOOKS: u32 = 2;

/// The most looks of a sweep. After them, processes that fork faster than they are killed are reported.
const MAX_SWEEPS: u32 = 200;

/// The sweep for the leftovers of an ended start.
#[derive(Debug)]
pub(super) struct Sweep {
    due: u64,
    looks: u32,
    /// The fewest looks, even if nothing is found.
    at_least: u32,
}

impl Sweep {
    pub(super) fn due(&self) -> u64 {
        self.due
    }
}

/// Processes killed in one look.
#[derive(Debug, Default)]
struct Killed {
    /// Starts whose tag a killed process had.
    of: BTreeSet<StartId>,
    /// True if processes without a tag were killed, which any ended start may have left.
    others: bool,
}

impl Shim {
    /// Starts a sweep for the leftovers of a start.
    pub(super) fn sweep_for(&mut self, id: StartId, at_least: u32) {
        let sweep = Sweep {
            due: clock::since_boot_ms(),
            looks: 0,
            at_least,
        };
        self.sweeps.insert(id, sweep);
    }

    /// Looks for leftovers of ended starts if a look is due, and kills them.
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

    /// Kills processes that belong to ended starts, as far as the tag, the mark or the parent shows it.
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

    /// Returns the marks of the living starts.
    pub(super) fn living_marks(&self) -> BTreeSet<Mark> {
        let living = self.table.iter().filter(|(_, entry)| entry.lives());
        living.map(|(id, _)| Mark::of(&self.table.instance, id)).collect()
    }

    /// Returns reparented children without tag and mark that no living start can have started, because they are older
    /// than all of those.
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

    /// Reaps ended processes that were reparented to the shim.
    pub(super) fn reap_orphans(&mut self) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if !matches!(waitid(WaitId::All, options), Ok(Some(_))) {
            return;
        }
        for pid in self.orphans() {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }

    /// Returns the children that the shim did not start itself.
    fn orphans(&self) -> Vec<Pid> {
        let mut children = procfs::children().unwrap_or_default();
        children.retain(|pid| !self.children.contains_key(&pid.as_raw_pid().unsigned_abs()));
        children
    }

    /// Returns true if processes may have been reparented to the shim.
    pub(super) fn has_orphans(&self) -> bool {
        procfs::children().is_none() || !self.orphans().is_empty()
    }
}

/// Kills a process if its evidence still holds. The descriptor is opened first, so that a reused pid is not killed.
fn kill_if_still(pid: Pid, belonging: &Belonging, instance: &str) {
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else {
        return;
    };
    if procfs::belonging(pid, instance).as_ref() == Some(belonging) {
        let _ = pidfd_send_signal(&pidfd, Signal::KILL);
    }
}
