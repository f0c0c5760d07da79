//! Keys of an input that its connector ignores.
//!
//! A model takes the keys of all connectors. Which of them act is up to the connector and to whether there is SQL: one table
//! says so for all, and whatever else is written is told where it stands.

use watershed_proto::ModelSpec;

use super::inputs::{READER_OPTIONS, is_known};
use super::unknown::COLUMNS;
use crate::{
    diagnostics::{At, Code, Role},
    kinds::{model::keys::HOOKS, reader::Reader},
    yaml::Map,
};

/// The way in which the rows of an input are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// SQL that the project's engine runs.
    Sql,
    /// Local files that the engine reads.
    Files,
    /// Objects of a store or a web server that the engine reads.
    Objects,
    /// A table in another database file of the engine.
    OtherFile,
    /// Another database or a lake, read by SQL or by table.
    Database,
}

/// Keys that any input may have, and one that is reported elsewhere.
const ALWAYS: [&str; 3] = [
    "description",
    "invalidate_on_change",
    "create_secrets_from_connectors",
];

/// Keys that hold the path of another database file of the engine.
pub(super) const FILE_OF_ENGINE: [&str; 4] = ["db", "dsn", "database_url", "path"];

/// Extensions of the engine's database files.
const ENDINGS: [&str; 3] = [".db", ".duckdb", ".ddb"];

impl Way {
    /// Returns how a driver reads rows; none for drivers that can't be read from, which is reported elsewhere.
    fn from_driver(driver: &str, has_sql: bool, has_table: bool) -> Option<Self> {
        match driver {
            "duckdb" if !has_sql && has_table => Some(Self::OtherFile),
            "duckdb" | "local_file" | "file" if has_sql => Some(Self::Sql),
            "local_file" | "file" => Some(Self::Files),
            "s3" | "gcs" | "azure" | "https" => Some(Self::Objects),
            "postgres" | "mysql" | "sqlite" | "ducklake" => Some(Self::Database),
            _ => None,
        }
    }

    /// Returns the keys used in this way, besides those that any input may have. A database also uses the settings of
    /// its connector.
    fn used(self) -> &'static [&'static str] {
        match self {
            Self::Sql => &["sql"],
            Self::Files | Self::Objects => &["path", "uri", "format", "duckdb"],
            Self::OtherFile => &["table", "db", "dsn", "database_url", "path"],
            Self::Database => &["sql", "table", "db", "dsn", "database_url", "path"],
        }
    }

    fn uses(self, key: &str) -> bool {
        let reads_files = matches!(self, Self::Files | Self::Objects);
        ALWAYS.contains(&key)
            || HOOKS.contains(&key)
            || self.used().contains(&key)
            || (reads_files && READER_OPTIONS.contains(&key))
    }

    /// Returns what decides instead of an ignored key, for the hint.
    fn instead(self, driver: &str, key: &str) -> &'static str {
        match self {
            Self::Sql if driver != "duckdb" && ["path", "uri"].contains(&key) => {
                "the query says what is read; a change of the file builds it again"
            }
            Self::Sql => "the query says what is read, and how",
            Self::Files => "`path` and options of readers say what is read",
            Self::Objects => "`path` and options of readers say what is read, and the connector from where",
            Self::OtherFile => "a table is read whole",
            Self::Database => "`sql` or `table` says what is read, and the connector from where",
        }
    }
}

impl Reader<'_, '_> {
    /// Reports keys of an input that are ignored; as errors if they name other rows than are read.
    pub(super) fn unused_keys(&mut self, spec: &ModelSpec, rest: &Map) {
        let is_said = |key: &str| rest.get(key).is_some_and(|entry| !entry.value.is_null());
        let driver = self.context.driver(&spec.input_connector).unwrap_or_default();
        let Some(way) = Way::from_driver(driver, spec.sql.is_some(), is_said("table")) else {
            return;
        };
        let unused = rest.iter().filter(|(key, entry)| {
            let is_key = is_known(key) || READER_OPTIONS.contains(&key.as_str());
            let is_of_columns = key.as_str() == COLUMNS && way == Way::Sql && driver == "duckdb";
            is_key && !is_of_columns && !entry.value.is_null() && !way.uses(key)
        });
        for (key, entry) in unused {
            let text = entry.value.scalar_text().unwrap_or_default();
            let names_file = key != "path" || ENDINGS.iter().any(|end| text.ends_with(end));
            match way == Way::Sql
                && driver == "duckdb"
                && FILE_OF_ENGINE.contains(&key.as_str())
                && names_file
            {
                true => self.other_rows(key, entry.key_at),
                false => self.no_effect(key, entry.key_at, way.instead(driver, key)),
            }
        }
    }

    fn other_rows(&mut self, key: &str, at: At) {
        let message = format!("`{key}` names another database, and SQL is run in the project's own");
        let hint = format!(
            "`table: NAME` instead of `sql` reads a table through `{key}`; query that in another model"
        );
        self.fields
            .findings()
            .add_with_hint(at, Code::ConflictingKeys, message, hint);
    }

    fn no_effect(&mut self, key: &str, at: At, instead: &str) {
        // Those of the manifest are for many models, of any connector.
        if at.role != Role::Manifest {
            let message = format!("`{key}` has no effect yet: {instead}");
            self.fields.findings().add(at, Code::NoEffectYet, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAYS: [Way; 5] = [Way::Sql, Way::Files, Way::Objects, Way::OtherFile, Way::Database];

    #[test]
    fn every_key_that_a_way_uses_is_one_that_models_know() {
        for way in WAYS {
            for key in way.used().iter().chain(&ALWAYS) {
                assert!(is_known(key), "{way:?} {key}");
            }
        }
    }

    #[test]
    fn every_driver_that_is_read_from_has_a_way() {
        for driver in [
            "local_file",
            "file",
            "duckdb",
            "https",
            "s3",
            "gcs",
            "azure",
            "postgres",
            "mysql",
            "sqlite",
            "ducklake",
        ] {
            assert!(Way::from_driver(driver, true, false).is_some(), "{driver}");
        }
        assert_eq!(Way::from_driver("duckdb", false, true), Some(Way::OtherFile));
        assert_eq!(Way::from_driver("snowflake", true, false), None);
    }
}
