//! Comparison of new rows' columns with those of the table that they are inserted into, shared by all kinds of
//! insertion.
//!
//! Names and types are compared. What a column of the table holds of every value is cast; where that depends on the values, they are
//! looked at. All else is refused, or the table's columns become wider if whoever asks lets them: no value becomes another.

use std::collections::{BTreeMap, BTreeSet};

use watershed_dialect::{Dialect as _, DuckDb, Quoting as _};

use super::column_type::{ColumnType, Fit, common, fit};
use super::failure::Source;
use super::transaction::Work;
use crate::olap::{BuildError, ColumnsDiffer, Failure, NewColumns, RetypedColumn, Value};

/// A column with its name and type in SQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: String,
}

impl Column {
    fn quoted(&self) -> String {
        DuckDb.name(&self.name)
    }
}

/// A column whose type differs between new rows and table.
struct Retyped<'c> {
    new: &'c Column,
    old: &'c Column,
    from: ColumnType,
    into: ColumnType,
    fit: Fit,
}

/// The columns of new rows compared with those of a table.
pub(super) struct Comparison<'c> {
    /// Columns that only the new rows have.
    added: Vec<&'c Column>,
    /// Columns that only the table has.
    missing: Vec<&'c Column>,
    retyped: Vec<Retyped<'c>>,
    /// Columns that both have, with the types of the new rows.
    shared: Vec<&'c Column>,
}

impl<'c> Comparison<'c> {
    pub(super) fn new(new: &'c [Column], old: &'c [Column]) -> Self {
        let olds: BTreeMap<String, &Column> = old.iter().map(|it| (DuckDb.fold(&it.name), it)).collect();
        let news: BTreeSet<String> = new.iter().map(|it| DuckDb.fold(&it.name)).collect();
        let (mut added, mut retyped, mut shared) = (Vec::new(), Vec::new(), Vec::new());
        for column in new {
            let Some(standing) = olds.get(&DuckDb.fold(&column.name)) else {
                added.push(column);
                continue;
            };
            shared.push(column);
            if column.kind != standing.kind {
                let (from, into) = (ColumnType::parse(&column.kind), ColumnType::parse(&standing.kind));
                retyped.push(Retyped {
                    new: column,
                    old: standing,
                    fit: fit(&into, &from),
                    from,
                    into,
                });
            }
        }
        let is_missing = |column: &&Column| !news.contains(&DuckDb.fold(&column.name));
        Self {
            added,
            missing: old.iter().filter(is_missing).collect(),
            retyped,
            shared,
        }
    }

    /// Takes the types of the query itself for columns that do not fit, since a table made from the query has no type
    /// for NULL.
    pub(super) fn with_nulls(mut self, work: &Work<'_>, sql: &str) -> Result<Self, Failure> {
        let misfits = self.retyped.iter_mut().filter(|it| it.fit != Fit::Always);
        let mut misfits: Vec<&mut Retyped<'_>> = misfits.collect();
        if misfits.is_empty() {
            return Ok(self);
        }
        let typeof_ = |column: &&mut Retyped<'_>| format!("typeof(_watershed_new.{})", column.new.quoted());
        let types: Vec<String> = misfits.iter().map(typeof_).collect();
        // One row whatever the query yields, and none of its rows is made.
        let prefix = format!(
            "SELECT {} FROM (SELECT 1) LEFT JOIN (SELECT * FROM (\n",
            types.join(", ")
        );
        let asked = work.run_within(
            Source { prefix: &prefix, sql },
            "\n) LIMIT 0) AS _watershed_new ON true",
        );
        let row = match asked {
            Ok(rows) => rows.into_iter().next().unwrap_or_default(),
            Err(Failure::Sql(_)) => Vec::new(),
            Err(failure) => return Err(failure),
        };
        for (column, kind) in misfits.iter_mut().zip(row) {
            if fit(&column.into, &ColumnType::parse(&kind.to_string())) == Fit::Always {
                column.fit = Fit::Always;
            }
        }
        Ok(self)
    }

    /// Returns true if all rows can be inserted unchanged, whatever their values.
    pub(super) fn is_plain(&self, policy: NewColumns) -> bool {
        let all_fit = self.retyped.iter().all(|column| column.fit == Fit::Always);
        all_fit && self.added.is_empty() && (self.missing.is_empty() || policy != NewColumns::Refuse)
    }

