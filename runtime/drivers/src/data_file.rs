//! Checks of data files before the engine reads them, for flaws that the engine would misread silently or not survive.
//!
//! Programs that write in place leave a file empty for a moment, or full of zero bytes. The engine takes that for an answer
//! without rows, with a column of its own making. It takes what it can read of a file that is cut off for the whole. It guesses how
//! a CSV file is written from its first rows, and takes that there are no quotes where those have none. And it follows the nesting
//! of JSON by calling itself, until its stack is full.

mod bytes;
mod levels;
mod quotes;
mod rows;
mod zstd;

use std::{io, path::Path};

pub use levels::{MOST_COLUMN_LEVELS, MOST_LEVELS};
pub use quotes::{Beginning, SAMPLE_ROWS};
pub use rows::Uneven;

use crate::regular::ReadError;
use bytes::{Bytes, Mark};

/// The format of a data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Lines of delimited values.
    Csv,
    /// JSON documents.
    Json,
    /// A binary format, which never begins with whitespace.
    Binary,
}

impl Form {
    /// Returns the format for a path's extension, as the engine detects it; none for an unknown extension.
    #[must_use]
    pub fn from_path(path: &str) -> Option<Self> {
        let lower = path.to_ascii_lowercase();
        let plain = lower.trim_end_matches(".gz").trim_end_matches(".zst");
        match plain.rsplit_once('.')?.1 {
            "csv" | "tsv" | "txt" => Some(Self::Csv),
            "json" | "ndjson" | "jsonl" => Some(Self::Json),
            "parquet" | "xlsx" => Some(Self::Binary),
            _ => None,
        }
    }

    /// Returns true if a byte alone can be neither a value nor the name of a column.
    fn is_blank(self, byte: u8) -> bool {
        match (self, byte) {
            (_, 0 | b' ' | b'\t'..=b'\r') => true,
            (Self::Csv, b',' | b';' | b'|' | b'"' | b'\'') => true,
            // Without texts there is no name, without numbers and truth values nothing but `null`.
            (Self::Json, b'[' | b']' | b'{' | b'}' | b':' | b',' | b'n' | b'u' | b'l') => true,
            _ => false,
        }
    }
}

/// Returns true if a file contains neither a value nor the name of a column. Files compressed otherwise than by gzip
/// are not checked.
///
/// # Errors
/// When it can't be read, or is no regular file.
pub fn is_blank(path: &Path, form: Form) -> Result<bool, ReadError> {
    let mut bytes = Bytes::open(path)?;
    bytes.skip_byte_order_mark()?;
    while let Some(piece) = bytes.next_piece()? {
        if !piece.iter().all(|byte| form.is_blank(*byte)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A flaw of a data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// JSON values are nested too deeply.
    TooDeep,
    /// The end of the file is missing; the last line that exists, in formats with lines.
    CutOff(Option<u32>),
    /// The file's byte order mark says UTF-16, big-endian.
    Utf16BigEndian,
}

/// Searches a file for flaws that the engine does not report, with a limit on nesting levels.
///
/// # Errors
/// As [`is_blank`].
pub fn flaw(path: &Path, form: Form, most_levels: usize) -> Result<Option<Flaw>, ReadError> {
    match found(path, form, most_levels) {
        Err(ReadError::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Ok(Some(Flaw::CutOff(None)))
        }
        found => found,
    }
}

fn found(path: &Path, form: Form, most_levels: usize) -> Result<Option<Flaw>, ReadError> {
    let mut bytes = Bytes::open(path)?;
    if bytes.is_opaque() {
        return Ok(zstd::is_cut_off(path)?.then_some(Flaw::CutOff(None)));
    }
    let mark = bytes.skip_byte_order_mark()?;
    match form {
        Form::Csv if mark == Some(Mark::Utf16BigEndian) => return Ok(Some(Flaw::Utf16BigEndian)),
        // The end of what gzip wrote says whether it is whole.
        Form::Csv if bytes.is_gzip() => while bytes.next_piece()?.is_some() {},
        Form::Json => return in_json(bytes, most_levels),
        Form::Csv | Form::Binary => {}
    }
    Ok(None)
}

fn in_json(mut bytes: Bytes, most_levels: usize) -> Result<Option<Flaw>, ReadError> {
    let mut levels = levels::Levels::default();
    while let Some(piece) = bytes.next_piece()? {
        if levels.exceed(piece, most_levels) {
            return Ok(Some(Flaw::TooDeep));
        }
    }
    Ok(levels.cut_off_at().map(|line| Flaw::CutOff(Some(line))))
}

/// Examines the first rows of a CSV file, from which the engine would detect the quotes. Values are separated by one of
/// these delimiters.
///
/// # Errors
/// As [`is_blank`].
pub fn beginning(path: &Path, rows: u64, delimiters: &[u8]) -> Result<Beginning, ReadError> {
    let mut bytes = Bytes::open(path)?;
    if bytes.is_opaque() {
        return Ok(Beginning::Unknown);
    }
    if bytes.skip_byte_order_mark()?.is_some_and(Mark::is_utf16) {
        return Ok(Beginning::Utf16);
    }
    let mut quotes = quotes::Quotes::new(rows, delimiters);
    while let Some(piece) = bytes.next_piece()? {
        if quotes.end_with(piece) {
            break;
        }
    }
    Ok(quotes.found())
}

/// Searches the first rows of a CSV file for one with another number of values than the first row and most others have.
/// Returns none where another delimiter explains all of them, and for files that are written in a way that only the engine
/// reads.
///
/// # Errors
/// As [`is_blank`].
pub fn uneven(path: &Path) -> Result<Option<Uneven>, ReadError> {
    let mut bytes = Bytes::open(path)?;
    if bytes.is_opaque() || bytes.skip_byte_order_mark()?.is_some_and(Mark::is_utf16) {
        return Ok(None);
    }
    let mut rows = rows::Rows::default();
    while let Some(piece) = bytes.next_piece()? {
        if rows.end_with(piece, SAMPLE_ROWS) {
            break;
        }
    }
    Ok(rows.uneven())
}

#[cfg(test)]
mod tests;
