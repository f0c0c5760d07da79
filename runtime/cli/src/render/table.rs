//! Rows as a table that fits the terminal, or as one value below the other, for people.

use anstyle::Style;
use serde_json::Value;
use unicode_width::UnicodeWidthStr as _;
use watershed_api::documents::Column;

use super::columns::{cut, shortened};
use super::palette::{DIM, STRONG};
use super::paragraph::paragraph;
use super::rows::plain;

/// Longest text in a cell of a table, in characters; other formats have texts of any length.
const WIDEST_CELL: usize = 200;
/// Least width of a text or a name before whole columns of the table are left out, in columns of the terminal.
const NARROWEST: usize = 12;
/// Largest width that a name keeps where texts are cut or columns left out, in columns of the terminal: that, and as a
/// part of the terminal.
const WIDEST_NAME: (usize, usize) = (32, 3);
/// Largest width of a type that stands whole wherever its column does, in columns of the terminal: `timestamp`.
const SHORT_TYPE: usize = 9;
/// Largest width of a type where nothing else in its column is wider, in columns of the terminal.
const WIDEST_TYPE: usize = 32;
/// Width of the separator between two columns of the table, in columns of the terminal.
const BETWEEN: usize = 3;

/// A rendered table.
#[derive(Debug)]
pub(crate) struct Table {
    /// The lines of the table.
    pub(crate) text: String,
    /// Number of columns that were left out for lack of room.
    pub(crate) left_out: usize,
}

/// Renders rows as a table that fits a terminal of `width` columns, if there is one.
///
/// To fit, texts are cut and middle columns left out, and types stand below the names. Numbers are never cut, dates where
/// one alone is wider than the terminal.
pub(crate) fn table(columns: &[Column], rows: &[Vec<Value>], width: Option<u16>) -> Table {
    let drawn: Vec<Drawn> = columns
        .iter()
        .enumerate()
        .map(|(at, column)| Drawn::new(column, rows.iter().map(|row| row.get(at)), width.is_some()))
        .collect();
    let fit = match width {
        Some(width) => fitted(&drawn, usize::from(width)),
        None => Fit::whole(&drawn),
    };
    Table {
        text: fit.draw(&drawn, rows.len(), width.is_some()),
        left_out: drawn.len() - fit.before.len() - fit.after.len(),
    }
}

/// Renders each row as lines of a name and a value, with values whole, in lines of at most `width` columns if known.
pub(crate) fn vertical(columns: &[Column], rows: &[Vec<Value>], width: Option<u16>) -> String {
    let names: Vec<String> = columns
        .iter()
        .map(|column| shortened(&one_line(&column.name), WIDEST_CELL))
        .collect();
    let widest = names.iter().map(|name| name.width()).max().unwrap_or(0);
    let mut out = String::new();
    for (number, row) in rows.iter().enumerate() {
        out.push_str(&format!("{STRONG}row {}{STRONG:#}\n", number + 1));
        for ((name, column), value) in names.iter().zip(columns).zip(row) {
            let (text, style) = said(value, column);
            let blanks = " ".repeat(widest - name.width());
            let begin = format!("  {DIM}{name}{DIM:#}{blanks}  ");
            out.push_str(&paragraph(&begin, widest + 4, &text, style, width));
        }
    }
    out
}

/// A column with the texts of its cells.
struct Drawn {
    name: String,
    data_type: String,
    cells: Vec<(String, Style)>,
    side: Side,
    /// Width of the whole content, in columns of the terminal.
    wanted: usize,
    /// Least width that breaks no number or date, in columns of the terminal.
    least: usize,
}

/// The edge at which values are aligned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

impl Drawn {
    fn new<'a>(column: &Column, values: impl Iterator<Item = Option<&'a Value>>, typed: bool) -> Self {
        let cell = |value: Option<&Value>| {
            let (text, style) = said(value.unwrap_or(&Value::Null), column);
            let text = one_line(&text);
            match text.char_indices().nth(WIDEST_CELL) {
                Some((at, _)) => (format!("{}…", &text[..at]), style),
                None => (text, style),
            }
        };
        let cells: Vec<(String, Style)> = values.map(cell).collect();
        let name = one_line(&column.name);
        let data_type = one_line(&column.data_type).to_lowercase();
        let values = cells.iter().map(|(text, _)| text.width()).max().unwrap_or(0);
        let type_width = |widest: usize| if typed { data_type.width().min(widest) } else { 0 };
        let content = values.max(name.width()).max(type_width(SHORT_TYPE)).max(1);
        let keeps = if is_whole(&column.data_type) { values } else { 0 };
        Self {
            side: side(&column.data_type),
            wanted: content.max(type_width(WIDEST_TYPE)),
            least: keeps.max(content.min(NARROWEST)),
            name,
            data_type,
            cells,
        }
    }

    /// Returns the least width where names keep up to `names` columns.
    fn least(&self, names: usize) -> usize {
        self.least.max(self.name.width().min(names))
    }

    /// Returns the width under a cap, which a number, a date or a name may exceed.
    fn capped(&self, cap: usize, names: usize) -> usize {
        self.wanted.min(cap).max(self.least(names))
    }
}

