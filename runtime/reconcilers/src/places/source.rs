//! Mapping from a place in sent SQL to the place in its source file.

use watershed_core::SourcePosition;
use watershed_drivers::olap::TextPosition;
use watershed_proto::SqlSource;

/// Returns the position in the file for byte `offset` of `sent`, which was rendered from `source`; without an offset,
/// the position where the SQL begins.
#[must_use]
pub(crate) fn in_file(source: &SqlSource, path: &str, sent: &str, offset: Option<usize>) -> SourcePosition {
    let offset = offset.map_or(0, |offset| in_text(&source.text, sent, offset));
    in_file_at(source, path, TextPosition::at_byte(&source.text, offset))
}

/// Returns the position in the file for a position in the text of `source`.
#[must_use]
pub(crate) fn in_file_at(source: &SqlSource, path: &str, at: TextPosition) -> SourcePosition {
    let before = if at.line == 1 {
        source.column.max(1) - 1
    } else {
        source.indent
    };
    SourcePosition {
        path: path.into(),
        line: source.line.max(1) + number(at.line) - 1,
        column: before + number(at.column),
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX / 2)
}

/// Maps a byte offset in the rendered text `sent` back to its template `text`. An offset inside rendered output maps to
/// the start of its expression.
fn in_text(text: &str, sent: &str, offset: usize) -> usize {
    let lines = |text: &str| text.split('\n').count();
    if lines(text) != lines(sent) {
        return aligned(text, sent, offset);
    }
    let mut start = 0;
    let mut sent_start = 0;
    for (line, sent_line) in text.split('\n').zip(sent.split('\n')) {
        if offset <= sent_start + sent_line.len() {
            return start + aligned(line, sent_line, offset.saturating_sub(sent_start));
        }
        start += line.len() + 1;
        sent_start += sent_line.len() + 1;
    }
    text.len()
}

/// Maps an offset from `sent` to `text` by aligning their common start and common end.
fn aligned(text: &str, sent: &str, offset: usize) -> usize {
    let beginning = text.bytes().zip(sent.bytes()).take_while(|(a, b)| a == b).count();
    if offset < beginning || text == sent {
        return offset.min(text.len());
    }
    let rest = text.len().min(sent.len()) - beginning;
    let pairs = text.bytes().rev().zip(sent.bytes().rev()).take(rest);
    let end = pairs.take_while(|(a, b)| a == b).count();
    let from_end = sent.len().saturating_sub(offset);
    if from_end <= end {
        text.len() - from_end
    } else {
        beginning
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> SqlSource {
        SqlSource {
            path: "models/a.sql".into(),
            text: text.into(),
            line: 3,
            column: 5,
            ..SqlSource::default()
        }
    }

    /// Returns the (line, column) of the first `wanted` in `sent`.
    fn place(source: &SqlSource, sent: &str, wanted: &str) -> (u32, u32) {
        let place = in_file(source, &source.path, sent, Some(sent.find(wanted).unwrap()));
        (place.line, place.column)
    }

    #[test]
    fn without_templates_the_place_is_exact() {
        let text = "select ü,\n  x\nfrom t";
        assert_eq!(place(&source(text), text, "select"), (3, 5));
        assert_eq!(place(&source(text), text, ","), (3, 13));
        assert_eq!(place(&source(text), text, "x"), (4, 3));
        assert_eq!(place(&source(text), text, "from"), (5, 1));
    }

    #[test]
    fn further_lines_of_sql_in_yaml_are_indented() {
        let source = SqlSource {
            indent: 2,
            ..source("select\nx")
        };
        assert_eq!(place(&source, "select\nx", "x"), (4, 3));
    }

    #[test]
    fn around_templates_the_place_is_exact_and_inside_it_is_where_the_template_begins() {
        let text = "select a\nfrom {{ ref \"orders\" }} where x\nand {{ .vars.y }} = z";
        let sent = "select a\nfrom orders where x\nand 1000 = z";
        assert_eq!(place(&source(text), sent, "orders"), (4, 6));
        assert_eq!(place(&source(text), sent, "x"), (4, 31));
        assert_eq!(place(&source(text), sent, "1000"), (5, 5));
        assert_eq!(place(&source(text), sent, "z"), (5, 21));
    }

    #[test]
    fn templates_that_yield_lines_are_aligned_at_both_ends() {
        let text = "select {{ .cols }}\nfrom t where x";
        let sent = "select a,\nb,\nc\nfrom t where x";
        assert_eq!(place(&source(text), sent, "select"), (3, 5));
        assert_eq!(place(&source(text), sent, "b"), (3, 12));
        assert_eq!(place(&source(text), sent, "x"), (4, 14));
    }

    #[test]
    fn without_an_offset_it_is_where_the_sql_begins() {
        let place = in_file(&source("select 1"), "models/moved.sql", "select 1", None);
        assert_eq!(
            (place.path.as_ref(), place.line, place.column),
            ("models/moved.sql", 3, 5)
        );
    }

    #[test]
    fn an_offset_beyond_the_end_is_the_end() {
        let place = in_file(&source("select 1"), "a", "select 1", Some(99));
        assert_eq!((place.line, place.column), (3, 13));
    }
}
