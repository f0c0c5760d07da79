//! Time zones: local time, offsets and clock changes.

use std::sync::LazyLock;

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};

/// Built-in database of time zones. The system's is not read: that would be IO, and a project would run at other times
/// on another machine.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A time zone; UTC by default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone(TimeZone);

/// Error of a name that no time zone has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown time zone \"{name}\"")]
pub struct UnknownZone {
    /// The rejected name.
    pub name: String,
}

impl Zone {
    /// Universal time, which has no clock changes.
    pub const UTC: Self = Self(TimeZone::UTC);

    /// Finds a zone by its IANA name, in any case. An empty name is UTC.
    ///
    /// # Errors
    /// [`UnknownZone`] when no zone has the name. `Local` is none: the zone of the machine is for the caller to look
    /// up, and enters by `Zone::from`.
    pub fn find(name: &str) -> Result<Self, UnknownZone> {
        if name.is_empty() {
            return Ok(Self::UTC);
        }
        ZONES.get(name).map(Self).map_err(|_| UnknownZone {
            name: name.to_owned(),
        })
    }

    /// Returns the IANA name; a zone made only from rules or an offset may have none.
    pub fn name(&self) -> Option<&str> {
        self.0.iana_name()
    }

    /// Returns the instant at which the zone's clock shows a time. A skipped time is moved forward by the length of the
    /// gap; of a repeated time, the first instant is returned. `None` beyond the years of [`Timestamp`].
    pub fn instant(&self, local: DateTime) -> Option<Timestamp> {
        self.0.to_ambiguous_timestamp(local).compatible().ok()
    }

    /// Returns the time that the zone's clock shows at an instant.
    pub fn local(&self, instant: Timestamp) -> DateTime {
        self.0.to_datetime(instant)
    }

    /// Returns the single instant for a local time: the first that shows it, or the end of the gap that skips it. Later
    /// local times never have earlier instants. `None` beyond the years of [`Timestamp`].
    pub fn once(&self, local: DateTime) -> Option<Timestamp> {
        match self.0.to_ambiguous_timestamp(local).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(local).ok(),
            AmbiguousOffset::Fold { before, .. } => before.to_timestamp(local).ok(),
            // With the later offset the skipped time lies before the change, so the next change is the gap's.
            AmbiguousOffset::Gap { after, .. } => self.next_change(after.to_timestamp(local).ok()?),
        }
    }

    /// Returns the zone as a value of the library that knows its rules.
    pub fn rules(&self) -> &TimeZone {
        &self.0
    }

    /// Returns the offset from universal time at an instant.
    pub fn offset(&self, instant: Timestamp) -> Offset {
        self.0.to_offset(instant)
    }

    /// Returns the first change of the offset after an instant.
    pub fn next_change(&self, after: Timestamp) -> Option<Timestamp> {
        let mut offset = self.offset(after);
        for transition in self.0.following(after) {
            // Zones also have changes of their abbreviation or of what counts as daylight saving.
            if transition.offset() != offset {
                return Some(transition.timestamp());
            }
            offset = transition.offset();
        }
        None
    }

    /// Returns the last change of the offset at or before an instant.
    pub(crate) fn last_change(&self, until: Timestamp) -> Option<Timestamp> {
        let end = until.checked_add(SignedDuration::from_nanos(1)).ok()?;
        self.0
            .preceding(end)
            .map(|transition| transition.timestamp())
            .find(|change| {
                let before = change.checked_sub(SignedDuration::from_nanos(1));
                before.is_ok_and(|before| self.offset(before) != self.offset(*change))
            })
    }
}

impl Default for Zone {
    fn default() -> Self {
        Self::UTC
    }
}

impl From<TimeZone> for Zone {
    fn from(rules: TimeZone) -> Self {
        Self(rules)
    }
}
