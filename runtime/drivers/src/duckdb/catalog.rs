//! The catalog of Postgres in an in-memory engine of its own, made by `catalog.sql`.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::failure::classify;
use super::query;
use super::sys::{Answer, ColumnValue, Connection, Database, Param, RawError};
use crate::olap::{self, Failure, Query, QueryError, Relation, Rows, Schema, Seen, Value};

/// Statements that make relations and functions.
const SCRIPT: &str = include_str!("catalog.sql");
/// Beginning of the engine's names of functions that Postgres has.
const FUNCTION: &str = "_pg_";
/// Numbers of the schemas, as `catalog.sql` has them.
const MAIN: i64 = 2200;
const METRICS: i64 = 2201;
/// The memory of a catalog, beyond which statements fail: relations are few, and joins of clients are small.
const MEMORY: &str = "128MB";

/// A catalog in an in-memory engine.
pub struct Catalog {
    database: Arc<Database>,
    relations: BTreeSet<String>,
    functions: BTreeSet<String>,
}

impl Catalog {
    /// Makes a catalog. Blocks for tens of milliseconds.
    ///
    /// # Errors
    /// How the engine failed.
    pub fn new(seen: &Seen) -> Result<Self, Failure> {
        make(seen).map_err(|raw| classify(&raw, None).0)
    }
}

/// Opens an engine of its own in memory, which reaches nothing else.
pub(super) fn open() -> Result<Arc<Database>, RawError> {
    let settings = [
        ("threads", "1"),
        ("memory_limit", MEMORY),
        ("temp_directory", ""),
        ("autoinstall_known_extensions", "false"),
        ("autoload_known_extensions", "false"),
        ("enable_external_access", "false"),
    ];
    let settings = settings.map(|(name, value)| (name, value.to_owned()));
    Database::open(None, &settings)
}

fn make(seen: &Seen) -> Result<Catalog, RawError> {
    let database = open()?;
    let connection = Connection::new(&database)?;
    let script: String = SCRIPT
        .lines()
        .filter(|line| !line.starts_with("--"))
        .collect::<Vec<_>>()
        .join("\n");
    for statement in script
        .split(";\n")
        .filter(|statement| !statement.trim().is_empty())
    {
        connection.run(statement, &[]).and_then(Answer::collect)?;
    }
    connection.run("BEGIN", &[]).and_then(Answer::collect)?;
    fill(&connection, seen)?;
    connection.run("COMMIT", &[]).and_then(Answer::collect)?;
    let relations = names(
        &connection,
        "SELECT lower(view_name) FROM duckdb_views() WHERE NOT internal AND schema_name = 'main'",
    )?;
    let functions = names(
        &connection,
        "SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE NOT internal AND schema_name = 'main'",
    )?;
    let functions = functions.iter().filter_map(|name| name.strip_prefix(FUNCTION));
    let functions = functions.map(str::to_owned).collect();
    // Nobody opens by a statement what was closed above.
    connection
        .run("SET lock_configuration = true", &[])
        .and_then(Answer::collect)?;
    drop(connection);
    Ok(Catalog {
        database,
        relations,
        functions,
    })
}

/// Puts what is seen into the tables that the relations are made of.
fn fill(connection: &Connection, seen: &Seen) -> Result<(), RawError> {
    let number = |number: u64| ColumnValue::number(Some(number));
    let session = [ColumnValue::Text(&seen.user), ColumnValue::Text(&seen.database)];
    connection.append(("seen", "session"), [&session[..]])?;
    let databases: Vec<_> = seen
        .databases
        .iter()
        .map(|(oid, name)| [number(u64::from(*oid)), ColumnValue::Text(name)])
        .collect();
    connection.append(("seen", "databases"), databases.iter().map(|row| &row[..]))?;
    let relation = |relation: &'_ Relation| if relation.is_view { "v" } else { "r" };
    let relations: Vec<_> = seen
        .relations
        .iter()
        .map(|own| {
            [
                number(u64::from(own.oid)),
                ColumnValue::Text(&own.name),
                ColumnValue::Text(relation(own)),
                ColumnValue::number(own.rows),
                ColumnValue::Number(match own.schema {
                    Schema::Main => MAIN,
                    Schema::Metrics => METRICS,
                }),
                ColumnValue::Text(&own.description),
            ]
        })
        .collect();
    connection.append(("seen", "relations"), relations.iter().map(|row| &row[..]))?;
    let columns: Vec<_> = seen
        .relations
        .iter()
        .flat_map(|own| own.columns.iter().zip(1_u64..).map(|column| (own.oid, column)))
        .map(|(oid, (column, at))| {
            [
                number(u64::from(oid)),
                number(at),
                ColumnValue::Text(&column.name),
                number(u64::from(column.oid)),
                ColumnValue::Number(i64::from(column.size)),
                ColumnValue::Number(i64::from(column.modifier)),
                ColumnValue::Text(&column.description),
            ]
        })
        .collect();
    connection.append(("seen", "columns"), columns.iter().map(|row| &row[..]))
}