/// The columns that are drawn, with their widths: those before the gap and those after it.
struct Fit {
    before: Vec<(usize, usize)>,
    after: Vec<(usize, usize)>,
    has_gap: bool,
}

impl Fit {
    fn whole(drawn: &[Drawn]) -> Self {
        Self {
            before: drawn.iter().map(|column| column.wanted).enumerate().collect(),
            after: Vec::new(),
            has_gap: false,
        }
    }

    fn draw(&self, drawn: &[Drawn], rows: usize, typed: bool) -> String {
        let gap = self.has_gap.then_some(1);
        let widths = self.before.iter().map(|(_, width)| *width).chain(gap);
        let widths: Vec<usize> = widths.chain(self.after.iter().map(|(_, width)| *width)).collect();
        let rule = |begin: &str, line: &str, between: &str, end: &str| {
            let parts: Vec<String> = widths.iter().map(|width| line.repeat(width + 2)).collect();
            format!("{begin}{}{end}\n", parts.join(between))
        };
        let mut out = rule("┌", "─", "┬", "┐");
        self.line(&mut out, |at| {
            let (column, width) = (&drawn[at.0], at.1);
            (shortened(&column.name, width), STRONG, column.side)
        });
        if typed {
            self.line(&mut out, |at| {
                let (column, width) = (&drawn[at.0], at.1);
                (ending(&column.data_type, width), DIM, column.side)
            });
        }
        out.push_str(&rule("╞", "═", "╪", "╡"));
        for row in 0..rows {
            self.line(&mut out, |at| {
                let (column, width) = (&drawn[at.0], at.1);
                let (text, style) = &column.cells[row];
                (ending(text, width), *style, column.side)
            });
        }
        out.push_str(&rule("└", "─", "┴", "┘"));
        out
    }

    /// Renders one line: a text for each column, given its index and width.
    fn line(&self, out: &mut String, text: impl Fn((usize, usize)) -> (String, Style, Side)) {
        let cell = |at: &(usize, usize)| {
            let (text, style, side) = text(*at);
            let blanks = " ".repeat(at.1.saturating_sub(text.width()));
            match side {
                Side::Left => format!(" {style}{text}{style:#}{blanks} "),
                Side::Right => format!(" {blanks}{style}{text}{style:#} "),
            }
        };
        let gap = self.has_gap.then(|| format!(" {DIM}…{DIM:#} "));
        let cells: Vec<String> = self.before.iter().map(cell).chain(gap).collect();
        let cells: Vec<String> = cells.into_iter().chain(self.after.iter().map(cell)).collect();
        out.push_str(&format!("│{}│\n", cells.join("┆")));
    }
}

/// Finds the columns and widths that fit: texts are cut first, then names, and at last middle columns are left out.
fn fitted(drawn: &[Drawn], width: usize) -> Fit {
    let room = width.saturating_sub(1);
    let whole = WIDEST_NAME.0.min(room / WIDEST_NAME.1);
    for names in [whole, NARROWEST] {
        let least = drawn.iter().map(|column| column.least(names) + BETWEEN);
        if least.sum::<usize>() <= room {
            return Fit {
                before: widths(drawn, 0..drawn.len(), room, names),
                after: Vec::new(),
                has_gap: false,
            };
        }
    }
    // One from the beginning, one from the end, as long as the next has room beside the gap. Where some are left out,
    // a cut name would only make the others harder to tell.
    let gap = 1 + BETWEEN;
    let (mut first, mut last) = (0, drawn.len());
    let mut taken = gap;
    while first < last {
        let next = if first <= drawn.len() - last {
            first
        } else {
            last - 1
        };
        taken += drawn[next].least(whole) + BETWEEN;
        if taken > room {
            break;
        }
        match next == first {
            true => first += 1,
            false => last -= 1,
        }
    }
    if first == 0 {
        return alone(drawn, room);
    }
    let kept = (0..first).chain(last..drawn.len());
    let mut before = widths(drawn, kept, room - gap, whole);
    let after = before.split_off(first);
    Fit {
        before,
        after,
        has_gap: true,
    }
}

