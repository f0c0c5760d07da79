//! Files that answers are written to, for a viewer.

use std::path::PathBuf;

use watershed_metrics::Query;

/// The question whose answer is written to a file.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// A query of a metrics view, without totals and pivots.
    Metrics(&'a Query),
    /// A call of an API.
    Call {
        /// Name of the API.
        api: &'a str,
        /// Arguments of the call, by name.
        args: &'a serde_json::Map<String, serde_json::Value>,
    },
}

/// The file that an answer is written to, with its limits.
#[derive(Debug, Clone, Default)]
pub struct AnswerFile {
    /// Path of the file. Its extension determines the format: `.csv`, `.xlsx` or `.parquet`.
    pub file: PathBuf,
    /// True to replace an existing file once the new one is whole.
    pub replace: bool,
    /// Most rows; none for all.
    ///
    /// A file that can't hold all rows is not written: a sheet ends at 1,048,576 lines.
    pub limit: Option<u64>,
    /// True to write CSV text unchanged. Otherwise text that a spreadsheet would run as a formula gets an apostrophe.
    pub raw: bool,
}
