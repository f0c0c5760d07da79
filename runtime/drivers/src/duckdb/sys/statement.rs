//! Prepared statements of the C API.

use std::collections::BTreeMap;
use std::mem;
use std::ptr;

use libduckdb_sys as ffi;

use super::forbidden;
use super::handle::{OpenConnection, Prepared};
use super::{Answer, RawError, Shape, text};

/// A value for a `?` in a statement.
#[derive(Debug, Clone, Copy)]
pub(in crate::duckdb) enum Param<'a> {
    Null,
    Boolean(bool),
    Integer(i64),
    Huge(i128),
    Double(f64),
    Text(&'a str),
    Blob(&'a [u8]),
}

/// The kind of a statement, as far as callers distinguish it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::duckdb) enum StatementKind {
    Select,
    Explain,
    Other,
}

/// The things that a statement acts upon, as far as a sandbox distinguishes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::duckdb) enum Effect {
    /// Tables, views, functions, settings and transactions, or nothing at all.
    Tables,
    /// Whatever the explained statement does: it may be executed.
    Explained,
    /// Anything else: files, calls of functions, stored statements, extensions, whole databases.
    Other,
}

/// A prepared statement.
pub(in crate::duckdb) struct Statement<'c> {
    prepared: Prepared<'c>,
}

impl<'c> Statement<'c> {
    pub(super) fn prepare(
        connection: &'c OpenConnection,
        sql: &str,
        is_guarded: bool,
    ) -> Result<Self, RawError> {
        let extracted = Extracted::new(connection, sql)?;
        for index in 0..extracted.count.saturating_sub(1) {
            let part = extracted.prepare(connection, index)?;
            // The engine makes such parts of IMPORT and PRAGMA, whose texts nobody has looked at.
            if is_guarded && part.effect() != Effect::Tables {
                return Err(forbidden::error("statements that another one stands for"));
            }
            part.run(&[])?;
        }
        match extracted.count.checked_sub(1) {
            Some(last) => extracted.prepare(connection, last),
            None => Err(RawError("Parser Error: there is no statement".to_owned())),
        }
    }

    /// Prepares a text that the engine takes for one statement: nothing runs.
    ///
    /// # Errors
    /// What the engine says, and for a text that it splits.
    pub(super) fn prepare_alone(connection: &'c OpenConnection, sql: &str) -> Result<Self, RawError> {
        let extracted = Extracted::new(connection, sql)?;
        match extracted.count {
            1 => extracted.prepare(connection, 0),
            _ => Err(RawError(
                "Parser Error: the statement stands for several".to_owned(),
            )),
        }
    }

    /// Returns the kind of statement that the engine recognised.
    pub(in crate::duckdb) fn kind(&self) -> StatementKind {
        // SAFETY: the handle is live.
        match unsafe { ffi::duckdb_prepared_statement_type(self.prepared.raw) } {
            ffi::duckdb_statement_type_DUCKDB_STATEMENT_TYPE_SELECT => StatementKind::Select,
            ffi::duckdb_statement_type_DUCKDB_STATEMENT_TYPE_EXPLAIN => StatementKind::Explain,
            _ => StatementKind::Other,
        }
    }

