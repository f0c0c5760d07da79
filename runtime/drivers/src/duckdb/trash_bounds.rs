//! Limits of the trash, unknown until they are set.

use std::sync::Mutex;

use watershed_locks::Unpoisoned;

use crate::olap::TrashLimits;

/// The limits of the trash; none before they are set.
#[derive(Default)]
pub(super) struct TrashBounds(Mutex<Option<TrashLimits>>);

impl TrashBounds {
    pub(super) fn set(&self, limits: TrashLimits) {
        *self.0.lock().unpoisoned() = Some(limits);
    }

    /// Returns the limits that were set; none before.
    pub(super) fn stated(&self) -> Option<TrashLimits> {
        *self.0.lock().unpoisoned()
    }

    /// Returns the limits that were set, or the defaults.
    pub(super) fn limits(&self) -> TrashLimits {
        self.stated().unwrap_or_default()
    }

    /// Returns true if replaced tables move to the trash.
    pub(super) fn keeps(&self) -> bool {
        self.limits().bytes > 0
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_usual_bounds_hold_until_others_are_set() {
        let bounds = TrashBounds::default();
        assert!(bounds.stated().is_none() && bounds.keeps());
        let keep = Duration::from_secs(1);
        bounds.set(TrashLimits { bytes: 0, keep });
        assert_eq!(bounds.limits().keep, keep);
        assert!(!bounds.keeps());
    }
}
