//! A test of alerts over a year in zones with clock changes, with a program that sleeps for days and a clock that
//! jumps, against naive lists of due times and of what people are told.

use std::time::Duration;

use watershed_controller::Timestamp;
use watershed_metrics::jiff::civil::{Date, Time, date};
use watershed_metrics::jiff::{self, SignedDuration};
use watershed_schedule::{Cron, Schedule, Zone};

use super::policy::{Changes, Memory, Settings, Telling, Trigger, Verdict, decide, next, trigger};
use crate::intervals::Cut;
use crate::model::schedule::trusted;

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Time zones, each with a local time that its clock skips or repeats at a change, and the cron expression of that
/// time.
const PLACES: [(&str, (i8, i8), &str); 4] = [
    ("America/New_York", (2, 30), "30 2 * * *"),
    ("Australia/Lord_Howe", (2, 15), "15 2 * * *"),
    ("America/Havana", (0, 30), "30 0 * * *"),
    ("America/Havana", (6, 0), "0 6 * * *"),
];

/// A pseudorandom number generator.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, bound: i64) -> i64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        i64::try_from(self.0 >> 33).unwrap_or_default() % bound
    }

    pub(super) fn one_in(&mut self, count: i64) -> bool {
        self.below(count) == 0
    }
}

/// Returns the first instant of each day at which the zone's clock shows the given time or a later one, found minute by
/// minute.
fn days(zone: &Zone, time: Time) -> Vec<Timestamp> {
    let mut found = Vec::new();
    let mut day = date(2023, 12, 25);
    let mut at: jiff::Timestamp = "2023-12-24T00:00:00Z".parse().unwrap();
    while day < Date::constant(2025, 3, 1) {
        while zone.local(at) < day.to_datetime(time) {
            at += SignedDuration::from_mins(1);
        }
        found.push(Timestamp(at.as_millisecond()));
        day = day.tomorrow().unwrap();
    }
    found
}

/// An evaluated moment, with its verdict and the decision whether people are told.
struct Evaluated {
    at: Timestamp,
    verdict: Verdict,
    is_snoozed: bool,
    told: Telling,
}

/// Decides by rule N5, read literally over all previous evaluations.
fn told(
    settings: &Settings,
    before: &[Evaluated],
    verdict: Verdict,
    is_snoozed: bool,
    now: Timestamp,
) -> Telling {
    if is_snoozed {
        return Telling::Nobody;
    }
    let is_reset = |one: &Evaluated| one.verdict == Verdict::Pass && !one.is_snoozed;
    let since = before.iter().rposition(is_reset).map_or(0, |place| place + 1);
    let is_told = |one: &&Evaluated| matches!(one.told, Telling::Verdict { .. });
    let last = before[since..].iter().rev().find(is_told);
    let wanted = match verdict {
        Verdict::Pass if settings.on_recover && last.is_some() => return Telling::Recovery,
        Verdict::Pass => false,
        Verdict::Fail => settings.on_fail,
        Verdict::Error => settings.on_error,
    };
    let failure = before
        .iter()
        .rev()
        .filter(is_told)
        .find(|one| one.verdict == Verdict::Fail);
    let is_cool = failure.is_none_or(|one| one.at.after(settings.cool_down) <= now);
    let is_new = match last {
        Some(last) if last.verdict == verdict => {
            settings.renotify.is_some_and(|after| last.at.after(after) <= now)
        }
        _ => true,
    };
    if !wanted || !is_cool || !is_new {
        return Telling::Nobody;
    }
    let from = before
        .iter()
        .rposition(|one| is_told(&one))
        .map_or(0, |place| place + 1)
        .max(since);
    let is_suppressed = |one: &&Evaluated| match one.verdict {
        Verdict::Pass => false,
        _ if one.is_snoozed => true,
        Verdict::Fail => settings.on_fail,
        Verdict::Error => settings.on_error,
    };
    let suppressed = before[from..].iter().filter(is_suppressed).count();
    Telling::Verdict {
        suppressed: u32::try_from(suppressed).unwrap(),
    }
}

fn settings(random: &mut Random) -> Settings {
    Settings {
        on_fail: !random.one_in(8),
        on_error: random.one_in(2),
        on_recover: random.one_in(2),
        renotify: random.one_in(2).then(|| Duration::from_secs(3 * 86_400)),
        cool_down: Duration::from_secs(u64::try_from(random.below(3)).unwrap() * 86_400),
    }
}

/// A simulated program that looks at one alert at irregular times.
struct Program<'a> {
    schedule: Schedule,
    cut: Cut,
    /// All due times of the schedule.
    ticks: &'a [Timestamp],
    midnights: &'a [Timestamp],
    settings: Settings,
    mark: Timestamp,
    memory: Memory,
    interval: Option<Timestamp>,
    was_snoozed: bool,
    log: Vec<Evaluated>,
    covered: usize,
    /// The number of due times that occur again, since the clock was ahead by more than a correction.
    repeated: usize,
}

