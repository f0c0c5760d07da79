//! The decisions about an alert as pure functions: when it is evaluated, and what people are told (rules N1 and N5).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use watershed_controller::Timestamp;
use watershed_proto::AlertSpec;
use watershed_schedule::{Due, Schedule, jiff};

use crate::model::schedule;

/// The result of evaluating an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The query has no rows.
    Pass,
    /// The query has rows.
    Fail,
    /// The query could not run.
    Error,
}

impl Verdict {
    /// Returns the word for the verdict: `pass`, `fail` or `error`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Error => "error",
        }
    }
}

/// The settings of an alert that decide when people are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// True if people are told of failures.
    pub on_fail: bool,
    /// True if people are told of errors.
    pub on_error: bool,
    /// True if people are told of recoveries.
    pub on_recover: bool,
    /// The time after which people are told of the same verdict again; none for never.
    pub renotify: Option<Duration>,
    /// The time after a told failure in which only a recovery is told.
    pub cool_down: Duration,
}

impl From<&AlertSpec> for Settings {
    fn from(spec: &AlertSpec) -> Self {
        let seconds = |seconds: u32| Duration::from_secs(u64::from(seconds));
        Self {
            on_fail: spec.notify_on_fail,
            on_error: spec.notify_on_error,
            on_recover: spec.notify_on_recover,
            renotify: spec.renotify.then(|| seconds(spec.renotify_after_seconds)),
            cool_down: seconds(spec.cool_down_seconds),
        }
    }
}

/// The remembered facts that decide whether people are told; the history is not used for that (N4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Memory {
    /// The verdict of the last evaluation; none before the first.
    pub last: Option<Verdict>,
    /// The verdict last told and its time; none after a pass.
    pub told: Option<(Verdict, Timestamp)>,
    /// The time at which a failure was last told, whatever followed.
    pub failure_told: Option<Timestamp>,
    /// The number of evaluations that were not told since the last told one.
    pub suppressed: u32,
    /// The time of the first evaluation that was not told, if there is one.
    pub suppressed_since: Option<Timestamp>,
}

impl Memory {
    /// Returns the memory with times in the future, from a clock that was ahead, moved to `now`.
    fn known_at(self, now: Timestamp) -> Self {
        let known = |at| schedule::trusted(at, now);
        Self {
            told: self.told.map(|(verdict, at)| (verdict, known(at))),
            failure_told: self.failure_told.map(known),
            suppressed_since: self.suppressed_since.map(known),
            ..self
        }
    }
}

/// The decision whether people are told of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Telling {
    /// No message is sent.
    Nobody,
    /// People are told of the verdict, and of the number of suppressed evaluations before.
    Verdict {
        /// The number of suppressed evaluations.
        suppressed: u32,
    },
    /// People are told of the recovery.
    Recovery,
}

/// Decides whether people are told of a verdict (N5). During a snooze nobody is; the memory stays, so that changes are
/// told when the snooze ends.
#[must_use]
pub fn decide(
    settings: &Settings,
    memory: Memory,
    verdict: Verdict,
    is_snoozed: bool,
    now: Timestamp,
) -> (Memory, Telling) {
    let (memory, last) = (memory.known_at(now), Some(verdict));
    if is_snoozed {
        let fails = verdict != Verdict::Pass;
        let held = Memory {
            last,
            suppressed: memory.suppressed.saturating_add(u32::from(fails)),
            suppressed_since: memory.suppressed_since.or(fails.then_some(now)),
            ..memory
        };
        return (held, Telling::Nobody);
    }
    let wanted = match verdict {
        Verdict::Pass => {
            let telling = match settings.on_recover && memory.told.is_some() {
                true => Telling::Recovery,
                false => Telling::Nobody,
            };
            let passed = Memory {
                last,
                failure_told: memory.failure_told,
                ..Memory::default()
            };
            return (passed, telling);
        }
        Verdict::Fail => settings.on_fail,
        Verdict::Error => settings.on_error,
    };
    let memory = Memory { last, ..memory };
    if !wanted {
        return (memory, Telling::Nobody);
    }
    let is_due = match memory.told {
        Some((told, at)) if told == verdict => settings.renotify.is_some_and(|after| at.after(after) <= now),
        _ => true,
    };
    let is_cool = memory
        .failure_told
        .is_none_or(|at| at.after(settings.cool_down) <= now);
    if !is_due || !is_cool {
        let held = Memory {
            suppressed: memory.suppressed.saturating_add(1),
            suppressed_since: memory.suppressed_since.or(Some(now)),
            ..memory
        };
        return (held, Telling::Nobody);
    }
    let suppressed = memory.suppressed;
    let told = Memory {
        last,
        told: Some((verdict, now)),
        failure_told: match verdict {
            Verdict::Fail => Some(now),
            _ => memory.failure_told,
        },
        suppressed: 0,
        suppressed_since: None,
    };
    (told, Telling::Verdict { suppressed })
}

