//! The time from which the schedule of an output counts, given builds, edits and clocks.

use watershed_core::Timestamp;

use super::{record::Record, schedule};

impl Record {
    /// Returns the time from which the schedule counts: the last build, the last check that found nothing new, or a
    /// later edit of the schedule. Times in the future, from a clock that was ahead, are ignored.
    #[must_use]
    pub fn mark(&self, now: Timestamp) -> Timestamp {
        let done = Timestamp(self.built_at_ms.max(self.asked_at_ms));
        match is_trusted(done, now) {
            true => done.max(self.counts_from(now).unwrap_or(done)),
            false => self.counts_from(now).unwrap_or(now),
        }
    }

    /// Returns a recorded time of the present rows or, if it is from a clock that was ahead, the time when that was
    /// noticed.
    #[must_use]
    pub fn known(&self, noted: Timestamp, now: Timestamp) -> Timestamp {
        match is_trusted(noted, now) {
            true => noted,
            false => self.counts_from(now).unwrap_or(now),
        }
    }

    /// Restarts the schedule from now if its times were edited, or if the last build ran by a clock that was ahead.
    pub fn count_anew(&mut self, schedule: String, now: Timestamp) {
        let done = Timestamp(self.built_at_ms.max(self.asked_at_ms));
        let is_edited = !self.schedule.is_empty() && self.schedule != schedule;
        let is_lost = match self.counts_from(now) {
            None => self.counts_from_ms > 0 || !is_trusted(done, now),
            Some(_) => false,
        };
        if is_edited || is_lost {
            self.counts_from_ms = now.0;
        }
        // States of before had none, and are left as they are where there is nothing to say.
        if !self.schedule.is_empty() || schedule != schedule::NO_TIMES {
            self.schedule = schedule;
        }
    }

    fn counts_from(&self, now: Timestamp) -> Option<Timestamp> {
        let from = Timestamp(self.counts_from_ms);
        (from.0 > 0 && is_trusted(from, now)).then_some(from)
    }
}

fn is_trusted(noted: Timestamp, now: Timestamp) -> bool {
    schedule::trusted(noted, now) == noted
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::*;

    const HOUR: i64 = 3_600_000;

    #[test]
    fn a_schedule_counts_from_its_edit_and_not_from_a_clock_that_was_ahead() {
        let at = |hours: i64| Timestamp(1_700_000_000_000 + hours * HOUR);
        let built = |hours: i64| Record {
            built_at_ms: at(hours).0,
            asked_at_ms: 0,
            schedule: "daily".to_owned(),
            counts_from_ms: 0,
            ..record()
        };
        let looked = |mut record: Record, schedule: &str, now: i64| {
            record.count_anew(schedule.to_owned(), at(now));
            record
        };
        assert_eq!(looked(built(0), "daily", 9).mark(at(9)), at(0));
        // Edited at nine, it counts from nine, also later.
        let edited = looked(built(0), "nightly", 9);
        assert_eq!(edited.mark(at(9)), at(9));
        let later = looked(edited, "nightly", 20);
        assert_eq!(later.mark(at(20)), at(9));
        // Nothing is known of the schedule that an earlier version built it by.
        let old = Record {
            schedule: String::new(),
            ..built(0)
        };
        assert_eq!(looked(old.clone(), "daily", 9).mark(at(9)), at(0));
        assert_eq!(looked(old.clone(), schedule::NO_TIMES, 9), old);
        // Built in five years, by a clock that is right again at nine.
        let ahead = looked(built(5 * 8_760), "daily", 9);
        assert_eq!(ahead.mark(at(9)), at(9));
        let later = looked(ahead, "daily", 30);
        assert_eq!(later.mark(at(30)), at(9), "and not from whenever it is looked at");
        assert_eq!(
            later.known(at(5 * 8_760), at(30)),
            at(9),
            "its rows came then, too"
        );
        // Edited by such a clock.
        let edited_ahead = Record {
            counts_from_ms: at(5 * 8_760).0,
            ..built(0)
        };
        assert_eq!(looked(edited_ahead, "daily", 9).mark(at(9)), at(9));
    }
}
