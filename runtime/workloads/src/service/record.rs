//! The stored state of a service.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use watershed_controller::json_message;
use watershed_core::Timestamp;

use crate::addresses;
use crate::policy::rollout::Progress;
use crate::program::Program;
use crate::settings::Manners;
use crate::transition::Transition;

/// The most releases that a service keeps (rule W11).
pub const RELEASES_MAX: usize = 5;

/// A numbered version of what a service runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Release {
    /// The number, from 1.
    pub number: u64,
    /// The digest of the program.
    pub digest: String,
    /// The program.
    pub program: Program,
    /// The time at which it was declared.
    pub at: Timestamp,
    /// The reason why it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// The settings that were said with its program and speak of it; none in a record of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manners: Option<Manners>,
    /// True once the service was ready, or at its end, with it; none where that was not noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_served: Option<bool>,
}

impl Release {
    /// Returns true if a service may go back to it: unless it is known never to have come up.
    pub fn may_serve_again(&self) -> bool {
        self.failed.is_none() && self.has_served != Some(false)
    }
}

/// A restart by a person that is under way: new copies take the place of the old ones, as in a rollout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Restarting {
    /// The number of the restart.
    pub restart: u64,
    /// The furthest that it has come.
    pub progress: Progress,
    /// The time at which its deadline was first seen to be over.
    #[serde(default)]
    pub overdue: Option<Timestamp>,
}

/// A rollout that is under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The number of the release.
    pub release: u64,
    /// The furthest that it has come.
    pub progress: Progress,
    /// True once it drains the others: its deadline went by, with `on_deadline: force`.
    pub is_draining: bool,
    /// The time at which its deadline was first seen to be over.
    #[serde(default)]
    pub overdue: Option<Timestamp>,
}

/// The reason why the replicas of a service are stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Halt {
    /// A stable code.
    pub code: String,
    /// A sentence for a person.
    pub message: String,
}

/// The stored state of a service.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ServiceRecord {
    /// The releases, oldest first.
    pub releases: Vec<Release>,
    /// The release that serves; 0 before there is one.
    pub active: u64,
    /// The release that replaces it.
    pub candidate: Option<Candidate>,
    /// The release that the file, or a person, last asked for.
    pub wanted: u64,
    /// The number of the last release.
    pub last_release: u64,
    /// The number of the next replica.
    pub next_replica: u64,
    /// The time of the first start, while the service has never been ready.
    pub first_start: Option<Timestamp>,
    /// The time at which that first start was first seen to have taken too long.
    #[serde(default)]
    pub overdue: Option<Timestamp>,
    /// True once it has been ready.
    pub was_ready: bool,
    /// True if all replicas are replaced at once, rather than copy by copy.
    pub is_replacing: bool,
    /// The reason why its replicas are stopped, if they are.
    pub halted: Option<Halt>,
    /// The refreshes that were answered.
    pub refreshes: u64,
    /// Raised by each of them, for its replicas.
    #[serde(default)]
    pub retries: u64,
    /// The restarts by people that were told.
    #[serde(default)]
    pub restarts: u64,
    /// The restart that is under way copy by copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarting: Option<Restarting>,
    /// The restart that ended last, well or not.
    #[serde(default)]
    pub restarted: u64,
    /// The reason why the last restart was given up, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_failed: Option<String>,
    /// The number of replicas that are wanted.
    pub replicas: u32,
    /// The replicas of the active release that are completed.
    #[serde(default)]
    pub completed: u32,
    /// True if so many are completed that the service is at its end: it is not going to be ready.
    #[serde(default)]
    pub is_over: bool,
    /// The ready replicas of the active release.
    pub ready: u32,
    /// The ports of its ready replicas, by name.
    pub ports: BTreeMap<String, Vec<u16>>,
    /// The release, the number of replicas and the restart with which it came up last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub come_up: Option<(u64, u32, u64)>,
    /// The transitions, oldest first.
    pub transitions: Vec<Transition>,
}

json_message!(ServiceRecord, format = 1);

impl ServiceRecord {
    /// Returns a release.
    pub fn release(&self, number: u64) -> Option<&Release> {
        self.releases.iter().find(|release| release.number == number)
    }

    /// Returns the release that replicas are led to: the candidate, or else the active one.
    pub fn target(&self) -> u64 {
        self.candidate
            .as_ref()
            .map_or(self.active, |candidate| candidate.release)
    }

    /// Returns the stage, as a word for people.
    pub fn stage(&self) -> &'static str {
        self.stage_of(self.replicas)
    }

    /// Returns the stage of a service of which so many replicas are wanted.
    pub(super) fn stage_of(&self, replicas: u32) -> &'static str {
        match (&self.halted, &self.candidate) {
            (Some(_), _) => "failed",
            (None, Some(_)) => "rolling_out",
            (None, None) if self.active == 0 => "pending",
            (None, None) if replicas == 0 => "stopped",
            (None, None) if self.completed >= replicas => "completed",
            (None, None) => "running",
        }
    }

    /// Returns the settings that copies of a release go by; those of the file where it says nothing of its own.
    pub(super) fn manners_of<'a>(&'a self, release: u64, of_file: &'a Manners) -> &'a Manners {
        let own = self.release(release).and_then(|release| release.manners.as_ref());
        own.unwrap_or(of_file)
    }

    /// Returns the addresses of its ready replicas by variables of a program that refers to it: `API_PORT` for the port
    /// `PORT` of the service `api`.
    pub fn addresses(&self, name: &str) -> BTreeMap<String, String> {
        let of_port = |(port, numbers): (&String, &Vec<u16>)| {
            (addresses::variable(name, port), addresses::text(numbers))
        };
        self.ports.iter().map(of_port).collect()
    }

    /// Adds a release, and drops the oldest that is not used any more.
    pub(super) fn declare(&mut self, program: Program, digest: String, at: Timestamp) -> u64 {
        self.last_release += 1;
        let number = self.last_release;
        self.releases.push(Release {
            number,
            digest,
            program,
            at,
            failed: None,
            manners: None,
            has_served: Some(false),
        });
        while self.releases.len() > RELEASES_MAX {
            let candidate = self.candidate.as_ref().map(|candidate| candidate.release);
            let is_unused = |release: &Release| {
                let kept = [Some(self.active), Some(number), candidate];
                !kept.contains(&Some(release.number))
            };
            let Some(oldest) = self.releases.iter().position(is_unused) else {
                break;
            };
            self.releases.remove(oldest);
        }
        number
    }
}
