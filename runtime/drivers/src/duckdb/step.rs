//! Insertion of rows into an existing table, within the transaction of a build.

use std::sync::Arc;

use watershed_dialect::{DuckDb, Quoting as _};

use super::columns::{Column, Comparison, columns_of, described};
use super::failure::{Source, not_one};
use super::no_columns;
use super::schema::{count, qualified};
use super::transaction::Work;
use crate::olap::{
    Build, BuildError, Failure, NewColumns, OutputKind, Over, PARTITION_COLUMN, RUN_COLUMN, SqlError,
    StateQuery, Step, Value, sole_statement,
};

/// Temporary table of new rows that are examined before the insertion. Dropped with the transaction.
const NEW_ROWS: &str = "temp._watershed_new_rows";

/// The most columns whose types the engine checks while binding the insert. The cost grows with their square, and above
/// this number a separate description of the statement is cheaper.
const MOST_GUARDED: usize = 200;

/// Rows to be inserted into a table.
struct NewRows<'a> {
    /// SELECT that yields the rows.
    sql: &'a str,
    order_by: Option<&'a str>,
    /// Our own columns to add to the rows, as SQL; none if there are none.
    ours: Option<&'a str>,
    table: &'a str,
    /// Columns of the table, except our own.
    columns: &'a [Column],
    policy: NewColumns,
    /// Columns whose values must be unique among the new rows.
    key: &'a [String],
    /// Rows of the table to replace; none to append.
    replaced: Option<Replaced>,
}

/// The rows of a table that an insertion replaces.
struct Replaced {
    /// Statement that deletes them. May run more than once before the insertion.
    delete: String,
    /// True if the statement reads the temporary table of new rows.
    reads_new_rows: bool,
}

