//! DuckLakes: a catalog in a database, and rows in files of Parquet beside it.

use watershed_dialect::{DuckDb, Quoting as _};

use super::system::System;

/// The beginning of the names under which the engine has the catalogs of attached lakes.
const CATALOG_PREFIX: &str = "__ducklake_metadata_";

/// The parts of a lake beside the database of its catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lake {
    /// The system that keeps its catalog.
    pub catalog: System,
    /// The folder or address of its files, if it is said beside the catalog.
    pub data_path: Option<String>,
    /// The state that is read, if it is not the newest.
    pub snapshot: Option<Snapshot>,
}

/// A state of a lake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Snapshot {
    /// By its number.
    Version(i64),
    /// The newest at a time.
    Time(String),
}

impl Lake {
    /// Returns the address of the catalog as the engine takes it, given that of its database.
    pub(super) fn address(&self, target: &str) -> String {
        format!("{}:{target}", self.catalog.word())
    }

    /// Returns the options that tell where its files are and which state is read, as an ATTACH has them.
    pub(super) fn options(&self, is_read: bool) -> Vec<String> {
        let mut options = Vec::new();
        if let Some(data_path) = &self.data_path {
            options.push(format!("DATA_PATH {}", DuckDb.text(data_path)));
            // Whoever reads may know the files elsewhere. Whoever writes would hide new files from all others.
            if is_read {
                options.push("OVERRIDE_DATA_PATH true".to_owned());
            }
        }
        match &self.snapshot {
            None => {}
            Some(Snapshot::Version(version)) => options.push(format!("SNAPSHOT_VERSION {version}")),
            Some(Snapshot::Time(time)) => options.push(format!("SNAPSHOT_TIME {}", DuckDb.text(time))),
        }
        options
    }
}

impl Snapshot {
    /// Reads a number, or else a time.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let text = text.trim();
        text.parse()
            .map_or_else(|_| Self::Time(text.to_owned()), Self::Version)
    }
}

/// Returns the name under which the engine has the catalog of a lake that is attached by a name.
#[must_use]
pub fn lake_catalog(attached: &str) -> String {
    format!("{CATALOG_PREFIX}{attached}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_a_number_or_a_time() {
        assert_eq!(Snapshot::read(" 12 "), Snapshot::Version(12));
        let time = Snapshot::Time("2026-01-01 00:00:00".into());
        assert_eq!(Snapshot::read("2026-01-01 00:00:00"), time);
    }

    #[test]
    fn files_are_known_elsewhere_by_readers_alone() {
        let lake = Lake {
            catalog: System::Sqlite,
            data_path: Some("s3://lake/".into()),
            snapshot: Some(Snapshot::Version(3)),
        };
        let elsewhere = "OVERRIDE_DATA_PATH true";
        assert_eq!(
            lake.options(true),
            ["DATA_PATH 's3://lake/'", elsewhere, "SNAPSHOT_VERSION 3"]
        );
        assert_eq!(
            lake.options(false),
            ["DATA_PATH 's3://lake/'", "SNAPSHOT_VERSION 3"]
        );
        assert_eq!(lake.address("/data/lake.sqlite"), "sqlite:/data/lake.sqlite");
    }
}
