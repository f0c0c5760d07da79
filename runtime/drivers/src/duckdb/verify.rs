//! Verification of the file by reading everything, to find damage before the data is needed.

use tokio_util::sync::CancellationToken;

use watershed_dialect::{DuckDb, Quoting as _};

use super::engine::{Engine, Intent};
use super::gate::Company;
use super::transaction::Work;
use crate::olap::{Failure, OpenError};

/// The most findings that are reported.
const MOST_FINDINGS: usize = 20;

const TABLES: &str = "SELECT schema_name, table_name FROM duckdb_tables() \
                      WHERE database_name = current_database() AND NOT internal ORDER BY ALL";

/// Reads every value of every table and returns what can't be read, at most twenty findings. Reading a block compares
/// its checksum.
///
/// # Errors
/// When the file can't be used for another reason than that it is damaged, or the token is cancelled.
pub(super) async fn verify(engine: &Engine, cancel: &CancellationToken) -> Result<Vec<String>, Failure> {
    let verified = engine
        .work_to(Intent::Read, cancel, Company::Others, |work| {
            let mut findings = Vec::new();
            for table in tables(work)? {
                match read(work, &table) {
                    Ok(()) => {}
                    Err(Failure::Interrupted) => return Err(Failure::Interrupted),
                    // It was dropped or renamed since the tables were listed: no transaction is held for so long, as
                    // one keeps the file from being written anew.
                    Err(Failure::Sql(error)) if error.class == "catalog" => {}
                    Err(failure) => findings.push(format!("table {table}: {failure}")),
                }
                if findings.len() == MOST_FINDINGS {
                    break;
                }
            }
            Ok(findings)
        })
        .await;
    match verified {
        Err(Failure::Open(damage @ OpenError::Damaged { .. })) => Ok(vec![damage.to_string()]),
        // It gives up where what it reads makes no sense.
        Err(Failure::Fatal { message }) => Ok(vec![message]),
        other => other,
    }
}

fn tables(work: &Work<'_>) -> Result<Vec<String>, Failure> {
    let rows = work.run(TABLES, &[])?;
    let name = |row: Vec<crate::olap::Value>| {
        let parts: Vec<String> = row.iter().map(|part| DuckDb.name(&part.to_string())).collect();
        parts.join(".")
    };
    Ok(rows.into_iter().map(name).collect())
}

fn read(work: &Work<'_>, table: &str) -> Result<(), Failure> {
    work.run(&format!("SELECT bit_xor(hash(t)) FROM {table} t"), &[])
        .map(drop)
}
