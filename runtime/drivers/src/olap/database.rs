//! Databases of other systems, which a build reads or a model's rows are written to: attached for that time, and to be written to
//! only for the latter.

use std::fmt;
use std::path::Path;

use thiserror::Error;

use super::{lake::Lake, system::System};

/// The beginning of the names under which they are attached. Nothing else in an engine has such a name.
pub const ATTACHED_PREFIX: &str = "_watershed_";

/// A database to attach.
#[derive(Clone, PartialEq, Eq)]
pub struct Attached {
    /// The name that it has in SQL meanwhile.
    pub name: String,
    /// The system that keeps it.
    pub system: System,
    /// The connector, for errors.
    pub connector: String,
    /// The file, or settings of the connection in the words of the system's own clients.
    pub target: String,
    /// Further settings of the connection, by the engine's names of them. No message of the engine quotes them.
    pub login: Vec<(&'static str, String)>,
    /// The things that may be done with it.
    pub rights: Rights,
    /// The rest of it, if it is a lake: its database keeps the catalog.
    pub lake: Option<Lake>,
}

/// The things that may be done with an attached database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rights {
    /// It is only read.
    Read,
    /// A table of it is written.
    Write,
}

impl Attached {
    /// Returns the system of the database that it is, or that keeps its catalog.
    pub(crate) fn keeper(&self) -> System {
        self.lake.as_ref().map_or(self.system, |lake| lake.catalog)
    }

    /// Returns the file of the database, if it is one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.keeper().is_file().then(|| Path::new(&self.target))
    }

    /// Returns a message without the settings of the connection, which may hold a password.
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

/// The reason why a database can't be attached.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("connector \"{connector}\": {message}")]
pub struct DatabaseError {
    /// The connector.
    pub connector: String,
    /// The mistake.
    pub cause: DatabaseCause,
    /// The words of the system, on one line.
    pub message: String,
}

/// The mistake in a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseCause {
    /// The name of the host has no address.
    UnknownHost,
    /// Nobody listens there.
    Refused,
    /// The user or the password is another.
    Login,
    /// There is no such database.
    NoDatabase,
    /// The certificate of the host is not trusted, or it speaks no TLS.
    Certificate,
    /// It did not answer in time.
    Timeout,
    /// The database holds no lake.
    NoLake,
    /// The lake is of another version of the format.
    LakeVersion,
    /// The lake has no such state, or has it no longer.
    NoSnapshot,
    /// The lake's files stand elsewhere than is said.
    DataPath,
    /// Something else.
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
            | DatabaseCause::Other => "connection-failed",
        }
    }

    /// Returns a remedy for a person to try.
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
                "check the connector's `path` or `dbname`; a lake is made by whoever writes to it first, \
                 which a model does through a connector of `mode: readwrite`",
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
            DatabaseCause::Other => None,
        }
    }

    /// Returns true if the same attempt may succeed a moment later.
    #[must_use]
    pub fn passes(&self) -> bool {
        matches!(
            self.cause,
            DatabaseCause::Refused | DatabaseCause::Timeout | DatabaseCause::Other
        )
    }
}
