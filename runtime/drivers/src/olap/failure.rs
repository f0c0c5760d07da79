//! Failures of an engine that any call may have: plain data, so that they can be stored on a resource.

use std::path::PathBuf;

use thiserror::Error;
use watershed_api::hint;

use super::DatabaseError;

/// A line of a file of data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataPlace {
    /// The file, as the statement names it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

/// The engine's error about a statement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct SqlError {
    /// The engine's class of error in lower case: `parser`, `binder`, `catalog`, `conversion`, ...
    pub class: String,
    /// Its message.
    pub message: String,
    /// A hint for the person who wrote it.
    pub hint: Option<String>,
    /// The place, in bytes of the statement as it was passed in; `None` if the engine does not say.
    pub offset: Option<usize>,
    /// All that the engine said, where that is much more than message and hint.
    pub details: Option<String>,
    /// The line of data that it is about.
    pub data: Option<Box<DataPlace>>,
}

/// The errors of opening the engine's file, which has not been changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OpenError {
    /// Another process holds it.
    #[error("{} has `{path}` open", self.holder())]
    Locked {
        /// The file.
        path: PathBuf,
        /// That process, with its program if the engine names it.
        holder: Option<String>,
    },
    /// It is not what the engine wrote.
    #[error("`{path}` is damaged: {message}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The engine's message.
        message: String,
    },
    /// A newer engine wrote it.
    #[error("`{path}` was written by a newer version of the engine: {message}")]
    Newer {
        /// The file.
        path: PathBuf,
        /// The engine's message.
        message: String,
    },
    /// It is not there, and was to be looked at only.
    #[error("`{path}` does not exist")]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// Anything else: no permission, no folder, a setting that the engine refuses.
    #[error("can't open `{path}`: {message}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The message of the engine or the system.
        message: String,
    },
}

impl OpenError {
    /// Returns the process that has the file open, with its program if the engine names it.
    pub fn holder(&self) -> String {
        match self {
            Self::Locked {
                holder: Some(holder), ..
            } => holder.clone(),
            _ => "another process".to_owned(),
        }
    }
}

/// The failures of a call to the engine.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Failure {
    /// The engine's file can't be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Cancelled before it was done.
    #[error("interrupted")]
    Interrupted,
    /// The memory limit was reached. Worth another try when less runs beside it.
    #[error("out of memory at {peak} of {limit} (`{setting}`)")]
    OutOfMemory {
        /// The setting that bounds it.
        setting: &'static str,
        /// Its value.
        limit: String,
        /// The memory in use when it failed.
        peak: String,
        /// The engine's message.
        message: String,
    },
    /// No space is left where the engine writes. What was there can still be read.
    #[error("the disk is full: {message}")]
    DiskFull {
        /// The volume and the room on it, or what the engine said.
        message: String,
    },
    /// The statement needs an extension that is not installed.
    #[error("the engine's extension `{extension}` is needed and not installed")]
    MissingExtension {
        /// Its name.
        extension: String,
        /// The engine's message.
        message: String,
        /// The engine may load none.
        confined: bool,
        /// The reason why it could not be fetched, if that was tried.
        refused: Option<String>,
    },
    /// The statements with which every connection begins are at fault.
    #[error("the `init_sql` of connector \"{connector}\" failed: {error}")]
    Session {
        /// The connector that gave them.
        connector: String,
        /// Its places count in the connector's SQL.
        error: Box<SqlError>,
    },
    /// The statement is at fault.
    #[error(transparent)]
    Sql(#[from] SqlError),
    /// A database of another system can't be attached.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The engine gave up; it is opened anew for the next work.
    #[error("the engine stopped: {message}")]
    Fatal {
        /// The engine's message.
        message: String,
    },
    /// The engine has been closed.
    #[error("the engine has been closed")]
    Closed,
    /// Another owner has taken the data since: nothing was done, and nothing more will be. Whoever is told so has lost the lease.
    #[error("another owner has taken the engine's data")]
    Fenced,
    /// The connection ended before the engine said how the work ended. It was done whole or not at all, and none of it is done
    /// after the call: whoever asks what stands there is told which.
    #[error("the connection to the engine ended before its answer: {message}")]
    Unknown {
        /// The message of the engine or the system.
        message: String,
    },
    /// The engine does not have what was asked for.
    #[error("the engine has no {what}")]
    Unsupported {
        /// The part that it lacks.
        what: &'static str,
    },
}

impl Failure {
    /// Returns the failure of asking an engine for a part that it does not have.
    pub fn lacks(what: &'static str) -> Self {
        Self::Unsupported { what }
    }

    /// A stable name for documents and tests.
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

    /// Returns a remedy for a person to try.
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
