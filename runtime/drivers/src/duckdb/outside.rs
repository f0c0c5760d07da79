//! Somebody else's program on the data of an engine: without Watershed's settings, tags and records.

use std::sync::Arc;

use watershed_dialect::{DuckDb, Quoting as _};

use super::attachment;
use super::options::Options;
use super::sys::{Answer, Connection, Database, RawError};
use crate::olap::{Attached, Home, LakeHome, OutputKind, System, Value};

/// Name in SQL of the database that has a lake's catalog.
const CATALOG: &str = "catalog";

/// Returns a query for a column `x` of so many numbers.
pub fn numbers(rows: u64) -> String {
    format!("SELECT range AS x FROM range({rows})")
}

/// Returns a query that goes on for ever, in little memory.
pub fn endless() -> String {
    "SELECT sum(a.i * b.i) AS x FROM range(100000000) a(i), range(100000000) b(i)".to_owned()
}

/// A program of somebody else, which has the data of an engine open.
pub struct Outside {
    connection: Connection,
    _database: Arc<Database>,
}

impl Outside {
    /// Opens the data that the options of an engine name; a lake is attached and used. No engine may have them open.
    ///
    /// # Errors
    /// The engine's words.
    pub fn open(options: &Options) -> Result<Self, String> {
        match &options.home {
            Home::File => Self::connect(options, true),
            Home::Lake(home) => {
                let outside = Self::connect(options, false)?;
                // As the engine attaches it, which is to open what this program leaves.
                let journal: &[&str] = match home.database.keeper() {
                    System::Sqlite => &["META_JOURNAL_MODE 'WAL'"],
                    _ => &[],
                };
                for sql in attachment::begin_with(&home.database, journal) {
                    outside.run(&sql)?;
                }
                outside.run(&format!("USE {}", DuckDb.name(&home.database.name)))?;
                Ok(outside)
            }
        }
    }

    /// Drops the schema with the catalog of a lake, if a server has it: nothing of the lake is known any more.
    ///
    /// # Errors
    /// The engine's words.
    pub fn forget_lake(options: &Options, home: &LakeHome) -> Result<(), String> {
        let lake = home.database.lake.as_ref();
        let schema = lake.and_then(|lake| lake.schema.as_deref());
        let (Some(schema), System::Postgres) = (schema, home.database.keeper()) else {
            return Ok(());
        };
        let outside = Self::connect(options, false)?;
        let catalog = Attached {
            name: CATALOG.to_owned(),
            system: System::Postgres,
            lake: None,
            ..home.database.clone()
        };
        for sql in attachment::begin(&catalog) {
            outside.run(&sql)?;
        }
        let drop = format!("DROP SCHEMA IF EXISTS {} CASCADE", DuckDb.name(schema));
        let call = format!("CALL postgres_execute('{CATALOG}', {})", DuckDb.text(&drop));
        outside.run(&call).map(|_| ())
    }

    /// Runs a statement, and returns its rows.
    ///
    /// # Errors
    /// The engine's words.
    pub fn run(&self, sql: &str) -> Result<Vec<Vec<Value>>, String> {
        let answer = self.connection.run(sql, &[]).and_then(Answer::collect);
        answer.map_err(|RawError(message)| message)
    }

    /// Makes a table or view of a query, with a comment.
    ///
    /// # Errors
    /// The engine's words.
    pub fn make(&self, name: &str, kind: OutputKind, sql: &str, comment: Option<&str>) -> Result<(), String> {
        let name = DuckDb.name(name);
        self.run(&format!("CREATE {kind} {name} AS {sql}"))?;
        if let Some(comment) = comment {
            let comment = DuckDb.text(comment);
            self.run(&format!("COMMENT ON {kind} {name} IS {comment}"))?;
        }
        Ok(())
    }

    /// Returns the names of all tables and views, in order.
    ///
    /// # Errors
    /// The engine's words.
    pub fn objects(&self) -> Result<Vec<String>, String> {
        let sql = "SELECT table_name FROM information_schema.tables WHERE table_catalog = current_database() \
                   AND table_schema = 'main' ORDER BY 1";
        let names = self.run(sql)?.into_iter().flatten();
        Ok(names.map(|value| value.to_string()).collect())
    }

    fn connect(options: &Options, has_file: bool) -> Result<Self, String> {
        let file = has_file.then_some(options.path.as_path());
        let database = Database::open(file, &[]).map_err(|RawError(message)| message)?;
        let connection = Connection::new(&database).map_err(|RawError(message)| message)?;
        let outside = Self {
            connection,
            _database: database,
        };
        if !options.extensions.is_empty() {
            let folders = options.extensions.iter();
            let folders: Vec<String> = folders.map(|it| DuckDb.text(&it.display().to_string())).collect();
            outside.run(&format!("SET extension_directories = [{}]", folders.join(", ")))?;
        }
        Ok(outside)
    }
}
