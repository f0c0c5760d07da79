//! The engine's parser, without a file.

use std::sync::{Mutex, PoisonError};

use super::failure::classify;
use super::sys::{Answer, Connection, Database, Param, RawError, library_version};
use crate::olap::{Failure, Value};

/// Statements in one call of the engine: most of what a call saves is saved by then, and memory stays bounded.
const BATCH: usize = 256;

/// Parses statements into the engine's own documents. Opens an engine in memory at first use, on one thread and
/// without a file; executes nothing.
#[derive(Default)]
pub struct Parser {
    connection: Mutex<Option<Connection>>,
}

impl Parser {
    /// A parser; costs nothing until it is used.
    pub fn new() -> Self {
        Self::default()
    }

    /// What decides how statements are read: the engine's name and version.
    pub fn version() -> String {
        format!("duckdb {}", library_version())
    }

    /// A document of `json_serialize_sql` for each statement, in order: its tree, or what is wrong with it (see
    /// there; places of syntax errors count Unicode scalar values, those in trees bytes). Blocks for about 0.2 ms a
    /// statement.
    ///
    /// # Errors
    /// How the engine itself failed, whatever the statements are.
    pub fn documents(&self, statements: &[&str]) -> Result<Vec<String>, Failure> {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let said = |raw: RawError| classify(&raw, None).0;
        let connection = match &mut *connection {
            Some(connection) => connection,
            none => none.insert(open().map_err(said)?),
        };
        let mut documents = Vec::with_capacity(statements.len());
        for batch in statements.chunks(BATCH) {
            documents.extend(parse(connection, batch).map_err(said)?);
        }
        Ok(documents)
    }
}

impl std::fmt::Debug for Parser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parser").finish_non_exhaustive()
    }
}

fn open() -> Result<Connection, RawError> {
    let settings = [
        ("threads", "1"),
        ("errors_as_json", "true"),
        ("autoinstall_known_extensions", "false"),
    ];
    let settings: Vec<_> = settings
        .into_iter()
        .map(|(name, value)| (name, value.to_owned()))
        .collect();
    Connection::new(&Database::open(None, &settings)?)
}

fn parse(connection: &Connection, batch: &[&str]) -> Result<Vec<String>, RawError> {
    let marks = vec!["?"; batch.len()].join(", ");
    let sql = format!("SELECT json_serialize_sql(s) FROM (SELECT unnest([{marks}]::VARCHAR[]) AS s)");
    let params: Vec<_> = batch.iter().copied().map(Param::Text).collect();
    let rows = connection.run(&sql, &params).and_then(Answer::collect)?;
    let documents: Vec<String> = rows
        .into_iter()
        .flatten()
        .filter_map(|value| match value {
            Value::Text(document) => Some(document),
            _ => None,
        })
        .collect();
    if documents.len() == batch.len() {
        Ok(documents)
    } else {
        Err(RawError(format!(
            "Internal Error: {} documents for {} statements",
            documents.len(),
            batch.len()
        )))
    }
}
