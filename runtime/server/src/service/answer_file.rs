//! Answers written into files, for a viewer.

use std::path::PathBuf;

use watershed_metrics::Query;

/// The question whose answer is written.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// A query of a metrics view, without totals and pivots.
    Metrics(&'a Query),
    /// A call of an API.
    Call {
        /// The API.
        api: &'a str,
        /// Its arguments.
        args: &'a serde_json::Map<String, serde_json::Value>,
    },
}

/// The file that an answer is written into.
#[derive(Debug, Clone, Default)]
pub struct AnswerFile {
    /// The path. Its ending says the form: `.csv`, `.xlsx` or `.parquet`.
    pub file: PathBuf,
    /// A file that is there is replaced, when the new one is whole.
    pub replace: bool,
    /// Rows at most. Without it the file has all, or is not there: a sheet ends at 1,048,576 lines.
    pub limit: Option<u64>,
    /// In CSV text stays as it is that a spreadsheet would run as a formula; without this it gets an apostrophe.
    pub raw: bool,
}
