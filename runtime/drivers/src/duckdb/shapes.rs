//! Shapes in which the rows of a running query are passed on.

use super::sys::{Answer, Chunk, Convert, RawError};
use crate::olap::Value;

#[cfg(feature = "arrow")]
pub(super) use self::arrow::Arrow;

/// A shape of rows.
pub(super) trait Shaped: 'static {
    /// Content that precedes the rows.
    type Head: Send + 'static;
    /// Rows of one chunk.
    type Batch: Send + 'static;
    /// Converter of an answer's chunks, which lives no longer than the connection.
    type Converter<'c>: Convert<Self::Batch>;

    /// Returns the head and the converter of an answer.
    ///
    /// # Errors
    /// When the engine can't describe the answer in this shape.
    fn begin<'c>(answer: &mut Answer<'c>) -> Result<(Self::Head, Self::Converter<'c>), RawError>;

    /// Truncates rows to a number that is below their own.
    fn cut(batch: &mut Self::Batch, most: usize);
}

/// Rows as values, for documents and text.
pub(super) struct Values;

impl Shaped for Values {
    type Head = ();
    type Batch = Vec<Vec<Value>>;
    type Converter<'c> = Self;

    fn begin<'c>(_: &mut Answer<'c>) -> Result<((), Self), RawError> {
        Ok(((), Self))
    }

    fn cut(batch: &mut Self::Batch, most: usize) {
        batch.truncate(most);
    }
}

impl Convert<Vec<Vec<Value>>> for Values {
    fn batch(&self, chunk: &Chunk<'_>) -> Result<Vec<Vec<Value>>, RawError> {
        Ok(chunk.rows())
    }
}

#[cfg(feature = "arrow")]
mod arrow {
    use arrow_array::RecordBatch;
    use arrow_schema::SchemaRef;

    use super::super::sys::{Answer, ArrowConverter, RawError};
    use super::Shaped;

    /// Rows as Arrow batches.
    pub(in super::super) struct Arrow;

    impl Shaped for Arrow {
        type Head = SchemaRef;
        type Batch = RecordBatch;
        type Converter<'c> = ArrowConverter<'c>;

        fn begin<'c>(answer: &mut Answer<'c>) -> Result<(SchemaRef, ArrowConverter<'c>), RawError> {
            let converter = answer.arrow()?;
            Ok((converter.schema(), converter))
        }

        fn cut(batch: &mut RecordBatch, most: usize) {
            *batch = batch.slice(0, most.min(batch.num_rows()));
        }
    }
}