    /// Returns what the statement acts upon, by the type that the engine recognised.
    pub(in crate::duckdb) fn effect(&self) -> Effect {
        // SAFETY: the handle is live.
        match unsafe { ffi::duckdb_prepared_statement_type(self.prepared.raw) } {
            ffi::duckdb_statement_type_DUCKDB_STATEMENT_TYPE_SELECT
            | ffi::duckdb_statement_type_DUCKDB_STATEMENT_TYPE_INSERT
            | ffi::duckdb_statement_type_DUCKDB_STATEMENT_TYPE_UPDATE
            | ffi::duckdb_statement_type_DUCKDB_STATEMENT_TYPE_DELETE
            | ffi::duckdb_statement_type_DUCKDB_STATEMENT_TYPE_MERGE_INTO
            | ffi::duckdb_statement_type_DUCKDB_STATEMENT_TYPE_CREATE
            | ffi::duckdb_statement_type_DUCKDB_STATEMENT_TYPE_CREATE_FUNC
            | ffi::duckdb_statement_type_DUCKDB_STATEMENT_TYPE_DROP
            | ffi::duckdb_statement_type_DUCKDB_STATEMENT_TYPE_ALTER
            | ffi::duckdb_statement_type_DUCKDB_STATEMENT_TYPE_ANALYZE
            | ffi::duckdb_statement_type_DUCKDB_STATEMENT_TYPE_VACUUM
            | ffi::duckdb_statement_type_DUCKDB_STATEMENT_TYPE_TRANSACTION
            | ffi::duckdb_statement_type_DUCKDB_STATEMENT_TYPE_VARIABLE_SET
            | ffi::duckdb_statement_type_DUCKDB_STATEMENT_TYPE_SET => Effect::Tables,
            ffi::duckdb_statement_type_DUCKDB_STATEMENT_TYPE_EXPLAIN => Effect::Explained,
            _ => Effect::Other,
        }
    }

    /// Returns names and types of the statement's columns without running it.
    pub(in crate::duckdb) fn columns(&self) -> Vec<(String, String)> {
        let raw = self.prepared.raw;
        // SAFETY: the handle is live, indexes are below the count, the name and the type are handed over to us.
        unsafe {
            (0..ffi::duckdb_prepared_statement_column_count(raw))
                .map(|index| {
                    let name = text::take(ffi::duckdb_prepared_statement_column_name(raw, index).cast_mut());
                    let kind = Shape::take(ffi::duckdb_prepared_statement_column_logical_type(raw, index));
                    (name.unwrap_or_default(), kind.name)
                })
                .collect()
        }
    }