/// Returns the first column without any other, cut where it is wider than the terminal. Only a number stays whole.
fn alone(drawn: &[Drawn], room: usize) -> Fit {
    let gap = 1 + BETWEEN;
    let width = |column: &Drawn| {
        let room = room.saturating_sub(BETWEEN).max(1);
        match column.side {
            Side::Left => column.wanted.min(room),
            Side::Right => column.wanted.min(room).max(column.least),
        }
    };
    let before: Vec<(usize, usize)> = drawn
        .first()
        .map(|column| (0, width(column)))
        .into_iter()
        .collect();
    let taken: usize = before.iter().map(|(_, width)| width + BETWEEN).sum();
    Fit {
        has_gap: drawn.len() > before.len() && taken + gap <= room,
        before,
        after: Vec::new(),
    }
}

/// Returns the widths of some columns under the largest cap that fits into the room.
fn widths(
    drawn: &[Drawn],
    kept: impl Iterator<Item = usize>,
    room: usize,
    names: usize,
) -> Vec<(usize, usize)> {
    let kept: Vec<usize> = kept.collect();
    let total = |cap: usize| {
        let widths = kept.iter().map(|at| drawn[*at].capped(cap, names) + BETWEEN);
        widths.sum::<usize>()
    };
    let widest = kept.iter().map(|at| drawn[*at].wanted).max().unwrap_or(0);
    let fits = (NARROWEST..=widest).rev().find(|cap| total(*cap) <= room);
    let cap = fits.unwrap_or(NARROWEST);
    kept.into_iter()
        .map(|at| (at, drawn[at].capped(cap, names)))
        .collect()
}

/// Returns a text shortened at its end to at most `most` columns of the terminal.
fn ending(text: &str, most: usize) -> String {
    if text.width() <= most {
        return text.to_owned();
    }
    format!("{}…", cut(text, most.saturating_sub(1)))
}

/// Returns the text of a value and its style. NULL is dim, and the text `NULL` is quoted.
fn said(value: &Value, column: &Column) -> (String, Style) {
    if value.is_null() {
        return ("NULL".to_owned(), DIM);
    }
    let text = plain(value);
    let looks_null = text == "NULL" && !is_whole(&column.data_type);
    let text = if looks_null { format!("'{text}'") } else { text };
    (text, Style::new())
}

/// Returns the alignment of a type's values: right for numbers.
fn side(data_type: &str) -> Side {
    const NUMBERS: [&str; 13] = [
        "TINYINT",
        "SMALLINT",
        "INTEGER",
        "BIGINT",
        "HUGEINT",
        "UTINYINT",
        "USMALLINT",
        "UINTEGER",
        "UBIGINT",
        "UHUGEINT",
        "FLOAT",
        "DOUBLE",
        "DECIMAL",
    ];
    let upper = data_type.to_ascii_uppercase();
    match NUMBERS.contains(&upper.as_str()) || upper.starts_with("DECIMAL(") && !upper.ends_with(']') {
        true => Side::Right,
        false => Side::Left,
    }
}

/// Returns true if values of a type must not be cut, as a part would be another value: numbers, dates, times.
fn is_whole(data_type: &str) -> bool {
    let upper = data_type.to_ascii_uppercase();
    let is_time = ["DATE", "TIME", "INTERVAL", "BOOLEAN"]
        .iter()
        .any(|begin| upper.starts_with(begin));
    side(data_type) == Side::Right || is_time && !upper.ends_with(']')
}

