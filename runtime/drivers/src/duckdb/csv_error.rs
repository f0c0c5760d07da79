//! Errors of the engine's CSV reader: extraction of reason, file and line from pages of advice.

use crate::olap::DataPlace;

/// The useful parts of an error about a CSV file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CsvError {
    /// Reason in one line.
    pub(super) message: String,
    /// Reader options that may help; none if unknown.
    pub(super) hint: Option<String>,
    /// File and line of the error; none if the engine does not report them.
    pub(super) place: Option<DataPlace>,
}

/// Prefixes of the lines with the reason, which follow a quoted line of the file.
const REASONS: [&str; 6] = [
    "Error when converting column",
    "Expected Number of Columns",
    "Value with unterminated quote",
    "Invalid unicode",
    "Maximum line size",
    UNDETECTED,
];

/// Beginning of the reason for a file whose form can't be guessed.
const UNDETECTED: &str = "It was not possible to automatically detect the CSV parsing dialect";

/// Parses an error message; none if it is not about a CSV file.
pub(super) fn read(message: &str) -> Option<CsvError> {
    let first = message.lines().next()?.trim();
    let line = first
        .strip_prefix("CSV Error on Line: ")
        .and_then(|line| line.trim().parse::<u32>().ok());
    let sniffed = first
        .strip_prefix("Error when sniffing file \"")
        .and_then(|rest| rest.split_once('"'));
    if line.is_none() && sniffed.is_none() {
        return None;
    }
    let lines = || message.lines().skip(1).map(str::trim);
    let reason = lines().find(|line| REASONS.iter().any(|begin| line.starts_with(begin)));
    let other = || lines().find(|line| !line.is_empty() && !line.starts_with("Original Line:"));
    let reason = reason.or_else(other)?;
    let file = match sniffed {
        Some((file, _)) => Some(file.to_owned()),
        None => lines()
            .find_map(|line| line.strip_prefix("file = "))
            .map(str::to_owned),
    };
    Some(CsvError {
        message: told(reason),
        hint: hint(reason),
        place: file.map(|file| DataPlace {
            file,
            line: line.unwrap_or(1),
        }),
    })
}

/// Formats the reason as one sentence.
fn told(reason: &str) -> String {
    if let Some((column, rest)) = converted(reason) {
        return format!("{} in column \"{column}\"", rest.trim().trim_end_matches('.'));
    }
    if let Some((expected, found)) = reason
        .strip_prefix("Expected Number of Columns: ")
        .and_then(|rest| rest.split_once(" Found: "))
    {
        return format!("expected {expected} columns, found {found}");
    }
    if reason.starts_with(UNDETECTED) {
        return "can't tell how the file is written: its delimiter, quotes or encoding".to_owned();
    }
    reason.trim_end_matches('.').to_owned()
}

/// Parses `Error when converting column "n". Could not convert ...` into the column and the rest.
fn converted(reason: &str) -> Option<(&str, &str)> {
    reason
        .strip_prefix("Error when converting column \"")?
        .split_once("\".")
}

/// Returns the reader options that may help; sources and `read_csv` share their names.
fn hint(reason: &str) -> Option<String> {
    const LEAVE_OUT: &str = "`ignore_errors` leaves such rows out";
    let first = match reason {
        reason if converted(reason).is_some() => "`types` sets the column's type, to VARCHAR for example",
        reason if reason.starts_with("Expected Number") => "`null_padding` fills missing values with NULL",
        reason if reason.starts_with("Value with unterminated quote") => {
            "`quote` sets the character that quotes"
        }
        reason if reason.starts_with("Invalid unicode") => "`encoding` sets the encoding of the file",
        reason if reason.starts_with("It was not possible") => {
            return Some("`delim`, `quote` and `header` say how the file is written".to_owned());
        }
        _ => return None,
    };
    Some(format!("{first}; {LEAVE_OUT}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONVERSION: &str = "CSV Error on Line: 30002\nOriginal Line: oops,b\n\
        Error when converting column \"n\". Could not convert string \"oops\" to 'BIGINT'\n\n\
        Column n is being converted as type BIGINT\nPossible solutions:\n* Override the type\n\n\
        \x20 file = data/late.csv\n  delimiter = , (Auto-Detected)\n";

    #[test]
    fn a_value_that_can_not_be_converted_is_told_with_its_column_file_and_line() {
        let error = read(CONVERSION).unwrap();
        assert_eq!(
            error.message,
            "Could not convert string \"oops\" to 'BIGINT' in column \"n\""
        );
        let place = error.place.unwrap();
        assert_eq!((place.file.as_str(), place.line), ("data/late.csv", 30_002));
        assert!(error.hint.unwrap().contains("`types`"));
    }

    #[test]
    fn a_quoted_line_of_several_lines_is_no_reason() {
        let said = "CSV Error on Line: 2\nOriginal Line: 1,\"x\n2,y\nValue with unterminated quote found.\n\n\
            Possible fixes:\n* Disable\n  file = a.csv\n";
        let error = read(said).unwrap();
        assert_eq!(error.message, "Value with unterminated quote found");
        let columns = "CSV Error on Line: 3\nOriginal Line: 1,2,3\nExpected Number of Columns: 2 Found: 3\n  file = b.csv";
        assert_eq!(read(columns).unwrap().message, "expected 2 columns, found 3");
        assert_eq!(read("Table with name x does not exist!"), None);
    }

    #[test]
    fn a_reason_that_is_not_known_is_told_as_it_is() {
        let said = "CSV Error on Line: 7\nOriginal Line: a\nThe moon is full.\n";
        let error = read(said).unwrap();
        assert_eq!(
            (error.message.as_str(), error.hint, error.place),
            ("The moon is full", None, None)
        );
    }
}
