//! Writing of an output's rows into a table of another database: created beside the existing table and swapped with it,
//! in one transaction of that database. The table's comment names its owner, so that others' tables are never touched.

use tokio_util::sync::CancellationToken;

use watershed_dialect::{DuckDb, Quoting as _};

use super::attach::attached;
use super::engine::{Engine, Intent};
use super::gate::Company;
use super::install::{MOST_EXTENSIONS, install_for};
use super::lake::{self, Held};
use super::schema::{self, qualified};
use super::transaction::Work;
use crate::crash::around;
use crate::olap::{Attached, DropTable, Failure, System, TableError, TableName, Tag, Value, WriteTable};

/// Prefixes of types that other systems do not have.
const UNKNOWN_ELSEWHERE: [&str; 6] = ["STRUCT", "UNION", "MAP", "BIT", "TIMESTAMP_NS", "TIME_NS"];

/// Writes the rows of an output into a table of another database.
pub(super) async fn write_table(
    engine: &Engine,
    job: &WriteTable,
    cancel: &CancellationToken,
) -> Result<Option<u64>, TableError> {
    let mut written = try_to_write(engine, job, cancel).await;
    for _ in 0..MOST_EXTENSIONS {
        let Err(TableError::Failed(failure)) = &mut written else {
            break;
        };
        if !install_for(engine, failure, cancel).await {
            break;
        }
        written = try_to_write(engine, job, cancel).await;
    }
    written
}

async fn try_to_write(
    engine: &Engine,
    job: &WriteTable,
    cancel: &CancellationToken,
) -> Result<Option<u64>, TableError> {
    let job = job.clone();
    engine
        .work_to(Intent::Read, cancel, Company::Others, move |work| {
            let databases = [job.database.clone()];
            attached(work, &databases, || {
                let columns = columns(work, &job)?;
                work.transaction_elsewhere(around!("table"), || write(work, &job, &columns))
            })
            .map_err(|error| hidden(&job.database, error))
        })
        .await
}

/// Drops a table of another database.
pub(super) async fn drop_table(
    engine: &Engine,
    job: &DropTable,
    cancel: &CancellationToken,
) -> Result<bool, TableError> {
    let job = job.clone();
    engine
        .work_to(Intent::Read, cancel, Company::Others, move |work| {
            let databases = [job.database.clone()];
            attached(work, &databases, || {
                work.transaction_elsewhere(around!("table"), || {
                    let place = Place::new(&job.database, &job.name);
                    match place.look(work)? {
                        None => Ok(false),
                        Some(Found::Tagged(tag)) if tag.uid == job.owner => {
                            place.run(work, &format!("DROP TABLE {}", place.target()))?;
                            Ok(true)
                        }
                        Some(found) => Err(found.taken()),
                    }
                })
            })
            .map_err(|error| hidden(&job.database, error))
        })
        .await
}

/// Returns the select list that converts the columns for the other system.
fn columns(work: &Work<'_>, job: &WriteTable) -> Result<String, TableError> {
    let described = work.run(&format!("DESCRIBE {}", qualified(&job.output)), &[])?;
    let column = |row: Vec<Value>| -> Result<String, TableError> {
        let mut row = row.into_iter().map(|value| value.to_string());
        let (name, data_type) = (row.next().unwrap_or_default(), row.next().unwrap_or_default());
        let quoted = DuckDb.name(&name);
        let cast = match job.database.system {
            System::DuckDb => Cast::None,
            System::DuckLake => cast_of_lake(&data_type),
            _ => cast_of_server(&data_type),
        };
        match cast {
            Cast::None => Ok(quoted),
            Cast::To(other) => Ok(format!("{quoted}::{other} AS {quoted}")),
            Cast::Unknown => Err(TableError::Type {
                column: name,
                data_type,
            }),
        }
    };
    let columns: Result<Vec<String>, TableError> = described.into_iter().map(column).collect();
    Ok(columns?.join(", "))
}

/// The conversion of a column's values for another system.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Cast {
    /// None: the values are written unchanged.
    None,
    /// A cast to this type.
    To(String),
    /// Impossible: the other system has no type for the values.
    Unknown,
}

