//! Operations on the trash for people: listing, retrieving, emptying and mending.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::disposal;
use super::engine::Engine;
use super::gate::Company;
use super::names::{Edit, Entry};
use super::schema;
use super::sys::Param;
use super::tidy::{let_go_of, tidy};
use super::transaction::Work;
use super::trash;
use crate::crash::around;
use crate::olap::{
    Access, Failure, OutputKind, RetrieveError, TRASH_PREFIX, Tag, Thrown, Trash, TrashDamage, TrashLimits,
    Trashed, Value, trash_table,
};

/// Name of a trashed table whose record is missing.
const FOUND: &str = "found";

impl Trash for Engine {
    fn list<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<Vec<Trashed>, Failure>> {
        wanted(self, |_| true, cancel).boxed()
    }

    fn concerning<'a>(
        &'a self,
        owner: Uuid,
        name: &'a str,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<Trashed>, Failure>> {
        wanted(self, move |it| it.concerns(owner, name), cancel).boxed()
    }

    fn weigh<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<Vec<Trashed>, Failure>> {
        async move {
            let all = self.list(cancel).await?;
            self.work(cancel, Company::Others, move |work| {
                let weigh = |it: Trashed| {
                    let bytes = match it.bytes {
                        Some(bytes) => bytes,
                        None => trash::measure(work, &trash_table(it.tag.build))?,
                    };
                    let bytes = Some(bytes);
                    Ok(Trashed { bytes, ..it })
                };
                all.into_iter().map(weigh).collect()
            })
            .await
        }
        .boxed()
    }

    fn limit(&self, limits: TrashLimits) {
        self.parts.trash.set(limits);
    }

    fn limits(&self) -> TrashLimits {
        self.parts.trash.limits()
    }

    fn retrieve<'a>(
        &'a self,
        build: Uuid,
        name: &'a str,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), RetrieveError>> {
        async move {
            let claim = Arc::new(self.claim(build, Some(name), Some(build), cancel).await?);
            let (engine, name) = (self.clone(), name.to_owned());
            self.work(cancel, Company::Others, move |work| {
                let _claim = claim;
                give(&engine, work, build, name)
            })
            .await
        }
        .boxed()
    }

    fn empty<'a>(
        &'a self,
        builds: Vec<Uuid>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<usize, Failure>> {
        let engine = self.clone();
        // Alone: nobody takes one back meanwhile.
        self.work(cancel, Company::Alone, move |work| {
            let there: Vec<Uuid> = {
                let names = engine.names();
                let there = builds.into_iter().filter(|build| names.trashed(*build).is_some());
                there.collect()
            };
            let_go_of(&engine.parts.names, work, &there)?;
            Ok(there.len())
        })
        .boxed()
    }

    fn tidy<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<(), Failure>> {
        let engine = self.clone();
        self.work(cancel, Company::Alone, move |work| {
            tidy(&engine.parts.names, &engine.parts.trash, work, trash::now_ms()).map(drop)
        })
        .boxed()
    }

    /// Reads tables and notes in one transaction, so that concurrent changes of the trash are not reported as damage.
    fn damage<'a>(
        &'a self,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<TrashDamage>, Failure>> {
        self.work(cancel, Company::Others, |work| work.reading(|| damage(work)))
            .boxed()
    }

    fn mend<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<Vec<TrashDamage>, Failure>> {
        if self.options().access == Access::ReadOnly {
            return self.damage(cancel);
        }
        let engine = self.clone();
        self.work(cancel, Company::Alone, move |work| {
            let found = damage(work)?;
            if found.is_empty() {
                return Ok(found);
            }
            work.transaction(around!("trash"), || {
                found.iter().try_for_each(|it| mend(work, it))
            })?;
            let noted = trash::read_noted(work)?;
            let entries = schema::read_entries(work)?;
            engine.names().reload(entries, noted);
            Ok(found)
        })
        .boxed()
    }
}

/// Returns the selected outputs in the trash, the latest last.
async fn wanted(
    engine: &Engine,
    is_wanted: impl Fn(&Trashed) -> bool + Send,
    cancel: &CancellationToken,
) -> Result<Vec<Trashed>, Failure> {
    if engine.options().access == Access::ReadOnly {
        let mut all = engine.work(cancel, Company::Others, trash::read).await?;
        all.retain(is_wanted);
        return Ok(all);
    }
    engine.be_open(cancel).await?;
    let names = engine.names();
    let wanted = names.trash().filter(|it| is_wanted(it));
    let mut wanted: Vec<Trashed> = wanted.cloned().collect();
    wanted.sort_by_key(|it| (it.at_ms, it.tag));
    Ok(wanted)
}