impl NewRows<'_> {
    /// Inserts the rows. Returns their number.
    fn put(&self, work: &Work<'_>) -> Result<u64, BuildError> {
        let reads_new_rows = self.replaced.as_ref().is_some_and(|it| it.reads_new_rows);
        let directly = self.key.is_empty() && !reads_new_rows;
        if directly && let Some(rows) = self.put_directly(work)? {
            return Ok(rows);
        }
        let rows = self.lay_out(work)?;
        // Without any, what the engine takes for their columns may be wrong, as for an empty file.
        if rows > 0 {
            let taken = self.settle(work)?;
            refuse_same_key(work, self.key, NEW_ROWS)?;
            self.delete_replaced(work)?;
            let (table, ours) = (self.table, self.with_ours());
            let insert = format!("INSERT INTO {table} BY NAME SELECT {taken}{ours} FROM {NEW_ROWS}");
            work.run(&insert, &[])?;
        } else if directly {
            self.delete_replaced(work)?;
        }
        work.run(&format!("DROP TABLE {NEW_ROWS}"), &[])?;
        Ok(rows)
    }

    /// Inserts the rows without a temporary table, if the table's columns hold all their values. Returns their number;
    /// none if that is not possible.
    fn put_directly(&self, work: &Work<'_>) -> Result<Option<u64>, BuildError> {
        // The engine changes no column of a table whose rows were deleted.
        let may_delete = self.replaced.is_none() || self.policy != NewColumns::Add;
        if may_delete && self.order_by.is_none() && self.columns.len() <= MOST_GUARDED {
            self.delete_replaced(work)?;
            let (table, taken, ours) = (self.table, self.guarded(), self.with_ours());
            let prefix = format!("INSERT INTO {table} BY NAME SELECT {taken}{ours} FROM (\n");
            match work.run_within(
                Source {
                    prefix: &prefix,
                    sql: self.sql,
                },
                "\n)",
            ) {
                Ok(inserted) => return Ok(count(&inserted)),
                // Refused by the engine where a column is missing, new or of another type.
                Err(Failure::Sql(error)) if is_of_shape(&error) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
        let Some(new) = described(work, self.sql)? else {
            return Ok(None);
        };
        if !self.compare(work, &new)?.is_plain(self.policy) {
            return Ok(None);
        }
        self.delete_replaced(work)?;
        let table = self.table;
        let inserted = match self.ours {
            Some(ours) => {
                let prefix = format!("INSERT INTO {table} BY NAME SELECT *, {ours} FROM (\n");
                work.run_within(
                    Source {
                        prefix: &prefix,
                        sql: self.sql,
                    },
                    "\n)",
                )?
            }
            None => {
                let prefix = format!("INSERT INTO {table} BY NAME\n");
                run_ordered(
                    work,
                    Source {
                        prefix: &prefix,
                        sql: self.sql,
                    },
                    self.order_by,
                )?
            }
        };
        Ok(count(&inserted))
    }

    /// Returns a select list with all columns of the statement, which the engine refuses to bind if a column of the
    /// table is missing or has another type.
    fn guarded(&self) -> String {
        let guard = |Column { name, kind }: &Column| {
            let (name, kind) = (DuckDb.name(name), DuckDb.text(kind));
            format!("struct_extract({{{kind}: {name}}}, typeof({name})) AS {name}")
        };
        let guards: Vec<String> = self.columns.iter().map(guard).collect();
        match guards.is_empty() {
            true => "*".to_owned(),
            false => format!("* REPLACE ({})", guards.join(", ")),
        }
    }

    fn with_ours(&self) -> String {
        self.ours.map(|ours| format!(", {ours}")).unwrap_or_default()
    }

    fn delete_replaced(&self, work: &Work<'_>) -> Result<(), Failure> {
        match &self.replaced {
            Some(replaced) => work.run(&replaced.delete, &[]).map(drop),
            None => Ok(()),
        }
    }

    /// Writes the rows into the temporary table. Returns their number.
    fn lay_out(&self, work: &Work<'_>) -> Result<u64, BuildError> {
        let prefix = format!("CREATE OR REPLACE TEMPORARY TABLE {NEW_ROWS} AS\n");
        let source = Source {
            prefix: &prefix,
            sql: self.sql,
        };
        let made = run_ordered(work, source, self.order_by)?;
        Ok(count(&made).unwrap_or_default())
    }

    /// Aligns the columns of the temporary table with those of the table. Returns the columns to insert as SQL.
    fn settle(&self, work: &Work<'_>) -> Result<String, BuildError> {
        let new = columns_of(work, NEW_ROWS)?;
        self.compare(work, &new)?
            .settle(work, NEW_ROWS, self.table, self.policy)
    }

    fn compare<'c>(&'c self, work: &Work<'_>, new: &'c [Column]) -> Result<Comparison<'c>, Failure> {
        Comparison::new(new, self.columns).with_nulls(work, self.sql)
    }
}

/// A partition to be inserted into a stage.
pub(super) struct Staged<'a> {
    pub(super) sql: &'a str,
    /// Our own columns, as SQL.
    pub(super) ours: &'a str,
    pub(super) stage: &'a str,
    /// Columns of the stage except our own; none if the stage does not exist.
    pub(super) stands: Option<Arc<[Column]>>,
    pub(super) policy: NewColumns,
    /// Statement that deletes rows of an earlier run of the partition; none if there are none.
    pub(super) delete: Option<String>,
}

/// Inserts a partition's rows into a stage with our own columns, creating a missing stage with the rows' columns.
/// Returns the number of rows, and the columns of the stage.
pub(super) fn stage_rows(work: &Work<'_>, partition: Staged<'_>) -> Result<(u64, Arc<[Column]>), BuildError> {
    let Staged { sql, ours, stage, .. } = partition;
    let Some(columns) = partition.stands else {
        let prefix = format!("CREATE TABLE {stage} AS SELECT *, {ours} FROM (\n");
        let made = work.run_within(Source { prefix: &prefix, sql }, "\n)")?;
        return Ok((count(&made).unwrap_or_default(), columns_of_stage(work, stage)?));
    };
    let rows = NewRows {
        sql,
        order_by: None,
        ours: Some(ours),
        table: stage,
        columns: &columns,
        policy: partition.policy,
        key: &[],
        replaced: partition.delete.map(|delete| Replaced {
            delete,
            reads_new_rows: false,
        }),
    };
    let number = rows.put(work)?;
    let columns = match partition.policy {
        NewColumns::Add => columns_of_stage(work, stage)?,
        NewColumns::Refuse | NewColumns::Leave => columns,
    };
    Ok((number, columns))
}

