//! Chunks as Arrow batches, through the engine's implementation of Arrow's C data interface.

use std::ffi::CString;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow_array::types::Decimal128Type;
use arrow_array::{ArrayRef, PrimitiveArray, RecordBatch, RecordBatchOptions, StringArray, StructArray};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef};
use libduckdb_sys as ffi;

use super::answer::{Answer, Chunk};
use super::handle::OpenConnection;
use super::shape::{Layout, Shape, Width};
use super::{Convert, RawError, text};
use crate::olap::Value;

/// Digits of the decimals in which Arrow holds integers of 128 bits.
const DIGITS: u8 = 38;

/// A converter of an answer's chunks to Arrow batches.
pub(in crate::duckdb) struct ArrowConverter<'c> {
    options: Options<'c>,
    /// Fields as the engine describes them.
    own: Fields,
    /// Schema of the batches.
    schema: SchemaRef,
    treatments: Vec<Treatment>,
}

/// The treatment of a column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Treatment {
    /// The engine's array stands for all values.
    Kept,
    /// The engine's array of decimals can't hold integers of more than [`DIGITS`] digits.
    Checked,
    /// Arrow has no type for the values, or the engine's loses a part of them: they become text.
    Text,
}

impl Treatment {
    fn of(shape: &Shape) -> Self {
        match &shape.layout {
            Layout::Integer(Width::I128) => Self::Checked,
            _ if is_exact(shape) => Self::Kept,
            _ => Self::Text,
        }
    }
}

/// Returns true if the engine's array has all values of a type unchanged.
fn is_exact(shape: &Shape) -> bool {
    match &shape.layout {
        Layout::Integer(Width::I128 | Width::U128)
        | Layout::Bits
        | Layout::TimeWithOffset
        | Layout::Interval
        | Layout::Opaque => false,
        Layout::List(item) | Layout::Array(item, _) => is_exact(item),
        Layout::Struct(fields) | Layout::Union(fields) => fields.iter().all(|(_, field)| is_exact(field)),
        Layout::Map(key, value) => is_exact(key) && is_exact(value),
        _ => true,
    }
}

impl<'c> Answer<'c> {
    /// Returns a converter of this answer's chunks.
    ///
    /// # Errors
    /// When the engine can't describe the columns.
    pub(in crate::duckdb) fn arrow(&mut self) -> Result<ArrowConverter<'c>, RawError> {
        // SAFETY: the result is live; the options are handed over.
        let options = Options {
            raw: unsafe { ffi::duckdb_result_get_arrow_options(self.raw_mut()) },
            _connection: PhantomData,
        };
        let own = options.fields(self)?;
        let treatments: Vec<Treatment> = self
            .columns()
            .iter()
            .map(|(_, shape)| Treatment::of(shape))
            .collect();
        let fields = own
            .iter()
            .zip(&treatments)
            .map(|(field, treatment)| match treatment {
                Treatment::Text => Arc::new(Field::new(field.name(), DataType::Utf8, true)),
                Treatment::Kept | Treatment::Checked => Arc::clone(field),
            });
        let fields: Fields = fields.collect();
        Ok(ArrowConverter {
            options,
            own,
            schema: Arc::new(Schema::new(fields)),
            treatments,
        })
    }
}

impl ArrowConverter<'_> {
    /// Returns the schema of the batches.
    pub(in crate::duckdb) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn convert(&self, chunk: &Chunk<'_>) -> Result<RecordBatch, RawError> {
        let (_, mut arrays, _) = self.options.array(chunk, &self.own)?.into_parts();
        for ((index, array), treatment) in (0..).zip(&mut arrays).zip(&self.treatments) {
            match treatment {
                Treatment::Kept => {}
                Treatment::Checked => check(array)?,
                Treatment::Text => *array = texts(chunk, index),
            }
        }
        let size = RecordBatchOptions::new().with_row_count(Some(chunk.len()));
        RecordBatch::try_new_with_options(self.schema(), arrays, &size).map_err(|error| unheld(&error))
    }
}

impl Convert<RecordBatch> for ArrowConverter<'_> {
    fn batch(&self, chunk: &Chunk<'_>) -> Result<RecordBatch, RawError> {
        self.convert(chunk)
    }
}

/// Refuses integers that Arrow's decimals can't hold.
fn check(array: &ArrayRef) -> Result<(), RawError> {
    let Some(numbers) = array.as_any().downcast_ref::<PrimitiveArray<Decimal128Type>>() else {
        return Ok(());
    };
    numbers.validate_decimal_precision(DIGITS).map_err(|_| {
        let said = serde_json::json!({
            "exception_type": "Conversion",
            "exception_message":
                format!("a HUGEINT of more than {DIGITS} digits has no place in Arrow's decimals; cast it to VARCHAR"),
        });
        RawError(format!("Conversion Error: {said}"))
    })
}

