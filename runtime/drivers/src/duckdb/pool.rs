//! The open file and its pool of connections.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;
use watershed_dialect::{Dialect as _, DuckDb, Quoting as _};
use watershed_locks::Unpoisoned;

use super::confine::confine;
use super::failure::classify_open;
use super::lake::{self, Lake};
use super::options::Options;
use super::sys::{Connection, Database, RawError};
use crate::olap::{Access, Failure, Home, OpenError, Value};

/// Ratio of our default memory limit (60 %) to the engine's (80 %).
const SHARE_OF_ENGINES_DEFAULT: (u64, u64) = (60, 80);

/// The file and its idle connections.
pub(super) struct Pool {
    state: Mutex<State>,
    opened: AtomicBool,
    openings: Notify,
}

enum State {
    /// Not open; the next work opens the file.
    Unopened,
    Open(Open),
    /// Closed for good: no later work opens the file.
    Closed,
}

/// The state of an open file.
pub(super) struct Open {
    database: Arc<Database>,
    /// The catalog in which connections look up names; none for the file itself.
    uses: Option<&'static str>,
    idle: Vec<Connection>,
    /// Memory limit in bytes; none if unknown.
    memory_limit: Option<u64>,
}

/// A connection taken from the pool.
pub(super) enum Checkout {
    /// A connection that was used before.
    Idle(Connection),
    /// A new connection to a file that was already open.
    New(Connection),
    /// The first connection to a newly opened file.
    First(Connection),
}

impl Default for Pool {
    fn default() -> Self {
        Self {
            state: Mutex::new(State::Unopened),
            opened: AtomicBool::new(false),
            openings: Notify::new(),
        }
    }
}

impl Pool {
    /// Returns true if the file is open.
    pub(super) fn is_open(&self) -> bool {
        self.opened.load(Ordering::Acquire)
    }

    /// Returns the notification of each opening of the file.
    pub(super) fn openings(&self) -> &Notify {
        &self.openings
    }

    /// Takes a connection from the pool. If the file is not open, `open` opens it while other callers wait.
    pub(super) fn checkout(
        &self,
        path: &Path,
        open: impl FnOnce() -> Result<(Open, Connection), Failure>,
    ) -> Result<Checkout, Failure> {
        let mut state = self.state();
        match &mut *state {
            State::Closed => return Err(Failure::Closed),
            State::Open(file) => {
                return Ok(match file.idle.pop() {
                    Some(connection) => Checkout::Idle(connection),
                    None => Checkout::New(file.connect(path)?),
                });
            }
            State::Unopened => {}
        }
        let (file, connection) = open()?;
        *state = State::Open(file);
        self.opened.store(true, Ordering::Release);
        self.openings.notify_waiters();
        Ok(Checkout::First(connection))
    }

    /// Returns a connection to the pool.
    pub(super) fn check_in(&self, connection: Connection) {
        if let State::Open(file) = &mut *self.state() {
            file.idle.push(connection);
        }
    }

    /// Opens an uninitialised connection to the open file, which sees only global settings.
    pub(super) fn bare_connection(&self, path: &Path) -> Result<Connection, Failure> {
        match &*self.state() {
            State::Open(file) => Ok(file.connect(path)?),
            State::Unopened | State::Closed => Err(Failure::Closed),
        }
    }

    /// Returns the engine's memory limit in bytes; none while the file is not open.
    pub(super) fn memory_limit(&self) -> Option<u64> {
        match &*self.state() {
            State::Open(file) => file.memory_limit,
            State::Unopened | State::Closed => None,
        }
    }

    /// Closes the file if it is open; the next work reopens it. Calls `before` with a connection first, unless none can
    /// be opened.
    pub(super) fn forget<T>(&self, path: &Path, before: impl FnOnce(Option<&Connection>) -> T) -> Option<T> {
        let mut state = self.state();
        let State::Open(file) = &mut *state else {
            return None;
        };
        if file.idle.is_empty() {
            // Each was spent.
            file.idle.extend(file.connect(path).ok());
        }
        let done = before(file.idle.first());
        *state = State::Unopened;
        self.opened.store(false, Ordering::Release);
        Some(done)
    }

    /// Closes a broken file without a checkpoint. Returns false if it is closed for good.
    pub(super) fn abandon(&self) -> bool {
        let mut state = self.state();
        let is_closed = matches!(*state, State::Closed);
        if !is_closed {
            *state = State::Unopened;
            self.opened.store(false, Ordering::Release);
        }
        !is_closed
    }

    /// Closes the file for good.
    pub(super) fn close(&self) {
        *self.state() = State::Closed;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unpoisoned()
    }
}

impl Open {
    fn connect(&self, path: &Path) -> Result<Connection, OpenError> {
        let connection = connect(&self.database, path)?;
        if let Some(catalog) = self.uses {
            let used = connection.run(&format!("USE {catalog}"), &[]).map(drop);
            used.map_err(|raw| classify_open(&raw, path))?;
        }
        Ok(connection)
    }
}

