//! Tidying of the trash, which keeps it within its limits.
//!
//! What is too old goes, then what is too much: what builds replaced before what was deleted, the oldest first. Age counts
//! from the latest time at which the trash was looked at a day ago or earlier, so that a clock which is wrong once, and
//! years ahead, throws nothing away.

use uuid::Uuid;

use super::known_names::KnownNames;
use super::names::Edit;
use super::proof::wal_path;
use super::schema;
use super::sys::{Connection, Param};
use super::transaction::Work;
use super::trash;
use super::trash_bounds::TrashBounds;
use crate::crash::around;
use crate::olap::{Failure, Thrown, TrashLimits, Trashed, Value, trash_table};

/// The most tables in the trash, since each adds a little to the time of opening the file.
const MOST_TABLES: usize = 5_000;
/// The most tables that are dropped in one transaction.
const AT_ONCE: usize = 100;
/// Least age of a sighting that confirms the time, in milliseconds.
const SIGHTING_MS: i64 = 24 * 60 * 60 * 1_000;
/// Interval between two recorded sightings, in milliseconds.
const NOTED_EVERY_MS: i64 = SIGHTING_MS / 2;

/// Drops what exceeds the limits of the trash, while no other work runs. Does nothing before limits are set. Returns
/// true if anything was written.
pub(super) fn tidy(
    names: &KnownNames,
    bounds: &TrashBounds,
    work: &Work<'_>,
    now_ms: i64,
) -> Result<bool, Failure> {
    let Some(limits) = bounds.stated() else {
        return Ok(false);
    };
    if names.now().trash().next().is_none() {
        return Ok(false);
    }
    let sighting = Sighting::read(work, now_ms)?;
    let measures = limits.bytes > 0 && used(work)? > limits.bytes;
    let measured = measures && measure_all(names, work)?;
    let all: Vec<Trashed> = names.now().trash().cloned().collect();
    let victims = victims(&all, limits, sighting.seen_ms);
    let (first, rest) = victims.split_at(victims.len().min(AT_ONCE));
    if sighting.is_news || !first.is_empty() {
        work.transaction(around!("trash"), || {
            sighting.note(work, now_ms)?;
            trash::let_go(work, first)
        })?;
        names.apply(trash::gone(first));
    }
    let_go_of(names, work, rest)?;
    Ok(measured || sighting.is_news || !victims.is_empty())
}

/// Drops tables in the trash, some per transaction.
pub(super) fn let_go_of(names: &KnownNames, work: &Work<'_>, builds: &[Uuid]) -> Result<(), Failure> {
    for some in builds.chunks(AT_ONCE) {
        work.transaction(around!("trash"), || trash::let_go(work, some))?;
        names.apply(trash::gone(some));
    }
    Ok(())
}

/// Tidies the trash while the file is being closed, after its log was written, since sizes are known then. Failures are
/// left for another time. Returns true if the log must be written again.
pub(super) fn tidy_while_closing(names: &KnownNames, bounds: &TrashBounds, connection: &Connection) -> bool {
    let work = Work::uninterrupted(connection);
    let tidied = tidy(names, bounds, &work, trash::now_ms());
    tidied.unwrap_or_else(|error| {
        tracing::warn!(%error, "the trash could not be tidied");
        true
    })
}

fn measure_all(names: &KnownNames, work: &Work<'_>) -> Result<bool, Failure> {
    let all: Vec<Trashed> = names.now().trash().cloned().collect();
    let mut measured = Vec::new();
    for mut trashed in all.into_iter().filter(|it| it.bytes.is_none()) {
        trashed.bytes = Some(trash::measure(work, &trash_table(trashed.tag.build))?);
        measured.push(trashed);
    }
    if measured.is_empty() {
        return Ok(false);
    }
    work.transaction(around!("trash"), || {
        measured.iter().try_for_each(|it| write_size(work, it))
    })?;
    names.apply(measured.into_iter().map(Edit::Thrown));
    Ok(true)
}

fn write_size(work: &Work<'_>, trashed: &Trashed) -> Result<(), Failure> {
    let update = format!(
        "UPDATE _watershed.trash SET size_bytes = {} WHERE build = ?",
        trashed.bytes.unwrap_or_default()
    );
    work.run(&update, &[Param::Text(&trashed.tag.build.to_string())])
        .map(drop)
}

/// Returns the used bytes of the whole file. If they fit into the trash's limit, so does the trash.
fn used(work: &Work<'_>) -> Result<u64, Failure> {
    if let Some(lake) = work.lake() {
        return lake
            .bytes(work.connection(), None)
            .map_err(|raw| work.fail(&raw, None));
    }
    let rows = work.run(
        "SELECT (used_blocks * block_size)::BIGINT FROM pragma_database_size() \
         WHERE database_name = current_database()",
        &[],
    )?;
    let log = work.connection().path().map(wal_path);
    let log = log
        .and_then(|log| std::fs::metadata(log).ok())
        .map_or(0, |log| log.len());
    Ok(schema::count(&rows).unwrap_or(u64::MAX).saturating_add(log))
}

/// The recorded times at which the trash was tidied, which guard against a wrong clock.
pub(super) struct Sighting {
    /// Latest sighting that confirms the time, if any.
    pub(super) seen_ms: Option<i64>,
    /// True if the current sighting must be recorded.
    pub(super) is_news: bool,
}

