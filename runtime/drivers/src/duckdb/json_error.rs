//! Errors of the engine's JSON reader: the file and the line are taken out.

use crate::olap::DataPlace;

/// Returns the place in a file of JSON that a message of the engine is about: the line, or the first one where the engine counts
/// values; none if it names no file.
pub(super) fn place(message: &str) -> Option<DataPlace> {
    let (what, rest) = message.lines().next()?.split_once(" in file \"")?;
    if !what.contains("JSON") {
        return None;
    }
    let (file, rest) = rest.split_once("\", ")?;
    let number = rest.split_once("in line ").map(|(_, number)| number);
    let line = number.and_then(|number| number.split_once([':', '.'])?.0.parse().ok());
    Some(DataPlace {
        file: file.to_owned(),
        line: line.unwrap_or(1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_and_the_line_are_told_where_the_engine_knows_them() {
        let at = |message: &str| place(message).map(|place| (place.file, place.line));
        for (message, line) in [
            (
                "Malformed JSON in file \"data/a.json\", at byte 7 in line 3: unexpected end of data. Try 'auto'",
                3,
            ),
            (
                "Malformed JSON in file \"data/a.json\", at byte 7 in record/value 3: unexpected character.",
                1,
            ),
            (
                "JSON transform error in file \"data/a.json\", in line 12: Object has unknown key \"b\"",
                12,
            ),
        ] {
            assert_eq!(at(message), Some(("data/a.json".to_owned(), line)), "{message}");
        }
        for other in [
            "Malformed JSON: at byte 1",
            "cannot open file \"a.json\", it is away",
            "",
        ] {
            assert_eq!(at(other), None, "{other}");
        }
    }
}
