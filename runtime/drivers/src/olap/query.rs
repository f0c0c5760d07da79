//! Reading: one statement, its columns, and rows that arrive in chunks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use watershed_locks::Unpoisoned;

use super::{Failure, SoleError, Value};

/// Chunks of up to 2,048 rows that wait between the engine and the reader: enough that neither waits for the other
/// at every chunk, few enough that a slow reader holds little memory.
const CHUNKS_AHEAD: usize = 4;

/// One read-only statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Exactly one statement that changes nothing.
    pub sql: String,
    /// Rows to return at most; more are not computed where the engine can tell.
    pub limit: Option<u64>,
    /// The longest that it may take, the reader's own time included.
    pub timeout: Option<Duration>,
    /// Texts that travel beside it, by name: in DuckDB the statement reads them by `getvariable`.
    pub attributes: BTreeMap<String, String>,
}

/// A column of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Its name; several may have the same.
    pub name: String,
    /// Its type as the engine writes it: `BIGINT`, `DECIMAL(18,3)`, `STRUCT(a INTEGER)`, ...
    #[serde(rename = "type")]
    pub data_type: String,
}

/// The errors of a query, and of reading its rows.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum QueryError {
    /// None or several statements.
    #[error(transparent)]
    NotOne(#[from] SoleError),
    /// A statement that does more than read.
    #[error("only read-only statements can be run here")]
    NotReading,
    /// It took longer than it was given.
    #[error("the query took longer than {} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// A column's type has no form outside of the engine.
    #[error("column `{column}` has type {data_type}, which can't be shown")]
    Unshowable {
        /// The column.
        column: String,
        /// Its type.
        data_type: String,
    },
    /// The engine did not answer.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// The answer to a query while it arrives. Dropping it ends the query.
///
/// An open answer counts as work in the engine: read it or drop it, and start nothing else on the same engine in
/// between from the same task.
#[derive(Debug)]
pub struct Rows {
    columns: Vec<Column>,
    chunks: mpsc::Receiver<Chunk>,
    end: Arc<Mutex<Option<QueryError>>>,
    truncated: bool,
    _interrupt_on_drop: DropGuard,
}

/// Some rows, and whether the limit cut the answer behind them.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) rows: Vec<Vec<Value>>,
    pub(crate) truncated: bool,
}

/// The engine's end of [`Rows`]. Dropping it ends the answer.
#[derive(Debug)]
pub(crate) struct RowSink {
    chunks: mpsc::Sender<Chunk>,
    end: Arc<Mutex<Option<QueryError>>>,
}

impl RowSink {
    /// Waits for room; says whether anybody reads.
    pub(crate) async fn send(&self, chunk: Chunk) -> bool {
        self.chunks.send(chunk).await.is_ok()
    }

    /// Ends the answer with an error, which the reader meets behind the chunks that are there. Waits for nobody: a
    /// query that is over must not stay in the engine for the sake of a reader who does not read.
    pub(crate) fn fail(self, error: QueryError) {
        *self.end.lock().unpoisoned() = Some(error);
    }
}

/// Connects an answer with the engine's end; `running` is cancelled when the answer is dropped.
pub(crate) fn row_channel(running: CancellationToken) -> (RowSink, impl FnOnce(Vec<Column>) -> Rows) {
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

impl Rows {
    /// The columns, known before the first row.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The next rows, each as long as there are columns; `None` at the end. Ends after an error.
    ///
    /// # Cancel safety
    /// No row is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<Result<Vec<Vec<Value>>, QueryError>> {
        match self.chunks.recv().await {
            Some(chunk) => {
                self.truncated |= chunk.truncated;
                Some(Ok(chunk.rows))
            }
            None => self.end.lock().unpoisoned().take().map(Err),
        }
    }

    /// Returns whether the limit cut the answer: known once [`Rows::next`] has returned `None`.
    pub fn truncated(&self) -> bool {
        self.truncated
    }

    /// All rows at once, for answers known to be small.
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
