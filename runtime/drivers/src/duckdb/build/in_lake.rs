//! Replacement of an output in a lake: emptied and filled where its columns stay, which costs a fraction of a new table.

use crate::duckdb::columns::{Column, columns_of, described};
use crate::duckdb::failure::{Source, plain_error};
use crate::duckdb::lake::{Held, Lake, foreign_input, held, may_read};
use crate::duckdb::schema::{self, qualified};
use crate::duckdb::step;
use crate::duckdb::transaction::Work;
use crate::olap::{Build, BuildError, Failure, OutputKind, SqlError};
use watershed_dialect::{DuckDb, Quoting as _};

/// The most rows of a table that is emptied instead of replaced. DuckLake reads all rows that it removes; of a larger table that
/// takes longer than making another one.
const MOST_EMPTIED: u64 = 100_000;

/// Builds an output as a whole. Returns the number of rows of a table.
pub(super) fn replace(
    work: &Work<'_>,
    lake: &Lake,
    build: &Build,
    sql: &str,
    stands: bool,
) -> Result<Option<u64>, BuildError> {
    let output = qualified(&build.name);
    if build.kind == OutputKind::View {
        refuse_foreign_input(work, lake, sql)?;
        let prefix = format!("CREATE OR REPLACE VIEW {output} AS\n");
        step::run_ordered(work, Source { prefix: &prefix, sql }, build.order_by.as_deref())?;
        return Ok(None);
    }
    // Where the statement can't be described, its error is told when it runs.
    let new = described(work, sql)?.unwrap_or_default();
    let held = held_columns(&new)?;
    let has_same_columns = stands && !new.is_empty() && {
        let old = columns_of(work, &output)?;
        old.iter()
            .map(pair)
            .eq(held.iter().map(|(column, _)| pair(column)))
    };
    // A statement that reads the output would find nothing there.
    let is_emptied = has_same_columns
        && has_few_rows(work, &output)?
        && !may_read(lake, work.connection(), sql, &build.name).map_err(|raw| work.fail(&raw, None))?;
    let into = match is_emptied {
        true => {
            work.run(&format!("TRUNCATE {output}"), &[])?;
            format!("INSERT INTO {output}\n")
        }
        false => format!("CREATE OR REPLACE TABLE {output} AS\n"),
    };
    let made = match held.iter().any(|(_, is_cast)| *is_cast) {
        false => {
            let source = Source { prefix: &into, sql };
            step::run_ordered(work, source, build.order_by.as_deref())?
        }
        true => {
            let columns: Vec<String> = held.iter().map(select).collect();
            let order = build.order_by.as_deref();
            let prefix = format!("{into}SELECT {} FROM (SELECT * FROM (\n", columns.join(", "));
            let order = order
                .map(|order| format!(" ORDER BY {order}\n"))
                .unwrap_or_default();
            work.run_within(Source { prefix: &prefix, sql }, &format!("\n){order})"))?
        }
    };
    step::refuse_same_key(work, &build.key, &output)?;
    Ok(schema::count(&made))
}

/// Returns true if a table has few enough rows to be emptied. Reads the catalog alone.
fn has_few_rows(work: &Work<'_>, output: &str) -> Result<bool, Failure> {
    let rows = work.run(&format!("SELECT count(*) FROM {output}"), &[])?;
    Ok(schema::count(&rows).is_some_and(|rows| rows <= MOST_EMPTIED))
}

fn pair(column: &Column) -> (&str, &str) {
    (&column.name, &column.kind)
}

fn select((column, is_cast): &(Column, bool)) -> String {
    let name = DuckDb.name(&column.name);
    match is_cast {
        true => format!("{name}::{} AS {name}", column.kind),
        false => name,
    }
}

/// Returns the columns as a lake holds them, each with true if its values are cast for that.
fn held_columns(columns: &[Column]) -> Result<Vec<(Column, bool)>, Failure> {
    let one = |column: &Column| {
        let name = column.name.clone();
        match held(&column.kind) {
            Held::Same => Ok((column.clone(), false)),
            Held::As(kind) => Ok((Column { name, kind }, true)),
            Held::No => Err(Failure::Sql(SqlError {
                class: "binder".to_owned(),
                message: format!(
                    "column \"{name}\" has type {}, which a lake does not have",
                    column.kind
                ),
                hint: Some("cast it to a type that files of Parquet have".to_owned()),
                ..SqlError::default()
            })),
        }
    };
    columns.iter().map(one).collect()
}

fn refuse_foreign_input(work: &Work<'_>, lake: &Lake, sql: &str) -> Result<(), Failure> {
    let found = foreign_input(lake, work.connection(), sql);
    match found.map_err(|raw| work.fail(&raw, None))? {
        None => Ok(()),
        Some(input) => Err(Failure::Sql(SqlError {
            class: "binder".to_owned(),
            hint: Some("make it a table: `materialize: true`".to_owned()),
            ..plain_error(&format!(
                "a view in a lake reads the lake alone, and this one reads `{input}`"
            ))
        })),
    }
}
