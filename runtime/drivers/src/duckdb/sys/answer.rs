//! Results of statements, read chunk by chunk.

use libduckdb_sys as ffi;

use super::handle::Prepared;
use super::vector::Vector;
use super::{RawError, Shape, text};
use crate::olap::Value;

/// The result of a statement. Keeps the statement and its connection alive.
pub(in crate::duckdb) struct Answer<'c> {
    raw: ffi::duckdb_result,
    columns: Vec<(String, Shape)>,
    _statement: Prepared<'c>,
}

impl<'c> Answer<'c> {
    /// Takes ownership of a result, successful or failed.
    ///
    /// # Safety
    /// `raw` was filled by running `statement`, which returned `state`, and is destroyed by nobody else.
    pub(super) unsafe fn new(
        raw: ffi::duckdb_result,
        state: ffi::duckdb_state,
        statement: Prepared<'c>,
    ) -> Result<Self, RawError> {
        let mut answer = Self {
            raw,
            columns: Vec::new(),
            _statement: statement,
        };
        if state != ffi::DuckDBSuccess {
            return Err(answer
                .error()
                .unwrap_or_else(|| RawError("Error: no reason given".to_owned())));
        }
        answer.columns = answer.read_columns();
        Ok(answer)
    }

    fn read_columns(&mut self) -> Vec<(String, Shape)> {
        // SAFETY: the result is live, indexes are below the count, the name stays the engine's and the type ours.
        unsafe {
            (0..ffi::duckdb_column_count(&mut self.raw))
                .map(|index| {
                    let name = text::copy(ffi::duckdb_column_name(&mut self.raw, index));
                    (
                        name,
                        Shape::take(ffi::duckdb_column_logical_type(&mut self.raw, index)),
                    )
                })
                .collect()
        }
    }

    /// Returns names and types of the columns.
    pub(in crate::duckdb) fn columns(&self) -> &[(String, Shape)] {
        &self.columns
    }

    /// Returns the next rows; `None` at the end.
    pub(in crate::duckdb) fn next_chunk(&mut self) -> Result<Option<Chunk<'_>>, RawError> {
        // SAFETY: the result is live; it is passed as plain data and stays ours.
        let chunk = Chunk {
            raw: unsafe { ffi::duckdb_fetch_chunk(self.raw) },
            columns: &self.columns,
        };
        if !chunk.raw.is_null() && chunk.len() > 0 {
            return Ok(Some(chunk));
        }
        drop(chunk);
        self.error().map_or(Ok(None), Err)
    }

    /// Reads all rows of a small result.
    pub(in crate::duckdb) fn collect(mut self) -> Result<Vec<Vec<Value>>, RawError> {
        let mut rows = Vec::new();
        while let Some(chunk) = self.next_chunk()? {
            rows.extend(chunk.rows());
        }
        Ok(rows)
    }

    /// Returns the engine's result, to be read and not freed.
    #[cfg(feature = "arrow")]
    pub(super) fn raw_mut(&mut self) -> &mut ffi::duckdb_result {
        &mut self.raw
    }

    fn error(&self) -> Option<RawError> {
        // A result is plain data around a pointer: the copy stands for the same result.
        let mut raw = self.raw;
        // SAFETY: the result is live and stays the text's owner.
        let message = unsafe { text::copy(ffi::duckdb_result_error(&mut raw)) };
        (!message.is_empty()).then_some(RawError(message))
    }
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        // SAFETY: rule 1.
        unsafe { ffi::duckdb_destroy_result(&mut self.raw) };
    }
}

/// A converter of chunks.
pub(in crate::duckdb) trait Convert<B> {
    /// Converts a chunk's rows.
    ///
    /// # Errors
    /// When a value has no place in the result.
    fn batch(&self, chunk: &Chunk<'_>) -> Result<B, RawError>;
}

/// Up to 2,048 rows of an answer.
pub(in crate::duckdb) struct Chunk<'a> {
    raw: ffi::duckdb_data_chunk,
    columns: &'a [(String, Shape)],
}

impl Chunk<'_> {
    /// Returns the number of rows.
    pub(in crate::duckdb) fn len(&self) -> usize {
        // SAFETY: the chunk is live.
        unsafe { ffi::duckdb_data_chunk_get_size(self.raw) as usize }
    }

    /// Returns the engine's chunk, to be read and not freed.
    #[cfg(feature = "arrow")]
    pub(super) fn raw(&self) -> ffi::duckdb_data_chunk {
        self.raw
    }

    /// Returns the values of one column; none if there is no such column.
    #[cfg(feature = "arrow")]
    pub(super) fn column(&self, index: u64) -> Vec<Value> {
        let shape = usize::try_from(index).ok().and_then(|at| self.columns.get(at));
        let Some((_, shape)) = shape else {
            return Vec::new();
        };
        // SAFETY: the chunk is live and the index below its number of columns.
        let vector = Vector::new(unsafe { ffi::duckdb_data_chunk_get_vector(self.raw, index) });
        // SAFETY: rule 4; the shape is that which the engine gave for this column.
        let value = |row| unsafe { vector.value(shape, row) };
        (0..self.len()).map(value).collect()
    }

    /// Returns the rows, each with one value per column.
    pub(in crate::duckdb) fn rows(&self) -> Vec<Vec<Value>> {
        let columns: Vec<_> = (0..)
            .zip(self.columns)
            .map(|(index, (_, shape))| {
                // SAFETY: the chunk is live and the index below its number of columns.
                let vector = Vector::new(unsafe { ffi::duckdb_data_chunk_get_vector(self.raw, index) });
                (vector, shape)
            })
            .collect();
        (0..self.len())
            .map(|row| {
                // SAFETY: rule 4; the shapes are those that the engine gave for these columns.
                columns
                    .iter()
                    .map(|(vector, shape)| unsafe { vector.value(shape, row) })
                    .collect()
            })
            .collect()
    }
}

impl Drop for Chunk<'_> {
    fn drop(&mut self) {
        // SAFETY: rule 1; the call takes null.
        unsafe { ffi::duckdb_destroy_data_chunk(&mut self.raw) };
    }
}
