//! Text that is broken into lines at the width of the terminal, with an indent.

use anstream::adapter::strip_str;
use anstyle::Style;
use unicode_width::UnicodeWidthStr;

/// Least room beside a wide beginning, in columns; a longer text with less stands below its beginning.
const NARROWEST: usize = 20;
/// Indent of a text that stands below its beginning, in columns.
const BELOW: usize = 4;

/// Renders `begin`, which takes `indent` columns, and a text broken into lines that are aligned behind it.
///
/// Line breaks in the text are kept. Where the words have no room behind `begin`, the text stands below.
pub(crate) fn paragraph(begin: &str, indent: usize, text: &str, style: Style, width: Option<u16>) -> String {
    let most = width.map_or(usize::MAX, usize::from);
    let text: Vec<String> = text.lines().map(visible).collect();
    let is_blank = strip_str(begin).all(|part| part.trim().is_empty());
    let is_below = !is_blank && !fits_beside(&text, indent, most);
    let (mut out, indent) = match (is_below, is_blank) {
        (true, _) => (format!("{}\n", begin.trim_end()), BELOW.min(indent)),
        (false, true) => (String::new(), indent),
        (false, false) => (begin.to_owned(), indent),
    };
    let room = most.saturating_sub(indent);
    let lines: Vec<String> = text.iter().flat_map(|line| broken(line, room, room)).collect();
    for (number, line) in lines.iter().enumerate() {
        if number > 0 || is_below || is_blank {
            out.push_str(&blanks(indent, line, most));
        }
        out.push_str(&format!("{style}{line}{style:#}\n"));
    }
    if lines.is_empty() {
        out.push('\n');
    }
    out
}

/// Breaks each line of a styled text at blanks, with `indent` columns before what follows.
///
/// Blanks at the beginning of a line are kept.
pub(crate) fn folded(text: &str, indent: usize, width: Option<u16>) -> String {
    let Some(most) = width.map(usize::from) else {
        return text.to_owned();
    };
    let mut out = String::new();
    for line in text.lines() {
        let begin = line.len() - line.trim_start_matches(' ').len();
        let (before, line) = line.split_at(begin);
        let lines = broken(line, most.saturating_sub(begin), most.saturating_sub(indent));
        out.push_str(before);
        for (number, line) in lines.iter().enumerate() {
            if number > 0 {
                out.push_str(&blanks(indent, line, most));
            }
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// Returns the width of a styled text as it is seen, in columns of the terminal.
pub(crate) fn seen_width(text: &str) -> usize {
    strip_str(text).map(UnicodeWidthStr::width).sum()
}

/// Returns true if a text fits behind a beginning of `indent` columns, or its words at least do.
fn fits_beside(text: &[String], indent: usize, most: usize) -> bool {
    let room = most.saturating_sub(indent);
    let words = text.iter().flat_map(|line| line.split(' '));
    // What is longer than a whole line is broken by the terminal anyway.
    let longest = words
        .map(UnicodeWidthStr::width)
        .filter(|word| *word <= most)
        .max();
    text.iter().all(|line| line.width() <= room)
        || room >= NARROWEST && longest.is_none_or(|longest| longest <= room)
}

/// Returns the indent of a line, less where the line would not fit behind all of it.
fn blanks(indent: usize, line: &str, most: usize) -> String {
    " ".repeat(indent.min(most.saturating_sub(seen_width(line))))
}

/// Replaces control characters by blanks, so that a text can't move the cursor.
fn visible(line: &str) -> String {
    line.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// Breaks a line at blanks: `first` columns for the first part, `room` for the others. A longer word is left whole.
fn broken(line: &str, first: usize, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut current, mut taken) = (String::new(), 0);
    for word in line.split(' ') {
        let room = if lines.is_empty() { first } else { room };
        let width = seen_width(word);
        if current.is_empty() {
            taken = width;
        } else if taken + 1 + width > room {
            lines.push(std::mem::take(&mut current));
            taken = width;
        } else {
            current.push(' ');
            taken += 1 + width;
        }
        current.push_str(word);
    }
    lines.push(current);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_at_blanks_and_stands_under_its_beginning() {
        let text = "a b c ddddddddddddddddddddddddddddddddddddddddd e";
        let told = paragraph("x ", 2, text, Style::new(), Some(40));
        assert_eq!(told, "x a b c\nddddddddddddddddddddddddddddddddddddddddd\n  e\n");
        assert_eq!(paragraph("x ", 2, "a\nb", Style::new(), None), "x a\n  b\n");
        assert_eq!(
            paragraph("x ", 2, "a\u{1b}[2Jb", Style::new(), None),
            "x a [2Jb\n"
        );
    }

    #[test]
    fn no_word_that_fits_the_terminal_is_broken() {
        let text = "`watershed open` shows a_name_of_25_columns_in_it in a browser";
        for width in [10, 20, 25, 26, 30, 40, 80] {
            for (indent, style) in [(0, Style::new()), (2, Style::new()), (15, Style::new().bold())] {
                let begin = " ".repeat(indent);
                let told = paragraph(&begin, indent, text, style, Some(width));
                let told = told + &folded(&format!(" {style}hint{style:#}: {text}\n"), indent, Some(width));
                let room = usize::from(width);
                for line in strip_str(&told).to_string().lines() {
                    let long = line.width() > room;
                    assert!(
                        !long || line.trim().split(' ').any(|word| word.width() > room),
                        "{width}: {told}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_text_without_room_beside_its_beginning_stands_below() {
        let told = |text| paragraph("  completions  ", 15, text, Style::new(), Some(30));
        assert_eq!(told("Print them"), "  completions  Print them\n");
        assert_eq!(
            told("Print completions for a shell"),
            "  completions\n    Print completions for a\n    shell\n"
        );
        let blank = paragraph(
            "  \u{1b}[1m         \u{1b}[0m",
            11,
            "a longer text",
            Style::new(),
            Some(20),
        );
        assert_eq!(blank, "           a longer\n           text\n");
        let styled = folded("  \u{1b}[1ma b\u{1b}[0m c d\n", 4, Some(7));
        assert_eq!(styled, "  \u{1b}[1ma b\u{1b}[0m c\n    d\n");
        assert_eq!(folded("a b", 0, None), "a b");
    }
}
