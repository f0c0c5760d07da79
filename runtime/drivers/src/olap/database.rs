//! Databases of other systems, attached temporarily for a build that reads them or for writing a model's rows; writable
//! only in the latter case.

use std::fmt;
use std::path::Path;

use thiserror::Error;

use super::{lake::Lake, system::System};

/// Prefix of the names of attached databases, reserved for them.
pub const ATTACHED_PREFIX: &str = "_watershed_";

/// A database to attach, with its connection settings.
#[derive(Clone, PartialEq, Eq)]
pub struct Attached {
    /// Name of the database in SQL while attached.
    pub name: String,
    /// Type of the database, such as Postgres.
    pub system: System,
    /// Name of the connector, for errors.
    pub connector: String,
    /// Path of the file, or connection string in the syntax of the system's own clients.
    pub target: String,
    /// Further settings of the connection, by the engine's names. The engine's messages never quote them.
    pub login: Vec<(&'static str, String)>,
    /// Access that the work needs: reading or writing.
    pub rights: Rights,
    /// Settings of the lake whose catalog the database holds; none for an ordinary database.
    pub lake: Option<Lake>,
}

/// The permitted access to an attached database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rights {
    /// Reads only.
    Read,
    /// Reads and writes.
    Write,
}

impl Attached {
    /// Returns the system of the database, which for a lake is that of its catalog.
    pub(crate) fn keeper(&self) -> System {
        self.lake.as_ref().map_or(self.system, |lake| lake.catalog)
    }

    /// Returns the path of the database's file; none for a server.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.keeper().is_file().then(|| Path::new(&self.target))
    }

    /// Removes settings of the connection, which may contain a password, from a message.
    #[must_use]
    pub fn hide(&self, message: &str) -> String {
        match self.keeper().is_file() || self.target.is_empty() {
            true => message.to_owned(),
            false => message.replace(&self.target, "…"),
        }
    }
}

impl fmt::Debug for Attached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attached")
            .field("name", &self.name)
            .field("system", &self.system)
            .finish_non_exhaustive()
    }
}

/// The error of a database that can't be attached.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("connector \"{connector}\": {message}")]
pub struct DatabaseError {
    /// Name of the connector that states the connection.
    pub connector: String,
    /// Cause of the failure, as far as the message tells.
    pub cause: DatabaseCause,
    /// The system's message, on one line.
    pub message: String,
}

/// The cause for which a database can't be attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseCause {
    /// The host name has no address.
    UnknownHost,
    /// Nobody listens at the address.
    Refused,
    /// The user or password is wrong.
    Login,
    /// The database does not exist.
    NoDatabase,
    /// The certificate of the host is not trusted, or the server has no TLS.
    Certificate,
    /// The server did not answer in time.
    Timeout,
    /// The database holds no lake.
    NoLake,
    /// The lake's format has another version.
    LakeVersion,
    /// The lake does not have this snapshot, or no longer.
    NoSnapshot,
    /// The lake's files are at another path than stated.
    DataPath,
    /// The lake is that of another project.
    Taken,
    /// The lake's catalog may only be read.
    ReadOnly,
    /// Any other cause.
    Other,
}

impl DatabaseError {
    /// Returns the error's stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.cause {
            DatabaseCause::UnknownHost => "host-unknown",
            DatabaseCause::Refused => "connection-refused",
            DatabaseCause::Login => "credentials-refused",
            DatabaseCause::NoDatabase | DatabaseCause::NoLake => "database-missing",
            DatabaseCause::NoSnapshot => "snapshot-missing",
            DatabaseCause::Certificate => "certificate-untrusted",
            DatabaseCause::Timeout
            | DatabaseCause::LakeVersion
            | DatabaseCause::DataPath
            | DatabaseCause::Taken
            | DatabaseCause::ReadOnly
            | DatabaseCause::Other => "connection-failed",
        }
    }

    /// Returns a hint for the user, if any.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self.cause {
            DatabaseCause::UnknownHost | DatabaseCause::Refused | DatabaseCause::Timeout => {
                Some("check the connector's `host` and `port`, and that this machine reaches the server")
            }
            DatabaseCause::Login => Some(
                "check the connector's `user` and `password`, and that the server lets them in from here",
            ),
            DatabaseCause::NoDatabase => Some("check the connector's `dbname`"),
            DatabaseCause::Certificate => {
                Some("check the connector's `sslmode`, and who signed the server's certificate")
            }
            DatabaseCause::NoLake => Some(
                "check the connector's `path` or `dbname`; in Postgres name a lake that a Watershed project builds by its \
                 schema, `metadata_schema: watershed_<project>_<environment>`; a lake is made by whoever writes to it \
                 first, which a model does through a connector of `mode: readwrite`",
            ),
            DatabaseCause::LakeVersion => Some(
                "have the program that writes to the lake migrate its catalog, or take the Watershed whose \
                 engine knows that version",
            ),
            DatabaseCause::NoSnapshot => Some(
                "name another `snapshot`: `SELECT * FROM snapshots()` through this connector lists those there are",
            ),
            DatabaseCause::DataPath => {
                Some("write `data_path` as the lake's catalog has it, or leave it out where rows are written")
            }
            DatabaseCause::Taken => Some(
                "name another lake: each project and environment has its own, by `metadata_schema` in Postgres and by \
                 `path` in files",
            ),
            DatabaseCause::ReadOnly => {
                Some("let the connector's user write to the lake's catalog, or build models elsewhere")
            }
            DatabaseCause::Other => None,
        }
    }

    /// Returns true if a retry may succeed soon.
    #[must_use]
    pub fn passes(&self) -> bool {
        matches!(
            self.cause,
            DatabaseCause::Refused | DatabaseCause::Timeout | DatabaseCause::Other
        )
    }
}
