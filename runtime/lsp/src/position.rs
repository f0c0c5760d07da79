//! Positions in the editor's units: lines from 0, columns in UTF-16 code units.
//!
//! The compiler counts lines and columns from 1, columns in Unicode scalar values.

use async_lsp::lsp_types::{Position, Range};
use watershed_compilers::diagnostics::Span;

/// A text, split into lines.
#[derive(Debug)]
pub(crate) struct Lines<'a>(Vec<&'a str>);

impl<'a> Lines<'a> {
    /// Splits a text into lines, without its byte order mark.
    pub(crate) fn new(text: &'a str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Self(text.split('\n').collect())
    }

    fn line(&self, row: usize) -> &'a str {
        let line = self.0.get(row).copied().unwrap_or_default();
        line.strip_suffix('\r').unwrap_or(line)
    }

    /// Returns the editor's range for a span. Positions outside the text are moved to the nearest one inside.
    pub(crate) fn range(&self, span: Span) -> Range {
        let start = self.position(span.line, span.column);
        let end = self.position(span.end_line, span.end_column);
        Range::new(start, end.max(start))
    }

    /// Returns the editor's position for a line and column that count from 1.
    fn position(&self, line: u32, column: u32) -> Position {
        let row = (line.max(1) as usize - 1).min(self.0.len().saturating_sub(1));
        let before = self.line(row).chars().take(column.max(1) as usize - 1);
        let units: usize = before.map(char::len_utf16).sum();
        Position::new(narrow(row), narrow(units))
    }

    /// Returns the line and column, counted from 1, of an editor's position.
    pub(crate) fn place(&self, position: Position) -> (u32, u32) {
        let row = (position.line as usize).min(self.0.len().saturating_sub(1));
        let mut units = position.character as usize;
        let mut column = 1;
        for c in self.line(row).chars() {
            if units < c.len_utf16() {
                break;
            }
            units -= c.len_utf16();
            column += 1;
        }
        (narrow(row + 1), column)
    }
}

/// Returns the index of the byte at an editor's position, moved to the start of a character.
pub(crate) fn byte_at(text: &str, position: Position) -> usize {
    let mut start = 0;
    for _ in 0..position.line {
        match text.get(start..).and_then(|rest| rest.find('\n')) {
            Some(end) => start += end + 1,
            None => return text.len(),
        }
    }
    let line = text.get(start..).unwrap_or_default();
    let line = line.split('\n').next().unwrap_or_default();
    let line = line.strip_suffix('\r').unwrap_or(line);
    let mut units = position.character as usize;
    for (at, c) in line.char_indices() {
        if units < c.len_utf16() {
            return start + at;
        }
        units -= c.len_utf16();
    }
    start + line.len()
}

/// Returns the number in 32 bits, or the largest such number. Documents are far smaller than 4 GB.
pub(crate) fn narrow(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_editors_count_surrogates_and_those_of_the_compiler_characters() {
        let lines = Lines::new("a\n\u{1F600}é: x\r\n");
        let span = Span {
            line: 2,
            column: 5,
            end_line: 2,
            end_column: 6,
        };
        let range = lines.range(span);
        assert_eq!(
            (range.start, range.end),
            (Position::new(1, 5), Position::new(1, 6))
        );
        assert_eq!(lines.place(range.start), (2, 5));
        // In the middle of a pair: the character that it belongs to.
        assert_eq!(lines.place(Position::new(1, 1)), (2, 1));
    }

    #[test]
    fn places_outside_of_a_text_are_moved_into_it() {
        let lines = Lines::new("ab");
        let far = Span {
            line: 9,
            column: 9,
            end_line: 0,
            end_column: 0,
        };
        assert_eq!(
            lines.range(far),
            Range::new(Position::new(0, 2), Position::new(0, 2))
        );
        assert_eq!(lines.place(Position::new(u32::MAX, u32::MAX)), (1, 3));
        assert_eq!(byte_at("ab\ncd", Position::new(1, 9)), 5);
        assert_eq!(byte_at("ab\ncd", Position::new(9, 0)), 5);
        assert_eq!(byte_at("\u{1F600}b", Position::new(0, 1)), 0);
        assert_eq!(byte_at("", Position::new(0, 0)), 0);
    }
}
