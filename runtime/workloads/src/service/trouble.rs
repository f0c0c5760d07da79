//! The worst-off replica of a service, which explains to people why the service is not ready, or why a release does not
//! come up.

use watershed_core::{Error, Timestamp};

use super::record::ServiceRecord;
use crate::replica::{ReplicaRecord, ReplicaSpec, Stage, failure_of};

/// The trouble of a replica.
#[derive(Debug, Clone, PartialEq)]
pub struct Trouble {
    /// Message for people.
    pub message: String,
    /// Error of the replica; none if it has not failed, but waits for memory or its checks.
    pub error: Option<Error>,
    /// Time of the next start, or of the next check for memory, if any.
    pub next: Option<Timestamp>,
}

/// Returns the trouble of the worst-off wanted replica; none if all are serving or starting.
pub fn trouble<'a>(
    service: &ServiceRecord,
    copies: impl IntoIterator<Item = (&'a ReplicaSpec, &'a ReplicaRecord)>,
) -> Option<Trouble> {
    let wanted = copies.into_iter().filter(|(spec, _)| spec.is_wanted);
    // One that has not answered a person's request is about to be started.
    let settled = wanted.filter(|(spec, record)| record.has_answered(spec));
    let ranked = settled.filter_map(|(spec, record)| Some((rank(record)?, spec, record)));
    let (_, spec, record) = ranked.min_by_key(|(rank, spec, _)| (*rank, spec.number))?;
    let of = match spec.release == service.active {
        true => String::new(),
        false => format!("release {} is not coming up: ", spec.release),
    };
    let next = match record.stage {
        Stage::BackingOff => record.exits.next,
        Stage::Pending => record.starts.next,
        _ => None,
    };
    let error = failure_of(spec, record).map(|mut error| {
        error.message = format!("{of}{}{}", error.message, attempts(spec, record)).into();
        error
    });
    let message = error.as_ref().map_or_else(
        || format!("{of}{}", waits(spec, record)),
        |error| error.message.to_string(),
    );
    Some(Trouble { message, error, next })
}

/// Returns the rank of a wanted replica's trouble, the worst first, and a message for people; none without trouble.
pub(super) fn of_replica(spec: &ReplicaSpec, record: &ReplicaRecord) -> Option<(u8, String)> {
    let rank = rank(record).filter(|_| spec.is_wanted && record.has_answered(spec))?;
    let message = match (failure_of(spec, record), &record.failed_start) {
        (Some(error), _) => error.message.to_string(),
        (None, Some(_)) => waits(spec, record),
        (None, None) => format!("the checks of replica {} did not pass", spec.number),
    };
    Some((rank, message))
}

/// Returns the rank of a replica's trouble, the worst first; none without trouble.
fn rank(record: &ReplicaRecord) -> Option<u8> {
    match record.stage {
        Stage::Failed => Some(0),
        Stage::BackingOff => Some(1),
        Stage::Pending if record.failed_start.is_some() => Some(2),
        Stage::Running if !record.is_ready() => Some(3),
        _ => None,
    }
}

/// Formats the number of a failure that another start follows: ` (4 of 5)`.
fn attempts(spec: &ReplicaSpec, record: &ReplicaRecord) -> String {
    match (record.stage, spec.restart.attempts) {
        (Stage::BackingOff, 1..) => format!(" ({} of {})", record.exits.count, spec.restart.attempts),
        _ => String::new(),
    }
}

/// Describes why a replica that has not failed does not serve.
fn waits(spec: &ReplicaSpec, record: &ReplicaRecord) -> String {
    let number = spec.number;
    match &record.failed_start {
        Some(failed) => format!("replica {number} waits: {}", failed.message),
        None => format!("the checks of replica {number} do not pass yet"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::exit::{Exit, StartFailure};
    use crate::policy::restart::Restart;
    use crate::replica::{FailedStart, LastExit};
    use crate::settings::{Logs, Stopping};
    use watershed_core::Attempts;

    fn copy(number: u64, stage: Stage) -> (ReplicaSpec, ReplicaRecord) {
        let spec = ReplicaSpec {
            service: "api".to_owned(),
            path: None,
            number,
            release: 1 + number / 10,
            program: crate::Program::default(),
            services: Vec::new(),
            addresses: std::collections::BTreeMap::new(),
            is_wanted: true,
            restarts: 0,
            retries: 0,
            stop: Stopping::default(),
            logs: Logs { max_size: 1, keep: 1 },
            restart: Restart::default(),
            checks: Vec::new(),
            on_server_stop: String::new(),
        };
        let exits = Attempts {
            count: 4,
            last: Some(Timestamp(0)),
            next: Some(Timestamp(80_000)),
        };
        let record = ReplicaRecord {
            stage,
            counter: 1,
            exits,
            starts: Attempts {
                next: Some(Timestamp(10_000)),
                ..Attempts::default()
            },
            last_exit: Some(LastExit {
                exit: Some(Exit::Code(9)),
                at: Timestamp(0),
                after_ms: 0,
                was_intended: false,
            }),
            failed_start: (stage == Stage::Pending).then(|| FailedStart {
                failure: StartFailure::InsufficientResources,
                message: "there is no room".to_owned(),
            }),
            ready_since: None,
            ..ReplicaRecord::default()
        };
        (spec, record)
    }

    fn told(copies: &[(ReplicaSpec, ReplicaRecord)]) -> Option<(String, bool, Option<i64>)> {
        let service = ServiceRecord {
            active: 1,
            ..ServiceRecord::default()
        };
        let found = trouble(&service, copies.iter().map(|(spec, record)| (spec, record)))?;
        Some((
            found.message,
            found.error.is_some(),
            found.next.map(|next| next.0),
        ))
    }

    #[test]
    fn the_copy_that_is_worst_off_tells_why_and_when_it_starts() {
        let exited = "replica 1 of service/api exited 4 times in a row, last with code 9 after 0.0 s";
        let [running, backing_off, failed] = [Stage::Running, Stage::BackingOff, Stage::Failed];
        let [room, starting] = [Stage::Pending, Stage::Starting].map(|stage| copy(0, stage));
        for (copies, message, has_failed, next) in [
            (
                vec![copy(0, running), copy(1, backing_off)],
                format!("{exited} (4 of 5)"),
                true,
                Some(80_000),
            ),
            (
                vec![copy(0, backing_off), copy(1, failed)],
                exited.to_owned(),
                true,
                None,
            ),
            (
                vec![room.clone(), copy(1, running)],
                "replica 0 waits: there is no room".to_owned(),
                false,
                Some(10_000),
            ),
            (
                vec![copy(1, running)],
                "the checks of replica 1 do not pass yet".to_owned(),
                false,
                None,
            ),
        ] {
            assert_eq!(told(&copies), Some((message, has_failed, next)));
        }
        let candidate = told(&[copy(21, backing_off)]).unwrap();
        assert!(
            candidate.0.starts_with("release 3 is not coming up: replica 21 "),
            "{}",
            candidate.0
        );
        assert_eq!(told(&[starting, copy(1, Stage::Completed)]), None);
        let (spec, record) = copy(1, failed);
        let asked = ReplicaSpec { retries: 1, ..spec };
        assert_eq!(told(&[(asked, record)]), None, "it is about to be started");
    }
}
