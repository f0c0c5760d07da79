//! Rows as Arrow batches, and the stream of bytes in which Arrow sends them.

use std::fmt;

use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, SchemaRef};
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::{Column, Failure, Query, QueryError, Rows, SqlError};

/// The part of an engine that answers in Arrow's memory layout.
pub trait Batching: Send + Sync {
    /// Runs a read-only statement as [`Olap::query`](super::Olap::query) does, without converting each value.
    ///
    /// # Errors
    /// Those of a query.
    fn query_batches<'a>(
        &'a self,
        query: Query,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Batches, QueryError>>;
}

/// The rows of a running query as Arrow batches. Dropping the value ends the query.
#[derive(Debug)]
pub struct Batches {
    schema: SchemaRef,
    rows: Rows<RecordBatch>,
}

impl Batches {
    /// Returns rows with their schema.
    pub(crate) fn new(schema: SchemaRef, rows: Rows<RecordBatch>) -> Self {
        Self { schema, rows }
    }

    /// Returns the columns, with the engine's names of their types.
    pub fn columns(&self) -> &[Column] {
        self.rows.columns()
    }

    /// Returns the schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the next batch; `None` at the end or after an error.
    ///
    /// # Errors
    /// Those of the running query.
    ///
    /// # Cancel safety
    /// No batch is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<Result<RecordBatch, QueryError>> {
        self.rows.next().await
    }

    /// Returns true if the limit cut off rows; valid once [`Batches::next`] has returned `None`.
    pub fn truncated(&self) -> bool {
        self.rows.truncated()
    }

    /// Encodes the batches as a stream in Arrow's format for communication between processes.
    ///
    /// # Errors
    /// When Arrow's format has no place for one of the types.
    pub fn encode(self) -> Result<ArrowStream, QueryError> {
        let writer = StreamWriter::try_new(Vec::new(), &self.schema).map_err(|error| failed(&error))?;
        Ok(ArrowStream {
            writer,
            batches: self,
            ended: false,
        })
    }
}

/// A running query's rows as bytes of an Arrow stream. Dropping the value ends the query.
pub struct ArrowStream {
    writer: StreamWriter<Vec<u8>>,
    batches: Batches,
    ended: bool,
}

impl fmt::Debug for ArrowStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArrowStream")
            .field("batches", &self.batches)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

impl ArrowStream {
    /// Returns the next bytes, the schema's first; `None` after the mark of the end, or after an error.
    ///
    /// # Errors
    /// Those of the running query; the mark of the end is never written then.
    ///
    /// # Cancel safety
    /// No bytes are lost when the future is dropped.
    pub async fn next(&mut self) -> Option<Result<Vec<u8>, QueryError>> {
        if self.ended {
            return None;
        }
        let head = std::mem::take(self.writer.get_mut());
        if !head.is_empty() {
            return Some(Ok(head));
        }
        let written = match self.batches.next().await {
            Some(Ok(batch)) => self.writer.write(&batch),
            Some(Err(error)) => {
                self.ended = true;
                return Some(Err(error));
            }
            None => {
                self.ended = true;
                self.writer.finish()
            }
        };
        let bytes = std::mem::take(self.writer.get_mut());
        self.ended |= written.is_err();
        Some(written.map(|()| bytes).map_err(|error| failed(&error)))
    }

    /// Returns true if the limit cut off rows; valid once [`ArrowStream::next`] has returned `None`.
    pub fn truncated(&self) -> bool {
        self.batches.truncated()
    }
}

/// Converts an error of the encoder, which has no place for one of the types.
fn failed(error: &ArrowError) -> QueryError {
    let error = SqlError {
        class: "arrow".to_owned(),
        message: format!("the rows can't be written as Arrow: {error}"),
        hint: Some("cast the column to VARCHAR".to_owned()),
        ..SqlError::default()
    };
    QueryError::Failed(Failure::Sql(error))
}
