//! Grouping of successive evaluations into messages. Each is decided as if evaluated alone, so that the number
//! evaluated in one invocation does not matter (N5); continued failures of one invocation share a message.

use watershed_controller::Timestamp;

use super::policy::{Memory, Settings, Telling, Verdict, decide};
use super::record::{Entry, Finding, News};

/// The circumstances of a decision, apart from memory and finding.
#[derive(Debug, Clone, Copy)]
pub(super) struct Circumstances<'a> {
    pub(super) settings: &'a Settings,
    pub(super) is_snoozed: bool,
    /// The time that counts for renewed messages and the cool-down.
    pub(super) clock: Timestamp,
}

/// Decides about the evaluation after `before`. Returns the news to be told now, if any, and the news that may still
/// grow.
pub(super) fn follow(
    around: Circumstances<'_>,
    memory: &mut Memory,
    before: Option<News>,
    finding: Finding,
    entry: Entry,
) -> (Option<News>, News) {
    let (after, telling) = decide(
        around.settings,
        *memory,
        finding.verdict,
        around.is_snoozed,
        around.clock,
    );
    *memory = after;
    let is_failure = finding.verdict == Verdict::Fail;
    let moment = entry.moment;
    match before {
        Some(before) if telling == Telling::Nobody && !around.is_snoozed && before.fails() && is_failure => {
            let mut entries = before.entries;
            entries.push(entry);
            let longer = News {
                finding,
                moment,
                failed: before.failed.saturating_add(1),
                telling: before.telling,
                entries,
            };
            (None, longer)
        }
        before => {
            let next = News {
                finding,
                moment,
                failed: u32::from(is_failure),
                telling: Some(telling),
                entries: vec![entry],
            };
            (before, next)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::year::Random;
    use super::*;

    const DAY: i64 = 86_400_000;

    fn entry(day: i64, verdict: Verdict) -> Entry {
        Entry {
            at: Timestamp(0),
            moment: Timestamp(day * DAY),
            verdict,
            rows: None,
            error: String::new(),
            hint: String::new(),
            left_out: 0,
            told: Vec::new(),
        }
    }

    /// A message: the day of its decision, its verdict, and the number of suppressed evaluations.
    type Told = (i64, &'static str, u32);

    fn told(news: &News) -> Option<Told> {
        let day = news.moment.0 / DAY - i64::from(news.failed.saturating_sub(1));
        match news.telling? {
            Telling::Nobody => None,
            Telling::Verdict { suppressed } => Some((day, news.finding.verdict.as_str(), suppressed)),
            Telling::Recovery => Some((day, "recovered", 0)),
        }
    }

    /// Returns the messages about days that are evaluated in groups of the given lengths.
    fn messages(settings: &Settings, days: &[Verdict], looks: &[usize]) -> Vec<Told> {
        let (mut memory, mut found) = (Memory::default(), Vec::new());
        let mut left = (0_i64..).zip(days).peekable();
        let mut looks = looks.iter().copied().cycle();
        while left.peek().is_some() {
            let mut news = None;
            for (day, verdict) in left.by_ref().take(looks.next().unwrap_or(1).max(1)) {
                let around = Circumstances {
                    settings,
                    is_snoozed: false,
                    clock: Timestamp(day * DAY),
                };
                let finding = Finding::of(*verdict);
                let (done, next) = follow(around, &mut memory, news.take(), finding, entry(day, *verdict));
                found.extend(done.as_ref().and_then(told));
                news = Some(next);
            }
            found.extend(news.as_ref().and_then(told));
        }
        found
    }

    fn settings(random: &mut Random) -> Settings {
        let mut days = || Duration::from_secs(u64::try_from(random.below(4)).unwrap_or_default() * 86_400);
        let (renotify, cool_down) = (days(), days());
        Settings {
            on_fail: !random.one_in(4),
            on_error: random.one_in(2),
            on_recover: random.one_in(2),
            renotify: random.one_in(2).then_some(renotify),
            cool_down,
        }
    }

    /// Tests rule N5: the frequency of looks does not decide who is told of what.
    #[test]
    fn the_same_days_make_the_same_messages_in_however_many_goes_they_are_looked_at() {
        for seed in 0..5_000 {
            let mut random = Random(seed);
            let settings = settings(&mut random);
            let of = [Verdict::Pass, Verdict::Fail, Verdict::Fail, Verdict::Error];
            let count = 1 + random.below(30);
            let days: Vec<Verdict> = (0..count)
                .map(|_| of[usize::try_from(random.below(4)).unwrap_or_default()])
                .collect();
            let looks: Vec<usize> = (0..8)
                .map(|_| usize::try_from(1 + random.below(9)).unwrap_or(1))
                .collect();
            assert_eq!(
                messages(&settings, &days, &looks),
                messages(&settings, &days, &[1]),
                "seed {seed}: {settings:?}, {days:?} in goes of {looks:?}"
            );
        }
    }

    /// Tests rule N5: continued failures share one message, and a new failure gets another.
    #[test]
    fn a_failure_that_goes_on_is_one_message_and_a_new_one_another() {
        use Verdict::{Fail, Pass};
        let settings = Settings {
            on_fail: true,
            on_error: false,
            on_recover: true,
            renotify: None,
            cool_down: Duration::ZERO,
        };
        let days = [Fail, Fail, Pass, Fail, Pass];
        let story = [
            (0, "fail", 0),
            (2, "recovered", 0),
            (3, "fail", 0),
            (4, "recovered", 0),
        ];
        assert_eq!(messages(&settings, &days, &[5]), story);
        assert_eq!(messages(&settings, &days, &[1]), story);
    }
}
