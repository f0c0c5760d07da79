//! Aligned columns of styled text.

use anstyle::Style;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// A piece of text with its style.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    style: Style,
    side: Side,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
    /// Ends the line, whatever its width.
    Rest,
}

impl Cell {
    /// Text that begins at the column's left edge.
    pub(crate) fn left(text: impl Into<String>, style: Style) -> Self {
        Self {
            text: one_line(text.into()),
            style,
            side: Side::Left,
        }
    }

    /// Text that ends at the column's right edge: numbers.
    pub(crate) fn right(text: impl Into<String>, style: Style) -> Self {
        Self {
            text: one_line(text.into()),
            style,
            side: Side::Right,
        }
    }

    /// The rest of a line, styled already.
    pub(crate) fn rest(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            style: Style::new(),
            side: Side::Rest,
        }
    }

    fn width(&self) -> usize {
        if self.side == Side::Rest {
            0
        } else {
            self.text.width()
        }
    }

    /// The name of a resource. One that is longer than a line keeps its two ends.
    pub(crate) fn name(name: &str) -> Self {
        Self::plain(shortened(&one_line(name.to_owned()), LONGEST_NAME))
    }

    /// Text without a style.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self::left(text, Style::new())
    }
}

/// Columns that the name of a resource takes at most in a table.
const LONGEST_NAME: usize = 48;

/// A text of at most `most` columns: what does not fit is left out in its middle.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    if text.width() <= most {
        return text.to_owned();
    }
    let (before, after) = (most / 2, most.saturating_sub(most / 2 + 1));
    let end: String = text.chars().rev().collect();
    let end: String = cut(&end, after).chars().rev().collect();
    format!("{}…{end}", cut(text, before))
}

/// The beginning of a text that fits into so many columns.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let mut width = 0;
    let end = text.char_indices().find(|(_, c)| {
        width += c.width().unwrap_or(0);
        width > most
    });
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

/// Control characters of names and messages must not move the cursor.
fn one_line(text: String) -> String {
    if text.chars().any(char::is_control) {
        return text
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
    }
    text
}

/// Rows in aligned columns, two blanks apart, without blanks at the end of a line.
pub(crate) fn columns(indent: &str, rows: &[Vec<Cell>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut widths = vec![0; count];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    let mut out = String::new();
    for row in rows {
        out.push_str(indent);
        let filled = row
            .iter()
            .rposition(|cell| !cell.text.is_empty())
            .map_or(0, |last| last + 1);
        let mut gap = 0;
        for (cell, width) in row.iter().take(filled).zip(&widths) {
            let room = width - cell.width();
            let (before, after) = if cell.side == Side::Right {
                (room, 0)
            } else {
                (0, room)
            };
            out.extend(std::iter::repeat_n(' ', gap + before));
            let style = cell.style;
            out.push_str(&format!("{style}{}{style:#}", cell.text));
            // Columns that are empty in every row take no room.
            gap = if *width == 0 { gap } else { after + 2 };
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_by_what_is_seen() {
        let rows = vec![
            vec![Cell::plain("a"), Cell::right("1", Style::new()), Cell::plain("x")],
            vec![
                Cell::plain("größe"),
                Cell::right("100", Style::new()),
                Cell::plain(""),
            ],
            vec![Cell::plain("日本"), Cell::right("10", Style::new())],
        ];
        assert_eq!(
            columns("  ", &rows),
            "  a        1  x\n  größe  100\n  日本    10\n"
        );
    }
}
