//! The systems whose databases are attached.

/// The system that keeps a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// A Postgres server.
    Postgres,
    /// A MySQL or MariaDB server.
    Mysql,
    /// A file of SQLite.
    Sqlite,
    /// Another file of DuckDB.
    DuckDb,
    /// A DuckLake, whose catalog is kept by one of the others.
    DuckLake,
}

impl System {
    /// Returns the system of a driver by its name.
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

    /// Returns true if it answers queries in a language of its own.
    #[must_use]
    pub fn answers_queries(self) -> bool {
        matches!(self, Self::Postgres | Self::Mysql | Self::Sqlite)
    }

    /// Returns true if it is a file, and no server.
    #[must_use]
    pub fn is_file(self) -> bool {
        matches!(self, Self::Sqlite | Self::DuckDb)
    }
}
