//! Putting rows into a table that stands there, within the transaction of a build.

use std::sync::Arc;

use super::failure::{Source, not_one};
use super::no_columns;
use super::schema::{count, qualified};
use super::sys::Param;
use super::work::Work;
use crate::olap::{
    Build, BuildError, ColumnsDiffer, Failure, NewColumns, OutputKind, Over, PARTITION_COLUMN, RUN_COLUMN,
    StateQuery, Step, Value, quote_identifier, sole_statement,
};

/// The new rows, where they are looked at before they are put in. Gone when the transaction ends.
const NEW_ROWS: &str = "temp._watershed_new_rows";

/// A column as SQL declares it.
struct Column {
    name: String,
    kind: String,
}

impl Column {
    fn is(&self, other: &Self) -> bool {
        self.name.eq_ignore_ascii_case(&other.name)
    }
}

/// Puts the rows of a partition into a stage, with columns of ours; makes the stage where it does not stand, with the
/// columns that it has. Returns the number of rows, and the columns then.
pub(super) fn stage_rows(
    work: &Work<'_>,
    sql: &str,
    ours: &str,
    (stage, stands): (&str, Option<Arc<[String]>>),
    policy: NewColumns,
) -> Result<(u64, Arc<[String]>), BuildError> {
    let Some(columns) = stands else {
        let prefix = format!("CREATE TABLE {stage} AS SELECT *, {ours} FROM (\n");
        let made = work.run_within(Source { prefix: &prefix, sql }, "\n)")?;
        return Ok((count(&made).unwrap_or_default(), columns_of_stage(work, stage)?));
    };
    let insert = |taken: &str| {
        let prefix = format!("INSERT INTO {stage} BY NAME SELECT {taken}, {ours} FROM (\n");
        let inserted = work.run_within(Source { prefix: &prefix, sql }, "\n)");
        inserted.map(|rows| count(&rows).unwrap_or_default())
    };
    if policy == NewColumns::Refuse {
        // Refused by the engine where a column is missing or new: that is told by what the statement yields.
        let same = columns.iter().map(|name| {
            let name = quote_identifier(name);
            format!("{name} AS {name}")
        });
        let same = format!("* REPLACE ({})", same.collect::<Vec<_>>().join(", "));
        return match insert(&same) {
            Ok(rows) => Ok((rows, columns)),
            Err(error @ Failure::Sql(_)) => {
                if let Ok(Some(new)) = described(work, sql) {
                    match_columns(work, &new, &stage_columns(work, stage)?, stage, policy)?;
                }
                Err(error.into())
            }
            Err(error) => Err(error.into()),
        };
    }
    let mut taken = "*".to_owned();
    let new = described(work, sql)?;
    if let Some(new) = &new {
        let common = match_columns(work, new, &stage_columns(work, stage)?, stage, policy)?;
        if common.len() < new.len() {
            let common: Vec<String> = common.iter().map(|name| quote_identifier(name)).collect();
            taken = common.join(", ");
        }
    }
    let rows = insert(&taken)?;
    Ok((rows, columns_of_stage(work, stage)?))
}

/// The columns of a stage that are not ours.
fn stage_columns(work: &Work<'_>, stage: &str) -> Result<Vec<Column>, Failure> {
    let mut columns = columns_of(work, stage)?;
    columns.retain(|column| ![PARTITION_COLUMN, RUN_COLUMN].contains(&column.name.as_str()));
    Ok(columns)
}

/// The names of those.
pub(super) fn columns_of_stage(work: &Work<'_>, stage: &str) -> Result<Arc<[String]>, Failure> {
    let columns = stage_columns(work, stage)?;
    Ok(columns.into_iter().map(|column| column.name).collect())
}

