//! Failures that any call of an engine may have, as plain data that can be stored on a resource.

use std::path::PathBuf;

use thiserror::Error;
use watershed_api::hint;

use super::DatabaseError;

/// A line in a data file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataPlace {
    /// Path of the file, as in the statement.
    pub file: String,
    /// Line number in the file, from 1.
    pub line: u32,
}

/// The engine's error about a statement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct SqlError {
    /// Engine's class of error in lower case: `parser`, `binder`, `catalog`, `conversion`, ...
    pub class: String,
    /// The engine's message.
    pub message: String,
    /// Hint for the author of the statement; none if the engine gives none.
    pub hint: Option<String>,
    /// Byte offset in the caller's statement; `None` if the engine reports none.
    pub offset: Option<usize>,
    /// Full text of the engine, if much longer than message and hint; none otherwise.
    pub details: Option<String>,
    /// Line of data that caused the error; none if no data file did.
    pub data: Option<Box<DataPlace>>,
}

/// The error of opening the engine's file, which stays unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OpenError {
    /// Another process has the file open.
    #[error("{} has `{path}` open", self.holder())]
    Locked {
        /// Path of the locked file.
        path: PathBuf,
        /// The other process, with its program; none if the engine does not name it.
        holder: Option<String>,
    },
    /// The file is damaged or no database.
    #[error("`{path}` is damaged: {message}")]
    Damaged {
        /// Path of the damaged file.
        path: PathBuf,
        /// The engine's message.
        message: String,
    },
    /// A newer version of the engine wrote the file.
    #[error("`{path}` was written by a newer version of the engine: {message}")]
    Newer {
        /// Path of the file in the newer format.
        path: PathBuf,
        /// The engine's message.
        message: String,
    },
    /// The file does not exist, and read-only access creates none.
    #[error("`{path}` does not exist")]
    Missing {
        /// Path at which no file exists.
        path: PathBuf,
    },
    /// Any other error: no permission, no folder, or a setting that the engine refuses.
    #[error("can't open `{path}`: {message}")]
    Io {
        /// Path of the file that can't be opened.
        path: PathBuf,
        /// Message of the engine or the system.
        message: String,
    },
}

impl OpenError {
    /// Describes the process that has the file open, with its program if known.
    pub fn holder(&self) -> String {
        match self {
            Self::Locked {
                holder: Some(holder), ..
            } => holder.clone(),
            _ => "another process".to_owned(),
        }
    }
}

/// A failure of a call to the engine.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Failure {
    /// The engine's file can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The call was cancelled before its end.
    #[error("interrupted")]
    Interrupted,
    /// The memory limit was reached. A retry with less concurrent work may succeed.
    #[error("out of memory at {peak} of {limit} (`{setting}`)")]
    OutOfMemory {
        /// Name of the setting with the limit.
        setting: &'static str,
        /// Configured memory limit, as the engine formats it.
        limit: String,
        /// Memory in use at the failure.
        peak: String,
        /// The engine's message.
        message: String,
    },
    /// The engine's volume is full. Existing data can still be read.
    #[error("the disk is full: {message}")]
    DiskFull {
        /// Volume with its free space, or the engine's message.
        message: String,
    },
    /// The statement needs an extension that is not installed.
    #[error("the engine's extension `{extension}` is needed and not installed")]
    MissingExtension {
        /// Name of the extension that is not installed.
        extension: String,
        /// The engine's message.
        message: String,
        /// True if a sandbox forbids loading extensions.
        confined: bool,
        /// Reason why the installation failed; none if it was not attempted.
        refused: Option<String>,
    },
    /// A statement for the start of connections failed.
    #[error("the `init_sql` of connector \"{connector}\" failed: {error}")]
    Session {
        /// Name of the connector that states it.
        connector: String,
        /// Error, with positions relative to the connector's SQL.
        error: Box<SqlError>,
    },
    /// The statement is not valid, or failed on the data.
    #[error(transparent)]
    Sql(#[from] SqlError),
    /// A database of another system can't be attached.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The engine is unusable until it reopens its file before the next work.
    #[error("the engine stopped: {message}")]
    Fatal {
        /// The engine's message.
        message: String,
    },
    /// The engine was closed.
    #[error("the engine has been closed")]
    Closed,
    /// Another owner has taken the data: nothing was done, and nothing will be. The caller has lost its lease.
    #[error("another owner has taken the engine's data")]
    Fenced,
    /// The connection ended before the engine reported the outcome. The work was done as a whole or not at all, and
    /// none of it happens later, so the caller can look up the result.
    #[error("the connection to the engine ended before its answer: {message}")]
    Unknown {
        /// Message of the engine or the system.
        message: String,
    },
    /// The engine lacks the requested part.
    #[error("the engine has no {what}")]
    Unsupported {
        /// Name of the missing part.
        what: &'static str,
    },
}