/// The reason to evaluate an alert now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// A person asked for the evaluation.
    Request,
    /// The query of the alert was changed.
    Question,
    /// The target of a ref has changed.
    Refs,
    /// A snooze of the alert has ended.
    SnoozeEnd,
    /// An evaluation of several intervals was interrupted.
    Resumed,
    /// A scheduled time has come; holds that time.
    Schedule(Timestamp),
}

impl Trigger {
    /// Returns the moment to evaluate: the exact scheduled time if the schedule is the trigger, otherwise now.
    #[must_use]
    pub fn moment(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Schedule(at) => at,
            _ => now,
        }
    }
}

/// The changes since the last evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Changes {
    /// True if a person asked for an evaluation.
    pub requested: bool,
    /// True if the query was changed.
    pub question: bool,
    /// True if targets of refs have other versions and the alert reacts to that.
    pub refs: bool,
    /// True if a snooze has ended.
    pub snooze: bool,
}

/// Decides whether an alert is evaluated now (N1); `mark` is the time up to which its schedule was handled.
#[must_use]
pub fn trigger(
    schedule: Option<&Schedule>,
    mark: Timestamp,
    changes: Changes,
    now: Timestamp,
) -> Option<Trigger> {
    match changes {
        Changes { requested: true, .. } => return Some(Trigger::Request),
        Changes { question: true, .. } => return Some(Trigger::Question),
        Changes { refs: true, .. } => return Some(Trigger::Refs),
        Changes { snooze: true, .. } => return Some(Trigger::SnoozeEnd),
        _ => {}
    }
    match schedule?.due(instant(mark), instant(now)) {
        Due::Now(tick) => Some(Trigger::Schedule(Timestamp(tick.time.as_millisecond()))),
        Due::Later(_) | Due::Never | Due::Rewound => None,
    }
}

/// Returns the next scheduled time after `mark`, or after `now` if the mark is in the future.
#[must_use]
pub fn next(schedule: Option<&Schedule>, mark: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let next = schedule?.next_after(instant(mark.min(now)))?;
    Some(Timestamp(next.as_millisecond()))
}

