//! Systems whose databases can be attached.

/// The type of an attached database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// A Postgres server.
    Postgres,
    /// A MySQL or MariaDB server.
    Mysql,
    /// A SQLite file.
    Sqlite,
    /// Another DuckDB file.
    DuckDb,
    /// A DuckLake, whose catalog is in a database of another of these systems.
    DuckLake,
}

impl System {
    /// Returns the system of a driver's name; none for other drivers.
    #[must_use]
    pub fn from_driver(driver: &str) -> Option<Self> {
        Some(match driver {
            "postgres" => Self::Postgres,
            "mysql" => Self::Mysql,
            "sqlite" => Self::Sqlite,
            "duckdb" => Self::DuckDb,
            "ducklake" => Self::DuckLake,
            _ => return None,
        })
    }

    /// Returns true if the system executes queries in its own language.
    #[must_use]
    pub fn answers_queries(self) -> bool {
        matches!(self, Self::Postgres | Self::Mysql | Self::Sqlite)
    }

    /// Returns true if a database of the system is a file.
    #[must_use]
    pub fn is_file(self) -> bool {
        matches!(self, Self::Sqlite | Self::DuckDb)
    }
}
