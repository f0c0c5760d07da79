//! The engine's parser, usable without a file.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::thread;

use watershed_locks::Unpoisoned;

use super::failure::classify;
use super::sys::{Answer, Connection, Database, Param, RawError, library_version};
use super::vocabulary;
use crate::olap::{self, Failure, Value, Vocabulary};

/// The most statements per call of the engine: most of the overhead is saved by then, and memory stays bounded.
const BATCH: usize = 128;

/// The most threads that parse at once, enough for the largest projects.
const MOST_LANES: usize = 4;

/// Parser of statements into the engine's own syntax trees. Opens an in-memory engine at the first use, and executes no
/// statement.
#[derive(Default)]
pub struct Parser {
    /// Connections for the parsing threads, opened on demand.
    connections: Mutex<Vec<Connection>>,
}

impl Parser {
    /// Creates a parser, without cost until the first use.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the engine's name and version, which determine how statements are parsed.
    pub fn version() -> String {
        format!("duckdb {}", library_version())
    }

    /// Returns a document of `json_serialize_sql` for each statement in order: its syntax tree or its error. Positions
    /// of syntax errors count Unicode scalar values, positions in trees bytes. Blocks for about 0.2 ms per statement,
    /// on several threads if there are many.
    ///
    /// # Errors
    /// How the engine itself failed, whatever the statements are.
    pub fn documents(&self, statements: &[&str]) -> Result<Vec<String>, Failure> {
        let mut connections = self.connections.lock().unpoisoned();
        let said = |raw: RawError| classify(&raw, None).0;
        let lanes = lanes(statements.len());
        while connections.len() < lanes {
            connections.push(open().map_err(said)?);
        }
        let share = statements.len().div_ceil(lanes).max(1);
        let lanes: Vec<_> = connections.iter_mut().zip(statements.chunks(share)).collect();
        let parts = parse_beside(lanes);
        let mut documents = Vec::with_capacity(statements.len());
        for (part, statements) in parts.into_iter().zip(statements.chunks(share)) {
            // A system that has no more threads to give has this one.
            let part = part.unwrap_or_else(|| parse_all(&mut connections[0], statements));
            documents.extend(part.map_err(said)?);
        }
        Ok(documents)
    }
}

impl olap::Parser for Parser {
    fn version(&self) -> String {
        Self::version()
    }

    fn documents(&self, statements: &[&str]) -> Result<Vec<String>, Failure> {
        self.documents(statements)
    }

    fn vocabulary(&self) -> Result<Vocabulary, Failure> {
        let said = |raw: RawError| classify(&raw, None).0;
        let mut connections = self.connections.lock().unpoisoned();
        if connections.is_empty() {
            connections.push(open().map_err(said)?);
        }
        vocabulary::read(&connections[0]).map_err(said)
    }
}

/// Parses the statements of each connection, the first on this thread and the others on their own threads. Returns none
/// for connections whose thread could not be started.
fn parse_beside(lanes: Vec<(&mut Connection, &[&str])>) -> Vec<Option<Result<Vec<String>, RawError>>> {
    let mut lanes = lanes.into_iter();
    thread::scope(|scope| {
        let first = lanes.next();
        let beside: Vec<_> = lanes
            .map(|(connection, part)| {
                let lane = thread::Builder::new().spawn_scoped(scope, move || parse_all(connection, part));
                lane.ok()
            })
            .collect();
        let first = first.map(|(connection, part)| Some(parse_all(connection, part)));
        let joined = beside.into_iter().map(|lane| {
            let lane = lane?;
            Some(lane.join().unwrap_or_else(|_| Err(panicked())))
        });
        first.into_iter().chain(joined).collect()
    })
}

/// Returns the number of threads worth using for this number of statements.
fn lanes(statements: usize) -> usize {
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    statements.div_ceil(BATCH).clamp(1, cores.min(MOST_LANES))
}

fn panicked() -> RawError {
    RawError("Internal Error: the parser panicked".to_owned())
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
    let connection = Connection::new(&Database::open(None, &settings)?)?;
    // A statement is read once: what the optimizer does costs more than it saves.
    connection.run("PRAGMA disable_optimizer", &[])?;
    Ok(connection)
}

fn parse_all(connection: &mut Connection, statements: &[&str]) -> Result<Vec<String>, RawError> {
    let mut documents = Vec::with_capacity(statements.len());
    for batch in statements.chunks(BATCH) {
        documents.extend(parse(connection, batch)?);
    }
    Ok(documents)
}

fn parse(connection: &Connection, batch: &[&str]) -> Result<Vec<String>, RawError> {
    let marks = vec!["?"; batch.len()].join(", ");
    let sql = match batch {
        [_] => "SELECT json_serialize_sql(?::VARCHAR)".to_owned(),
        _ => format!("SELECT json_serialize_sql(s) FROM (SELECT unnest([{marks}]::VARCHAR[]) AS s)"),
    };
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