impl Sighting {
    /// Reads the recorded sightings.
    pub(super) fn read(work: &Work<'_>, now_ms: i64) -> Result<Self, Failure> {
        let rows = work.run("SELECT at_ms FROM _watershed.trash_sightings ORDER BY at_ms", &[])?;
        let looks = rows.into_iter().flatten().filter_map(|at| match at {
            Value::Integer(at) => i64::try_from(at).ok(),
            _ => None,
        });
        let looks: Vec<i64> = looks.filter(|at| *at <= now_ms).collect();
        let sure = looks.iter().rev().find(|at| **at <= now_ms - SIGHTING_MS);
        Ok(Self {
            seen_ms: sure.copied(),
            is_news: looks.last().is_none_or(|last| now_ms - last >= NOTED_EVERY_MS),
        })
    }

    /// Records the current sighting. Deletes sightings older than the confirming one, and future ones, which a wrong
    /// clock recorded.
    pub(super) fn note(&self, work: &Work<'_>, now_ms: i64) -> Result<(), Failure> {
        if !self.is_news {
            return Ok(());
        }
        let kept = self.seen_ms.unwrap_or(i64::MIN);
        let delete =
            format!("DELETE FROM _watershed.trash_sightings WHERE at_ms < {kept} OR at_ms > {now_ms}");
        work.run(&delete, &[])?;
        let insert = format!("INSERT INTO _watershed.trash_sightings VALUES ({now_ms})");
        work.run(&insert, &[]).map(drop)
    }
}

/// Returns the builds whose tables must be deleted from the trash: too old, or beyond the limits.
fn victims(all: &[Trashed], limits: TrashLimits, seen_ms: Option<i64>) -> Vec<Uuid> {
    let keep = i64::try_from(limits.keep.as_millis()).unwrap_or(i64::MAX);
    let is_old = |it: &Trashed| seen_ms.is_some_and(|seen| seen.saturating_sub(it.at_ms) >= keep);
    let (old, mut rest): (Vec<&Trashed>, Vec<&Trashed>) = all.iter().partition(|it| is_old(it));
    let mut victims: Vec<Uuid> = old.iter().map(|it| it.tag.build).collect();
    if limits.bytes == 0 {
        victims.extend(rest.iter().map(|it| it.tag.build));
        return victims;
    }
    let (mut bytes, mut count) = (rest.iter().filter_map(|it| it.bytes).sum::<u64>(), rest.len());
    rest.sort_by_key(|it| (it.why != Thrown::Replaced, it.at_ms, it.tag));
    for it in rest.into_iter().filter(|it| !it.protected) {
        if bytes <= limits.bytes && count <= MOST_TABLES {
            break;
        }
        bytes = bytes.saturating_sub(it.bytes.unwrap_or_default());
        count -= 1;
        victims.push(it.tag.build);
    }
    victims
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::olap::Tag;

    const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

    fn trashed(n: u128, why: Thrown, at_ms: i64, bytes: u64) -> Trashed {
        Trashed {
            tag: Tag {
                uid: Uuid::from_u128(n),
                build: Uuid::from_u128(n),
            },
            name: format!("t{n}"),
            why,
            at_ms,
            rows: None,
            bytes: Some(bytes),
            record: None,
            protected: false,
        }
    }

    fn gone(all: &[Trashed], bytes: u64, seen_ms: Option<i64>) -> Vec<u128> {
        let limits = TrashLimits {
            bytes,
            keep: Duration::from_secs(7 * 24 * 60 * 60),
        };
        let victims = victims(all, limits, seen_ms);
        victims.into_iter().map(|build| build.as_u128()).collect()
    }

    #[test]
    fn what_is_too_much_goes_replaced_ones_first_and_the_oldest_of_them() {
        let all = [
            trashed(1, Thrown::Deleted, 0, 10),
            trashed(2, Thrown::Replaced, 2, 10),
            trashed(3, Thrown::Replaced, 1, 10),
            trashed(4, Thrown::Deleted, 3, 10),
        ];
        assert_eq!(gone(&all, 40, None), [] as [u128; 0]);
        assert_eq!(gone(&all, 39, None), [3]);
        assert_eq!(gone(&all, 15, None), [3, 2, 1]);
        assert_eq!(gone(&all, 0, None).len(), 4);
    }

    #[test]
    fn what_is_protected_goes_by_its_age_alone() {
        let mut one = trashed(1, Thrown::Deleted, 0, 10);
        one.protected = true;
        let all = [one, trashed(2, Thrown::Deleted, 1, 10)];
        assert_eq!(gone(&all, 5, None), [2]);
        assert_eq!(gone(&all, 5, Some(7 * DAY_MS)), [1, 2]);
    }

    #[test]
    fn what_is_old_goes_when_the_time_is_sure() {
        let all = [
            trashed(1, Thrown::Deleted, 0, 1),
            trashed(2, Thrown::Deleted, DAY_MS, 1),
        ];
        assert_eq!(gone(&all, 100, None), [] as [u128; 0]);
        assert_eq!(gone(&all, 100, Some(7 * DAY_MS - 1)), [] as [u128; 0]);
        assert_eq!(gone(&all, 100, Some(7 * DAY_MS)), [1]);
        assert_eq!(gone(&all, 100, Some(8 * DAY_MS)), [1, 2]);
    }
}
