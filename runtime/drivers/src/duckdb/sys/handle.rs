//! Handles of the C API that close themselves.

use std::marker::PhantomData;
use std::ptr;

use libduckdb_sys as ffi;

/// The handle of an open connection.
pub(super) struct OpenConnection(ffi::duckdb_connection);

// SAFETY: rule 3; the handle is not bound to the thread that made it.
unsafe impl Send for OpenConnection {}

impl OpenConnection {
    /// Opens a connection to a database.
    ///
    /// # Safety
    /// The database is open, and stays so as long as the connection.
    pub(super) unsafe fn new(database: ffi::duckdb_database) -> Option<Self> {
        let mut raw = ptr::null_mut();
        // SAFETY: the database is open; rule 1.
        let state = unsafe { ffi::duckdb_connect(database, &mut raw) };
        (state == ffi::DuckDBSuccess).then_some(Self(raw))
    }

    pub(super) fn raw(&self) -> ffi::duckdb_connection {
        self.0
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        // SAFETY: rule 1.
        unsafe { ffi::duckdb_disconnect(&mut self.0) };
    }
}

/// A prepared statement, or the place for a future one.
pub(super) struct Prepared<'c> {
    pub(super) raw: ffi::duckdb_prepared_statement,
    _connection: PhantomData<&'c OpenConnection>,
}

impl Prepared<'_> {
    /// Returns an empty place that the engine fills with a statement; the value frees the statement when dropped.
    pub(super) fn empty() -> Self {
        Self {
            raw: ptr::null_mut(),
            _connection: PhantomData,
        }
    }
}

impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        // SAFETY: rule 1; null is taken as well.
        unsafe { ffi::duckdb_destroy_prepare(&mut self.raw) };
    }
}
