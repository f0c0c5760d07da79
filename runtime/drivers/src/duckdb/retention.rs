//! Retention in a lake: how long it keeps what nobody needs.
//!
//! Ages count from a time that was confirmed, as in the trash: a clock that is a day ahead lets go of nothing too early, and
//! what is let go of goes up to three days later than it might.

use super::known_names::KnownNames;
use super::lake::{Keeping, OldBefore};
use super::tidy::{Sighting, tidy};
use super::transaction::Work;
use super::trash_bounds::TrashBounds;
use crate::crash::around;
use crate::olap::{Compacted, Failure};

/// The longest query, in milliseconds: 10 minutes. Files that readers may have begun with stay that long.
const LONGEST_QUERY_MS: i64 = 10 * 60 * 1_000;
/// The longest build, in milliseconds: a day. Files that are in no snapshot may become part of one until then.
const LONGEST_BUILD_MS: i64 = 24 * 60 * 60 * 1_000;
/// Records that count no more after which they are deleted, whatever the time: reading all takes milliseconds then.
const MOST_SUPERFLUOUS: i64 = 4_096;

/// The reason for which a lake's upkeep is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Occasion {
    /// Work has changed the lake.
    Changes,
    /// Somebody asked for it.
    Request,
}

/// Lets go of what a lake need not keep, where that is due, and of what is too much in its trash.
pub(super) fn tidy_lake(
    names: &KnownNames,
    bounds: &TrashBounds,
    work: &Work<'_>,
    now_ms: i64,
) -> Result<(), Failure> {
    keep_up(bounds, work, now_ms, Occasion::Changes)?;
    tidy(names, bounds, work, now_ms).map(drop)
}

/// Lets go of what a lake need not keep, if that is due. Does nothing in a file, and before limits are set.
fn keep_up(bounds: &TrashBounds, work: &Work<'_>, now_ms: i64, occasion: Occasion) -> Result<(), Failure> {
    let (Some(lake), Some(limits)) = (work.lake(), bounds.stated()) else {
        return Ok(());
    };
    let connection = work.connection();
    let keeping = Keeping { lake, connection };
    let fail = |raw| work.fail(&raw, None);
    let sighting = Sighting::read(work, now_ms)?;
    let is_due = sighting.is_news || occasion == Occasion::Request;
    if !is_due && keeping.superfluous().map_err(fail)? < MOST_SUPERFLUOUS {
        return Ok(());
    }
    work.transaction(around!("trash"), || {
        sighting.note(work, now_ms)?;
        keeping.compact().map_err(fail)
    })?;
    work.resume_interrupts();
    let Some(seen_ms) = sighting.seen_ms.filter(|_| is_due) else {
        return Ok(());
    };
    let keep_ms = i64::try_from(limits.keep.as_millis()).unwrap_or(i64::MAX);
    let old = OldBefore {
        snapshots_ms: seen_ms.saturating_sub(keep_ms.max(LONGEST_QUERY_MS)),
        dropped_ms: seen_ms.saturating_sub(LONGEST_QUERY_MS),
        orphans_ms: seen_ms.saturating_sub(LONGEST_BUILD_MS),
    };
    keeping.let_go(old).map_err(fail)
}

/// Lets go of what a lake need not keep, and returns the bytes of what it kept before and keeps now.
pub(super) fn compact(bounds: &TrashBounds, work: &Work<'_>, now_ms: i64) -> Result<Compacted, Failure> {
    let Some(lake) = work.lake() else {
        return Ok(Compacted::default());
    };
    let connection = work.connection();
    let keeping = Keeping { lake, connection };
    let bytes = || keeping.kept_bytes().map_err(|raw| work.fail(&raw, None));
    let before = bytes()?;
    keep_up(bounds, work, now_ms, Occasion::Request)?;
    Ok(Compacted {
        before,
        after: bytes()?,
    })
}