/// Runs the statement of a build and puts its rows into the table. Returns whether there were any.
pub(super) fn put_rows(work: &Work<'_>, build: &Build) -> Result<bool, BuildError> {
    let Step::Into { over, columns } = &build.step else {
        return Err(BuildError::Absent);
    };
    if *over == Over::Partitions {
        delete_partitions(work, build)?;
    }
    let (sql, table) = (
        sole_statement(&build.sql).map_err(not_one)?,
        qualified(&build.name),
    );
    let adds = matches!(over, Over::Nothing | Over::Partitions);
    let needs_a_look = !adds || !build.key.is_empty() || *columns == NewColumns::Leave;
    if !needs_a_look && let Some(new) = described(work, sql)? {
        match_columns(work, &new, &columns_of(work, &table)?, &table, *columns)?;
        let prefix = format!("INSERT INTO {table} BY NAME\n");
        let inserted = run_ordered(work, Source { prefix: &prefix, sql }, build.order_by.as_deref())?;
        return Ok(count(&inserted) != Some(0));
    }
    let prefix = format!("CREATE OR REPLACE TEMPORARY TABLE {NEW_ROWS} AS\n");
    let made = run_ordered(work, Source { prefix: &prefix, sql }, build.order_by.as_deref())?;
    // No rows: what the engine takes for their columns may be wrong, as for an empty file.
    let brought = count(&made) != Some(0);
    if brought {
        refuse_same_key(work, &build.key, NEW_ROWS)?;
        let common = match_columns(
            work,
            &columns_of(work, NEW_ROWS)?,
            &columns_of(work, &table)?,
            &table,
            *columns,
        )?;
        delete_over(work, over, &build.key, &table)?;
        let common: Vec<String> = common.iter().map(|name| quote_identifier(name)).collect();
        let insert = format!(
            "INSERT INTO {table} BY NAME SELECT {} FROM {NEW_ROWS}",
            common.join(", ")
        );
        work.run(&insert, &[])?;
    }
    work.run(&format!("DROP TABLE {NEW_ROWS}"), &[])?;
    Ok(brought)
}

/// Runs a statement that writes the rows of a query, in an order if one is asked for.
pub(super) fn run_ordered(
    work: &Work<'_>,
    source: Source<'_>,
    order_by: Option<&str>,
) -> Result<Vec<Vec<Value>>, BuildError> {
    let Some(order_by) = order_by else {
        return Ok(work.run_theirs(source)?);
    };
    let prefix = format!("{}SELECT * FROM (\n", source.prefix);
    let ordered = Source {
        prefix: &prefix,
        ..source
    };
    let ran = work.run_within(ordered, &format!("\n) ORDER BY {order_by}\n"));
    ran.map_err(|failure| match failure {
        // The query by itself is right.
        Failure::Sql(error)
            if SHAPE_CLASSES.contains(&error.class.as_str())
                && work.connection().prepare(source.sql).is_ok() =>
        {
            BuildError::Order(error)
        }
        failure => failure.into(),
    })
}

/// Classes of errors that are about the form of a statement, and not about rows.
const SHAPE_CLASSES: [&str; 3] = ["binder", "catalog", "parser"];

/// Deletes the rows of the partitions that are staged. Those that have none any more lose theirs too.
fn delete_partitions(work: &Work<'_>, build: &Build) -> Result<(), Failure> {
    let Some(end) = &build.stage else { return Ok(()) };
    let delete = format!(
        "DELETE FROM {} WHERE {PARTITION_COLUMN} IN \
         (SELECT key FROM _watershed.partitions WHERE uid = ? AND stage = ? AND phase = 'staged')",
        qualified(&build.name)
    );
    let uid = build.tag.uid.to_string();
    work.run(&delete, &[Param::Text(&uid), Param::Text(&end.stage)])
        .map(drop)
}

/// Deletes the rows that the new ones take the place of. NULL is a value like any other.
fn delete_over(work: &Work<'_>, over: &Over, key: &[String], table: &str) -> Result<(), BuildError> {
    let condition = |name: &String| {
        let name = quote_identifier(name);
        format!("old.{name} IS NOT DISTINCT FROM new.{name}")
    };
    let gone = match over {
        Over::Nothing | Over::Partitions => return Ok(()),
        Over::SameKey => {
            let conditions: Vec<String> = key.iter().map(condition).collect();
            format!(
                "SELECT old.rowid FROM {table} AS old SEMI JOIN {NEW_ROWS} AS new ON {}",
                conditions.join(" AND ")
            )
        }
        Over::SameValue(expression) => format!(
            "SELECT old.id FROM (SELECT rowid AS id, ({expression}) AS value FROM {table}) AS old \
             SEMI JOIN (SELECT DISTINCT ({expression}) AS value FROM {NEW_ROWS}) AS new \
             ON old.value IS NOT DISTINCT FROM new.value"
        ),
    };
    work.run(&format!("DELETE FROM {table} WHERE rowid IN ({gone})"), &[])?;
    Ok(())
}

