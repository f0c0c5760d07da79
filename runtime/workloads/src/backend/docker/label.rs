//! Labels and names of containers, which store all facts about a start in the engine.
//!
//! Labels say whose a container is, and never change. The name of a container has what comes later: that its stop was
//! ordered, or that its end was counted. An engine changes a name in one step, and keeps it through restarts.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use watershed_core::Timestamp;

use crate::backend::{StartId, Then};

/// The label with the state folder.
pub(super) const STATE: &str = "watershed.state";
/// The label with the uid of a replica or job.
pub(super) const UID: &str = "watershed.uid";
/// The label with the counter of the start.
const COUNTER: &str = "watershed.counter";
/// The label with the epoch under which the start was ordered.
const EPOCH: &str = "watershed.epoch";
/// The label with the time of the order, in milliseconds since 1970.
const ORDERED: &str = "watershed.ordered";

/// The longest grace period that is accepted from a container's name.
const GRACE_MAX: Duration = Duration::from_secs(24 * 3_600);

/// The facts about a start in its container's labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Labels {
    pub(super) start: StartId,
    pub(super) epoch: u64,
    pub(super) ordered: Timestamp,
}

impl Labels {
    /// Parses labels; none if they are not those of a start.
    pub(super) fn read(labels: &HashMap<String, String>) -> Option<Self> {
        let number = |key: &str| labels.get(key)?.parse::<u64>().ok();
        Some(Self {
            start: start_of(labels)?,
            epoch: number(EPOCH)?,
            ordered: Timestamp(i64::try_from(number(ORDERED)?).ok()?),
        })
    }

    /// Returns the labels in the engine's form.
    pub(super) fn write(&self, folder: &str) -> HashMap<String, String> {
        let pair = |key: &str, value: String| (key.to_owned(), value);
        HashMap::from([
            pair(STATE, folder.to_owned()),
            pair(UID, self.start.uid().to_owned()),
            pair(COUNTER, self.start.counter().to_string()),
            pair(EPOCH, self.epoch.to_string()),
            pair(ORDERED, self.ordered.0.max(0).to_string()),
        ])
    }
}

/// Parses the start id from the labels of a container or event.
pub(super) fn start_of(labels: &HashMap<String, String>) -> Option<StartId> {
    let counter = labels.get(COUNTER)?.parse().ok()?;
    StartId::new(labels.get(UID)?, counter).ok()
}

/// The mark in a container's name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Mark {
    /// No mark: the container should run.
    #[default]
    None,
    /// Stop mark: a stop was ordered.
    Stopped(Order),
    /// Kept mark: the end was counted, and the container remains for its output.
    Kept,
}

/// An order to stop a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Order {
    /// Name of the first signal, without `SIG`.
    pub(super) signal: String,
    /// Time at which the container is killed.
    pub(super) deadline: Timestamp,
    /// Fate of the container after its end.
    pub(super) then: Then,
}

impl Order {
    /// Returns the time until the deadline.
    pub(super) fn rest(&self, now: Timestamp) -> Duration {
        let ms = self.deadline.0.saturating_sub(now.0);
        Duration::from_millis(u64::try_from(ms).unwrap_or(0)).min(GRACE_MAX)
    }
}

impl Mark {
    /// Parses the mark in a name.
    pub(super) fn read(name: &str) -> Self {
        let Some((_, mark)) = name.split_once('.') else {
            return Self::None;
        };
        if mark == "kept" {
            return Self::Kept;
        }
        let stopped = || {
            let (then, rest) = mark.strip_prefix("stop-")?.split_once('-')?;
            let (signal, deadline) = rest.split_once('-')?;
            Some(Self::Stopped(Order {
                signal: signal.to_owned(),
                deadline: Timestamp(deadline.parse().ok()?),
                then: match then {
                    "keep" => Then::Keep,
                    "forget" => Then::Forget,
                    "remove" => Then::ForgetWithOutput,
                    _ => return None,
                },
            }))
        };
        stopped().unwrap_or_default()
    }

    /// Returns a name with its mark replaced by this one.
    pub(super) fn put_on(&self, name: &str) -> String {
        let base = name.split_once('.').map_or(name, |(base, _)| base);
        match self {
            Self::None => base.to_owned(),
            Self::Kept => format!("{base}.kept"),
            Self::Stopped(order) => {
                let then = match order.then {
                    Then::Keep => "keep",
                    Then::Forget => "forget",
                    Then::ForgetWithOutput => "remove",
                };
                format!("{base}.stop-{then}-{}-{}", order.signal, order.deadline.0.max(0))
            }
        }
    }
}

/// Returns the name of a start's container. Programs that create the same start at once try the same names in the same
/// order, and the engine assigns each name once. `attempt` counts the names that other containers have taken.
pub(super) fn name(folder: &str, start: &StartId, attempt: usize) -> String {
    let hash = blake3::hash(folder.as_bytes()).to_hex();
    let (uid, counter) = (start.uid(), start.counter());
    match attempt {
        0 => format!("watershed-{}-{uid}-{counter}", &hash[..8]),
        more => format!("watershed-{}-{uid}-{counter}-{more}", &hash[..8]),
    }
}

/// Returns the label value of a state folder.
pub(super) fn folder(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_marks_are_read_as_they_were_written() {
        let labels = Labels {
            start: StartId::new("a-b_c", 7).unwrap(),
            epoch: 3,
            ordered: Timestamp(1_700),
        };
        let written = labels.write("/state");
        assert_eq!(written.get(STATE).map(String::as_str), Some("/state"));
        assert_eq!(Labels::read(&written), Some(labels.clone()));
        for key in [UID, COUNTER, EPOCH, ORDERED] {
            let mut less = written.clone();
            less.remove(key);
            assert_eq!(Labels::read(&less), None, "{key}");
            less.insert(key.to_owned(), "a b".to_owned());
            assert_eq!(Labels::read(&less), None, "{key}");
        }
        let first = name("/state", &labels.start, 0);
        let stopped = |then| {
            Mark::Stopped(Order {
                signal: "USR1".to_owned(),
                deadline: Timestamp(5),
                then,
            })
        };
        for mark in [
            Mark::None,
            Mark::Kept,
            stopped(Then::Keep),
            stopped(Then::Forget),
            stopped(Then::ForgetWithOutput),
        ] {
            let marked = mark.put_on(&first);
            assert_eq!(Mark::read(&marked), mark, "{marked}");
            assert_eq!(Mark::None.put_on(&marked), first);
        }
        for odd in [
            "a.b",
            "a.stop-",
            "a.stop-keep-5",
            "a.stop-keep-TERM-x",
            "a.stop-never-TERM-5",
        ] {
            assert_eq!(Mark::read(odd), Mark::None, "{odd}");
        }
    }

    #[test]
    fn names_differ_by_folder_start_and_attempt() {
        let start = |counter| StartId::new("a", counter).unwrap();
        let names = [
            name("/a", &start(1), 0),
            name("/b", &start(1), 0),
            name("/a", &start(2), 0),
            name("/a", &start(1), 1),
        ];
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
    }
}
