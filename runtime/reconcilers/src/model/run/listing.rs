//! The current list of a model's partitions, and the notes of those that were built.

use std::collections::BTreeSet;

use watershed_compilers::{Dialect, Scope, render_sql};
use watershed_core::Error;
use watershed_drivers::files::FileNow;
use watershed_drivers::objects::Location;
use watershed_drivers::olap::{PartitionPhase, PartitionRun};
use watershed_proto::ModelSpec;
use watershed_resolvers::files::{Grouping, UPDATED_ON};

use super::{stores, subject::Subject};
use crate::model::{
    failure,
    objects::Objects,
    partitions::{self, Listed, MAX_PARTITIONS, Notes, Source, Stamped},
};

pub(super) async fn note(subject: Subject<'_>, notes: Vec<PartitionRun>) -> Result<(), Error> {
    if notes.is_empty() {
        return Ok(());
    }
    let stages = subject.stages()?;
    let noted = stages.note(subject.uid(), notes, subject.cancel()).await;
    noted.map_err(|failure| failure::from_failure(&failure))
}

/// Records new watermarks of unchanged partitions, so that files which were freshly written or merely touched are not
/// hashed again by the next run.
pub(super) async fn settle(subject: Subject<'_>, notes: &Notes, same: Vec<Stamped>) -> Result<(), Error> {
    let settled = same.into_iter().filter_map(|Stamped { listed, .. }| {
        let run = notes.by_key.get(&listed.partition.key)?;
        let is_new = run.partition.watermark != listed.partition.watermark;
        (run.phase == PartitionPhase::Done && is_new).then(|| PartitionRun {
            partition: listed.partition,
            ..run.clone()
        })
    });
    note(subject, settled.collect()).await
}

/// Records that failed partitions are no longer listed, so that none of them remains to be built.
pub(super) async fn let_go(
    subject: Subject<'_>,
    notes: &mut Notes,
    listed: &BTreeSet<&str>,
) -> Result<(), Error> {
    let is_gone = |run: &&mut PartitionRun| {
        run.phase == PartitionPhase::Failed && !listed.contains(run.partition.key.as_str())
    };
    let mut gone = Vec::new();
    for run in notes.by_key.values_mut().filter(is_gone) {
        (run.phase, run.number) = (PartitionPhase::Gone, notes.next);
        notes.next += 1;
        gone.push(run.clone());
    }
    note(subject, gone).await
}

pub(super) async fn notes(subject: Subject<'_>) -> Result<Notes, Error> {
    let runs = subject.stages()?.runs(subject.uid(), subject.cancel()).await;
    runs.map(Notes::new)
        .map_err(|failure| failure::from_failure(&failure))
}

/// Returns the partitions that are listed now; local files are taken as found before, as the record is about these.
pub(super) async fn list(
    subject: Subject<'_>,
    spec: &ModelSpec,
    scope: &Scope,
    files: Vec<FileNow>,
) -> Result<Vec<Listed>, Error> {
    let listed = match Source::from_spec(spec, scope)? {
        Source::Query(sql) => list_rows(subject, spec, &sql).await?,
        Source::Files(grouping) => grouped(subject, spec, scope, &grouping, files).await?,
        Source::Objects(grouping, connector) => {
            let found = look_at_store(subject, &connector, &grouping.pattern).await?;
            grouped(subject, spec, scope, &grouping, found).await?
        }
    };
    let listed = partitions::distinct(listed);
    match listed.len() > MAX_PARTITIONS {
        true => Err(failure::too_many_partitions(MAX_PARTITIONS)),
        false => Ok(listed),
    }
}

/// Returns the objects that match a pattern, as their store lists them now.
pub(super) async fn look_at_store(
    subject: Subject<'_>,
    connector: &str,
    pattern: &str,
) -> Result<Vec<FileNow>, Error> {
    if subject.outputs().sandbox().is_some() {
        return Err(failure::confined_store(pattern));
    }
    let location = Location::parse(pattern);
    let driver = location.map(|location| location.driver).unwrap_or_default();
    let access = stores::access_of(subject, connector, driver)?;
    let objects = Objects {
        access,
        addresses: vec![pattern.to_owned()],
        cancel: subject.cancel(),
    };
    subject.context.progress("asking the store for its objects");
    objects.look().await
}

pub(super) async fn grouped(
    subject: Subject<'_>,
    spec: &ModelSpec,
    scope: &Scope,
    grouping: &Grouping,
    found: Vec<FileNow>,
) -> Result<Vec<Listed>, Error> {
    let groups = grouping.group(found);
    let Some(transform) = &grouping.transform else {
        return Ok(groups.into_iter().map(Listed::from).collect());
    };
    let scope = Scope {
        table: grouping.as_query(&groups),
        ..scope.clone()
    };
    let sql = render_sql(transform, &scope, Dialect::Engine).map_err(|error| failure::from_render(&error))?;
    let rows = list_rows(subject, spec, &sql).await?;
    Ok(match spec.partitions_watermark_field == UPDATED_ON {
        true => partitions::with_files(rows, groups),
        false => rows,
    })
}

pub(super) async fn list_rows(
    subject: Subject<'_>,
    spec: &ModelSpec,
    sql: &str,
) -> Result<Vec<Listed>, Error> {
    let asking = subject.asking();
    let refused = |error| failure::from_partition_query(&error);
    let columns = asking.describe(sql).await?.map_err(refused)?;
    let limited = format!("SELECT * FROM (\n{sql}\n) LIMIT {}", MAX_PARTITIONS + 1);
    let rows = asking.rows(limited).await?.map_err(refused)?;
    let from_row = |row| {
        let names = columns.iter().map(|(name, _)| name.clone());
        partitions::from_row(names.zip(row).collect(), &spec.partitions_watermark_field)
    };
    Ok(rows.into_iter().map(from_row).collect())
}