/// Opens the file, or attaches the lake to an engine in memory.
pub(super) fn open(options: &Options, lake: Option<&Lake>) -> Result<(Open, Connection), Failure> {
    let Some(lake) = lake else {
        return Ok(open_with(options, || open_file(options))?);
    };
    let path = &options.path;
    let in_memory = || Database::open(None, &settings(options)).map_err(|raw| classify_open(&raw, path));
    let (mut opened, connection) = open_with(options, in_memory)?;
    lake.attach(&connection, options)?;
    opened.uses = Some(lake::ALIAS);
    Ok((opened, connection))
}

/// Opens a database and applies settings that can't be changed later.
fn open_with(
    options: &Options,
    open: impl FnOnce() -> Result<Arc<Database>, OpenError>,
) -> Result<(Open, Connection), OpenError> {
    let path = &options.path;
    let database = open()?;
    let connection = connect(&database, path)?;
    let run = |sql: &str| connection.run(sql, &[]).and_then(super::sys::Answer::collect);
    let said = |raw: RawError| classify_open(&raw, path);
    let mut memory_limit = options.memory_limit;
    if memory_limit.is_none() {
        let shown = run("SELECT current_setting('memory_limit')").map_err(said)?;
        if let Some(bytes) = shown.first().and_then(|row| row.first()).and_then(bytes_of) {
            let (ours, theirs) = SHARE_OF_ENGINES_DEFAULT;
            memory_limit = Some(bytes / theirs * ours);
        }
    }
    let part = |bytes| options.memory_share.map_or(bytes, |share| share.part(bytes));
    memory_limit = memory_limit.map(part);
    // The limit that was asked for is set already.
    if let Some(bytes) = memory_limit.filter(|_| memory_limit != options.memory_limit) {
        run(&format!("SET memory_limit = '{bytes}B'")).map_err(said)?;
    }
    if !options.extensions.is_empty() {
        let folders = options
            .extensions
            .iter()
            .map(|folder| DuckDb.text(&folder.to_string_lossy()));
        let folders = folders.collect::<Vec<_>>().join(", ");
        run(&format!("SET GLOBAL extension_directories = [{folders}]")).map_err(said)?;
    }
    // Answers must not depend on where they are computed. Without the ICU extension there are no time zones.
    if let Err(raw) = run(&DuckDb.in_zone("UTC")) {
        tracing::debug!(error = %raw.0, "the engine has no time zones");
    }
    // Otherwise the configuration stays unlocked: migrations may set things. Nothing but SELECT and what wraps one is
    // run for any other caller.
    if let Some(sandbox) = &options.sandbox {
        confine(&connection, sandbox, options).map_err(said)?;
    }
    let idle = Vec::new();
    let opened = Open {
        database,
        uses: None,
        idle,
        memory_limit,
    };
    Ok((opened, connection))
}

/// Length of a file's headers in bytes. The engine writes them when it creates the file; without them, the file is
/// empty.
const HEADERS: u64 = 3 * 4096;

/// Opens or creates the file. A marker file exists during creation, so that after a crash a file without headers can be
/// told from a damaged one.
fn open_file(options: &Options) -> Result<Arc<Database>, OpenError> {
    let path = &options.path;
    if options.access == Access::ReadOnly && !path.exists() {
        return Err(OpenError::Missing { path: path.clone() });
    }
    let open = || Database::open(Some(path), &settings(options)).map_err(|raw| classify_open(&raw, path));
    let mark = beside(path, ".making");
    if options.access == Access::ReadOnly {
        return match open() {
            Err(OpenError::Damaged { .. }) if mark.exists() && is_unfinished(path) => {
                Err(OpenError::Missing { path: path.clone() })
            }
            opened => opened,
        };
    }
    let io = |error: std::io::Error| OpenError::Io {
        path: path.clone(),
        message: error.to_string(),
    };
    if !path.exists() {
        std::fs::write(&mark, "").map_err(io)?;
    }
    let opened = match open() {
        // Nobody is at work in it: then it would be locked, and not damaged.
        Err(OpenError::Damaged { .. }) if mark.exists() && is_unfinished(path) => {
            std::fs::remove_file(path).map_err(io)?;
            open()
        }
        opened => opened,
    }?;
    match std::fs::remove_file(&mark) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io(error)),
        _ => Ok(opened),
    }
}

/// Returns true if a file is shorter than its headers and has no write-ahead log beside it.
fn is_unfinished(path: &Path) -> bool {
    let is_short = std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() < HEADERS);
    is_short && !beside(path, ".wal").exists()
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn connect(database: &Arc<Database>, path: &Path) -> Result<Connection, OpenError> {
    Connection::new(database).map_err(|raw| classify_open(&raw, path))
}

