//! Export of an answer to a file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::tz::TimeZone;
use thiserror::Error;

use super::{Failure, Query, QueryError, SoleError};

/// A request to export a query's answer to a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Export {
    /// The query whose rows are written.
    pub query: Query,
    /// Absolute path of the file, whose folder exists.
    pub file: PathBuf,
    /// Format in which the answer is written.
    pub format: FileFormat,
    /// Treatment of an existing file.
    pub existing: Existing,
    /// Formatting for people, in formats that support it.
    pub layout: Layout,
}

/// The formatting of a file for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layout {
    /// Lines above the column names, in sheets and CSV.
    pub above: Vec<String>,
    /// Styles of the columns in sheets, in order; missing ones are plain.
    pub columns: Vec<Look>,
    /// True to put an apostrophe before texts in CSV that a spreadsheet would execute as a formula. Sheets mark texts
    /// as such.
    pub guards_formulas: bool,
}

/// The style of a column in sheets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Look {
    /// Format of numbers or times, in the syntax of sheets; none for the default.
    pub format: Option<String>,
    /// Time zone in which times are shown, since sheets know none; UTC if none.
    pub zone: Option<TimeZone>,
}

/// The file format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// Comma-separated values in UTF-8, with a header.
    Csv,
    /// Apache Parquet.
    Parquet,
    /// Workbook of one sheet (Office Open XML) with a header and typed cells.
    Xlsx,
    /// One JSON object per line; not available for exports of answers.
    Json,
}

impl FileFormat {
    /// Returns the format for a file's extension; none for any other extension.
    pub fn from_path(file: &Path) -> Option<Self> {
        let extension = file.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "csv" => Some(Self::Csv),
            "parquet" => Some(Self::Parquet),
            "xlsx" => Some(Self::Xlsx),
            _ => None,
        }
    }
}

/// The treatment of an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Keep it and fail.
    Keep,
    /// Replace it once the new one is complete.
    Replace,
}

/// A request to write the rows of an output into files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteRows {
    /// Name of the output whose rows are written.
    pub table: String,
    /// Absolute path of the file, or with `partition_by` of the folder. The path is free, and its parent folder exists.
    pub place: PathBuf,
    /// Format in which the rows are written.
    pub format: FileFormat,
    /// Columns whose values name subfolders with the matching rows.
    pub partition_by: Vec<String>,
    /// True to write column names first, in CSV.
    pub header: bool,
    /// Separator of values in CSV; none for the default.
    pub delimiter: Option<String>,
    /// Name of a compression that the engine supports for the format; none for the default.
    pub compression: Option<String>,
    /// Time limit; none for no limit.
    pub timeout: Option<Duration>,
}

/// The result of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exported {
    /// Number of rows, if the engine reports it.
    pub rows: Option<u64>,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// True if the query has more rows than its limit.
    pub truncated: bool,
}

/// The error of an export. No partial file remains, and an existing file stays as it was.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ExportError {
    /// The file exists and must be kept.
    #[error("`{}` is there already", .0.display())]
    Exists(PathBuf),
    /// The path is a folder, pipe or device.
    #[error("`{}` is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// The file can't be written.
    #[error("can't write `{}`: {message}", file.display())]
    Io {
        /// Path that can't be written.
        file: PathBuf,
        /// The system's error message.
        message: String,
    },
    /// The answer does not fit into a sheet.
    #[error("{0}")]
    Sheet(String),
    /// The statement failed, or is not permitted.
    #[error(transparent)]
    Query(#[from] QueryError),
}

impl From<Failure> for ExportError {
    fn from(failure: Failure) -> Self {
        Self::Query(failure.into())
    }
}

impl From<SoleError> for ExportError {
    fn from(error: SoleError) -> Self {
        Self::Query(error.into())
    }
}

/// Prefix of the panic message by which the sheet library reports that its temporary file can't be written.
const PANICS: &str = "Couldn't write to xml file";

/// Returns true if a panic's message says that a sheet could not be written. Such a panic is caught and becomes an
/// error.
#[must_use]
pub fn is_unwritten_sheet(message: &str) -> bool {
    message.starts_with(PANICS)
}
