//! Conversion of containers to observations.

use std::collections::HashMap;

use bollard::models::{ContainerState, ContainerSummary, ContainerSummaryStateEnum as State};
use watershed_core::Timestamp;
use watershed_schedule::jiff;

use super::label::{Labels, Mark};
use crate::backend::{End, Observation, Phase};
use crate::policy::exit::Exit;

/// Exit code by which the engine reports an end that it did not observe.
const UNSEEN: i64 = 255;
/// Offset of exit codes that stand for signals.
const SIGNALS: i64 = 128;
/// The highest signal number.
const MAX_SIGNAL: i64 = 64;

/// The phase of a container's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// Created, but not started.
    Made,
    /// Started, and not ended.
    Running,
    /// The container's process has ended.
    Ended,
}

/// A container of this state folder in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) container: String,
    pub(super) name: String,
    pub(super) labels: Labels,
    pub(super) mark: Mark,
    pub(super) life: Life,
}

impl Listed {
    /// Converts an entry of a listing; none if the container is not of a start.
    pub(super) fn read(row: ContainerSummary) -> Option<Self> {
        let labels = Labels::read(&row.labels?)?;
        let name = row.names?.into_iter().next()?;
        let name = name.trim_start_matches('/').to_owned();
        Some(Self {
            container: row.id?,
            mark: Mark::read(&name),
            name,
            labels,
            life: match row.state? {
                State::CREATED => Life::Made,
                State::EXITED | State::DEAD | State::REMOVING => Life::Ended,
                _ => Life::Running,
            },
        })
    }

    /// Returns true if the container is kept only for its output.
    pub(super) fn is_kept(&self) -> bool {
        self.mark == Mark::Kept
    }

    /// Returns true if the container's process is alive.
    pub(super) fn is_alive(&self) -> bool {
        self.life == Life::Running
    }

    /// Converts the container to an observation, with the details that listings omit.
    pub(super) fn observe(&self, details: &Details) -> Observation {
        let phase = match (self.life, details.ended) {
            (_, Some((end, at))) => Phase::Ended { end, at },
            (Life::Made, None) => Phase::Starting,
            (Life::Running, None) => Phase::Running,
            // An engine that was killed may not know when it ended.
            (Life::Ended, None) => Phase::Ended {
                end: End::Exit(Exit::Unknown),
                at: details.started,
            },
        };
        Observation {
            id: self.labels.start.clone(),
            epoch: self.labels.epoch,
            // Of what never lived no end is counted.
            backend_id: (self.life != Life::Made).then(|| short(&self.container)),
            started: details.started,
            stopping: matches!(self.mark, Mark::Stopped(_)),
            phase,
        }
    }
}

/// Returns the short form of a container's id.
fn short(id: &str) -> String {
    id.chars().take(12).collect()
}

/// The state of a container that listings omit. After the end it never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Details {
    pub(super) started: Timestamp,
    pub(super) ended: Option<(End, Timestamp)>,
}

impl Details {
    /// Reads a container's state. `ordered` is the time of its order, `boot` the time at which the machine booted.
    pub(super) fn read(state: &ContainerState, ordered: Timestamp, boot: Option<Timestamp>) -> Self {
        let started = state.started_at.as_deref().and_then(time).unwrap_or(ordered);
        let is_over = state.running != Some(true) && state.finished_at.as_deref().and_then(time).is_some();
        let finished = state.finished_at.as_deref().and_then(time).unwrap_or(started);
        Self {
            started,
            ended: is_over.then(|| (end(state, started, finished, boot), finished)),
        }
    }
}

/// Returns the cause of a container's end (W7, W13).
///
/// One that was started before the machine was, and that the engine stopped with it or found dead afterwards, ended with the
/// machine. One that ended by itself before that did not.
fn end(state: &ContainerState, started: Timestamp, finished: Timestamp, boot: Option<Timestamp>) -> End {
    let code = state.exit_code.unwrap_or(UNSEEN);
    let was_stopped = code == UNSEEN || code > SIGNALS;
    if boot.is_some_and(|boot| started < boot && (finished >= boot || was_stopped)) {
        return End::Reboot;
    }
    End::Exit(match code {
        _ if state.oom_killed == Some(true) => Exit::OutOfMemory,
        // Engines tell a signal as a shell does.
        code if code > SIGNALS && code <= SIGNALS + MAX_SIGNAL => {
            Exit::Signal(i32::try_from(code - SIGNALS).unwrap_or_default())
        }
        code => i32::try_from(code).map_or(Exit::Unknown, Exit::Code),
    })
}