/// Returns the conversion of a column for a database server.
fn cast_of_server(data_type: &str) -> Cast {
    let scalar = data_type.trim_end_matches(|c: char| c == '[' || c == ']' || c.is_ascii_digit());
    let is_list = data_type.ends_with(']');
    if UNKNOWN_ELSEWHERE
        .iter()
        .any(|unknown| scalar.starts_with(unknown))
        || is_list && (scalar.starts_with("ENUM") || scalar.ends_with("HUGEINT"))
    {
        return Cast::Unknown;
    }
    match scalar {
        // Without digits it would become an inexact number.
        "HUGEINT" | "UHUGEINT" => Cast::To("DECIMAL(38, 0)".to_owned()),
        scalar if scalar.starts_with("ENUM") => Cast::To("VARCHAR".to_owned()),
        _ => Cast::None,
    }
}

/// Returns the conversion of a column for a lake.
fn cast_of_lake(data_type: &str) -> Cast {
    match lake::held(data_type) {
        Held::Same => Cast::None,
        Held::As(other) => Cast::To(other),
        Held::No => Cast::Unknown,
    }
}

fn write(work: &Work<'_>, job: &WriteTable, columns: &str) -> Result<Option<u64>, TableError> {
    let place = Place::new(&job.database, &job.name);
    match place.look(work)? {
        Some(Found::Tagged(tag)) if tag == job.tag => return Ok(None),
        // The rows of a lost catalog, by another id, are these rows.
        Some(Found::Tagged(tag)) if tag.build == job.tag.build => {
            place.run(work, &comment(&place.target(), job.tag))?;
            return Ok(None);
        }
        Some(Found::Tagged(tag)) if tag.uid == job.tag.uid => {}
        None => {}
        // So are those of a lost state, where the rows are the very same.
        Some(Found::Tagged(_)) if has_same_rows(work, &place, job, columns) => {
            place.run(work, &comment(&place.target(), job.tag))?;
            return Ok(None);
        }
        Some(found) => return Err(found.taken()),
    }
    let rows = qualified(&job.output);
    if job.database.system == System::DuckLake {
        // Its transactions show others nothing before they end, and a table's folder has the name that it began with.
        place.run(work, &format!("DROP TABLE IF EXISTS {}", place.target()))?;
        let made = place.make(work, &format!("SELECT {columns} FROM {rows}"))?;
        place.run(work, &comment(&place.target(), job.tag))?;
        return Ok(made);
    }
    let beside = TableName {
        schema: job.name.schema.clone(),
        table: format!("_watershed_{}", job.tag.uid.simple()),
    };
    let beside = Place::new(&job.database, &beside);
    place.run(work, &format!("DROP TABLE IF EXISTS {}", beside.target()))?;
    let made = beside.make(work, &format!("SELECT {columns} FROM {rows}"))?;
    place.run(work, &comment(&beside.target(), job.tag))?;
    place.run(work, &format!("DROP TABLE IF EXISTS {}", place.target()))?;
    let name = DuckDb.name(&job.name.table);
    place.run(work, &format!("ALTER TABLE {} RENAME TO {name}", beside.target()))?;
    Ok(made)
}

/// Returns true if a table holds the same rows as the output, in any order. False if they can't be compared.
fn has_same_rows(work: &Work<'_>, place: &Place<'_>, job: &WriteTable, columns: &str) -> bool {
    let own = format!("SELECT {columns} FROM {}", qualified(&job.output));
    let there = format!("SELECT * FROM {}", place.here());
    let sql =
        format!("SELECT NOT EXISTS ({own} EXCEPT ALL {there}) AND NOT EXISTS ({there} EXCEPT ALL {own})");
    let rows = work.run(&sql, &[]).unwrap_or_default();
    rows.first().and_then(|row| row.first()) == Some(&Value::Boolean(true))
}

fn comment(table: &str, tag: Tag) -> String {
    format!("COMMENT ON TABLE {table} IS {}", DuckDb.text(&tag.to_string()))
}

/// The object with a table's name.
enum Found {
    /// A table with our tag.
    Tagged(Tag),
    /// An object without our tag, with the word for its kind.
    Foreign(&'static str),
}

impl Found {
    fn taken(&self) -> TableError {
        let kind = match self {
            Self::Tagged(_) => "table of another model",
            Self::Foreign(kind) => kind,
        };
        TableError::Taken {
            kind: kind.to_owned(),
        }
    }
}

/// A table's name in an attached database.
struct Place<'a> {
    database: &'a Attached,
    name: &'a TableName,
}

impl<'a> Place<'a> {
    fn new(database: &'a Attached, name: &'a TableName) -> Self {
        Self { database, name }
    }

    fn is_postgres(&self) -> bool {
        self.database.system == System::Postgres
    }

