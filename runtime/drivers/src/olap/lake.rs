//! DuckLakes: a catalog in a database, and rows in files of Parquet beside it.

use super::system::System;

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

impl Snapshot {
    /// Reads a number, or else a time.
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