    /// Aligns the columns of the new rows, which are in the table `rows`, with those of `table`. Returns the columns to
    /// insert as SQL. Runs before rows of the table are deleted, since the engine changes no column of a table with
    /// deletions.
    ///
    /// # Errors
    /// [`BuildError::Columns`] when they are others and may not be. Nothing was put in then.
    pub(super) fn settle(
        self,
        work: &Work<'_>,
        rows: &str,
        table: &str,
        policy: NewColumns,
    ) -> Result<String, BuildError> {
        let (mut statements, mut refused) = (Vec::new(), Vec::new());
        for column in &self.retyped {
            match column.take(work, rows, table, policy)? {
                Some(retypes) => statements.extend(retypes),
                None => refused.push(RetypedColumn {
                    name: column.old.name.clone(),
                    old: column.old.kind.clone(),
                    new: column.new.kind.clone(),
                }),
            }
        }
        let names = |columns: &[&Column]| columns.iter().map(|column| column.name.clone()).collect();
        let has_other_names = !(self.added.is_empty() && self.missing.is_empty());
        if !refused.is_empty() || policy == NewColumns::Refuse && has_other_names {
            let (added, missing) = match policy {
                NewColumns::Refuse => (names(&self.added), names(&self.missing)),
                NewColumns::Leave | NewColumns::Add => (Vec::new(), Vec::new()),
            };
            return Err(BuildError::Columns(ColumnsDiffer {
                added,
                missing,
                retyped: refused,
            }));
        }
        if policy == NewColumns::Add {
            let add = |column: &&Column| {
                let (name, kind) = (column.quoted(), &column.kind);
                format!("ALTER TABLE {table} ADD COLUMN {name} {kind}")
            };
            statements.extend(self.added.iter().map(add));
        }
        for statement in &statements {
            work.run(statement, &[])?;
        }
        let added = self.added.iter().filter(|_| policy == NewColumns::Add);
        let taken: Vec<String> = self.shared.iter().chain(added).map(|it| it.quoted()).collect();
        Ok(taken.join(", "))
    }
}

impl Retyped<'_> {
    /// Returns the statements that give a column the same type in new rows and table; none if there is no such type.
    fn take(
        &self,
        work: &Work<'_>,
        rows: &str,
        table: &str,
        policy: NewColumns,
    ) -> Result<Option<Vec<String>>, Failure> {
        let (name, old, new) = (self.new.quoted(), &self.old.kind, &self.new.kind);
        let in_lake = work.lake().is_some();
        let retype = |of: &str, to: &str, using: &str| match in_lake && of == table {
            false => format!("ALTER TABLE {of} ALTER COLUMN {name} SET DATA TYPE {to}{using}"),
            // A lake widens few types in place.
            true => {
                let value = if using.is_empty() { name.as_str() } else { "NULL" };
                format!(
                    "CREATE OR REPLACE TABLE {of} AS SELECT * REPLACE ({value}::{to} AS {name}) FROM {of}"
                )
            }
        };
        if self.fit == Fit::Always {
            return Ok(Some(vec![retype(rows, old, "")]));
        }
        if is_null(work, rows, &name)? {
            return Ok(Some(vec![retype(rows, old, USING_NULL)]));
        }
        if policy == NewColumns::Add
            && let Some(both) = common(&self.into, &self.from)
        {
            let both = both.to_string();
            return Ok(Some(vec![retype(table, &both, ""), retype(rows, &both, "")]));
        }
        if self.fit == Fit::Looked && keeps(work, rows, &name, [new, old])? {
            return Ok(Some(vec![retype(rows, old, "")]));
        }
        if policy != NewColumns::Add {
            return Ok(None);
        }
        let widens = fit(&self.from, &self.into) == Fit::Looked && keeps(work, table, &name, [old, new])?;
        Ok(match widens {
            true => Some(vec![retype(table, new, "")]),
            false if is_null(work, table, &name)? => Some(vec![retype(table, new, USING_NULL)]),
            false => None,
        })
    }
}

/// SQL suffix that sets all values of a retyped column to NULL.
const USING_NULL: &str = " USING NULL";

/// Returns true if all values of a column survive a cast to another type and back.
fn keeps(work: &Work<'_>, table: &str, name: &str, [from, to]: [&str; 2]) -> Result<bool, Failure> {
    let back = format!("TRY_CAST(TRY_CAST({name} AS {to}) AS {from})");
    is_true(
        work,
        &format!("SELECT count(*) = 0 FROM {table} WHERE {back} IS DISTINCT FROM {name}"),
    )
}

/// Returns true if all values of a column are NULL.
fn is_null(work: &Work<'_>, table: &str, name: &str) -> Result<bool, Failure> {
    is_true(work, &format!("SELECT count({name}) = 0 FROM {table}"))
}

fn is_true(work: &Work<'_>, sql: &str) -> Result<bool, Failure> {
    let rows = work.run(sql, &[])?;
    Ok(rows.first().and_then(|row| row.first()) == Some(&Value::Boolean(true)))
}

/// Returns the columns of a query; none if the engine can't describe it.
pub(super) fn described(work: &Work<'_>, sql: &str) -> Result<Option<Vec<Column>>, Failure> {
    let prefix = "DESCRIBE\n";
    match work.run_theirs(Source { prefix, sql }) {
        Ok(rows) => Ok(Some(columns(rows))),
        Err(Failure::Sql(_)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Returns the columns of a table or view.
pub(super) fn columns_of(work: &Work<'_>, table: &str) -> Result<Vec<Column>, Failure> {
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
