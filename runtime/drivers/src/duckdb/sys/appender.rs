//! Insertion of rows without a statement, so that nothing is parsed, bound or planned.

use std::ptr;

use libduckdb_sys as ffi;

use super::handle::OpenConnection;
use super::{RawError, text};

/// A value to append, with its type.
#[derive(Debug, Clone, Copy)]
pub(in crate::duckdb) enum ColumnValue<'a> {
    Null,
    Number(i64),
    Flag(bool),
    /// A text, cast to the type of the column.
    Text(&'a str),
    Blob(&'a [u8]),
}

impl<'a> ColumnValue<'a> {
    /// Returns a text value; NULL for none.
    pub(in crate::duckdb) fn text(text: Option<&'a str>) -> Self {
        text.map_or(Self::Null, Self::Text)
    }

    /// Returns a number value; NULL for none, or if out of range.
    pub(in crate::duckdb) fn number(number: Option<u64>) -> Self {
        let number = number.and_then(|number| i64::try_from(number).ok());
        number.map_or(Self::Null, Self::Number)
    }
}

/// Appends rows to a table within the connection's transaction. Values are in the order of the columns.
pub(super) fn append_rows<'r>(
    connection: &OpenConnection,
    (schema, table): (&str, &str),
    rows: impl IntoIterator<Item = &'r [ColumnValue<'r>]>,
) -> Result<(), RawError> {
    let (schema, table) = (text::to_c(schema)?, text::to_c(table)?);
    let mut appender = Appender(ptr::null_mut());
    // SAFETY: the connection is open and both texts end with a zero byte; rule 1, also after a failure.
    let state = unsafe {
        ffi::duckdb_appender_create(connection.raw(), schema.as_ptr(), table.as_ptr(), &mut appender.0)
    };
    appender.check(state)?;
    for row in rows {
        for cell in row {
            appender.append(*cell)?;
        }
        // SAFETY: the handle is live.
        let state = unsafe { ffi::duckdb_appender_end_row(appender.0) };
        appender.check(state)?;
    }
    // SAFETY: as above. What is not flushed here is lost with the handle.
    let state = unsafe { ffi::duckdb_appender_close(appender.0) };
    appender.check(state)
}

struct Appender(ffi::duckdb_appender);

impl Appender {
    fn append(&self, cell: ColumnValue<'_>) -> Result<(), RawError> {
        // SAFETY: the handle is live; the engine copies the bytes, whose length is given, during the call.
        let state = unsafe {
            match cell {
                ColumnValue::Null => ffi::duckdb_append_null(self.0),
                ColumnValue::Number(number) => ffi::duckdb_append_int64(self.0, number),
                ColumnValue::Flag(flag) => ffi::duckdb_append_bool(self.0, flag),
                ColumnValue::Text(text) => {
                    ffi::duckdb_append_varchar_length(self.0, text.as_ptr().cast(), text.len() as ffi::idx_t)
                }
                ColumnValue::Blob(bytes) => {
                    ffi::duckdb_append_blob(self.0, bytes.as_ptr().cast(), bytes.len() as ffi::idx_t)
                }
            }
        };
        self.check(state)
    }

    fn check(&self, state: ffi::duckdb_state) -> Result<(), RawError> {
        if state == ffi::DuckDBSuccess {
            return Ok(());
        }
        // SAFETY: the call takes null too, and stays the text's owner.
        let message = unsafe { text::copy(ffi::duckdb_appender_error(self.0)) };
        Err(RawError(match message.is_empty() {
            true => "Invalid Input Error: a row can't be appended".to_owned(),
            false => message,
        }))
    }
}

impl Drop for Appender {
    fn drop(&mut self) {
        // SAFETY: rule 1; null is taken as well.
        unsafe { ffi::duckdb_appender_destroy(&mut self.0) };
    }
}