/// Parses a time of the engine; none for the year 1, which means never.
fn time(text: &str) -> Option<Timestamp> {
    let read: jiff::Timestamp = text.parse().ok()?;
    let ms = read.as_millisecond();
    (ms > 0).then_some(Timestamp(ms))
}

/// Reads the time of the last boot from the content of `stat`.
pub(super) fn boot_time(stat: &str) -> Option<Timestamp> {
    let line = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    let seconds: i64 = line.trim().parse().ok()?;
    seconds.checked_mul(1_000).map(Timestamp)
}

/// Returns the filters for listing the containers of a state folder, or of one uid in it.
pub(super) fn filters(folder: &str, uid: Option<&str>) -> HashMap<String, Vec<String>> {
    let mut labels = vec![format!("{}={folder}", super::label::STATE)];
    labels.extend(uid.map(|uid| format!("{}={uid}", super::label::UID)));
    HashMap::from([("label".to_owned(), labels)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(code: i64, oom: bool) -> ContainerState {
        ContainerState {
            running: Some(false),
            exit_code: Some(code),
            oom_killed: Some(oom),
            started_at: Some("2026-01-01T00:00:10.123456789Z".into()),
            finished_at: Some("2026-01-01T00:00:20Z".into()),
            ..ContainerState::default()
        }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp((1_767_225_600 + seconds) * 1_000)
    }

    /// Covers W7: exit codes, signals and out of memory.
    #[test]
    fn an_end_is_a_code_a_signal_or_out_of_memory() {
        for (code, oom, exit) in [
            (0, false, Exit::Code(0)),
            (3, false, Exit::Code(3)),
            (127, false, Exit::Code(127)),
            (128, false, Exit::Code(128)),
            (137, false, Exit::Signal(9)),
            (143, false, Exit::Signal(15)),
            (192, false, Exit::Signal(64)),
            (193, false, Exit::Code(193)),
            (255, false, Exit::Code(255)),
            (137, true, Exit::OutOfMemory),
        ] {
            let details = Details::read(&state(code, oom), at(0), None);
            assert_eq!(details.ended, Some((End::Exit(exit), at(20))), "{code}");
            assert_eq!(details.started, Timestamp(at(10).0 + 123));
        }
    }

    /// Covers W13: an end by reboot and an end before the reboot.
    #[test]
    fn an_end_with_the_machine_is_told_from_one_before_it() {
        for (code, boot, is_reboot) in [
            // The machine started before the container: it ended by itself.
            (255, 5, false),
            (143, 5, false),
            // The engine found it dead after the start of the machine.
            (255, 15, true),
            (0, 15, true),
            // It was stopped when the machine was, or had ended before.
            (143, 30, true),
            (137, 30, true),
            (1, 30, false),
            (0, 30, false),
        ] {
            let details = Details::read(&state(code, false), at(0), Some(at(boot)));
            let found = details.ended.map(|(end, _)| end == End::Reboot);
            assert_eq!(found, Some(is_reboot), "{code} {boot}");
        }
    }

    #[test]
    fn what_was_never_started_has_not_ended() {
        let made = ContainerState {
            running: Some(false),
            started_at: Some("0001-01-01T00:00:00Z".into()),
            finished_at: Some("0001-01-01T00:00:00Z".into()),
            ..ContainerState::default()
        };
        let details = Details::read(&made, at(1), None);
        assert_eq!((details.started, details.ended), (at(1), None));
        let runs = ContainerState {
            running: Some(true),
            ..state(0, false)
        };
        assert_eq!(Details::read(&runs, at(1), None).ended, None);
    }

    #[test]
    fn the_start_of_the_machine_is_read() {
        assert_eq!(boot_time("cpu 1\nbtime 1767225600\nprocesses 5\n"), Some(at(0)));
        for odd in ["", "btime", "btime x", "btimes 1"] {
            assert_eq!(boot_time(odd), None, "{odd}");
        }
    }
}
