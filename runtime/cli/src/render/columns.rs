//! Aligned columns of styled text.

use anstyle::Style;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::paragraph::paragraph;

/// A cell of a table: text with its style, alignment and rules for cutting.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    style: Style,
    side: Side,
    /// Least width, in columns.
    least: usize,
    cut: Cut,
}

/// The way a cell is shortened when its line is wider than the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// Kept whole as long as anything else can be cut: numbers, durations, dates.
    Never,
    /// Shortened in the middle, since both ends of names tell them apart.
    Middle,
    /// Shortened at the end.
    End,
    /// Written in lines below its row, since its end matters as much: the last cell of a row.
    Below,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

impl Cell {
    /// Returns a left-aligned cell.
    pub(crate) fn left(text: impl Into<String>, style: Style) -> Self {
        Self {
            text: one_line(text.into()),
            style,
            side: Side::Left,
            least: 0,
            cut: Cut::End,
        }
    }

    /// Returns a right-aligned cell, for numbers.
    pub(crate) fn right(text: impl Into<String>, style: Style) -> Self {
        Self {
            text: one_line(text.into()),
            style,
            side: Side::Right,
            least: 0,
            cut: Cut::Never,
        }
    }

    /// Returns the cell with a least width, in columns.
    pub(crate) fn least(self, least: usize) -> Self {
        Self { least, ..self }
    }

    /// Returns the cell in another style.
    pub(crate) fn styled(self, style: Style) -> Self {
        Self { style, ..self }
    }

    /// Returns the cell with the rule that it is cut after all others.
    pub(crate) fn whole(self) -> Self {
        Self {
            cut: Cut::Never,
            ..self
        }
    }

    /// Returns the cell with the rule that a text without room behind the other cells stands in lines below them.
    pub(crate) fn below(self) -> Self {
        Self {
            cut: Cut::Below,
            ..self
        }
    }

    pub(crate) fn width(&self) -> usize {
        self.text.width().max(self.least)
    }

    /// Returns a cell with the name of a resource, which is shortened in the middle.
    pub(crate) fn name(name: &str) -> Self {
        Self {
            cut: Cut::Middle,
            ..Self::plain(shortened(&one_line(name.to_owned()), LONGEST_NAME))
        }
    }

    /// Returns true if the cell has no text.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the width of the cell if cells with the rule `cut` are cut to `to` columns.
    fn narrowed(&self, cut: Cut, to: usize, least: Least) -> usize {
        let text = match self.cut {
            Cut::Below => 0,
            own if own == cut => self.text.width().min(to),
            _ => self.text.width(),
        };
        match least {
            Least::Left => text,
            Least::Kept => text.max(self.least),
        }
    }

    /// Returns the cell's text, shortened to at most `most` columns.
    fn fitted(&self, most: usize) -> String {
        match self.cut {
            _ if self.text.width() <= most => self.text.clone(),
            Cut::Middle => shortened(&self.text, most),
            Cut::Never | Cut::End | Cut::Below => format!("{}…", cut(&self.text, most.saturating_sub(1))),
        }
    }

    /// Returns a left-aligned cell without a style.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self::left(text, Style::new())
    }
}

/// Indent of the lines below a row.
const BELOW: &str = "    ";

/// Largest width of a resource's name in a table, in columns.
const LONGEST_NAME: usize = 48;

/// Returns the text for the name of something that may have been renamed: with an arrow if both names fit into `most`
/// columns, else the new name alone, and `was OLD` for another place.
pub(crate) fn renamed(was: Option<&str>, name: &str, most: usize) -> (String, Option<String>) {
    let Some(was) = was else {
        return (name.to_owned(), None);
    };
    let both = format!("{was} → {name}");
    match both.width() <= most {
        true => (both, None),
        false => (name.to_owned(), Some(format!("was {was}"))),
    }
}

/// Returns a text shortened in the middle to at most `most` columns.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    if text.width() <= most {
        return text.to_owned();
    }
    let (before, after) = (most / 2, most.saturating_sub(most / 2 + 1));
    let end: String = text.chars().rev().collect();
    let end: String = cut(&end, after).chars().rev().collect();
    format!("{}…{end}", cut(text, before))
}

/// Returns the longest beginning of a text that fits into `most` columns.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let mut width = 0;
    let end = text.char_indices().find(|(_, c)| {
        width += c.width().unwrap_or(0);
        width > most
    });
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

/// Replaces control characters by blanks, so that a name or message can't move the cursor.
fn one_line(text: String) -> String {
    if text.chars().any(char::is_control) {
        return text
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
    }
    text
}

/// Renders rows in aligned columns, two blanks apart, without trailing blanks.
pub(crate) fn columns(indent: &str, rows: &[Vec<Cell>]) -> String {
    fitting(indent, rows, None)
}