fn settings(options: &Options) -> Vec<(&'static str, String)> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut settings = vec![
        ("errors_as_json", "true".to_owned()),
        // Downloading is never a side effect of a query; what is missing is said.
        ("autoinstall_known_extensions", "false".to_owned()),
        ("file_search_path", text(&options.root)),
        ("temp_directory", text(&options.temp_directory)),
        // As the host of the format has it: projects lean on it. `init_sql` may switch it off.
        ("old_implicit_casting", "true".to_owned()),
        // The engine's allocator gives back what builds used even if nothing else runs in their threads for a while;
        // without it a process that builds now and then only ever grows.
        ("allocator_background_threads", "true".to_owned()),
    ];
    if options.sandbox.is_some() {
        // They stand in the home folder of whoever runs it.
        settings.push(("allow_persistent_secrets", "false".to_owned()));
    }
    if options.access == Access::ReadOnly && options.home == Home::File {
        settings.push(("access_mode", "READ_ONLY".to_owned()));
    }
    settings.extend(
        options
            .memory_limit
            .map(|bytes| ("memory_limit", format!("{bytes}B"))),
    );
    settings.extend(
        options
            .temp_limit
            .map(|bytes| ("max_temp_directory_size", format!("{bytes}B"))),
    );
    settings.extend(options.threads.map(|threads| ("threads", threads.to_string())));
    settings
}

/// Parses a size in the engine's format, such as `18.8 GiB`, into bytes.
fn bytes_of(shown: &Value) -> Option<u64> {
    let Value::Text(shown) = shown else { return None };
    let (number, unit) = shown.trim().split_once(' ')?;
    let shift = match unit {
        "bytes" | "byte" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        "TiB" => 40,
        _ => return None,
    };
    let (whole, tenth) = number.split_once('.').unwrap_or((number, "0"));
    let tenths = whole
        .parse::<u64>()
        .ok()?
        .checked_mul(10)?
        .checked_add(tenth.parse().ok()?)?;
    tenths.checked_mul(1 << shift).map(|bytes| bytes / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_whose_making_was_cut_off_is_made_anew_and_any_other_is_left_alone() {
        let temp = tempfile::tempdir().unwrap();
        let whole = temp.path().join("whole.duckdb");
        drop(Database::open(Some(&whole), &[]).unwrap());
        let headers = std::fs::read(&whole).unwrap();
        assert_eq!(headers.len() as u64, HEADERS, "an empty file is its headers");
        let path = temp.path().join("cut.duckdb");
        let read_only = Options {
            access: Access::ReadOnly,
            ..Options::new(&path, temp.path())
        };
        let options = Options::new(&path, temp.path());
        let mark = beside(&path, ".making");
        for length in [0, 1, 100, 4096, 8192, headers.len() - 1] {
            std::fs::write(&path, &headers[..length]).unwrap();
            let damaged = open_file(&options).err();
            assert!(
                matches!(damaged, Some(OpenError::Damaged { .. })),
                "{length}: somebody else may have cut it"
            );
            std::fs::write(&mark, "").unwrap();
            let missing = open_file(&read_only).err();
            assert!(
                matches!(missing, Some(OpenError::Missing { .. })),
                "{length}: {missing:?}"
            );
            assert!(open_file(&options).is_ok(), "{length}");
            assert!(!mark.exists(), "{length}");
        }
        std::fs::write(&mark, "").unwrap();
        let log = temp.path().join("cut.duckdb.wal");
        std::fs::write(&path, &headers[..4096]).unwrap();
        std::fs::write(&log, "rows").unwrap();
        assert!(open_file(&options).is_err(), "a log may hold rows");
        std::fs::remove_file(&log).unwrap();
        std::fs::write(&path, vec![7; headers.len()]).unwrap();
        assert!(matches!(
            open_file(&options).err(),
            Some(OpenError::Damaged { .. })
        ));
        assert!(path.exists());
    }

    #[test]
    fn a_connection_is_used_again_until_the_file_is_forgotten_and_none_once_it_is_closed() {
        let temp = tempfile::tempdir().unwrap();
        let options = Options::new(temp.path().join("main.duckdb"), temp.path());
        let (pool, path) = (Pool::default(), &options.path);
        let take = || pool.checkout(path, || open(&options, None));
        let Ok(Checkout::First(first)) = take() else {
            panic!("the file is opened")
        };
        assert!(pool.is_open() && pool.memory_limit().is_some() && pool.bare_connection(path).is_ok());
        assert!(matches!(take(), Ok(Checkout::New(_))));
        pool.check_in(first);
        assert!(matches!(take(), Ok(Checkout::Idle(_))));
        assert_eq!(pool.forget(path, |connection| connection.is_some()), Some(true));
        assert_eq!(pool.forget(path, |_| ()), None);
        assert!(!pool.is_open() && pool.bare_connection(path).is_err());
        assert!(matches!(take(), Ok(Checkout::First(_))));
        assert!(pool.abandon() && !pool.is_open());
        pool.close();
        assert!(!pool.abandon());
        assert!(matches!(take(), Err(Failure::Closed)));
    }

    #[test]
    fn sizes_are_read_as_the_engine_shows_them() {
        let read = |text: &str| bytes_of(&Value::Text(text.to_owned()));
        assert_eq!(read("18.8 GiB"), Some(18 * (1 << 30) + 8 * (1 << 30) / 10));
        assert_eq!(read("512.0 MiB"), Some(512 << 20));
        assert_eq!(read("100 bytes"), Some(100));
        assert_eq!(read("a lot"), None);
    }
}
