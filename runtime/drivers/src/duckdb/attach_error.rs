//! Classification of the engine's messages about databases that can't be attached.

use crate::olap::{Attached, DatabaseCause, DatabaseError, System};

/// Phrases in the engine's messages that precede the words of a database's client.
const BEFORE_CLIENT: [&str; 3] = ["nable to connect", "ailed to connect", "ailed to probe"];

/// Converts the engine's message about a failed attachment to an error.
pub(super) fn read(attached: &Attached, message: &str) -> DatabaseError {
    let said = attached.hide(message);
    // Behind the connection's settings stands what its client said.
    let said = said
        .split_once("\": ")
        .filter(|(before, _)| BEFORE_CLIENT.iter().any(|words| before.contains(words)))
        .map_or(said.as_str(), |(_, client)| client);
    let line = said.lines().next().unwrap_or_default().trim();
    let cause = cause_of(said);
    let message = match cause {
        DatabaseCause::NoLake => no_lake(attached),
        // Behind it stands advice to whoever writes the statement.
        DatabaseCause::LakeVersion => line.split_once(". ").map_or(line, |(what, _)| what).to_owned(),
        _ => line.to_owned(),
    };
    DatabaseError {
        connector: attached.connector.clone(),
        cause,
        message,
    }
}

/// Returns the message about a database without a lake, with the schema that was looked at: a server's has several.
fn no_lake(attached: &Attached) -> String {
    let schema = attached.lake.as_ref().and_then(|lake| lake.schema.as_deref());
    match attached.keeper() {
        System::Postgres => format!(
            "there is no DuckLake in the schema \"{}\" of its database",
            schema.unwrap_or("public")
        ),
        _ => "there is no DuckLake in its database".to_owned(),
    }
}

/// Determines the cause from the messages of lakes, and of the clients of Postgres and MariaDB.
fn cause_of(said: &str) -> DatabaseCause {
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    if has(&["creating a new DuckLake is explicitly disabled"]) {
        DatabaseCause::NoLake
    } else if has(&["DuckLake catalog version mismatch"]) {
        DatabaseCause::LakeVersion
    } else if has(&["No snapshot found"]) {
        DatabaseCause::NoSnapshot
    } else if has(&["does not match existing data path"]) {
        DatabaseCause::DataPath
    } else if has(&[
        "translate host name",
        "Unknown server host",
        "Unknown MySQL server host",
    ]) {
        DatabaseCause::UnknownHost
    } else if has(&["imeout", "timed out"]) {
        DatabaseCause::Timeout
    } else if has(&[
        "authentication failed",
        "Access denied",
        "no password supplied",
        "role \"",
    ]) {
        DatabaseCause::Login
    } else if has(&["Unknown database"]) || (has(&["database \""]) && has(&["does not exist"])) {
        DatabaseCause::NoDatabase
    } else if has(&["certificate", "SSL", "TLS"]) {
        DatabaseCause::Certificate
    } else if has(&["refused", "No such file or directory", "Can't connect"]) {
        DatabaseCause::Refused
    } else {
        DatabaseCause::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::olap::{Lake, Rights};

    fn shop(target: &str) -> Attached {
        Attached {
            name: "_watershed_orders".into(),
            system: System::Postgres,
            connector: "shop".into(),
            target: target.into(),
            login: Vec::new(),
            rights: Rights::Read,
            lake: None,
        }
    }

    #[test]
    fn what_is_wrong_with_a_lake_is_told() {
        let lake = Attached {
            system: System::DuckLake,
            lake: Some(Lake {
                catalog: System::Postgres,
                data_path: None,
                schema: None,
                snapshot: None,
            }),
            ..shop("sslmode=require")
        };
        let mine = "DuckLake catalog version mismatch: catalog version is 0.2, but the extension requires version 1.0. \
                    To automatically migrate, set AUTOMATIC_MIGRATION to TRUE when attaching.";
        let none = "Existing DuckLake at metadata catalog \"postgres:sslmode=require\" does not exist - and creating \
                    a new DuckLake is explicitly disabled";
        for (said, code, told) in [
            (mine, "connection-failed", "requires version 1.0"),
            (
                none,
                "database-missing",
                "there is no DuckLake in the schema \"public\" of its database",
            ),
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
            let error = read(&lake, said);
            assert_eq!(error.code(), code, "{said}");
            assert!(error.to_string().ends_with(told), "{error}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_without_the_settings() {
        let attached = shop("postgres://u:pw@h/d");
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
            let error = read(&attached, &whole);
            assert_eq!(error.code(), code, "{said}");
            let told = error.to_string();
            assert!(
                told.starts_with("connector \"shop\": ") && !told.contains("pw"),
                "{told}"
            );
            assert!(!told.contains('\n') && !told.contains("Unable"), "{told}");
        }
        let mysql = "Failed to connect to MySQL database with parameters \"\": Unknown database 'd'";
        assert_eq!(read(&attached, mysql).cause, DatabaseCause::NoDatabase);
    }
}
