//! Stops of processes: first signal, deadline and SIGKILL.

use rustix::process::{Pid, Signal, kill_process, kill_process_group, pidfd_send_signal};

use super::Shim;
use crate::clock;
use crate::journal::{Life, Record, StopOrder};
use crate::procfs;
use crate::protocol::{StopReason, Then};
use crate::signals;
use crate::start_id::StartId;

impl Shim {
    /// Sends the signal of a stored stop and starts its grace period.
    pub(super) fn signal_stop(&mut self, id: &StartId) {
        let order = self.table.get(id).and_then(|entry| entry.stop.as_deref());
        let Some(signal) = order.map(|order| signals::named(&order.signal).unwrap_or(Signal::TERM)) else {
            return;
        };
        self.signal(id, signal);
        self.set_deadline(id);
    }

    /// Schedules the deadline of a stored stop.
    pub(super) fn set_deadline(&mut self, id: &StartId) {
        let order = self.table.get(id).and_then(|entry| entry.stop.as_deref());
        if let Some(order) = order {
            self.deadlines.insert(id.clone(), order.deadline_ms);
        }
    }

    /// Signals a process's group, and the process itself if it has left the group.
    fn signal(&self, id: &StartId, signal: Signal) {
        let Some(Life::Running { pid, start_time }) = self.table.get(id).map(|entry| &entry.life) else {
            return;
        };
        let Some(pid) = i32::try_from(*pid).ok().and_then(Pid::from_raw) else {
            return;
        };
        // A child keeps its pid until it is reaped; another process is compared before its pid is used.
        let stat = procfs::stat(pid).filter(|stat| stat.start_time == *start_time);
        let is_leader = stat.is_some_and(|stat| stat.group == pid.as_raw_pid().unsigned_abs());
        match self.adopted.get(id) {
            Some(_) if is_leader => drop(kill_process_group(pid, signal)),
            Some(pidfd) => drop(pidfd_send_signal(pidfd, signal)),
            None => {
                let _ = kill_process_group(pid, signal);
                if !is_leader {
                    let _ = kill_process(pid, signal);
                }
            }
        }
    }

    /// Kills processes whose grace period is over. Descendants outside their group are swept after their exit.
    pub(super) fn kill_overdue(&mut self, now: u64) {
        let overdue: Vec<StartId> = self
            .deadlines
            .iter()
            .filter(|(_, due)| now >= **due)
            .map(|(id, _)| id.clone())
            .collect();
        for id in overdue {
            self.deadlines.remove(&id);
            self.kill(&id);
        }
    }

    fn kill(&self, id: &StartId) {
        self.signal(id, Signal::KILL);
        if let Some(groups) = &self.groups {
            groups.kill(id);
        }
    }

    /// Stops all processes, even if the stops can't be stored first.
    pub(super) fn stop_all(&mut self, reason: StopReason, signal: Signal, grace_ms: u64) {
        let deadline_ms = clock::since_boot_ms() + grace_ms;
        let living: Vec<_> = self
            .table
            .iter()
            .filter(|(_, entry)| entry.lives())
            .map(|(id, entry)| (id.clone(), entry.stop.clone()))
            .collect();
        for (id, before) in &living {
            let order = StopOrder {
                reason: before.as_ref().map_or(reason, |before| before.reason),
                signal: if signal == Signal::KILL { "KILL" } else { "TERM" }.to_owned(),
                deadline_ms: before
                    .as_ref()
                    .map_or(deadline_ms, |before| before.deadline_ms.min(deadline_ms)),
                then: before.as_ref().map_or(Then::Keep, |before| before.then),
            };
            let id = id.clone();
            self.record(Record::Stop { id, order });
        }
        if let Err(error) = self.journal.sync() {
            self.log.line(&format!("a stop of all can't be stored: {error}"));
            self.journal_retry = Some(clock::since_boot_ms() + super::JOURNAL_RETRY_MS);
        }
        for (id, _) in living {
            if signal == Signal::KILL {
                self.kill(&id);
            } else {
                self.signal_stop(&id);
            }
        }
    }
}