fn one_line(text: &str) -> String {
    text.replace('\n', "↵")
        .chars()
        .map(|c| if c.is_control() { '␣' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn column(name: &str, data_type: &str) -> Column {
        Column {
            name: name.into(),
            data_type: data_type.into(),
        }
    }

    fn plain_text(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    fn drawn(columns: &[Column], rows: &[Vec<Value>], width: Option<u16>) -> (String, usize) {
        let table = table(columns, rows, width);
        (plain_text(&table.text), table.left_out)
    }

    /// Returns columns and rows that are wider than most terminals, like the flights' table.
    fn wide() -> (Vec<Column>, Vec<Vec<Value>>) {
        let mut columns = vec![column("day", "DATE"), column("carrier", "VARCHAR")];
        columns.extend((0..8).map(|n| column(&format!("minutes_of_delay_{n}"), "BIGINT")));
        columns.push(column("left_at", "TIMESTAMP"));
        let mut row = vec![
            json!("2013-02-06"),
            json!("Endeavor Air Incorporated of Delaware"),
        ];
        row.extend((0..8).map(|n| json!(1_234_567 + n)));
        row.push(json!("2013-02-06 05:17:00"));
        (columns, vec![row])
    }

    #[test]
    fn numbers_line_up_and_null_is_not_the_text_null() {
        let columns = [column("carrier", "VARCHAR"), column("flights", "BIGINT")];
        let rows = [
            vec![json!("UA"), json!(58665)],
            vec![json!(null), json!(7)],
            vec![json!("NULL"), json!(null)],
        ];
        let (text, _) = drawn(&columns, &rows, None);
        assert!(text.contains("│ UA      ┆   58665 │"), "{text}");
        assert!(text.contains("│ NULL    ┆       7 │"), "{text}");
        assert!(text.contains("│ 'NULL'  ┆    NULL │"), "{text}");
        let (typed, _) = drawn(&columns, &rows, Some(80));
        assert!(typed.contains("│ varchar ┆  bigint │"), "{typed}");
    }

    #[test]
    fn lines_fit_the_terminal_and_numbers_and_dates_stay_whole() {
        let (columns, rows) = wide();
        for width in [30, 40, 60, 80, 100, 120, 200] {
            let (text, left_out) = drawn(&columns, &rows, Some(width));
            let widest = text.lines().map(|line| line.width()).max().unwrap_or(0);
            assert!(widest <= usize::from(width), "{width}: {widest}\n{text}");
            assert_eq!(text.lines().count(), 6, "{text}");
            assert!(text.contains("│ 2013-02-06 ┆"), "{text}");
            assert_eq!(
                left_out > 0,
                text.contains("┆ … ┆") || text.contains("┆ … │"),
                "{text}"
            );
            assert_eq!(left_out == 0, width == 200, "{width} leaves out {left_out}");
        }
        let (text, _) = drawn(&columns, &rows, Some(80));
        assert!(
            text.contains("1234574") && text.contains("2013-02-06 05:17:00"),
            "{text}"
        );
    }

    #[test]
    fn what_is_not_for_a_terminal_is_whole() {
        let (columns, rows) = wide();
        let (text, left_out) = drawn(&columns, &rows, None);
        assert_eq!(left_out, 0);
        assert!(text.contains("Endeavor Air Incorporated of Delaware"), "{text}");
        assert!(!text.contains("bigint"), "{text}");
    }

    #[test]
    fn names_are_whole_where_columns_are_left_out_and_types_where_there_is_room() {
        let mut columns = vec![column("left", "TIMESTAMP WITH TIME ZONE")];
        columns.extend((0..20).map(|n| column(&format!("minutes_of_delay_in_air_{n:02}"), "BIGINT")));
        let mut row = vec![json!("2013-02-28 12:00:00+00")];
        row.extend((0..20).map(|n| json!(n)));
        for width in [80, 200] {
            let (text, left_out) = drawn(&columns, std::slice::from_ref(&row), Some(width));
            assert!(
                left_out > 0 && text.lines().all(|line| line.width() <= usize::from(width)),
                "{text}"
            );
            assert!(text.contains(" minutes_of_delay_in_air_19 │"), "{text}");
            let head = text.lines().nth(1).unwrap_or_default();
            assert_eq!(head.matches('…').count(), 1, "{text}");
            assert!(text.contains("│ timestamp with time zone ┆"), "{text}");
        }
    }

    #[test]
    fn a_first_column_of_times_fits_a_narrow_terminal() {
        let columns = [column("at", "TIMESTAMP WITH TIME ZONE"), column("n", "BIGINT")];
        let row = [json!("2013-02-28 12:00:00.123456+00"), json!(1)];
        for (width, shown) in [
            (40, "2013-02-28 12:00:00.123456+00 ┆ … │"),
            (30, "2013-02-28 12:00:00.12345… │"),
        ] {
            let (text, left_out) = drawn(&columns, &[row.to_vec()], Some(width));
            assert!(
                text.lines().all(|line| line.width() <= usize::from(width)),
                "{text}"
            );
            assert!(text.contains(shown), "{text}");
            assert_eq!(left_out, 1, "{text}");
        }
    }

    #[test]
    fn a_column_that_is_wider_than_the_terminal_is_shown_all_the_same() {
        let number = "12345678901234567890123456789012345678";
        let (text, _) = drawn(
            &[column("n", "HUGEINT"), column("m", "HUGEINT")],
            &[vec![json!(number), json!(number)]],
            Some(20),
        );
        assert!(text.contains(number), "{text}");
        let (none, _) = drawn(&[], &[], Some(1));
        assert_eq!(none, "┌┐\n││\n││\n╞╡\n└┘\n");
    }

    #[test]
    fn one_value_below_the_other_is_whole() {
        let columns = [column("id", "BIGINT"), column("remark", "VARCHAR")];
        let rows = [vec![json!(1), json!("a\nb")], vec![json!(2), json!(null)]];
        assert_eq!(
            plain_text(&vertical(&columns, &rows, Some(80))),
            "row 1\n  id      1\n  remark  a\n          b\nrow 2\n  id      2\n  remark  NULL\n"
        );
    }
}
