//! Queries: one statement, its columns, and rows that arrive in chunks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use watershed_locks::Unpoisoned;

use super::{Failure, SoleError, Value};

/// The most chunks (of up to 2,048 rows) between engine and reader: enough that neither waits for the other at every
/// chunk, few enough that a slow reader uses little memory.
const CHUNKS_AHEAD: usize = 4;

/// A read-only query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Query {
    /// Text of a single read-only statement.
    pub sql: String,
    /// The most rows to return; none for all. The engine computes no more where possible.
    pub limit: Option<u64>,
    /// Time limit including the reader's own time; none for no limit.
    pub timeout: Option<Duration>,
    /// Session values by name, which a statement reads in DuckDB by `getvariable`.
    pub attributes: BTreeMap<String, String>,
    /// Values of the statement's parameters by name; `1` is the name of the first `?` or `$1`.
    pub parameters: BTreeMap<String, Value>,
}

impl Query {
    /// Returns the query of all rows of a statement without parameters.
    pub fn new(sql: impl Into<String>) -> Self {
        Self {
            sql: sql.into(),
            ..Self::default()
        }
    }
}

/// A column of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Name of the column, not necessarily unique.
    pub name: String,
    /// Engine's name of the type: `BIGINT`, `DECIMAL(18,3)`, `STRUCT(a INTEGER)`, ...
    #[serde(rename = "type")]
    pub data_type: String,
}

/// The error of a query, or of reading its rows.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum QueryError {
    /// The text is not a single statement.
    #[error(transparent)]
    NotOne(#[from] SoleError),
    /// The statement does more than read.
    #[error("only read-only statements can be run here")]
    NotReading,
    /// The parameters of the statement are not those that have values.
    #[error("{0}")]
    Parameters(String),
    /// The query exceeded its time limit.
    #[error("the query took longer than {} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// Values of a column's type can't be read outside the engine.
    #[error("column `{column}` has type {data_type}, which can't be shown")]
    Unshowable {
        /// Name of the column that can't be read.
        column: String,
        /// Engine's name of the column's type.
        data_type: String,
    },
    /// The engine failed for a reason that any call may have.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// The rows of a running query, in batches of type `B`. Dropping the value ends the query.
///
/// An open answer counts as work in the engine: read it or drop it, and start nothing else on the same engine in
/// between from the same task.
#[derive(Debug)]
pub struct Rows<B = Vec<Vec<Value>>> {
    columns: Vec<Column>,
    chunks: mpsc::Receiver<Chunk<B>>,
    end: Arc<Mutex<Option<QueryError>>>,
    truncated: bool,
    _interrupt_on_drop: DropGuard,
}

/// A batch of rows, with a flag if the limit cut off further ones.
#[derive(Debug)]
pub(crate) struct Chunk<B> {
    pub(crate) rows: B,
    pub(crate) truncated: bool,
}

/// The engine's end of [`Rows`]. Dropping it ends the rows.
#[derive(Debug)]
pub(crate) struct RowSink<B> {
    chunks: mpsc::Sender<Chunk<B>>,
    end: Arc<Mutex<Option<QueryError>>>,
}

impl<B> RowSink<B> {
    /// Sends a chunk, waiting for room. Returns false if the reader is gone.
    pub(crate) async fn send(&self, chunk: Chunk<B>) -> bool {
        self.chunks.send(chunk).await.is_ok()
    }

    /// Ends the rows with an error, which the reader gets after the sent chunks. Does not wait, so that a finished
    /// query leaves the engine even if nobody reads.
    pub(crate) fn fail(self, error: QueryError) {
        *self.end.lock().unpoisoned() = Some(error);
    }
}

/// Returns both ends of a channel for rows; dropping the reader's end cancels `running`.
pub(crate) fn row_channel<B>(
    running: CancellationToken,
) -> (RowSink<B>, impl FnOnce(Vec<Column>) -> Rows<B>) {
    let (sender, chunks) = mpsc::channel(CHUNKS_AHEAD);
    let end = Arc::new(Mutex::new(None));
    let sink = RowSink {
        chunks: sender,
        end: Arc::clone(&end),
    };
    let guard = running.drop_guard();
    (sink, move |columns| Rows {
        columns,
        chunks,
        end,
        truncated: false,
        _interrupt_on_drop: guard,
    })
}

impl<B> Rows<B> {
    /// Returns the columns, which are known before the first row.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns the next rows, each with one value per column; `None` at the end or after an error.
    ///
    /// # Cancel safety
    /// No row is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<Result<B, QueryError>> {
        match self.chunks.recv().await {
            Some(chunk) => {
                self.truncated |= chunk.truncated;
                Some(Ok(chunk.rows))
            }
            None => self.end.lock().unpoisoned().take().map(Err),
        }
    }

    /// Returns true if the engine waits for the reader, or has computed all rows.
    pub fn are_waiting(&self) -> bool {
        self.chunks.is_closed() || self.chunks.len() == CHUNKS_AHEAD
    }

    /// Returns true if the limit cut off rows; valid once [`Rows::next`] has returned `None`.
    pub fn truncated(&self) -> bool {
        self.truncated
    }
}

impl Rows {
    /// Reads all rows, for answers known to be small.
    ///
    /// # Errors
    /// The first that [`Rows::next`] returns.
    pub async fn collect(&mut self) -> Result<Vec<Vec<Value>>, QueryError> {
        let mut all = Vec::new();
        while let Some(rows) = self.next().await {
            all.extend(rows?);
        }
        Ok(all)
    }
}
