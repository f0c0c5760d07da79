//! The stored state of a notification.

use serde::{Deserialize, Serialize};
use watershed_controller::{Timestamp, json_message};

use crate::notify::{DeliveryError, Receipt};
use crate::policy::{self, Next};

/// Delivery state of a message.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "standing", rename_all = "snake_case")]
pub enum Standing {
    /// Not delivered yet.
    #[default]
    Waiting,
    /// Accepted by the receiver.
    Delivered {
        /// Time of the delivery.
        at: Timestamp,
        /// The receiver's answer.
        receipt: Receipt,
    },
    /// Given up as undeliverable; not retried without a request.
    Dead {
        /// Time at which the message was given up.
        at: Timestamp,
    },
}

/// The stored state of a notification.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Record {
    /// Number of attempts begun.
    pub attempts: u32,
    /// True while the outcome of the last attempt is not stored; after a crash the attempt is repeated.
    pub is_open: bool,
    /// Start of the last attempt; none before the first.
    pub last: Option<Timestamp>,
    /// Time at which the next attempt is due; none if none is planned.
    pub next: Option<Timestamp>,
    /// Failure of the last attempt; none if it did not fail.
    pub failure: Option<String>,
    /// Number of requests for another try that were handled.
    pub refreshes: u64,
    /// Delivery state.
    #[serde(flatten)]
    pub standing: Standing,
}

json_message!(Record, format = 1);

impl Record {
    /// Returns true if the message is neither delivered nor dead.
    #[must_use]
    pub fn is_open_yet(&self) -> bool {
        self.standing == Standing::Waiting
    }

    /// Returns the time at which the notification is deleted; none while it is neither delivered nor dead.
    #[must_use]
    pub fn kept_until(&self) -> Option<Timestamp> {
        match self.standing {
            Standing::Waiting => None,
            Standing::Delivered { at, .. } => Some(policy::kept_until(at, false)),
            Standing::Dead { at } => Some(policy::kept_until(at, true)),
        }
    }

    /// Handles requests for another try: a dead message starts over, a waiting one is sent at once.
    pub(super) fn answer(&mut self, refreshes: u64) {
        if self.refreshes == refreshes {
            return;
        }
        self.refreshes = refreshes;
        self.next = None;
        if matches!(self.standing, Standing::Dead { .. }) {
            self.attempts = 0;
            self.standing = Standing::Waiting;
        }
    }

    /// Records the beginning of an attempt.
    pub(super) fn begin(&mut self, now: Timestamp) {
        self.attempts = self.attempts.saturating_add(1);
        self.is_open = true;
        self.last = Some(now);
        self.next = None;
    }

    /// Records the outcome of the current attempt.
    pub(super) fn end(&mut self, ended: Result<Receipt, DeliveryError>, now: Timestamp, draw: u32) {
        self.is_open = false;
        let error = match ended {
            Ok(receipt) => {
                self.failure = None;
                self.standing = Standing::Delivered { at: now, receipt };
                return;
            }
            Err(error) => error,
        };
        self.failure = Some(error.message);
        match policy::after_failure(self.attempts, error.class, error.retry_after, now, draw) {
            Next::At(at) => self.next = Some(at),
            Next::Dead => self.standing = Standing::Dead { at: now },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(5_000);

    fn failed(record: &mut Record, error: DeliveryError) {
        record.begin(NOW);
        record.end(Err(error), NOW, 0);
    }

    /// Covers rules N7 and N8: all attempts of a message up to its end.
    #[test]
    fn a_message_goes_from_attempt_to_attempt_to_its_end() {
        let mut record = Record::default();
        record.begin(NOW);
        assert!(record.is_open && record.attempts == 1);
        record.end(Err(DeliveryError::transient("no")), NOW, 0);
        assert!(!record.is_open && record.is_open_yet());
        assert_eq!(record.next, Some(Timestamp(15_000)));
        assert_eq!(record.failure.as_deref(), Some("no"));
        record.begin(NOW);
        record.end(Ok(Receipt::default()), NOW, 0);
        assert!(!record.is_open_yet() && record.failure.is_none());
        assert_eq!(record.kept_until(), Some(policy::kept_until(NOW, false)));
    }

    /// Covers rule N8: a request restarts the attempts of a dead message.
    #[test]
    fn a_request_sends_a_dead_message_as_if_it_were_new() {
        let mut record = Record::default();
        for _ in 0..policy::ATTEMPTS {
            assert!(record.is_open_yet());
            failed(&mut record, DeliveryError::transient("no"));
        }
        assert_eq!(record.standing, Standing::Dead { at: NOW });
        record.answer(0);
        assert!(!record.is_open_yet(), "nobody has asked");
        record.answer(1);
        assert!(record.is_open_yet() && record.attempts == 0);
        failed(&mut record, DeliveryError::permanent("gone"));
        assert_eq!(record.standing, Standing::Dead { at: NOW });
    }

    /// Covers rule N8: a request ends the wait before the next attempt.
    #[test]
    fn a_request_shortens_a_wait_and_sends_nothing_twice() {
        let mut record = Record::default();
        failed(&mut record, DeliveryError::transient("no"));
        record.answer(1);
        assert_eq!((record.next, record.attempts), (None, 1));
        record.begin(NOW);
        record.end(Ok(Receipt::default()), NOW, 0);
        record.answer(2);
        assert!(!record.is_open_yet());
    }
}