    /// Runs the statement, with the whole result in memory.
    pub(in crate::duckdb) fn run(self, params: &[Param<'_>]) -> Result<Answer<'c>, RawError> {
        self.bind(params)?;
        self.execute(ffi::duckdb_execute_prepared)
    }

    /// Returns the names of the statement's parameters, in the order in which they are bound.
    pub(in crate::duckdb) fn parameters(&self) -> Vec<String> {
        let raw = self.prepared.raw;
        // SAFETY: the handle is live, the indexes go from 1 to the count, and the name is handed over to us.
        unsafe {
            (1..=ffi::duckdb_nparams(raw))
                .map(|index| {
                    let name = ffi::duckdb_parameter_name(raw, index);
                    text::take(name.cast_mut()).unwrap_or_default()
                })
                .collect()
        }
    }

    /// Returns the types of the statement's parameters by their names, as far as the engine found them.
    pub(in crate::duckdb) fn parameter_types(&self) -> BTreeMap<String, String> {
        let raw = self.prepared.raw;
        let mut types = BTreeMap::new();
        for (index, name) in (1..).zip(self.parameters()) {
            // SAFETY: the handle is live, the index is below the count, and the type is handed over to us.
            unsafe {
                if ffi::duckdb_param_type(raw, index) != ffi::DUCKDB_TYPE_DUCKDB_TYPE_INVALID {
                    types.insert(name, Shape::take(ffi::duckdb_param_logical_type(raw, index)).name);
                }
            }
        }
        types
    }

    /// Runs the statement, with the result computed while it is read.
    pub(in crate::duckdb) fn stream(self, params: &[Param<'_>]) -> Result<Answer<'c>, RawError> {
        self.bind(params)?;
        self.execute(ffi::duckdb_execute_prepared_streaming)
    }

    fn bind(&self, params: &[Param<'_>]) -> Result<(), RawError> {
        for (index, param) in (1..).zip(params) {
            let raw = self.prepared.raw;
            // SAFETY: the handle is live; the engine copies the bytes, whose length is given, during the call.
            let state = unsafe {
                match *param {
                    Param::Null => ffi::duckdb_bind_null(raw, index),
                    Param::Boolean(value) => ffi::duckdb_bind_boolean(raw, index, value),
                    Param::Integer(value) => ffi::duckdb_bind_int64(raw, index, value),
                    Param::Huge(value) => ffi::duckdb_bind_hugeint(raw, index, hugeint(value)),
                    Param::Double(value) => ffi::duckdb_bind_double(raw, index, value),
                    Param::Text(text) => ffi::duckdb_bind_varchar_length(
                        raw,
                        index,
                        text.as_ptr().cast(),
                        text.len() as ffi::idx_t,
                    ),
                    Param::Blob(bytes) => {
                        ffi::duckdb_bind_blob(raw, index, bytes.as_ptr().cast(), bytes.len() as ffi::idx_t)
                    }
                }
            };
            if state != ffi::DuckDBSuccess {
                return Err(RawError(format!(
                    "Invalid Input Error: parameter {index} can't be bound"
                )));
            }
        }
        Ok(())
    }

    fn execute(
        self,
        execute: unsafe extern "C" fn(
            ffi::duckdb_prepared_statement,
            *mut ffi::duckdb_result,
        ) -> ffi::duckdb_state,
    ) -> Result<Answer<'c>, RawError> {
        // SAFETY: a result is plain data that the call fills; zero is its empty state.
        let mut result = unsafe { mem::zeroed() };
        // SAFETY: the handle is live; the result is to be destroyed also after a failure, which `Answer` does.
        let state = unsafe { execute(self.prepared.raw, &mut result) };
        // SAFETY: the result was filled by the call above and belongs to nobody else.
        unsafe { Answer::new(result, state, self.prepared) }
    }
}

/// Converts an integer to the engine's integer of 128 bits, which has two halves.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "each half has its own bits"
)]
fn hugeint(value: i128) -> ffi::duckdb_hugeint {
    ffi::duckdb_hugeint {
        lower: value as u64,
        upper: (value >> 64) as i64,
    }
}

/// The statements that the engine finds in a text.
struct Extracted {
    raw: ffi::duckdb_extracted_statements,
    count: ffi::idx_t,
}

impl Extracted {
    fn new(connection: &OpenConnection, sql: &str) -> Result<Self, RawError> {
        let sql_c = text::to_c(sql)?;
        let mut raw = ptr::null_mut();
        // SAFETY: the connection is open; rule 1.
        let count = unsafe { ffi::duckdb_extract_statements(connection.raw(), sql_c.as_ptr(), &mut raw) };
        let extracted = Self { raw, count };
        // SAFETY: the handle is live and stays the text's owner.
        let error = unsafe { text::copy(ffi::duckdb_extract_statements_error(extracted.raw)) };
        if error.is_empty() {
            return Ok(extracted);
        }
        // Preparing the text as a whole fails likewise, and then says where.
        let mut whole = Prepared::empty();
        // SAFETY: the connection is open; rule 1, its `Drop` destroys what is made here.
        let state = unsafe { ffi::duckdb_prepare(connection.raw(), sql_c.as_ptr(), &mut whole.raw) };
        match state {
            ffi::DuckDBSuccess => Err(RawError(error)),
            _ => Err(prepare_error(&whole, error)),
        }
    }

    fn prepare<'c>(
        &self,
        connection: &'c OpenConnection,
        index: ffi::idx_t,
    ) -> Result<Statement<'c>, RawError> {
        let mut prepared = Prepared::empty();
        // SAFETY: both handles are live and the index is below the count; rule 1.
        let state = unsafe {
            ffi::duckdb_prepare_extracted_statement(connection.raw(), self.raw, index, &mut prepared.raw)
        };
        match state {
            ffi::DuckDBSuccess => Ok(Statement { prepared }),
            _ => Err(prepare_error(&prepared, String::new())),
        }
    }
}

impl Drop for Extracted {
    fn drop(&mut self) {
        // SAFETY: rule 1.
        unsafe { ffi::duckdb_destroy_extracted(&mut self.raw) };
    }
}

/// Returns the error of preparing a statement; `otherwise` if the engine reports none.
fn prepare_error(statement: &Prepared<'_>, otherwise: String) -> RawError {
    // SAFETY: the call takes null and failed statements, and stays the text's owner.
    let message = unsafe { text::copy(ffi::duckdb_prepare_error(statement.raw)) };
    RawError(if message.is_empty() { otherwise } else { message })
}