/// Returns a column's values as text, as CSV has them.
fn texts(chunk: &Chunk<'_>, index: u64) -> ArrayRef {
    let values = chunk.column(index);
    let texts = values.iter().map(|value| match value {
        Value::Null => None,
        value => Some(value.to_string()),
    });
    Arc::new(texts.collect::<StringArray>())
}

/// The engine's options of Arrow, freed when dropped.
struct Options<'c> {
    raw: ffi::duckdb_arrow_options,
    /// The options point to the connection.
    _connection: PhantomData<&'c OpenConnection>,
}

impl Drop for Options<'_> {
    fn drop(&mut self) {
        // SAFETY: rule 1.
        unsafe { ffi::duckdb_destroy_arrow_options(&mut self.raw) };
    }
}

impl Options<'_> {
    /// Returns the fields of an answer.
    fn fields(&self, answer: &mut Answer<'_>) -> Result<Fields, RawError> {
        let names: Result<Vec<CString>, RawError> = answer
            .columns()
            .iter()
            .map(|(name, _)| text::to_c(name))
            .collect();
        let names = names?;
        let mut names: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
        let mut types = Types::of(answer);
        let mut schema = FFI_ArrowSchema::empty();
        // SAFETY: names and types are live and as many as is said; both forms of the schema have the layout of the C
        // data interface, and what the engine writes there is released when `schema` is dropped.
        let error = unsafe {
            ffi::duckdb_to_arrow_schema(
                self.raw,
                types.0.as_mut_ptr(),
                names.as_mut_ptr(),
                types.0.len() as ffi::idx_t,
                std::ptr::from_mut(&mut schema).cast::<ffi::ArrowSchema>(),
            )
        };
        // SAFETY: the error is handed over.
        unsafe { take(error) }?;
        let schema = Schema::try_from(&schema).map_err(|error| unheld(&error))?;
        Ok(schema.fields)
    }

    /// Returns a chunk's rows as an array of structs with these fields.
    fn array(&self, chunk: &Chunk<'_>, fields: &Fields) -> Result<StructArray, RawError> {
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: options and chunk are live, and so is the connection; both forms of the array have the layout of the
        // C data interface, and what the engine writes there is released by its last user.
        let error = unsafe {
            ffi::duckdb_data_chunk_to_arrow(
                self.raw,
                chunk.raw(),
                std::ptr::from_mut(&mut array).cast::<ffi::ArrowArray>(),
            )
        };
        // SAFETY: the error is handed over.
        unsafe { take(error) }?;
        // SAFETY: the engine has filled the array, by the fields that it told for the answer with the same options.
        let data = unsafe { from_ffi_and_data_type(array, DataType::Struct(fields.clone())) };
        Ok(StructArray::from(data.map_err(|error| unheld(&error))?))
    }
}

/// The types of an answer's columns, freed when dropped.
struct Types(Vec<ffi::duckdb_logical_type>);

impl Types {
    fn of(answer: &mut Answer<'_>) -> Self {
        let number = answer.columns().len() as ffi::idx_t;
        // SAFETY: the result is live, indexes are below the count, and the types are handed over.
        let one = |index| unsafe { ffi::duckdb_column_logical_type(answer.raw_mut(), index) };
        Self((0..number).map(one).collect())
    }
}

impl Drop for Types {
    fn drop(&mut self) {
        for raw in &mut self.0 {
            // SAFETY: rule 1.
            unsafe { ffi::duckdb_destroy_logical_type(raw) };
        }
    }
}

/// Takes the engine's error, which stands for success if it is empty.
///
/// # Safety
/// `error` is null, or comes from the engine and is used nowhere else.
unsafe fn take(mut error: ffi::duckdb_error_data) -> Result<(), RawError> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the caller's promise; the message is copied before the error is freed.
    let found = unsafe {
        let found = ffi::duckdb_error_data_has_error(error)
            .then(|| text::copy(ffi::duckdb_error_data_message(error)));
        ffi::duckdb_destroy_error_data(&mut error);
        found
    };
    found.map_or(Ok(()), |message| Err(RawError(message)))
}

fn unheld(error: &ArrowError) -> RawError {
    let said = serde_json::json!({
        "exception_type": "Not implemented",
        "exception_message": format!("the rows have no form in Arrow: {error}"),
    });
    RawError(format!("Not implemented Error: {said}"))
}
