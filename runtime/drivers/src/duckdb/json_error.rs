//! Errors of the engine's JSON reader: extraction of file and line.

use crate::olap::DataPlace;

/// The useful parts of an error about a JSON file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct JsonError {
    /// First line of the message, with a corrected line number.
    pub(super) message: String,
    /// File and line of the error; the first line if the engine counts values instead.
    pub(super) place: DataPlace,
}

/// Part of the message about malformed JSON, whose line number is one too high, unlike in messages about values that do
/// not fit.
const ONE_TOO_MANY: &str = "Malformed JSON";

/// Parses an error message; none if it is not about a JSON file.
pub(super) fn read(message: &str) -> Option<JsonError> {
    let message = message.lines().next()?.trim();
    let (what, rest) = message.split_once(" in file \"")?;
    if !what.contains("JSON") {
        return None;
    }
    let (file, rest) = rest.split_once("\", ")?;
    let line = |(before, rest): (&str, &str)| {
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        let number: u32 = digits.parse().ok()?;
        let line = number.saturating_sub(u32::from(what == ONE_TOO_MANY)).max(1);
        let after = rest.get(digits.len()..)?;
        let message = format!("{what} in file \"{file}\", {before}in line {line}{after}");
        Some((message, line))
    };
    let (message, line) = rest
        .split_once("in line ")
        .and_then(line)
        .unwrap_or_else(|| (message.to_owned(), 1));
    Some(JsonError {
        message,
        place: DataPlace {
            file: file.to_owned(),
            line,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_and_the_line_are_told_where_the_engine_knows_them() {
        for (message, line, told) in [
            (
                "Malformed JSON in file \"data/a.json\", at byte 7 in line 4: unexpected end of data. Try 'auto'",
                3,
                "Malformed JSON in file \"data/a.json\", at byte 7 in line 3: unexpected end of data. Try 'auto'",
            ),
            (
                "Malformed JSON in file \"data/a.json\", at byte 7 in record/value 3: unexpected character.",
                1,
                "Malformed JSON in file \"data/a.json\", at byte 7 in record/value 3: unexpected character.",
            ),
            (
                "JSON transform error in file \"data/a.json\", in line 12: Object has unknown key \"b\"\nmore",
                12,
                "JSON transform error in file \"data/a.json\", in line 12: Object has unknown key \"b\"",
            ),
        ] {
            let error = read(message).unwrap();
            assert_eq!(
                (error.place.file.as_str(), error.place.line),
                ("data/a.json", line)
            );
            assert_eq!(error.message, told);
        }
        for other in [
            "Malformed JSON: at byte 1",
            "cannot open file \"a.json\", it is away",
            "",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
