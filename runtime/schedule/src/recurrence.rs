//! Windows that recur by a cron expression.

use jiff::{SignedDuration, Timestamp};

use crate::{Cron, Margins, Phase, Window, WindowError, Zone};

/// A window at each due time of a cron expression.
///
/// At any moment one occurrence governs, so that a lifecycle can follow it and start over with the next:
///
/// 1. from its start to its end an occurrence governs, unless a later one starts before: then that one does;
/// 2. after its end it governs until the teardown is over or the lead of the next begins, whichever is first;
/// 3. otherwise the next one governs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recurrence {
    cron: Cron,
    zone: Zone,
    length: SignedDuration,
    margins: Margins,
}

impl Recurrence {
    /// Creates windows of this elapsed length that start at each due time.
    ///
    /// # Errors
    /// [`WindowError`] if the length is not positive or a margin is negative.
    pub fn new(
        cron: Cron,
        zone: Zone,
        length: SignedDuration,
        margins: Margins,
    ) -> Result<Self, WindowError> {
        if !length.is_positive() {
            return Err(WindowError::Empty);
        }
        margins.check()?;
        Ok(Self {
            cron,
            zone,
            length,
            margins,
        })
    }

    /// Returns the occurrence that applies at a moment. `None` only near the ends of representable time.
    pub fn at(&self, now: Timestamp) -> Option<Window> {
        let last = self
            .cron
            .last_until(now, &self.zone)
            .and_then(|start| self.window(start));
        let next = self
            .cron
            .next_after(now, &self.zone)
            .and_then(|start| self.window(start));
        let (Some(last), Some(next)) = (last, next) else {
            return last.or(next);
        };
        let last_governs = match last.phase(now) {
            Phase::Before | Phase::Approaching | Phase::Active => true,
            Phase::Teardown => now < next.opening(),
            Phase::Expired => false,
        };
        Some(if last_governs { last } else { next })
    }

    /// Returns the next moment after `now` at which another occurrence or phase may apply.
    pub fn next_boundary(&self, now: Timestamp) -> Option<Timestamp> {
        let governing = self.at(now)?.next_boundary(now);
        let next = self
            .cron
            .next_after(now, &self.zone)
            .and_then(|start| self.window(start));
        let next = next.and_then(|window| window.next_boundary(now));
        governing.into_iter().chain(next).min()
    }

    /// Returns the occurrence that starts at a moment. `None` if it can't be represented.
    fn window(&self, start: Timestamp) -> Option<Window> {
        let end = start.checked_add(self.length).ok()?;
        Window::new(start, end, self.margins).ok()
    }
}
