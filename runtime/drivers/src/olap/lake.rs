//! DuckLakes: a catalog in a database, and rows in Parquet files.

use super::system::System;

/// The settings of a lake beside its catalog's database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lake {
    /// Type of the database with the catalog.
    pub catalog: System,
    /// Folder or address of the data files; none for the path in the catalog.
    pub data_path: Option<String>,
    /// Schema of the catalog's database that holds the lake; none for the database's usual schema.
    pub schema: Option<String>,
    /// Snapshot to read; none for the newest.
    pub snapshot: Option<Snapshot>,
}

/// A snapshot of a lake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Snapshot {
    /// The snapshot with this number.
    Version(i64),
    /// The newest snapshot at this time.
    Time(String),
}

impl Snapshot {
    /// Parses a number as a version, and any other text as a time.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let text = text.trim();
        text.parse()
            .map_or_else(|_| Self::Time(text.to_owned()), Self::Version)
    }
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
}