fn instant(at: Timestamp) -> jiff::Timestamp {
    jiff::Timestamp::from_millisecond(at.0).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Error, Fail, Pass};

    const MINUTE: i64 = 60_000;
    const PLAIN: Settings = Settings {
        on_fail: true,
        on_error: false,
        on_recover: false,
        renotify: None,
        cool_down: Duration::ZERO,
    };
    const ALL: Settings = Settings {
        on_error: true,
        on_recover: true,
        ..PLAIN
    };

    /// Returns the letters of what is told for verdicts a minute apart: `F3` is a told failure with three suppressed
    /// before.
    fn story(settings: &Settings, verdicts: &[Verdict]) -> String {
        let mut memory = Memory::default();
        let mut told = Vec::new();
        for (minute, verdict) in (0..).zip(verdicts) {
            let (after, telling) = decide(settings, memory, *verdict, false, Timestamp(minute * MINUTE));
            memory = after;
            told.push(match (telling, verdict) {
                (Telling::Nobody, _) => "-".to_owned(),
                (Telling::Recovery, _) => "R".to_owned(),
                (Telling::Verdict { suppressed }, Fail) => format!("F{suppressed}"),
                (Telling::Verdict { suppressed }, _) => format!("E{suppressed}"),
            });
        }
        told.join(" ")
    }

    /// Tests rule N5: a failure is told once, and again only after a pass.
    #[test]
    fn people_are_told_once_and_again_only_after_a_pass() {
        let cases: [(&Settings, &[Verdict], &str); 6] = [
            (&PLAIN, &[Pass, Fail, Fail, Fail], "- F0 - -"),
            (&PLAIN, &[Fail, Pass, Fail], "F0 - F0"),
            (&PLAIN, &[Fail, Error, Fail, Pass, Error], "F0 - - - -"),
            (&ALL, &[Pass, Fail, Fail, Pass, Pass], "- F0 - R -"),
            (&ALL, &[Fail, Error, Error, Fail, Pass], "F0 E0 - F1 R"),
            (&ALL, &[Error, Pass, Error], "E0 R E0"),
        ];
        for (settings, verdicts, expected) in cases {
            assert_eq!(story(settings, verdicts), expected, "{verdicts:?}");
        }
    }

    /// Tests rule N5: the same verdict is told again after the set time.
    #[test]
    fn the_same_is_told_again_after_a_while_if_that_is_wanted() {
        let again = Settings {
            renotify: Some(Duration::from_secs(120)),
            ..PLAIN
        };
        assert_eq!(story(&again, &[Fail, Fail, Fail, Fail, Fail]), "F0 - F1 - F1");
        let always = Settings {
            renotify: Some(Duration::ZERO),
            ..PLAIN
        };
        assert_eq!(story(&always, &[Fail, Fail]), "F0 F0");
    }

    /// Tests rule N5: a cool-down suppresses everything except a recovery, and the next message counts the suppressed
    /// ones.
    #[test]
    fn a_cool_down_holds_back_all_but_a_recovery_and_the_next_one_counts() {
        let cool = Settings {
            cool_down: Duration::from_secs(180),
            ..ALL
        };
        assert_eq!(
            story(&cool, &[Fail, Pass, Fail, Fail, Fail, Pass]),
            "F0 R - F1 - R"
        );
        assert_eq!(story(&cool, &[Fail, Error, Error, Error]), "F0 - - E2");
        assert_eq!(
            story(&cool, &[Fail, Pass, Fail, Pass, Fail]),
            "F0 R - - F0",
            "what was not told has no recovery"
        );
    }

    /// Tests rule N5: nobody is told during a snooze, and its end tells the changes.
    #[test]
    fn nobody_is_told_while_it_is_snoozed_and_its_end_tells_what_has_changed() {
        let told = |memory, verdict, is_snoozed, minute| {
            decide(&ALL, memory, verdict, is_snoozed, Timestamp(minute * MINUTE))
        };
        let (failed, telling) = told(Memory::default(), Fail, false, 0);
        assert_eq!(telling, Telling::Verdict { suppressed: 0 });
        let (asleep, telling) = told(failed, Fail, true, 1);
        assert_eq!(telling, Telling::Nobody);
        assert_eq!(
            told(asleep, Fail, false, 2).1,
            Telling::Nobody,
            "it was told before"
        );
        let (passed, telling) = told(asleep, Pass, true, 2);
        assert_eq!(telling, Telling::Nobody);
        assert_eq!(told(passed, Pass, false, 3).1, Telling::Recovery);
        let (new, _) = told(Memory::default(), Fail, true, 0);
        assert_eq!(told(new, Fail, false, 1).1, Telling::Verdict { suppressed: 1 });
        assert_eq!(
            told(new, Pass, false, 1).1,
            Telling::Nobody,
            "nobody was told of it"
        );
    }

    /// Tests rule N1: the exact scheduled time is evaluated if the schedule alone is the trigger.
    #[test]
    fn an_alert_is_evaluated_for_the_clean_time_if_only_its_schedule_asks() {
        let hourly = Schedule::every(jiff::SignedDuration::from_hours(1)).expect("it is long enough");
        let (mark, hour) = (Timestamp(0), 60 * MINUTE);
        let late = Timestamp(2 * hour + 5 * MINUTE);
        let none = Changes::default();
        let of = |schedule, changes, now| trigger(schedule, mark, changes, now);
        assert_eq!(of(Some(&hourly), none, Timestamp(hour - 1)), None);
        let due = of(Some(&hourly), none, late);
        assert_eq!(
            due,
            Some(Trigger::Schedule(Timestamp(2 * hour))),
            "missed ones once"
        );
        assert_eq!(due.map(|due| due.moment(late)), Some(Timestamp(2 * hour)));
        assert_eq!(of(None, none, late), None);
        let requested = Changes {
            requested: true,
            ..none
        };
        let asked = of(Some(&hourly), requested, late);
        assert_eq!(asked.map(|asked| asked.moment(late)), Some(late));
        for (changes, expected) in [
            (
                Changes {
                    question: true,
                    ..none
                },
                Trigger::Question,
            ),
            (Changes { refs: true, ..none }, Trigger::Refs),
        ] {
            assert_eq!(of(None, changes, late), Some(expected));
        }
        assert_eq!(
            next(Some(&hourly), late, mark),
            Some(Timestamp(hour)),
            "a clock that went back"
        );
    }
}
