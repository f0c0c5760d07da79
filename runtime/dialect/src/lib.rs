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

/// The dialect of the engine that projects use. Its uses are the places that an additional engine has to change.
pub const ENGINE: DuckDb = DuckDb;

/// SQL syntax that differs between engines: types, constants and names of functions.
pub trait Dialect: Quoting {
    /// Returns the form of a name in which the engine compares names.
    fn fold(&self, name: &str) -> String;

    /// Appends the engine's name of a type.
    fn put_type(&self, data_type: SqlType, out: &mut String);

    /// Reads the engine's name of a type; none for types without constants.
    fn read_type(&self, name: &str) -> Option<SqlType>;

    /// Appends a constant of a type from its text. The text of a time is in UTC, without a zone.
    fn put_constant(&self, text: &str, data_type: SqlType, out: &mut String);

    /// Returns the literal of a 64-bit float, including infinities and NaN.
    fn double(&self, value: f64) -> String;

    /// Returns the literal of a timestamp without a zone, given in microseconds since 1970.
    fn timestamp(&self, micros: i64) -> String;

    /// Returns the literal of a map from names to values.
    fn map(&self, values: &[(String, Literal)]) -> String;

    /// Returns the SQL literal of a value.
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

    /// Returns a table expression with these rows of expressions. `name`, the table's name, is a plain word.
    fn rows(&self, rows: &[Vec<String>], name: &str, columns: &[&str]) -> String;

    /// Returns the function that reads files of a format; none if the engine reads no such files by itself.
    fn reader(&self, format: DataFormat) -> Option<&'static str>;

    /// Returns the statement that sets a setting of the session, or resets it without a value.
    fn set(&self, name: &str, value: Option<&str>) -> String;

    /// Returns the statement that sets the time zone of a session.
    fn in_zone(&self, zone: &str) -> String;

    /// Returns the engine's built-in views that stand beside outputs; an output of the same name hides such a view.
    fn own_views(&self) -> &'static [&'static str] {
        &[]
    }
}

/// Formats of files and of tables made of files that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataFormat {
    /// Lines of values with a separator, such as CSV or TSV.
    Csv,
    /// JSON documents, one or many per file.
    Json,
    /// Columnar files in the format Apache Parquet.
    Parquet,
    /// Excel workbooks.
    Xlsx,
    /// A Delta Lake table.
    Delta,
    /// An Iceberg table.
    Iceberg,
}
