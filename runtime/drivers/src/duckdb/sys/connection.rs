//! An open database file and connections to it.

use std::ffi::c_char;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use libduckdb_sys as ffi;
use rustix::process::{Resource, getrlimit};
use watershed_locks::Unpoisoned;

use super::forbidden;
use super::handle::OpenConnection;
use super::statement::Statement;
use super::{Answer, ColumnValue, Param, RawError, appender, text};
use crate::volume::Bytes;

/// An open database, closed with its last connection. Closing writes the log into the file.
pub(in crate::duckdb) struct Database {
    raw: ffi::duckdb_database,
    path: Option<PathBuf>,
    /// True if the texts of statements are looked at before the engine sees them.
    guarded: AtomicBool,
}

// SAFETY: the handle is a pointer to an object that the engine itself shares between threads.
unsafe impl Send for Database {}
// SAFETY: as above; the one call made through a shared reference, `duckdb_connect`, is thread-safe.
unsafe impl Sync for Database {}

impl Database {
    /// Opens a file or an in-memory database with settings.
    ///
    /// # Errors
    /// What the engine says; a file that can't be opened is left as it is.
    pub(in crate::duckdb) fn open(
        path: Option<&Path>,
        settings: &[(&str, String)],
    ) -> Result<Arc<Self>, RawError> {
        let file = path.map(Path::to_owned);
        let path = match path {
            None => ":memory:",
            Some(path) => path
                .to_str()
                .ok_or_else(|| RawError("IO Error: the engine takes paths in UTF-8 only".to_owned()))?,
        };
        let path = text::to_c(path)?;
        check_address_space(getrlimit(Resource::As).current)?;
        let config = Config::new(settings)?;
        let mut database = ptr::null_mut();
        let mut error: *mut c_char = ptr::null_mut();
        // SAFETY: all pointers are valid for the call; the error text is handed over to us.
        let (state, message) = unsafe {
            let state = ffi::duckdb_open_ext(path.as_ptr(), &mut database, config.0, &mut error);
            (state, text::take(error))
        };
        if state != ffi::DuckDBSuccess {
            return Err(RawError(
                message.unwrap_or_else(|| "IO Error: the engine gave no reason".to_owned()),
            ));
        }
        Ok(Arc::new(Self {
            raw: database,
            path: file,
            guarded: AtomicBool::new(false),
        }))
    }
}

/// The least address space for a process with the engine, in bytes. The engine's threads reserve stacks and pools, and
/// end the whole process if they find none left.
const LEAST_ADDRESS_SPACE: u64 = 768 << 20;

/// Refuses a process whose address space is limited to less than the engine needs.
fn check_address_space(limit: Option<u64>) -> Result<(), RawError> {
    match limit {
        Some(limit) if limit < LEAST_ADDRESS_SPACE => Err(RawError(format!(
            "Out of Memory Error: this process may use {} of address space (`ulimit -v`), and the engine needs {}",
            Bytes(limit),
            Bytes(LEAST_ADDRESS_SPACE)
        ))),
        _ => Ok(()),
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // SAFETY: rule 1; all connections hold an `Arc` of this, so none is left.
        unsafe { ffi::duckdb_close(&mut self.raw) };
    }
}

/// The settings for opening a database.
struct Config(ffi::duckdb_config);

impl Config {
    fn new(settings: &[(&str, String)]) -> Result<Self, RawError> {
        let mut config = ptr::null_mut();
        // SAFETY: rule 1; on failure there is nothing to destroy.
        if unsafe { ffi::duckdb_create_config(&mut config) } != ffi::DuckDBSuccess {
            return Err(RawError(
                "IO Error: the engine has no memory for its settings".to_owned(),
            ));
        }
        let config = Self(config);
        for (name, value) in settings {
            let (name_c, value_c) = (text::to_c(name)?, text::to_c(value)?);
            // SAFETY: the handle is live and both texts end with a zero byte.
            let state = unsafe { ffi::duckdb_set_config(config.0, name_c.as_ptr(), value_c.as_ptr()) };
            if state != ffi::DuckDBSuccess {
                return Err(RawError(format!("Settings Error: `{name}` can't be `{value}`")));
            }
        }
        Ok(config)
    }
}