    fn usual_schema(&self) -> &'static str {
        match self.is_postgres() {
            true => "public",
            false => "main",
        }
    }

    /// Returns the name in the other database's SQL, whose quoting is the same as the engine's.
    fn within(&self) -> String {
        let schema = self.name.schema.as_deref().unwrap_or_else(|| self.usual_schema());
        DuckDb.path(&[schema, &self.name.table])
    }

    /// Returns the name in the engine's SQL.
    fn here(&self) -> String {
        format!("{}.{}", DuckDb.name(&self.database.name), self.within())
    }

    /// Returns the name in the SQL for [`run`](Self::run).
    fn target(&self) -> String {
        match self.is_postgres() {
            true => self.within(),
            false => self.here(),
        }
    }

    /// Creates the table from an engine's query. Returns its number of rows, if reported.
    fn make(&self, work: &Work<'_>, query: &str) -> Result<Option<u64>, TableError> {
        let made = work.run(&format!("CREATE TABLE {} AS {query}", self.here()), &[]);
        Ok(schema::count(&made.map_err(refused)?))
    }

    /// Runs a statement in the database's transaction.
    fn run(&self, work: &Work<'_>, sql: &str) -> Result<(), TableError> {
        let run = match self.is_postgres() {
            true => {
                let (database, sql) = (DuckDb.text(&self.database.name), DuckDb.text(sql));
                work.run(&format!("CALL postgres_execute({database}, {sql})"), &[])
            }
            false => work.run(sql, &[]),
        };
        run.map(drop).map_err(refused)
    }

    /// Returns the object that has the name; none if the name is free.
    fn look(&self, work: &Work<'_>) -> Result<Option<Found>, TableError> {
        let schema = self.name.schema.as_deref().unwrap_or(self.usual_schema());
        let (in_schema, name) = (DuckDb.text(schema), DuckDb.text(&self.name.table));
        let sql = match self.is_postgres() {
            true => {
                let asked = format!(
                    "SELECT c.relkind::text AS kind, pg_catalog.obj_description(c.oid, 'pg_class') AS tag \
                     FROM pg_catalog.pg_namespace n LEFT JOIN pg_catalog.pg_class c \
                     ON c.relnamespace = n.oid AND c.relname = {name} WHERE n.nspname = {in_schema}"
                );
                let (database, asked) = (DuckDb.text(&self.database.name), DuckDb.text(&asked));
                format!("SELECT * FROM postgres_query({database}, {asked})")
            }
            false => {
                let database = DuckDb.text(&self.database.name);
                format!(
                    "SELECT o.kind, o.tag FROM duckdb_schemas() s LEFT JOIN ( \
                     SELECT database_name, schema_name, table_name, 'r' AS kind, comment AS tag FROM duckdb_tables() \
                     UNION ALL SELECT database_name, schema_name, view_name, 'v', NULL FROM duckdb_views()) o \
                     ON o.database_name = s.database_name AND o.schema_name = s.schema_name \
                     AND lower(o.table_name) = lower({name}) \
                     WHERE s.database_name = {database} AND s.schema_name = {in_schema}"
                )
            }
        };
        let rows = work.run(&sql, &[]).map_err(refused)?;
        let Some(row) = rows.into_iter().next() else {
            return Err(TableError::NoSchema(schema.to_owned()));
        };
        let mut row = row.into_iter().map(|value| match value {
            Value::Text(text) => Some(text),
            _ => None,
        });
        let (kind, tag) = (row.next().flatten(), row.next().flatten());
        let Some(kind) = kind else { return Ok(None) };
        let tag = tag.as_deref().and_then(Tag::parse);
        Ok(Some(match (kind.as_str(), tag) {
            ("r", Some(tag)) => Found::Tagged(tag),
            ("r" | "p", _) => Found::Foreign("table"),
            ("v" | "m", _) => Found::Foreign("view"),
            _ => Found::Foreign("thing of that name"),
        }))
    }
}

/// Converts a failure of our statement to the database's refusal, on one line.
fn refused(failure: Failure) -> TableError {
    let Failure::Sql(error) = &failure else {
        return TableError::Failed(failure);
    };
    let said = error.message.as_str();
    // Before it stands our statement.
    let said = said.rsplit_once("ERROR:").map_or(said, |(_, said)| said);
    TableError::Refused(said.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Removes settings of the connection from an error that may quote them.
fn hidden(database: &Attached, error: TableError) -> TableError {
    match error {
        TableError::Refused(said) => TableError::Refused(database.hide(&said)),
        TableError::Failed(Failure::Sql(mut error)) => {
            error.message = database.hide(&error.message);
            TableError::Failed(Failure::Sql(error))
        }
        error => error,
    }
}
