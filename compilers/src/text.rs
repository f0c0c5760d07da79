//! The text of a file, and the conversion between offsets, lines and columns.

pub(crate) mod duration;
pub(crate) mod names;
pub(crate) mod size;

use std::ops::Range;

/// A stretch of a file. Lines and columns are 1-based, columns count Unicode scalar values, the end is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The 1-based line of the start.
    pub line: u32,
    /// The 1-based column of the start.
    pub column: u32,
    /// The line of the end, counted from 1.
    pub end_line: u32,
    /// The 1-based column after the end.
    pub end_column: u32,
}

impl Span {
    /// The first column of the first line, used for findings about a whole file.
    pub const START: Span = Span {
        line: 1,
        column: 1,
        end_line: 1,
        end_column: 1,
    };
}

/// Splits a list that is written as one text, with or without brackets: `core, nightly`.
pub(crate) fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let list = text.trim().trim_start_matches('[').trim_end_matches(']');
    let words = list.split(',').map(str::trim);
    words.filter(|word| !word.is_empty()).map(str::to_owned)
}

/// The text of a file without its byte order mark.
#[derive(Debug)]
pub(crate) struct Text<'a> {
    text: &'a str,
    line_starts: Vec<usize>,
}

impl<'a> Text<'a> {
    /// Decodes the bytes of a file.
    ///
    /// # Errors
    /// When they are not UTF-8: the place of the first byte that is none.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, Span> {
        let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Self::new(text)),
            Err(error) => {
                let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
                let text = Self::new(std::str::from_utf8(valid).unwrap_or_default());
                let (line, column) = text.position(valid.len());
                Err(Span {
                    line,
                    column,
                    end_line: line,
                    end_column: column + 1,
                })
            }
        }
    }

    pub(crate) fn new(text: &'a str) -> Self {
        let line_starts = std::iter::once(0)
            .chain(
                text.bytes()
                    .enumerate()
                    .filter(|(_, byte)| *byte == b'\n')
                    .map(|(at, _)| at + 1),
            )
            .collect();
        Self { text, line_starts }
    }

    pub(crate) fn str(&self) -> &'a str {
        self.text
    }

    /// Returns the 1-based line and column of a byte offset.
    pub(crate) fn position(&self, byte: usize) -> (u32, u32) {
        let byte = byte.min(self.text.len());
        let line = self.line_starts.partition_point(|start| *start <= byte);
        let start = self.line_starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        let before = self.text.get(start..byte).unwrap_or_default();
        (narrow(line), narrow(before.chars().count() + 1))
    }

    pub(crate) fn span(&self, range: Range<usize>) -> Span {
        let (line, column) = self.position(range.start);
        let (end_line, end_column) = self.position(range.end);
        Span {
            line,
            column,
            end_line,
            end_column,
        }
    }

    /// Moves a place behind which only blanks follow to the end of the text, so that there is a line to show.
    pub(crate) fn last_if_ended(&self, span: Span) -> Span {
        let line_start = self.line_starts.get((span.line as usize).saturating_sub(1));
        let rest = line_start.and_then(|start| self.text.get(*start..));
        if rest.is_some_and(|rest| !rest.trim().is_empty()) || self.text.trim().is_empty() {
            return span;
        }
        let end = self.text.trim_end().len();
        self.span(end..end)
    }

    /// Returns a line by its 1-based number, without its line break.
    pub(crate) fn line(&self, line: u32) -> &'a str {
        let index = (line as usize).saturating_sub(1);
        let Some(start) = self.line_starts.get(index) else {
            return "";
        };
        let end = self
            .line_starts
            .get(index + 1)
            .copied()
            .unwrap_or(self.text.len());
        self.text
            .get(*start..end)
            .unwrap_or_default()
            .trim_end_matches(['\n', '\r'])
    }
}

/// Converts a line or column to `u32`, which never overflows as files are at most 128 KiB.
pub(crate) fn narrow(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_a_byte_order_mark_is_none() {
        let text = Text::read("\u{feff}é1\r\nab".as_bytes()).expect("UTF-8");
        assert_eq!(text.position(2), (1, 2));
        assert_eq!(text.position(5), (2, 1));
        assert_eq!(text.position(99), (2, 3));
        assert_eq!(text.line(1), "é1");
        assert_eq!(text.line(3), "");
    }

    #[test]
    fn the_end_of_a_text_is_told_behind_its_last_character() {
        let text = Text::new("a: [\n  \n\n");
        let at = |line, column| {
            text.last_if_ended(Span {
                line,
                column,
                end_line: line,
                end_column: column,
            })
        };
        assert_eq!(at(1, 1), at(1, 1));
        assert_eq!((at(4, 1).line, at(4, 1).column), (1, 5));
        assert_eq!((at(2, 3).line, at(9, 1).line), (1, 1));
        let nothing = Text::new("\n");
        assert_eq!(nothing.last_if_ended(Span::START), Span::START);
    }

    #[test]
    fn bytes_that_are_not_text_have_a_place() {
        let place = Text::read(b"ab\nc\xff").expect_err("not UTF-8");
        assert_eq!((place.line, place.column), (2, 2));
    }
}
