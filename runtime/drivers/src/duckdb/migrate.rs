//! Migrations: SQL that runs once, in one transaction with its record, so that a crash leaves no doubt whether it ran.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::engine::Engine;
use super::gate::Company;
use super::schema;
use super::statements::each_statement;
use super::sys::Param;
use super::traces;
use super::transaction::Work;
use super::trash;
use crate::crash::around;
use crate::olap::{Failure, Left, Migrated, Migration, Migrations, Value};

const TABLE: &str = "\
    CREATE TABLE IF NOT EXISTS _watershed.migrations \
    (uid UUID NOT NULL, version BIGINT NOT NULL, proof VARCHAR NOT NULL)";

const IS_THERE: &str = "\
    SELECT 1 FROM duckdb_tables() WHERE database_name = current_database() \
    AND schema_name = '_watershed' AND table_name = 'migrations'";

impl Migrations for Engine {
    fn run<'a>(
        &'a self,
        migration: &'a Migration,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Left, Failure>> {
        let (engine, migration) = (self.clone(), migration.clone());
        // Alone: what a person's statements touch is not known beforehand.
        self.work(cancel, Company::Alone, move |work| {
            // Settings and temporary things of the statements are this connection's: nobody else is to get it.
            work.spend();
            // A setting is not undone with the transaction, so the file is opened anew after a failure.
            let ran = run(work, &migration).inspect_err(|_| engine.renew())?;
            if ran.settings_changed {
                engine.renew();
            }
            // Tables may have come and gone.
            let noted = trash::read_noted(work)?;
            let entries = schema::read_entries(work)?;
            engine.names().reload(entries, noted);
            Ok(ran.left)
        })
        .boxed()
    }

    fn last<'a>(
        &'a self,
        uid: Uuid,
        proof: &'a str,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<Migrated>, Failure>> {
        let proof = proof.to_owned();
        self.work(cancel, Company::Others, move |work| {
            if work.run(IS_THERE, &[])?.is_empty() {
                return Ok(None);
            }
            // A catalog that was lost knows another resource: what was run says that it was the same.
            let rows = work.run(
                "SELECT uid, version, proof FROM _watershed.migrations WHERE uid = ? OR proof = ? \
                 ORDER BY (uid = ?) DESC, version DESC LIMIT 1",
                &[
                    Param::Text(&uid.to_string()),
                    Param::Text(&proof),
                    Param::Text(&uid.to_string()),
                ],
            )?;
            let row = rows
                .into_iter()
                .next()
                .and_then(|row| <[Value; 3]>::try_from(row).ok());
            let Some([Value::Text(found), Value::Integer(version), Value::Text(proof)]) = row else {
                return Ok(None);
            };
            if found != uid.to_string() {
                work.transaction(around!("migrate"), || {
                    traces::set_up(work)?;
                    traces::adopt(work, &found, uid)
                })?;
            }
            Ok(Some(Migrated {
                version: u32::try_from(version).unwrap_or_default(),
                proof,
                left: traces::read(work, uid)?,
            }))
        })
        .boxed()
    }

    fn forget<'a>(
        &'a self,
        uid: Uuid,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<bool, Failure>> {
        self.work(cancel, Company::Alone, move |work| {
            if work.run(IS_THERE, &[])?.is_empty() {
                return Ok(false);
            }
            work.transaction(around!("migrate"), || {
                traces::forget(work, uid)?;
                let rows = work.run(
                    "DELETE FROM _watershed.migrations WHERE uid = ? RETURNING version",
                    &[Param::Text(&uid.to_string())],
                )?;
                Ok(!rows.is_empty())
            })
        })
        .boxed()
    }
}

/// A successful run of a migration.
struct Ran {
    left: Left,
    /// True if the settings differ from those that the previous run left.
    settings_changed: bool,
}

fn run(work: &Work<'_>, migration: &Migration) -> Result<Ran, Failure> {
    let former = match traces::is_set_up(work)? {
        true => traces::settings_of(work, Some(migration.uid))?,
        false => Vec::new(),
    };
    // So that what it changes is seen against what was there before it ran for the first time.
    traces::undo(work, &former);
    let before = traces::settings_now(work)?;
    let (things, settings) = work.transaction(around!("migrate"), || {
        traces::set_up(work)?;
        let things = traces::things_of(work, migration.uid)?;
        if migration.replaces {
            traces::drop_functions(work, migration.uid)?;
        }
        let catalog = traces::catalog(work)?;
        each_statement(work, &migration.sql)?;
        let settings = traces::changed(&before, &traces::settings_now(work)?);
        let after = traces::catalog(work)?;
        let things = traces::difference(things, &catalog, &after, migration);
        traces::write(work, migration.uid, &things, &settings)?;
        record(work, migration)?;
        Ok::<_, Failure>((things, settings))
    })?;
    let settings_changed = settings != former;
    let settings = settings.into_iter().map(traces::Setting::into_pair).collect();
    Ok(Ran {
        left: Left { things, settings },
        settings_changed,
    })
}

fn record(work: &Work<'_>, migration: &Migration) -> Result<(), Failure> {
    let uid = migration.uid.to_string();
    work.run(TABLE, &[])?;
    work.run(
        "DELETE FROM _watershed.migrations WHERE uid = ?",
        &[Param::Text(&uid)],
    )?;
    let insert = format!(
        "INSERT INTO _watershed.migrations VALUES (?, {}, ?)",
        migration.version
    );
    work.run(&insert, &[Param::Text(&uid), Param::Text(&migration.proof)])?;
    Ok(())
}