impl Drop for Config {
    fn drop(&mut self) {
        // SAFETY: rule 1.
        unsafe { ffi::duckdb_destroy_config(&mut self.0) };
    }
}

/// A connection, with at most one transaction at a time.
pub(in crate::duckdb) struct Connection {
    open: OpenConnection,
    interrupt: Arc<Interrupt>,
    /// Database, kept open as long as the connection: fields are dropped in order.
    database: Arc<Database>,
}

impl Connection {
    /// Connects to an open database.
    pub(in crate::duckdb) fn new(database: &Arc<Database>) -> Result<Self, RawError> {
        // SAFETY: the database is open, and is dropped after the connection.
        let Some(open) = (unsafe { OpenConnection::new(database.raw) }) else {
            return Err(RawError(
                "Connection Error: the engine makes no further connection".to_owned(),
            ));
        };
        let interrupt = Arc::new(Interrupt(Mutex::new(open.raw())));
        Ok(Self {
            open,
            interrupt,
            database: Arc::clone(database),
        })
    }

    /// Returns the path of the database's file; none for an in-memory database.
    pub(in crate::duckdb) fn path(&self) -> Option<&Path> {
        self.database.path.as_deref()
    }

    /// Returns a handle that interrupts the connection from any thread.
    pub(in crate::duckdb) fn interrupt(&self) -> Arc<Interrupt> {
        Arc::clone(&self.interrupt)
    }

    /// Prepares a statement in users' syntax. The engine may split it into several, as for PIVOT; all but the last then
    /// run at once.
    ///
    /// # Errors
    /// What the engine says, and in a guarded database what the sandbox forbids.
    pub(in crate::duckdb) fn prepare(&self, sql: &str) -> Result<Statement<'_>, RawError> {
        let is_guarded = self.database.guarded.load(Ordering::Relaxed);
        if is_guarded {
            forbidden::refuse(sql)?;
        }
        Statement::prepare(&self.open, sql, is_guarded)
    }

    /// Prepares a statement that the engine takes for one, so that nothing runs.
    ///
    /// # Errors
    /// What the engine says, and for a text that it splits, as PIVOT.
    pub(in crate::duckdb) fn prepare_alone(&self, sql: &str) -> Result<Statement<'_>, RawError> {
        Statement::prepare_alone(&self.open, sql)
    }

    /// Refuses forbidden texts on all connections to the database from now on.
    pub(in crate::duckdb) fn guard(&self) {
        self.database.guarded.store(true, Ordering::Relaxed);
    }

    /// Prepares and runs a statement, with the whole result in memory.
    pub(in crate::duckdb) fn run(&self, sql: &str, params: &[Param<'_>]) -> Result<Answer<'_>, RawError> {
        self.prepare(sql)?.run(params)
    }

    /// Appends rows to a table within the open transaction.
    pub(in crate::duckdb) fn append<'r>(
        &self,
        table: (&str, &str),
        rows: impl IntoIterator<Item = &'r [ColumnValue<'r>]>,
    ) -> Result<(), RawError> {
        appender::append_rows(&self.open, table, rows)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // No interrupt comes any more when the connection is closed, which is next.
        *self.interrupt.0.lock().unpoisoned() = ptr::null_mut();
    }
}

/// A handle that interrupts a connection from any thread; without effect once the connection is closed.
pub(in crate::duckdb) struct Interrupt(Mutex<ffi::duckdb_connection>);

// SAFETY: rule 3; the pointer is used under the lock only.
unsafe impl Send for Interrupt {}
// SAFETY: as above.
unsafe impl Sync for Interrupt {}

impl Interrupt {
    /// Interrupts the running statement. An interrupt between two statements is lost, so callers repeat it.
    pub(in crate::duckdb) fn interrupt(&self) {
        let open = self.0.lock().unpoisoned();
        if !open.is_null() {
            // SAFETY: rule 3.
            unsafe { ffi::duckdb_interrupt(*open) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_too_little_address_space_is_refused_before_the_engine_ends_it() {
        assert!(check_address_space(None).is_ok());
        assert!(check_address_space(Some(LEAST_ADDRESS_SPACE)).is_ok());
        let RawError(message) = check_address_space(Some(400 << 20)).unwrap_err();
        assert!(
            message.contains("419.4 MB of address space (`ulimit -v`)"),
            "{message}"
        );
    }
}
