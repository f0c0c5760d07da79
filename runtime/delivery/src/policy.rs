//! Retry and retention policy of messages, as pure functions (rules N7 and N8).

use std::time::Duration;

use watershed_controller::Timestamp;

/// The most attempts for a message. With the delays between them, they outlast an outage of several hours.
pub const ATTEMPTS: u32 = 12;
/// Delay after the first failed attempt.
pub const WAIT_FIRST: Duration = Duration::from_secs(10);
/// The longest delay, unless the receiver requests one.
pub const WAIT_MAX: Duration = Duration::from_secs(3_600);
/// The longest delay that a receiver may request; a longer one, most likely a mistake of units, is reduced to this.
pub const ASKED_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Retention of a delivered message, for looking up whether it was sent.
pub const KEEP_DELIVERED: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Retention of a dead message: longer than a holiday.
pub const KEEP_DEAD: Duration = Duration::from_secs(30 * 24 * 3_600);

/// Class of a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// A retry may succeed.
    Transient,
    /// No retry can succeed.
    Permanent,
}

/// Decision after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Retry at this time.
    At(Timestamp),
    /// No retry: the message is dead until a person requests one.
    Dead,
}

/// Decides whether and when to retry after failed attempt number `attempts`, counted from 1 (N8).
///
/// The wait is 10 s, doubled with each failure up to an hour, and up to a tenth longer, so that messages which failed
/// together are not sent together. `draw` is any number: 0 adds nothing. A receiver that asks for a longer wait gets it.
#[must_use]
pub fn after_failure(
    attempts: u32,
    class: Class,
    asked: Option<Duration>,
    now: Timestamp,
    draw: u32,
) -> Next {
    if class == Class::Permanent || attempts >= ATTEMPTS {
        return Next::Dead;
    }
    let doubled = WAIT_FIRST.saturating_mul(1 << attempts.saturating_sub(1).min(16));
    let wait = doubled.min(WAIT_MAX);
    let more = wait.as_millis() * u128::from(draw) / (u128::from(u32::MAX) * 10);
    let wait = wait + Duration::from_millis(u64::try_from(more).unwrap_or(0));
    let asked = asked.unwrap_or_default().min(ASKED_MAX);
    Next::At(now.after(wait.max(asked)))
}

/// Returns the time of the next attempt. A time further ahead than any delay was stored by a wrong clock, so the
/// attempt is due now.
#[must_use]
pub fn known_next(next: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
    next.filter(|next| *next > now && *next <= now.after(ASKED_MAX))
}

/// Classifies an HTTP status other than success (N8).
#[must_use]
pub fn of_status(status: u16) -> Class {
    match status {
        408 | 425 | 429 => Class::Transient,
        // A redirect is not followed, and the next attempt would meet it again.
        300..=499 => Class::Permanent,
        _ => Class::Transient,
    }
}

/// Classifies an exit code other than success (N8): only 75 (`EX_TEMPFAIL`) and an end by a signal allow a retry.
#[must_use]
pub fn of_exit(code: Option<i32>) -> Class {
    match code {
        Some(75) | None => Class::Transient,
        Some(_) => Class::Permanent,
    }
}

/// Position and state of another message in the same lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queued {
    /// Position among the sender's messages; lower ones go first.
    pub order: u64,
    /// True if the message is neither delivered nor dead.
    pub is_open: bool,
}

/// Returns true if all earlier messages in the lane are delivered or dead (N7), so that no recovery overtakes its
/// failure.
#[must_use]
pub fn is_its_turn(order: u64, others: &[Queued]) -> bool {
    !others.iter().any(|other| other.is_open && other.order < order)
}

