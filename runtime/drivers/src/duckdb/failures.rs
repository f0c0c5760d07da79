//! Rows that failed tests, kept in a table of ours that anybody may read.
//!
//! They are taken in the transaction that tests, and written in one of their own, since a failure undoes the first. What is
//! kept of an owner is always that of its last tests, and goes with its output.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use watershed_dialect::{DuckDb, Quoting as _};

use super::engine::Engine;
use super::gate::Company;
use super::sys::Param;
use super::transaction::Work;
use super::trash::now_ms;
use crate::crash::around;
use crate::olap::{Failure, KeptRows, TestedRows};

/// The most rows in one statement.
const AT_ONCE: usize = 100;

impl TestedRows for Engine {
    fn keep<'a>(
        &'a self,
        owner: Uuid,
        table: &'a str,
        kept: Vec<KeptRows>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        let table = table.to_owned();
        self.work(cancel, Company::Others, move |work| {
            work.transaction(around!("failures"), || {
                forget(work, owner)?;
                let at = now_ms();
                kept.iter()
                    .try_for_each(|kept| write(work, owner, &table, at, kept))
            })
        })
        .boxed()
    }

    fn forget_old<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<(), Failure>> {
        let keep = i64::try_from(self.parts.trash.limits().keep.as_millis()).unwrap_or(i64::MAX);
        self.work(cancel, Company::Others, move |work| {
            let since = now_ms().saturating_sub(keep).max(0);
            let old = format!("DELETE FROM _watershed.failures WHERE tested_at < make_timestamp_ms({since})");
            work.transaction(around!("failures"), || work.run(&old, &[]).map(drop))
        })
        .boxed()
    }
}

/// Removes the kept rows of an owner.
pub(super) fn forget(work: &Work<'_>, owner: Uuid) -> Result<(), Failure> {
    work.run(
        "DELETE FROM _watershed.failures WHERE uid = ?",
        &[Param::Text(&owner.to_string())],
    )
    .map(drop)
}

/// Stores the new name of an owner's output beside the kept rows.
pub(super) fn rename(work: &Work<'_>, owner: Uuid, table: &str) -> Result<(), Failure> {
    work.run(
        "UPDATE _watershed.failures SET table_name = ? WHERE uid = ?",
        &[Param::Text(table), Param::Text(&owner.to_string())],
    )
    .map(drop)
}

fn write(work: &Work<'_>, owner: Uuid, table: &str, at: i64, kept: &KeptRows) -> Result<(), Failure> {
    let (owner, table) = (DuckDb.text(&owner.to_string()), DuckDb.text(table));
    let test = DuckDb.text(&kept.test);
    let numbered: Vec<(usize, &String)> = (1..).zip(&kept.rows).collect();
    for some in numbered.chunks(AT_ONCE) {
        let row = |(number, row): &(usize, &String)| {
            let data = DuckDb.text(row);
            format!("({owner}, {table}, {test}, make_timestamp_ms({at}), {number}, {data})")
        };
        let rows: Vec<String> = some.iter().map(row).collect();
        let insert = format!("INSERT INTO _watershed.failures VALUES {}", rows.join(", "));
        work.run(&insert, &[])?;
    }
    Ok(())
}
