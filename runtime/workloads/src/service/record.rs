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

/// A numbered version of a service's program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Release {
    /// Number of the release, from 1.
    pub number: u64,
    /// Digest of the program.
    pub digest: String,
    /// Program that the release runs.
    pub program: Program,
    /// Time at which the release was declared.
    pub at: Timestamp,
    /// Reason of the release's failure; none if it did not fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// Settings declared with the program that apply to its replicas; none in records of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manners: Option<Manners>,
    /// True once the service was ready or completed with the release; none if not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_served: Option<bool>,
}

impl Release {
    /// Returns true if a rollback to the release is possible: unless it is known never to have come up.
    pub fn may_serve_again(&self) -> bool {
        self.failed.is_none() && self.has_served != Some(false)
    }
}

/// A restart by a person in progress: new replicas replace the old ones, as in a rollout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Restarting {
    /// Number of the restart that a person requested.
    pub restart: u64,
    /// Best state reached so far, and its time.
    pub progress: Progress,
    /// Time at which the missed deadline was discovered; none before.
    #[serde(default)]
    pub overdue: Option<Timestamp>,
}

/// A rollout in progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Number of the candidate release.
    pub release: u64,
    /// Best state reached so far, and its time.
    pub progress: Progress,
    /// True once the rollout drains other releases, after a missed deadline with `on_deadline: force`.
    pub is_draining: bool,
    /// Time at which the missed deadline was discovered; none before.
    #[serde(default)]
    pub overdue: Option<Timestamp>,
}

/// The reason why all replicas of a service are stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Halt {
    /// Stable error code.
    pub code: String,
    /// Message for people.
    pub message: String,
}

/// The stored state of a service.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ServiceRecord {
    /// Kept releases, oldest first.
    pub releases: Vec<Release>,
    /// Number of the release that serves; 0 before the first.
    pub active: u64,
    /// Rollout in progress; none without one.
    pub candidate: Option<Candidate>,
    /// Number of the release that the file or a person last asked for.
    pub wanted: u64,
    /// Number of the newest release.
    pub last_release: u64,
    /// Number that the next new replica gets.
    pub next_replica: u64,
    /// Time of the first start, while the service has never been ready; none afterwards.
    pub first_start: Option<Timestamp>,
    /// Time at which the missed deadline of the first start was discovered; none before.
    #[serde(default)]
    pub overdue: Option<Timestamp>,
    /// True once the service has been ready.
    pub was_ready: bool,
    /// True if all replicas are replaced at once, false if replica by replica.
    pub is_replacing: bool,
    /// Reason why all replicas are stopped; none if they are not.
    pub halted: Option<Halt>,
    /// Number of refreshes that were handled.
    pub refreshes: u64,
    /// Counter of retries for the replicas, increased by each handled refresh.
    #[serde(default)]
    pub retries: u64,
    /// Number of restarts by people that were handled.
    #[serde(default)]
    pub restarts: u64,
    /// Restart in progress, replica by replica; none without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarting: Option<Restarting>,
    /// Number of the restart that ended last, successfully or not.
    #[serde(default)]
    pub restarted: u64,
    /// Reason why the last restart was given up; none if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_failed: Option<String>,
    /// Number of wanted replicas.
    pub replicas: u32,
    /// Number of completed replicas of the active release.
    #[serde(default)]
    pub completed: u32,
    /// True if so many replicas have completed that the service can't become ready.
    #[serde(default)]
    pub is_over: bool,
    /// Number of ready replicas of the active release, and of the one that takes its place.
    pub ready: u32,
    /// Ports of the ready replicas, by name.
    pub ports: BTreeMap<String, Vec<u16>>,
    /// Release, number of replicas and restart with which the service last came up; none before the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub come_up: Option<(u64, u32, u64)>,
    /// Transitions of the service, oldest first.
    pub transitions: Vec<Transition>,
}

json_message!(ServiceRecord, format = 1);

impl ServiceRecord {
    /// Finds a release by its number.
    pub fn release(&self, number: u64) -> Option<&Release> {
        self.releases.iter().find(|release| release.number == number)
    }

    /// Returns the wanted release if the service keeps its old one, because the wanted one did not come up.
    pub fn taken_back(&self) -> Option<u64> {
        let wanted = self.release(self.wanted)?;
        (wanted.number != self.active && wanted.failed.is_some()).then_some(wanted.number)
    }

    /// Returns the release that new replicas get: the candidate, else the active one.
    pub fn target(&self) -> u64 {
        self.candidate
            .as_ref()
            .map_or(self.active, |candidate| candidate.release)
    }

    /// Returns the stage as a word.
    pub fn stage(&self) -> &'static str {
        self.stage_of(self.replicas)
    }

    /// Returns the stage of a service with this number of wanted replicas.
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

    /// Returns the settings for replicas of a release; those of the file if the release has none.
    pub(super) fn manners_of<'a>(&'a self, release: u64, of_file: &'a Manners) -> &'a Manners {
        let own = self.release(release).and_then(|release| release.manners.as_ref());
        own.unwrap_or(of_file)
    }

    /// Returns the addresses of the ready replicas by environment variable of a referring program: `API_PORT` for the
    /// port `PORT` of the service `api`.
    pub fn addresses(&self, name: &str) -> BTreeMap<String, String> {
        let of_port = |(port, numbers): (&String, &Vec<u16>)| {
            (addresses::variable(name, port), addresses::text(numbers))
        };
        self.ports.iter().map(of_port).collect()
    }

    /// Adds a release, and drops the oldest unused ones beyond the limit.
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