fn names(connection: &Connection, sql: &str) -> Result<BTreeSet<String>, RawError> {
    let rows = connection.run(sql, &[]).and_then(Answer::collect)?;
    Ok(rows.into_iter().flatten().map(|name| name.to_string()).collect())
}

impl olap::Catalog for Catalog {
    fn relations(&self) -> &BTreeSet<String> {
        &self.relations
    }

    fn functions(&self) -> &BTreeSet<String> {
        &self.functions
    }

    fn function(&self, name: &str) -> String {
        format!("{FUNCTION}{name}")
    }

    fn text(&self, document: &str) -> Result<String, Failure> {
        let said = |raw: RawError| classify(&raw, None).0;
        let connection = Connection::new(&self.database).map_err(said)?;
        let sql = "SELECT json_deserialize_sql(?::JSON)";
        let rows = connection.run(sql, &[Param::Text(document)]);
        let rows = rows.and_then(Answer::collect).map_err(said)?;
        match rows.into_iter().flatten().next() {
            Some(Value::Text(text)) => Ok(text),
            _ => Err(Failure::Fatal {
                message: "the engine wrote no statement".to_owned(),
            }),
        }
    }

    fn query<'a>(
        &'a self,
        query: Query,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Rows, QueryError>> {
        query::query_in_memory(&self.database, query, cancel).boxed()
    }
}

impl std::fmt::Debug for Catalog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Catalog").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::olap::{Attribute, Catalog as _};

    fn catalog() -> Catalog {
        let column = |name: &str, oid, size, modifier| Attribute {
            name: name.to_owned(),
            description: String::new(),
            oid,
            size,
            modifier,
        };
        let flights = Relation {
            oid: 20_000,
            schema: Schema::Main,
            name: "flights".to_owned(),
            description: "one row a flight".to_owned(),
            is_view: false,
            rows: Some(7),
            columns: vec![
                column("id", 20, 8, -1),
                column("price", 1700, -1, (18 << 16 | 3) + 4),
            ],
        };
        let seen = Seen {
            user: "0123".to_owned(),
            database: "shop".to_owned(),
            databases: vec![(16_384, "shop".to_owned())],
            relations: vec![flights],
        };
        Catalog::new(&seen).unwrap()
    }

    async fn ask(catalog: &Catalog, sql: &str) -> Result<Vec<Vec<Value>>, QueryError> {
        let cancel = CancellationToken::new();
        catalog.query(Query::new(sql), &cancel).await?.collect().await
    }

    #[tokio::test]
    async fn s_api29_every_relation_of_the_catalog_is_read_and_none_is_written() {
        let catalog = catalog();
        assert!(catalog.relations().len() > 50 && catalog.functions().len() > 50);
        for relation in catalog.relations() {
            let read = ask(&catalog, &format!("SELECT * FROM {relation}")).await;
            assert!(read.is_ok(), "{relation}: {read:?}");
        }
        let types = ask(
            &catalog,
            "SELECT _pg_format_type(atttypid, atttypmod) FROM pg_attribute",
        )
        .await;
        let types: Vec<String> = types
            .unwrap()
            .into_iter()
            .flatten()
            .map(|it| it.to_string())
            .collect();
        assert_eq!(types, ["bigint", "numeric(18,3)"]);
        for refused in [
            "CREATE TABLE seen.more(a INTEGER)",
            "DELETE FROM seen.session",
            "SELECT * FROM read_text('/etc/passwd')",
            "SELECT * FROM '/etc/passwd'",
            "COPY (SELECT 1) TO '/tmp/watershed-catalog'",
            "ATTACH '/tmp/watershed-catalog'",
            "SET lock_configuration = false",
            "SET enable_external_access = true",
            "SELECT 1; SELECT 2",
        ] {
            assert!(ask(&catalog, refused).await.is_err(), "{refused}");
        }
    }
}
