//! The plan of a lab, and the specs of its kinds.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use watershed_controller::json_message;
use watershed_managers::{Desired, Timed, Wanted};

use crate::Fallible;

/// The name of the one worker.
pub(crate) const WORKER: &str = "worker";

/// Everything that is to be there. An empty plan is what is left in the end.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// The worker, if there is to be one.
    pub(crate) worker: Option<Worker>,
    /// The sessions that are booked.
    pub(crate) sessions: Vec<Booking>,
}

/// One session with its time.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Booking {
    pub(crate) name: String,
    /// Local times in UTC.
    pub(crate) start: String,
    pub(crate) end: String,
    pub(crate) lead: Duration,
    pub(crate) teardown: Duration,
    pub(crate) session: Session,
}

/// The place that pods run on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Worker {
    /// The most pods that run at once.
    pub(crate) room: usize,
}

/// A session: parts that follow in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) parts: Vec<String>,
}

/// A part of a session: one pod.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Part {}

/// A process with a folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pod {
    /// The worker that it runs on.
    pub(crate) worker: String,
}

/// The address of a process that answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Address {
    pub(crate) pid: Option<i32>,
    pub(crate) port: Option<u16>,
}

json_message!(Worker, format = 1);
json_message!(Session, format = 1);
json_message!(Part, format = 1);
json_message!(Pod, format = 1);
json_message!(Address, format = 1);

impl Plan {
    /// Reads the plan in a lab's folder.
    pub(crate) fn read(folder: &Path) -> Fallible<Self> {
        Ok(serde_json::from_slice(&std::fs::read(folder.join("plan.json"))?)?)
    }

    /// Puts it in the place of the one before.
    pub(crate) fn write(&self, folder: &Path) -> Fallible<()> {
        let new = folder.join("plan.new");
        std::fs::write(&new, serde_json::to_vec_pretty(self)?)?;
        Ok(std::fs::rename(new, folder.join("plan.json"))?)
    }
}

impl Booking {
    /// Returns the wish for the session: to be active in its window.
    pub(crate) fn wanted(&self) -> Wanted<Session> {
        let window =
            Timed::once(self.start.as_str(), self.end.as_str()).with_margins(self.lead, self.teardown);
        Wanted::new(Desired::stage("active").within(window), self.session.clone())
    }
}