impl Failure {
    /// Returns the failure of a request for a part that the engine lacks.
    pub fn lacks(what: &'static str) -> Self {
        Self::Unsupported { what }
    }

    /// Returns the stable code for documents and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Open(OpenError::Locked { .. }) => "engine-locked",
            Self::Open(OpenError::Damaged { .. }) => "engine-damaged",
            Self::Open(OpenError::Newer { .. }) => "engine-newer",
            Self::Open(OpenError::Missing { .. }) => "engine-missing",
            Self::Open(OpenError::Io { .. }) => "engine-io",
            Self::Interrupted => "interrupted",
            Self::OutOfMemory { .. } => "out-of-memory",
            Self::DiskFull { .. } => "disk-full",
            Self::MissingExtension { .. } => "missing-extension",
            Self::Session { .. } => "init-sql",
            Self::Sql(_) => "sql",
            Self::Database(error) => error.code(),
            Self::Fatal { .. } => "engine-fatal",
            Self::Closed => "engine-closed",
            Self::Fenced => "engine-fenced",
            Self::Unknown { .. } => "engine-unknown",
            Self::Unsupported { .. } => "engine-unsupported",
        }
    }

    /// Returns a hint for the user, if any.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::OutOfMemory { setting, .. } => Some(match *setting {
                "memory_limit" => format!(
                    "raise {}, or build less at once",
                    hint::option("memory-limit", "")
                ),
                _ => format!("make room on the disk of the state folder, or raise `{setting}`"),
            }),
            Self::DiskFull { .. } => Some(format!(
                "make room there, or {} if the engine's file holds much that is free; {} keeps state on another disk",
                hint::operation("gc", []),
                hint::option("state-dir", "DIR")
            )),
            Self::MissingExtension { confined: true, .. } => Some(format!(
                "the sandbox loads no extension; {}",
                hint::without_sandbox()
            )),
            Self::MissingExtension {
                extension,
                refused: Some(reason),
                ..
            } => Some(format!(
                "the engine tried to fetch it: {}; {} names a folder that has `{extension}.duckdb_extension` for \
                 this version of the engine",
                reason.lines().next().unwrap_or_default(),
                hint::option("extensions", "")
            )),
            Self::MissingExtension { extension, .. } => Some(format!(
                "without {} the engine fetches it when it can reach its makers' repository; or name a folder by {} \
                     that has `{extension}.duckdb_extension` for this version of the engine",
                hint::option("no-extension-install", ""),
                hint::option("extensions", "")
            )),
            Self::Sql(error) => error.hint.clone(),
            Self::Database(error) => error.hint().map(str::to_owned),
            Self::Session { error, .. } => error.hint.clone(),
            Self::Open(OpenError::Damaged { .. }) => Some(format!(
                "{} sets the file aside; the next {} makes everything anew",
                hint::operation_with("doctor", [], &[("repair", "")]),
                hint::operation("run", [])
            )),
            Self::Open(OpenError::Locked { .. }) => Some(format!(
                "close the file there; {} waits longer for that",
                hint::option("wait", "D")
            )),
            Self::Open(OpenError::Newer { .. }) => {
                Some("use the newer version of watershed; nothing was touched".to_owned())
            }
            _ => None,
        }
    }
}