/// Gives a table in the trash to a person, under a name.
fn give(engine: &Engine, work: &Work<'_>, build: Uuid, name: String) -> Result<(), RetrieveError> {
    let (there, known) = {
        let names = engine.names();
        (names.at(&name).cloned(), names.trashed(build).cloned())
    };
    if let Some(Entry { name, kind, .. }) = there {
        return Err(RetrieveError::NameTaken { name, kind });
    }
    let trashed = known.ok_or(RetrieveError::Absent)?;
    work.transaction(around!("retrieve"), || {
        disposal::take_back(work, &trashed, (&name, trashed.tag), false)?;
        trash::forget(work, &[build])?;
        forget_notes(work, build)?;
        let place = schema::qualified(&name);
        work.run(&format!("COMMENT ON TABLE {place} IS NULL"), &[])
    })?;
    let given = Entry {
        name,
        kind: OutputKind::Table,
        tag: None,
    };
    engine
        .parts
        .names
        .apply(trash::gone(&[build]).chain([Edit::Put(given)]));
    Ok(())
}

fn forget_notes(work: &Work<'_>, owner: Uuid) -> Result<(), Failure> {
    work.run(
        "DELETE FROM _watershed.partitions WHERE uid = ?",
        &[Param::Text(&owner.to_string())],
    )
    .map(drop)
}

fn damage(work: &Work<'_>) -> Result<Vec<TrashDamage>, Failure> {
    let known = trash::builds(work)?;
    let tables = format!(
        "SELECT table_name, comment FROM duckdb_tables() WHERE database_name = current_database() \
         AND schema_name = 'main' AND starts_with(table_name, '{TRASH_PREFIX}') ORDER BY 1"
    );
    let (mut standing, mut found) = (BTreeSet::new(), Vec::new());
    for row in work.run(&tables, &[])? {
        let Ok([Value::Text(table), comment]) = <[Value; 2]>::try_from(row) else {
            continue;
        };
        let tag = match comment {
            Value::Text(comment) => Tag::parse(&comment),
            _ => None,
        };
        let build = table
            .get(TRASH_PREFIX.len()..)
            .and_then(|rest| Uuid::try_parse(rest).ok());
        match build.filter(|build| known.iter().any(|(known, _)| known == build)) {
            Some(build) => drop(standing.insert(build)),
            None => found.push(TrashDamage::Unknown { table, tag }),
        }
    }
    let gone = known.into_iter().filter(|(build, _)| !standing.contains(build));
    found.extend(gone.map(|(build, name)| TrashDamage::Missing { build, name }));
    Ok(found)
}

/// Returns a unique build id for a table whose own is unknown.
fn fresh_build(table: &str) -> Uuid {
    let mut hasher = DefaultHasher::new();
    table.hash(&mut hasher);
    Uuid::from_u64_pair(hasher.finish(), trash::now_ms().unsigned_abs())
}

fn mend(work: &Work<'_>, damage: &TrashDamage) -> Result<(), Failure> {
    match damage {
        TrashDamage::Missing { build, .. } => {
            forget_notes(work, *build)?;
            trash::forget(work, &[*build])
        }
        TrashDamage::Unknown { table, tag } => {
            let tag = tag.unwrap_or_else(|| Tag {
                uid: Uuid::nil(),
                build: fresh_build(table),
            });
            let entry = Entry {
                name: table.clone(),
                kind: OutputKind::Table,
                tag: Some(tag),
            };
            let name = trash_table(tag.build);
            if name != *table {
                schema::rename_object(work, &entry, tag, &name)?;
            }
            schema::write_tag(work, OutputKind::Table, &name, tag)?;
            let trashed = Trashed {
                tag,
                name: FOUND.to_owned(),
                why: Thrown::Deleted,
                at_ms: trash::now_ms(),
                rows: super::step::count_rows(work, &name)?,
                bytes: None,
                record: None,
                protected: false,
            };
            trash::write(work, &[&trashed])
        }
    }
}