/// The treatment of cells' least widths, which align lines written one by one.
#[derive(Debug, Clone, Copy)]
enum Least {
    Kept,
    Left,
}

/// The steps in which cells are cut until lines fit, with the width that each leaves: long texts, names, then more of
/// both.
const CUTS: [(Cut, usize, Least); 5] = [
    (Cut::End, 40, Least::Kept),
    (Cut::Middle, 24, Least::Kept),
    (Cut::End, 16, Least::Kept),
    (Cut::Middle, 12, Least::Kept),
    (Cut::Middle, 12, Least::Left),
];

/// Narrows columns until a whole line takes at most `most` columns of the terminal.
fn narrow(widths: &mut [usize], rows: &[Vec<Cell>], most: usize) {
    for (cut, to, least) in CUTS {
        for at in (0..widths.len()).rev() {
            let taken: usize = widths
                .iter()
                .filter(|width| **width > 0)
                .map(|width| width + 2)
                .sum();
            // Nothing stands behind the last one.
            let over = taken.saturating_sub(most.saturating_add(2));
            let cells = rows.iter().filter_map(|row| row.get(at));
            let needed = cells.map(|cell| cell.narrowed(cut, to, least)).max().unwrap_or(0);
            widths[at] = widths[at].saturating_sub(over).max(needed.min(widths[at]));
        }
    }
}

/// Renders rows as [`columns`] does, in lines of at most `terminal` columns if known: texts and names are cut first.
pub(crate) fn fitting(indent: &str, rows: &[Vec<Cell>], terminal: Option<u16>) -> String {
    let most = terminal.map_or(usize::MAX, usize::from);
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut widths = vec![0; count];
    for row in rows {
        let counted = |cell: &&Cell| terminal.is_none() || cell.cut != Cut::Below;
        for (width, cell) in widths.iter_mut().zip(row).filter(|(_, cell)| counted(cell)) {
            *width = (*width).max(cell.width());
        }
    }
    // The last column of a terminal stays empty: some break the line there.
    narrow(&mut widths, rows, most.saturating_sub(1 + indent.width()));
    let mut out = String::new();
    for row in rows {
        out.push_str(indent);
        let filled = row
            .iter()
            .rposition(|cell| !cell.text.is_empty())
            .map_or(0, |last| last + 1);
        let (mut gap, mut at) = (0, indent.width());
        for (number, (cell, width)) in row.iter().zip(&widths).enumerate().take(filled) {
            let left = most.saturating_sub(at + gap + 1);
            if cell.cut == Cut::Below && cell.text.width() > left {
                let below = format!("{indent}{BELOW}");
                out.push('\n');
                let lines = paragraph(&below, below.width(), &cell.text, cell.style, terminal);
                out.push_str(lines.trim_end_matches('\n'));
                break;
            }
            if left == 0 {
                break;
            }
            // What ends a line has the room that is left.
            let is_last = number + 1 == filled && cell.side == Side::Left;
            let text = cell.fitted(if is_last { left } else { left.min(*width) });
            let room = width.saturating_sub(text.width());
            let (before, after) = match cell.side {
                Side::Right => (room.min(left - text.width()), 0),
                Side::Left => (0, room),
            };
            let style = cell.style;
            out.extend(std::iter::repeat_n(' ', gap + before));
            out.push_str(&format!("{style}{text}{style:#}"));
            at += gap + before + text.width();
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
    fn a_text_that_is_not_cut_stands_below_its_row_where_it_does_not_fit() {
        let row = |error: &str| vec![Cell::plain("bad"), Cell::left(error, Style::new()).below()];
        let rows = [
            row("it failed"),
            row("it failed for a reason that is long, and whose end matters"),
        ];
        assert_eq!(
            fitting(" ", &rows, Some(44)),
            " bad  it failed\n bad\n     it failed for a reason that is long,\n     and whose end matters\n"
        );
        assert_eq!(fitting("", &rows[1..], None).lines().count(), 1);
    }

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
    fn numbers_and_durations_are_whole_where_names_and_texts_can_be_cut() {
        let row = |name: &str, took: &str, why: &str| {
            let took = Cell::right(took, Style::new());
            vec![Cell::name(name), took, Cell::plain(why)]
        };
        let rows = [
            row(
                "a-name-that-is-longer-than-a-pane",
                "1m20s",
                "edited: a file with a long path",
            ),
            row("b", "4ms", "created"),
        ];
        assert_eq!(
            fitting("", &rows, Some(44)),
            "a-name-th…n-a-pane  1m20s  edited: a file …\nb                     4ms  created\n"
        );
        let last = [vec![
            Cell::name("a-name-of-thirty-columns-in-all"),
            Cell::plain("12.3s").whole(),
        ]];
        assert_eq!(fitting("", &last, Some(30)), "a-name-of-t…mns-in-all  12.3s\n");
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