impl Program<'_> {
    /// Handles a clock that went back by more than a correction: the mark in the future becomes now.
    fn rewind(&mut self, now: Timestamp) {
        if self.mark.0 - now.0 > 3 * HOUR {
            let again = self
                .ticks
                .iter()
                .filter(|tick| now < **tick && **tick <= self.mark);
            self.repeated += again.count();
            self.mark = now;
        }
        assert_eq!(trusted(self.mark, now), self.mark);
    }

    /// Looks at the alert as its reconciler does, and compares each decision with the naive one.
    fn look(&mut self, now: Timestamp, is_snoozed: bool, random: &mut Random) {
        self.rewind(now);
        let ended = Changes {
            snooze: self.was_snoozed && !is_snoozed,
            ..Changes::default()
        };
        self.was_snoozed = is_snoozed;
        let due: Vec<Timestamp> = self
            .ticks
            .iter()
            .copied()
            .filter(|tick| self.mark < *tick && *tick <= now)
            .collect();
        let expected = match (ended.snooze, due.last()) {
            (true, _) => Some(Trigger::SnoozeEnd),
            (false, Some(last)) => Some(Trigger::Schedule(*last)),
            (false, None) => None,
        };
        let found = trigger(Some(&self.schedule), self.mark, ended, now);
        assert_eq!(found, expected, "marked {:?}, looked at {now:?}", self.mark);
        let Some(found) = found else { return };
        let moment = found.moment(now);
        self.mark = moment.max(now);
        self.covered += due.len();
        let closed = self.cut.due(self.interval, moment, ended.snooze);
        let since = |end: &&Timestamp| self.interval.is_none_or(|last| last < **end) && **end <= moment;
        let mut open: Vec<Timestamp> = self.midnights.iter().filter(since).copied().collect();
        let all = open.len();
        let mut left_out = all.saturating_sub(25);
        if self.interval.is_none() || (open.is_empty() && ended.snooze) {
            open = self
                .midnights
                .iter()
                .copied()
                .filter(|end| *end <= moment)
                .collect();
            left_out = open.len() - 1;
        }
        let ends: Vec<Timestamp> = closed.ends.iter().map(|end| end.at).collect();
        assert_eq!(ends, open[left_out..], "days that have ended by {moment:?}");
        if self.interval.is_some() && all > 0 {
            assert_eq!(closed.left_out, left_out as u64);
        }
        self.interval = ends.last().copied().max(self.interval);
        let verdict = match random.below(5) {
            0 | 1 => Verdict::Pass,
            2 | 3 => Verdict::Fail,
            _ => Verdict::Error,
        };
        for one in self.log.iter_mut().filter(|one| one.at.0 - now.0 > 3 * HOUR) {
            one.at = now;
        }
        let expected = told(&self.settings, &self.log, verdict, is_snoozed, now);
        let (memory, found) = decide(&self.settings, self.memory, verdict, is_snoozed, now);
        assert_eq!(found, expected, "after {} evaluations", self.log.len());
        self.memory = memory;
        self.log.push(Evaluated {
            at: now,
            verdict,
            is_snoozed,
            told: found,
        });
    }
}

/// Tests rules N1, N2 and N5: no scheduled time is missed or handled twice, however the program sleeps and the clock
/// jumps.
#[test]
fn a_year_is_as_naive_lists_have_it_whenever_the_program_sleeps_and_the_clock_jumps() {
    for (number, (place, (hour, minute), cron)) in (0_u64..).zip(&PLACES) {
        let zone = Zone::find(place).unwrap();
        let ticks = days(&zone, Time::constant(*hour, *minute, 0, 0));
        let midnights = days(&zone, Time::midnight());
        let schedule = Schedule::cron(Cron::parse(cron).unwrap(), zone.clone());
        for seed in 0..15 {
            year(&schedule, &ticks, &midnights, number * 100 + seed);
        }
    }
}

/// Simulates an alert's schedule over a year. Failures print the seed.
fn year(schedule: &Schedule, ticks: &[Timestamp], midnights: &[Timestamp], seed: u64) {
    let mut random = Random(seed);
    let place = schedule.zone().name().unwrap_or_default().to_owned();
    let begin = "2024-01-01T12:00:00Z"
        .parse::<jiff::Timestamp>()
        .unwrap()
        .as_millisecond();
    let mut program = Program {
        schedule: schedule.clone(),
        cut: Cut::days(schedule.zone().clone()),
        ticks,
        midnights,
        settings: settings(&mut random),
        mark: Timestamp(begin),
        memory: Memory::default(),
        interval: None,
        was_snoozed: false,
        log: Vec::new(),
        covered: 0,
        repeated: 0,
    };
    let (mut real, mut jump, mut snoozed_until) = (begin, 0, 0);
    while real < begin + 366 * DAY {
        let now = Timestamp(real + jump);
        program.look(now, now.0 < snoozed_until, &mut random);
        let after = program.mark.0.min(now.0);
        let first = ticks.iter().find(|tick| tick.0 > after).copied();
        let wake = next(Some(&program.schedule), program.mark, now);
        assert_eq!(wake, first, "{place}, seed {seed}");
        // It wakes when something is due, a little late, or after a long sleep.
        let wake = wake.unwrap().0.max(now.0 + MINUTE);
        real += match random.below(12) {
            0 => random.below(40) * DAY + random.below(DAY),
            1 => (wake - now.0) / 2 + 1,
            _ => wake - now.0 + random.below(2) * random.below(MINUTE),
        };
        if random.one_in(20) {
            jump = random.below(6 * HOUR) - 3 * HOUR;
        }
        if random.one_in(25) {
            snoozed_until = real + jump + random.below(10 * DAY);
        }
    }
    let passed = ticks
        .iter()
        .filter(|tick| begin < tick.0 && tick.0 <= program.mark.0)
        .count();
    let covered = program.covered - program.repeated;
    assert_eq!(covered, passed, "{place}, seed {seed}: each time once");
    assert!(program.log.len() > 30, "{place}, seed {seed}");
}
