//! The process group of a program, and what left the group.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

use super::marked;

/// All that a program is and has started. It is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Group {
    leader: Option<Pid>,
    mark: String,
    is_released: bool,
}

impl Group {
    pub(super) fn of(child: &Child, mark: &str) -> Self {
        let pid = child.id().and_then(|id| i32::try_from(id).ok());
        Self {
            leader: pid.and_then(Pid::from_raw),
            mark: mark.to_owned(),
            is_released: false,
        }
    }

    /// Asks all of it to end.
    pub(super) fn ask(&self) {
        self.signal(Signal::TERM);
    }

    /// Lets it live on.
    pub(super) fn release(&mut self) {
        self.is_released = true;
    }

    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.leader {
            // All of it may have ended by itself.
            let _ = kill_process_group(leader, signal);
        }
        marked::signal(&self.mark, signal);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.is_released {
            self.signal(Signal::KILL);
        }
    }
}