/// Returns the end of a message's retention (N6, N8).
#[must_use]
pub fn kept_until(ended: Timestamp, is_dead: bool) -> Timestamp {
    ended.after(if is_dead { KEEP_DEAD } else { KEEP_DELIVERED })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000);

    fn wait(attempts: u32, asked: Option<u64>, draw: u32) -> Option<u64> {
        match after_failure(
            attempts,
            Class::Transient,
            asked.map(Duration::from_secs),
            NOW,
            draw,
        ) {
            Next::At(at) => u64::try_from(at.0 - NOW.0).ok(),
            Next::Dead => None,
        }
    }

    /// Covers rule N8: the time of the next attempt from a wrong clock.
    #[test]
    fn a_clock_that_was_ahead_keeps_no_message_waiting_for_years() {
        let later = |wait: Duration| Some(NOW.after(wait));
        assert_eq!(known_next(later(WAIT_MAX), NOW), later(WAIT_MAX));
        assert_eq!(known_next(later(ASKED_MAX), NOW), later(ASKED_MAX));
        assert_eq!(known_next(later(ASKED_MAX * 300), NOW), None);
        assert_eq!(known_next(Some(NOW), NOW), None);
    }

    /// Covers rule N8: the delays between attempts.
    #[test]
    fn waits_double_up_to_an_hour_and_end_after_twelve_attempts() {
        let waits: Vec<Option<u64>> = (1..=12).map(|attempts| wait(attempts, None, 0)).collect();
        let seconds = [10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600, 3_600];
        let mut expected: Vec<Option<u64>> = seconds.iter().map(|s| Some(s * 1_000)).collect();
        expected.push(None);
        assert_eq!(waits, expected);
        let all: u64 = waits.iter().flatten().sum();
        assert!(all > 3 * 3_600_000, "{all}");
    }

    /// Covers rule N8: delays that a receiver requests.
    #[test]
    fn a_receiver_that_asks_for_a_longer_wait_gets_it_within_a_day() {
        let cases = [
            (1, Some(5), 0, Some(10_000)),
            (1, Some(30), 0, Some(30_000)),
            (4, Some(30), 0, Some(80_000)),
            (1, Some(1_000_000), 0, Some(86_400_000)),
            (1, None, u32::MAX, Some(11_000)),
            (12, Some(30), 0, None),
        ];
        for (attempts, asked, draw, expected) in cases {
            assert_eq!(
                wait(attempts, asked, draw),
                expected,
                "{attempts} {asked:?} {draw}"
            );
        }
    }

    /// Covers rule N8: the decision after a permanent failure.
    #[test]
    fn permanent_failures_are_dead_at_once() {
        assert_eq!(after_failure(1, Class::Permanent, None, NOW, 0), Next::Dead);
        for transient in [408, 425, 429, 500, 502, 503, 599, 100] {
            assert_eq!(of_status(transient), Class::Transient, "{transient}");
        }
        for permanent in [301, 302, 307, 400, 401, 403, 404, 410, 422] {
            assert_eq!(of_status(permanent), Class::Permanent, "{permanent}");
        }
        for (code, class) in [
            (Some(75), Class::Transient),
            (None, Class::Transient),
            (Some(1), Class::Permanent),
            (Some(127), Class::Permanent),
        ] {
            assert_eq!(of_exit(code), class, "{code:?}");
        }
    }

    /// Covers rule N7: the order within a lane.
    #[test]
    fn a_message_waits_for_earlier_ones_that_are_open() {
        let queued = |order, is_open| Queued { order, is_open };
        let cases: [(&[Queued], bool); 5] = [
            (&[], true),
            (&[queued(1, false)], true),
            (&[queued(1, true)], false),
            (&[queued(1, false), queued(2, true)], false),
            (&[queued(9, true)], true),
        ];
        for (others, expected) in cases {
            assert_eq!(is_its_turn(5, others), expected, "{others:?}");
        }
    }

    /// Covers rules N6 and N8: retention.
    #[test]
    fn delivered_ones_are_kept_a_week_and_dead_ones_a_month() {
        let day = 24 * 3_600_000;
        assert_eq!(kept_until(NOW, false).0 - NOW.0, 7 * day);
        assert_eq!(kept_until(NOW, true).0 - NOW.0, 30 * day);
    }
}
