//! Exits: observed, stored, reaped and reported, followed by a sweep for leftovers.

use std::collections::BTreeSet;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process_group, waitid, waitpid};

use super::sweep::LOOKS;
use super::{JOURNAL_RETRY_MS, Shim};
use crate::clock;
use crate::crash::{self, crash_point};
use crate::journal::Record;
use crate::output;
use crate::protocol::{End, Event, Exit, MemoryGuard, Output};
use crate::shim::calls::forgotten;
use crate::start_id::StartId;

/// An observed exit that is not stored yet.
#[derive(Debug)]
pub(super) struct Seen {
    id: StartId,
    exit: Exit,
    /// Child of the shim to reap; none for an adopted process.
    child: Option<Pid>,
}

impl Shim {
    /// Records all children that have ended. They stay unreaped until their exits are stored.
    pub(super) fn reap(&mut self) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let known: BTreeSet<StartId> = self.untold.iter().map(|seen| seen.id.clone()).collect();
        let mut ended = Vec::new();
        for (raw, id) in self.children.iter().filter(|(_, id)| !known.contains(*id)) {
            let Some(pid) = i32::try_from(*raw).ok().and_then(Pid::from_raw) else {
                continue;
            };
            let Ok(Some(status)) = waitid(WaitId::Pid(pid), options) else {
                continue;
            };
            let end = match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => End::Code(code),
                (None, Some(signal)) => End::Signal(signal),
                (None, None) => End::Unknown,
            };
            ended.push((id.clone(), pid, end));
        }
        for (id, pid, end) in ended {
            // Its pid is still its own, and so is the group.
            let _ = kill_process_group(pid, Signal::KILL);
            self.saw(id, end, Some(pid));
        }
    }

    /// Records the end of an adopted process.
    pub(super) fn adopted_ended(&mut self, id: &StartId) {
        let Some(pidfd) = self.adopted.remove(id) else {
            return;
        };
        self.poll.remove(&pidfd);
        self.pidfds.retain(|_, other| other != id);
        self.saw(id.clone(), End::Unknown, None);
    }

    /// Records an exit for [`store_exits`](Self::store_exits).
    pub(super) fn saw(&mut self, id: StartId, end: End, child: Option<Pid>) {
        let Some(entry) = self.table.get(&id) else {
            return;
        };
        let stop = entry.stop.as_ref().map(|order| order.reason);
        let mut end = end;
        if entry.memory == MemoryGuard::Cgroup
            && let Some(groups) = &self.groups
        {
            let may_be = matches!(end, End::Signal(9) | End::Unknown);
            if may_be && groups.was_out_of_memory(&id) {
                end = End::OutOfMemory;
            }
            groups.kill(&id);
        }
        let at_ms = clock::unix_ms();
        let exit = Exit { end, at_ms, stop };
        self.untold.push(Seen { id, exit, child });
    }

    /// Stores the observed exits, reaps the processes and reports them. Retries what can't be stored.
    pub(super) fn store_exits(&mut self) {
        if self.untold.is_empty() {
            if self.journal.sync().is_err() {
                self.journal_retry = Some(clock::since_boot_ms() + JOURNAL_RETRY_MS);
            }
            self.reap_orphans();
            return;
        }
        crash_point(crash::EXIT_BEFORE);
        let stored = self.journal.pending();
        for Seen { id, exit, .. } in &self.untold {
            let (id, exit) = (id.clone(), exit.clone());
            self.journal.append(&Record::Exit { id, exit });
        }
        if let Err(error) = self.journal.sync() {
            self.journal.drop_pending(stored);
            self.journal_retry = Some(clock::since_boot_ms() + JOURNAL_RETRY_MS);
            self.log.line(&format!("exits can't be stored: {error}"));
            return;
        }
        crash_point(crash::EXIT_WITHIN);
        let now = clock::since_boot_ms();
        let seen = std::mem::take(&mut self.untold);
        for Seen { id, exit, child } in &seen {
            self.table.apply(&Record::Exit {
                id: id.clone(),
                exit: exit.clone(),
            });
            if let Some(pid) = *child {
                let _ = waitpid(Some(pid), WaitOptions::NOHANG);
                self.children.remove(&pid.as_raw_pid().unsigned_abs());
            }
            self.deadlines.remove(id);
            self.outputs.remove(id, self.poll.inotify(), now);
        }
        crash_point(crash::EXIT_AFTER);
        self.reap_orphans();
        let orphans = self.has_orphans();
        for Seen { id, child, .. } in &seen {
            if orphans || child.is_none() {
                self.sweep_for(id.clone(), LOOKS);
            } else if let Some(groups) = &self.groups {
                groups.remove(id);
            }
        }
        let ids = seen.iter().map(|seen| seen.id.clone());
        self.forget_stopped(ids.collect());
        for Seen { id, exit, .. } in seen {
            self.publish(&Event::Exited { id, exit });
        }
    }

    /// Removes the starts whose stop orders say so. The order is stored, so the next shim continues after a crash.
    pub(super) fn forget_stopped(&mut self, ids: Vec<StartId>) {
        let gone = ids.into_iter().filter_map(|id| {
            let output = forgotten(self.table.get(&id)?)?;
            Some((id, output))
        });
        for (id, output) in gone.collect::<Vec<(StartId, Option<Output>)>>() {
            self.forget(id, output.as_ref());
        }
        if self.journal.write().is_err() {
            self.journal_retry = Some(clock::since_boot_ms() + JOURNAL_RETRY_MS);
        }
    }

    /// Removes a start's output files and control group, then its record, by which they could be found.
    pub(super) fn forget(&mut self, id: StartId, output: Option<&Output>) {
        if let Some(groups) = &self.groups {
            groups.remove(&id);
        }
        if let Some(output) = output {
            output::remove_files(output);
        }
        crash_point(crash::FORGET_AFTER);
        self.record(Record::Forget { id });
    }
}
