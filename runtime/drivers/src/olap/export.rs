//! Writing an answer into a file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::tz::TimeZone;
use thiserror::Error;

use super::{Failure, QueryError, SoleError};

/// One answer to be written into a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// Exactly one statement that changes nothing.
    pub sql: String,
    /// Rows to write at most.
    pub limit: Option<u64>,
    /// The longest that it may take.
    pub timeout: Option<Duration>,
    /// Texts that travel beside it, as those of a query do.
    pub attributes: BTreeMap<String, String>,
    /// The file, with its whole path. Its folder is there.
    pub file: PathBuf,
    /// The form of the file.
    pub format: FileFormat,
    /// The fate of a file that is there already.
    pub existing: Existing,
    /// The look of it for people, where the form has a place for that.
    pub layout: Layout,
}

/// The look of a file for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layout {
    /// Lines above the names of columns, in sheets and CSV.
    pub above: Vec<String>,
    /// The columns in sheets, in order; what is missing has no look of its own.
    pub columns: Vec<Look>,
    /// Texts that a spreadsheet would run as a formula begin with an apostrophe, in CSV. In sheets texts are texts.
    pub guards_formulas: bool,
}

/// The look of a column in sheets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Look {
    /// The format of its numbers or times, as sheets write one.
    pub format: Option<String>,
    /// The zone by whose clock its times are shown; sheets know none. Without it they are of universal time.
    pub zone: Option<TimeZone>,
}

/// A form of files that answers are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// Comma-separated values in UTF-8, names of columns first.
    Csv,
    /// Apache Parquet.
    Parquet,
    /// A workbook of one sheet (Office Open XML), names of columns first, with typed cells.
    Xlsx,
    /// An object of JSON a line. Answers are not written in it.
    Json,
}

impl FileFormat {
    /// Returns the form that a file's name asks for; none if it asks for another.
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

/// The fate of a file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and nothing is written.
    Keep,
    /// It is replaced when the new one is whole.
    Replace,
}

/// The rows of an output to be written into files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteRows {
    /// The output.
    pub table: String,
    /// The file or, with `partition_by`, the folder, with its whole path. Nothing stands there; its folder is there.
    pub place: PathBuf,
    /// The form of the files.
    pub format: FileFormat,
    /// Columns whose values name folders, each of which holds the rows that have them.
    pub partition_by: Vec<String>,
    /// Names of columns stand first, in CSV.
    pub header: bool,
    /// The text between values, in CSV.
    pub delimiter: Option<String>,
    /// A compression that the engine knows for the form.
    pub compression: Option<String>,
    /// The longest that it may take.
    pub timeout: Option<Duration>,
}

/// A file that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exported {
    /// The rows in it, if the engine says.
    pub rows: Option<u64>,
    /// Its size.
    pub bytes: u64,
}

/// The errors of writing an answer into a file. Nothing is left of it then, and a file that was there is as it was.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ExportError {
    /// A file is there already, which is to stay.
    #[error("`{}` is there already", .0.display())]
    Exists(PathBuf),
    /// A folder, a pipe or a device stands there.
    #[error("`{}` is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// The file can't be written.
    #[error("can't write `{}`: {message}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The message of the system.
        message: String,
    },
    /// The answer does not fit on a sheet.
    #[error("{0}")]
    Sheet(String),
    /// The statement can't be run.
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

/// The beginning of what the library of sheets panics with when it can't write the file in which rows wait.
const PANICS: &str = "Couldn't write to xml file";

/// Returns true if a panic's message says that a sheet could not be written: it is caught and becomes an error.
#[must_use]
pub fn is_unwritten_sheet(message: &str) -> bool {
    message.starts_with(PANICS)
}