/// Refuses rows of which two have one key.
pub(super) fn refuse_same_key(work: &Work<'_>, key: &[String], table: &str) -> Result<(), BuildError> {
    if key.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = key.iter().map(|name| quote_identifier(name)).collect();
    let names = names.join(", ");
    let twice =
        format!("SELECT {names} FROM {table} GROUP BY {names} HAVING count(*) > 1 ORDER BY {names} LIMIT 1");
    let Some(row) = work.run(&twice, &[])?.into_iter().next() else {
        return Ok(());
    };
    let values = key
        .iter()
        .zip(&row)
        .map(|(name, value)| format!("{name} = {value}"));
    let first = values.collect::<Vec<_>>().join(", ");
    Err(BuildError::SameKey { first })
}

/// Holds the columns of new rows against those of the table. Returns the names of those to put in.
fn match_columns(
    work: &Work<'_>,
    new: &[Column],
    old: &[Column],
    table: &str,
    policy: NewColumns,
) -> Result<Vec<String>, BuildError> {
    let lacks = |those: &[Column], column: &Column| !those.iter().any(|other| other.is(column));
    let added: Vec<&Column> = new.iter().filter(|column| lacks(old, column)).collect();
    let missing: Vec<&Column> = old.iter().filter(|column| lacks(new, column)).collect();
    let names =
        |columns: &[&Column]| -> Vec<String> { columns.iter().map(|column| column.name.clone()).collect() };
    if policy == NewColumns::Refuse && !(added.is_empty() && missing.is_empty()) {
        return Err(BuildError::Columns(ColumnsDiffer {
            added: names(&added),
            missing: names(&missing),
        }));
    }
    if policy == NewColumns::Add {
        for Column { name, kind } in &added {
            let column = quote_identifier(name);
            work.run(&format!("ALTER TABLE {table} ADD COLUMN {column} {kind}"), &[])?;
        }
    }
    let kept = new
        .iter()
        .filter(|column| policy != NewColumns::Leave || !lacks(old, column));
    Ok(kept.map(|column| column.name.clone()).collect())
}

/// The columns of a query; none where the engine describes it not.
fn described(work: &Work<'_>, sql: &str) -> Result<Option<Vec<Column>>, Failure> {
    let prefix = "DESCRIBE\n";
    match work.run_theirs(Source { prefix, sql }) {
        Ok(rows) => Ok(Some(columns(rows))),
        Err(Failure::Sql(_)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// A record with the names and types of the output's columns in it.
pub(super) fn with_columns(work: &Work<'_>, build: &Build, record: Vec<u8>) -> Result<Vec<u8>, BuildError> {
    let Some(put) = build.put_columns else {
        return Ok(record);
    };
    let output = qualified(&build.name);
    let columns = match build.kind {
        OutputKind::Table => work.columns(&format!("FROM {output} LIMIT 0"))?,
        // To plan a query of a view takes longer than to describe it.
        OutputKind::View => {
            let described = columns_of(work, &output)?;
            described.into_iter().map(|it| (it.name, it.kind)).collect()
        }
    };
    if let Some(form) = build.reads {
        no_columns::refuse(work, &output, form, &columns)?;
    }
    Ok(put(&record, columns))
}

fn columns_of(work: &Work<'_>, table: &str) -> Result<Vec<Column>, Failure> {
    Ok(columns(work.run(&format!("DESCRIBE {table}"), &[])?))
}

fn columns(described: Vec<Vec<Value>>) -> Vec<Column> {
    let column = |row: Vec<Value>| {
        let mut values = row.into_iter();
        Some(Column {
            name: values.next()?.to_string(),
            kind: values.next()?.to_string(),
        })
    };
    described.into_iter().filter_map(column).collect()
}

/// The rows of a table, as the transaction sees it.
pub(super) fn count_rows(work: &Work<'_>, name: &str) -> Result<Option<u64>, Failure> {
    let rows = work.run(&format!("SELECT count(*) FROM {}", qualified(name)), &[])?;
    Ok(count(&rows))
}

/// A record with the first row of the state's query in it.
pub(super) fn with_state(
    work: &Work<'_>,
    state: Option<&StateQuery>,
    record: &[u8],
) -> Result<Vec<u8>, BuildError> {
    let Some(StateQuery { sql, put }) = state else {
        return Ok(record.to_vec());
    };
    let row = sole_statement(sql)
        .map_err(not_one)
        .and_then(|sql| work.first_row(Source { prefix: "", sql }));
    let row = row.map_err(|failure| match failure {
        Failure::Sql(error) => BuildError::State(error),
        failure => BuildError::Failed(failure),
    })?;
    Ok(row.map_or_else(|| record.to_vec(), |row| put(record, row)))
}
