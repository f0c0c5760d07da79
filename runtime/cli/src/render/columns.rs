//! Aligned columns of styled text.

use anstyle::Style;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// A piece of text with its style.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    style: Style,
    side: Side,
    /// Columns that it takes at least.
    least: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

impl Cell {
    /// Text that begins at the column's left edge.
    pub(crate) fn left(text: impl Into<String>, style: Style) -> Self {
        Self {
            text: one_line(text.into()),
            style,
            side: Side::Left,
            least: 0,
        }
    }

    /// Text that ends at the column's right edge: numbers.
    pub(crate) fn right(text: impl Into<String>, style: Style) -> Self {
        Self {
            text: one_line(text.into()),
            style,
            side: Side::Right,
            least: 0,
        }
    }

    /// The same, at least so many columns wide.
    pub(crate) fn least(self, least: usize) -> Self {
        Self { least, ..self }
    }

    fn width(&self) -> usize {
        self.text.width().max(self.least)
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
    fitting(indent, rows, None)
}

/// The same in lines of at most `width` columns, where that is known: what does not fit is cut off.
pub(crate) fn fitting(indent: &str, rows: &[Vec<Cell>], width: Option<u16>) -> String {
    let most = width.map_or(usize::MAX, usize::from);
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
        let (mut gap, mut at) = (0, indent.width());
        for (cell, width) in row.iter().take(filled).zip(&widths) {
            let room = width - cell.text.width();
            let (before, after) = if cell.side == Side::Right {
                (room, 0)
            } else {
                (0, room)
            };
            at += gap + before;
            // The last column of a terminal stays empty: some break the line there.
            let left = most.saturating_sub(at + 1);
            let long = cell.text.width();
            if left == 0 {
                break;
            }
            out.extend(std::iter::repeat_n(' ', gap + before));
            let style = cell.style;
            if long > left {
                out.push_str(&format!(
                    "{style}{}…{style:#}",
                    cut(&cell.text, left.saturating_sub(1))
                ));
                break;
            }
            at += long;
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
    fn lines_are_cut_at_the_edge_of_a_terminal() {
        let rows = vec![
            vec![Cell::plain("a"), Cell::plain("a long sentence")],
            vec![Cell::plain("größe"), Cell::plain("short")],
        ];
        assert_eq!(
            fitting("  ", &rows, Some(16)),
            "  a      a lon…\n  größe  short\n"
        );
        let name = format!("a{}z", "b".repeat(300));
        let drawn = columns("", &[vec![Cell::name(&name)]]);
        assert_eq!(drawn.trim().width(), LONGEST_NAME);
        assert!(drawn.starts_with('a') && drawn.trim().ends_with('z'));
    }

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
