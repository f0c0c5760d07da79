//! Databases of other systems, which a build reads or a model's rows are written to: attached for that time, and to be written to
//! only for the latter.

use std::fmt;
use std::path::Path;

use thiserror::Error;

use watershed_dialect::{DuckDb, Quoting as _};

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
    /// Returns the statements that attach it.
    #[must_use]
    pub fn begin(&self) -> Vec<String> {
        let (name, system) = (DuckDb.name(&self.name), self.system.word());
        let (target, login) = match &self.lake {
            None => (self.target.clone(), "SECRET"),
            Some(lake) => (lake.address(&self.target), "META_SECRET"),
        };
        let mut options = vec![format!("TYPE {system}")];
        if !self.login.is_empty() {
            options.push(format!("{login} {name}"));
        }
        options.push(
            match self.rights {
                Rights::Read => "READ_ONLY",
                Rights::Write => "READ_WRITE",
            }
            .to_owned(),
        );
        let lake = self.lake.iter();
        options.extend(lake.flat_map(|lake| lake.options(self.rights == Rights::Read)));
        let (target, options) = (DuckDb.text(&target), options.join(", "));
        let attach = format!("ATTACH {target} AS {name} ({options})");
        self.secret().into_iter().chain([attach]).collect()
    }

    /// Returns the statement that makes a secret of the login, if there is one.
    fn secret(&self) -> Option<String> {
        let (name, system) = (DuckDb.name(&self.name), self.keeper().word());
        let login = self.login.iter();
        let login: Vec<String> = login
            .map(|(option, value)| format!("{option} {}", DuckDb.text(value)))
            .collect();
        let login = login.join(", ");
        let secret = format!("CREATE OR REPLACE TEMPORARY SECRET {name} (TYPE {system}, {login})");
        (!login.is_empty()).then_some(secret)
    }

    /// Returns the system of the database that it is, or that keeps its catalog.
    fn keeper(&self) -> System {
        self.lake.as_ref().map_or(self.system, |lake| lake.catalog)
    }

    /// Returns the file of the database, if it is one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.keeper().is_file().then(|| Path::new(&self.target))
    }

    /// Returns the statements that detach it. They do nothing where nothing is attached.
    #[must_use]
    pub fn end(&self) -> Vec<String> {
        let name = DuckDb.name(&self.name);
        let detach = format!("DETACH DATABASE IF EXISTS {name}");
        match self.login.is_empty() {
            true => vec![detach],
            false => vec![detach, format!("DROP TEMPORARY SECRET IF EXISTS {name}")],
        }
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

/// Words of the engine before those of a system's client.
const BEFORE_CLIENT: [&str; 3] = ["nable to connect", "ailed to connect", "ailed to probe"];

impl DatabaseError {
    /// Reads what the engine said when it could not attach a database.
    #[must_use]
    pub fn read(attached: &Attached, message: &str) -> Self {
        let said = attached.hide(message);
        // Behind the connection's settings stands what its client said.
        let said = said
            .split_once("\": ")
            .filter(|(before, _)| BEFORE_CLIENT.iter().any(|words| before.contains(words)))
            .map_or(said.as_str(), |(_, client)| client);
        let line = said.lines().next().unwrap_or_default().trim();
        let cause = DatabaseCause::read(said);
        let message = match cause {
            DatabaseCause::NoLake => "there is no DuckLake in its database",
            // Behind it stands advice to whoever writes the statement.
            DatabaseCause::LakeVersion => line.split_once(". ").map_or(line, |(what, _)| what),
            _ => line,
        };
        Self {
            connector: attached.connector.clone(),
            cause,
            message: message.to_owned(),
        }
    }

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

impl DatabaseCause {
    /// The words of the clients of Postgres and of MariaDB.
    fn read(said: &str) -> Self {
        let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
        if has(&["creating a new DuckLake is explicitly disabled"]) {
            Self::NoLake
        } else if has(&["DuckLake catalog version mismatch"]) {
            Self::LakeVersion
        } else if has(&["No snapshot found"]) {
            Self::NoSnapshot
        } else if has(&["does not match existing data path"]) {
            Self::DataPath
        } else if has(&[
            "translate host name",
            "Unknown server host",
            "Unknown MySQL server host",
        ]) {
            Self::UnknownHost
        } else if has(&["imeout", "timed out"]) {
            Self::Timeout
        } else if has(&[
            "authentication failed",
            "Access denied",
            "no password supplied",
            "role \"",
        ]) {
            Self::Login
        } else if has(&["Unknown database"]) || (has(&["database \""]) && has(&["does not exist"])) {
            Self::NoDatabase
        } else if has(&["certificate", "SSL", "TLS"]) {
            Self::Certificate
        } else if has(&["refused", "No such file or directory", "Can't connect"]) {
            Self::Refused
        } else {
            Self::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shop(target: &str, login: Vec<(&'static str, String)>) -> Attached {
        Attached {
            name: "_watershed_orders".into(),
            system: System::Postgres,
            connector: "shop".into(),
            target: target.into(),
            login,
            rights: Rights::Read,
            lake: None,
        }
    }

    #[test]
    fn a_login_is_a_secret_of_the_engine_and_stands_in_no_other_statement() {
        let attached = shop("sslmode=require", vec![("PASSWORD", "it's".into())]);
        let [secret, attach] = attached.begin().try_into().unwrap();
        assert_eq!(
            secret,
            "CREATE OR REPLACE TEMPORARY SECRET \"_watershed_orders\" (TYPE postgres, PASSWORD 'it''s')"
        );
        assert_eq!(
            attach,
            "ATTACH 'sslmode=require' AS \"_watershed_orders\" (TYPE postgres, SECRET \"_watershed_orders\", READ_ONLY)"
        );
        assert_eq!(attached.end().len(), 2);
        assert!(!format!("{attached:?}").contains("it's"));
    }

    #[test]
    fn a_lake_is_attached_by_the_database_of_its_catalog() {
        let lake = Attached {
            system: System::DuckLake,
            lake: Some(Lake {
                catalog: System::Postgres,
                data_path: Some("s3://lake/".into()),
                snapshot: None,
            }),
            ..shop("sslmode=require", vec![("PASSWORD", "hush".into())])
        };
        let [secret, attach] = lake.begin().try_into().unwrap();
        assert!(secret.contains("(TYPE postgres, PASSWORD 'hush')"), "{secret}");
        assert_eq!(
            attach,
            "ATTACH 'postgres:sslmode=require' AS \"_watershed_orders\" (TYPE ducklake, \
             META_SECRET \"_watershed_orders\", READ_ONLY, DATA_PATH 's3://lake/', OVERRIDE_DATA_PATH true)"
        );
        assert_eq!((lake.file(), lake.end().len()), (None, 2));
        let mine = "DuckLake catalog version mismatch: catalog version is 0.2, but the extension requires version 1.0. \
                    To automatically migrate, set AUTOMATIC_MIGRATION to TRUE when attaching.";
        let none = "Existing DuckLake at metadata catalog \"postgres:sslmode=require\" does not exist - and creating \
                    a new DuckLake is explicitly disabled";
        for (said, code, told) in [
            (mine, "connection-failed", "requires version 1.0"),
            (none, "database-missing", "there is no DuckLake in its database"),
            (
                "No snapshot found at version 99",
                "snapshot-missing",
                "version 99",
            ),
            (
                "Failed to probe DuckLake metadata: Failed to prepare query \"SELECT 1\": file is not a database",
                "connection-failed",
                "connector \"shop\": file is not a database",
            ),
        ] {
            let error = DatabaseError::read(&lake, said);
            assert_eq!(error.code(), code, "{said}");
            assert!(error.to_string().ends_with(told), "{error}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_without_the_settings() {
        let attached = shop("postgres://u:pw@h/d", Vec::new());
        let cases = [
            (
                "connection to server at \"127.0.0.1\", port 1 failed: Connection refused\n\tIs it running?",
                "connection-refused",
            ),
            (
                "could not translate host name \"h\" to address: Name or service not known\n",
                "host-unknown",
            ),
            (
                "FATAL:  password authentication failed for user \"u\"",
                "credentials-refused",
            ),
            ("FATAL:  database \"d\" does not exist", "database-missing"),
            (
                "server does not support SSL, but SSL was required",
                "certificate-untrusted",
            ),
            ("timeout expired", "connection-failed"),
        ];
        for (said, code) in cases {
            let whole = format!("Unable to connect to Postgres at \"postgres://u:pw@h/d\": {said}");
            let error = DatabaseError::read(&attached, &whole);
            assert_eq!(error.code(), code, "{said}");
            let told = error.to_string();
            assert!(
                told.starts_with("connector \"shop\": ") && !told.contains("pw"),
                "{told}"
            );
            assert!(!told.contains('\n') && !told.contains("Unable"), "{told}");
        }
        let mysql = "Failed to connect to MySQL database with parameters \"\": Unknown database 'd'";
        assert_eq!(
            DatabaseError::read(&attached, mysql).cause,
            DatabaseCause::NoDatabase
        );
    }
}