/// Returns the columns of a stage, except our own.
pub(super) fn columns_of_stage(work: &Work<'_>, stage: &str) -> Result<Arc<[Column]>, Failure> {
    let columns = columns_of(work, stage)?.into_iter();
    let theirs = columns.filter(|column| ![PARTITION_COLUMN, RUN_COLUMN].contains(&column.name.as_str()));
    Ok(theirs.collect())
}

/// Runs the statement of a build and inserts its rows into the table. Returns true if there were any.
pub(super) fn put_rows(work: &Work<'_>, build: &Build) -> Result<bool, BuildError> {
    let Step::Into { over, columns } = &build.step else {
        return Err(BuildError::Absent);
    };
    let table = qualified(&build.name);
    let rows = NewRows {
        sql: sole_statement(&build.sql).map_err(not_one)?,
        order_by: build.order_by.as_deref(),
        ours: None,
        columns: &columns_of(work, &table)?,
        policy: *columns,
        key: &build.key,
        replaced: replaced(build, over, &table),
        table: &table,
    };
    Ok(rows.put(work)? > 0)
}

/// Runs a statement that writes the rows of a query, sorted if the build asks for an order.
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
        Failure::Sql(error) if is_of_shape(&error) && work.connection().prepare(source.sql).is_ok() => {
            BuildError::Order(error)
        }
        failure => failure.into(),
    })
}

/// Returns true for errors about the columns of a statement rather than its rows.
fn is_of_shape(error: &SqlError) -> bool {
    matches!(error.class.as_str(), "binder" | "catalog" | "parser")
}

/// Returns the rows of the table to replace by the new ones. NULLs count as equal. Our names next to users' columns
/// start with a reserved prefix, which the engine's own names do not have.
fn replaced(build: &Build, over: &Over, table: &str) -> Option<Replaced> {
    let condition = |name: &String| {
        let name = DuckDb.name(name);
        format!("_watershed_old.{name} IS NOT DISTINCT FROM _watershed_new.{name}")
    };
    let (delete, reads_new_rows) = match over {
        Over::Nothing => return None,
        // Those that have no rows any more lose theirs too.
        Over::Partitions => {
            let end = build.stage.as_ref()?;
            let (uid, stage) = (build.tag.uid, DuckDb.text(&end.stage));
            let staged = format!(
                "SELECT key FROM _watershed.partitions WHERE uid = '{uid}' AND stage = {stage} AND phase = 'staged'"
            );
            let delete = format!("DELETE FROM {table} WHERE {PARTITION_COLUMN} IN ({staged})");
            (delete, false)
        }
        Over::SameKey => {
            let conditions: Vec<String> = build.key.iter().map(condition).collect();
            let conditions = conditions.join(" AND ");
            let delete = format!(
                "DELETE FROM {table} AS _watershed_old USING {NEW_ROWS} AS _watershed_new WHERE {conditions}"
            );
            (delete, true)
        }
        Over::SameValue(expression) => {
            let delete = format!(
                "DELETE FROM {table} USING (SELECT DISTINCT ({expression}) AS _watershed_value FROM {NEW_ROWS}) \
                 AS _watershed_new WHERE ({expression}) IS NOT DISTINCT FROM _watershed_new._watershed_value"
            );
            (delete, true)
        }
    };
    Some(Replaced {
        delete,
        reads_new_rows,
    })
}

/// Refuses rows with duplicate keys.
pub(super) fn refuse_same_key(work: &Work<'_>, key: &[String], table: &str) -> Result<(), BuildError> {
    if key.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = key.iter().map(|name| DuckDb.name(name)).collect();
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

/// Returns a record with the names and types of the output's columns added.
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

/// Returns the number of rows of a table, as the transaction sees it.
pub(super) fn count_rows(work: &Work<'_>, name: &str) -> Result<Option<u64>, Failure> {
    let rows = work.run(&format!("SELECT count(*) FROM {}", qualified(name)), &[])?;
    Ok(count(&rows))
}

/// Returns a record with the first row of the state's query added.
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
