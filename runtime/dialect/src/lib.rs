//! Dialects: how an engine writes names, values and types.
//!
//! Every function is pure. The crate stands on nothing, so that whatever makes a text for an engine can ask it, and it is the
//! only place where a name or a text is put between quotes.
//!
//! | start at | for |
//! |---|---|
//! | [`Quoting`] | names and texts that stay what they are, whatever they hold |
//! | [`Dialect`] | all else that engines write differently: types, constants, folding, readers of files, settings |
//! | [`Checks`] | questions of tests, about rows that must not be there |
//! | [`Words`] | words by which statements are read: functions over files, types of texts |
//! | [`ENGINE`] | the dialect of the engine that projects have |
//! | [`doubled`], [`backslashed`] | pieces within quotes that somebody else wrote |
//!
//! ```
//! use watershed_dialect::{ClickHouse, DuckDb, Quoting as _};
//!
//! assert_eq!(DuckDb.text(r"it's \ here"), r"'it''s \ here'");
//! assert_eq!(ClickHouse.text(r"it's \ here"), r"'it\'s \\ here'");
//! ```

#[cfg(feature = "attacks")]
pub mod attacks;
mod checks;
mod click_house;
mod data_type;
mod duck_db;
mod literal;
mod my_sql;
mod quoting;
mod words;

pub use checks::Checks;
pub use click_house::ClickHouse;
pub use data_type::{Integer, SqlType};
pub use duck_db::DuckDb;
pub use literal::Literal;
pub use my_sql::MySql;
pub use quoting::{Quoting, backslashed, doubled};
pub use words::{FileFunction, TableFunction, Words};

/// The dialect of the engine that projects have. Whoever adds another engine finds here who has to ask for a dialect.
pub const ENGINE: DuckDb = DuckDb;

/// The way in which an engine writes what differs between engines.
pub trait Dialect: Quoting {
    /// Returns a name as the engine compares it with others.
    fn fold(&self, name: &str) -> String;

    /// Appends the name of a type.
    fn put_type(&self, data_type: SqlType, out: &mut String);

    /// Reads the engine's name of a type; none for those that no constant is written in.
    fn read_type(&self, name: &str) -> Option<SqlType>;

    /// Appends a constant of a type by its text. The text of a time is universal time without a zone.
    fn put_constant(&self, text: &str, data_type: SqlType, out: &mut String);

    /// Returns a number of 64 bits as the engine writes it, also one that is not finite.
    fn double(&self, value: f64) -> String;

    /// Returns a time without a zone, in microseconds since 1970, as the engine writes it.
    fn timestamp(&self, micros: i64) -> String;

    /// Returns values with names as the engine writes them.
    fn map(&self, values: &[(String, Literal)]) -> String;

    /// Returns a value as the engine writes it.
    fn literal(&self, value: &Literal) -> String {
        match value {
            Literal::Null => "NULL".to_owned(),
            Literal::Boolean(value) => value.to_string(),
            Literal::Integer(value) => value.to_string(),
            Literal::Float(value) => self.double(*value),
            Literal::Text(text) => self.text(text),
            Literal::Timestamp(micros) => self.timestamp(*micros),
            Literal::List(values) => format!("[{}]", Literal::joined(values, |value| self.literal(value))),
            Literal::Map(values) => self.map(values),
        }
    }

    /// Returns rows of expressions as a table of a name, which is a plain word.
    fn rows(&self, rows: &[Vec<String>], name: &str, columns: &[&str]) -> String;

    /// Returns the function that reads files of a format; none if the engine reads no such files by itself.
    fn reader(&self, format: DataFormat) -> Option<&'static str>;

    /// Returns the statement that gives a setting of the session a value, or its own one again.
    fn set(&self, name: &str, value: Option<&str>) -> String;

    /// Returns the statement that has sessions tell times by the clock of a zone.
    fn in_zone(&self, zone: &str) -> String;

    /// Returns the views that the engine has by itself beside the outputs, hidden by an output of the same name.
    fn own_views(&self) -> &'static [&'static str] {
        &[]
    }
}

/// The formats of files, and of tables made of files, that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataFormat {
    /// Lines of values with a sign between them.
    Csv,
    /// Documents of JSON.
    Json,
    /// Columns in files of Parquet.
    Parquet,
    /// Workbooks.
    Xlsx,
    /// A table of Delta Lake.
    Delta,
    /// A table of Iceberg.
    Iceberg,
}
