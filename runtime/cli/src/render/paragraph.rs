//! Text that is broken into lines at the width of the terminal, with an indent.

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

/// Narrowest terminal, in columns, in which lines are broken.
const NARROWEST: usize = 40;

/// Renders `begin`, which takes `indent` columns, and a text broken into lines that are aligned behind it.
///
/// Line breaks in the text are kept.
pub(crate) fn paragraph(begin: &str, indent: usize, text: &str, style: Style, width: Option<u16>) -> String {
    let room = width.map_or(usize::MAX, usize::from);
    let room = room.max(NARROWEST).saturating_sub(indent);
    let mut out = begin.to_owned();
    let lines: Vec<String> = text.lines().flat_map(|line| broken(line, room)).collect();
    for (number, line) in lines.iter().enumerate() {
        if number > 0 {
            out.extend(std::iter::repeat_n(' ', indent));
        }
        out.push_str(&format!("{style}{line}{style:#}\n"));
    }
    if lines.is_empty() {
        out.push('\n');
    }
    out
}

/// Breaks a line at blanks, and replaces control characters by blanks. A longer word is left whole.
fn broken(line: &str, room: usize) -> Vec<String> {
    let line: String = line
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let mut lines = Vec::new();
    let mut current = String::new();
    for word in line.split(' ') {
        if !current.is_empty() && current.width() + 1 + word.width() > room {
            lines.push(std::mem::take(&mut current));
        } else if !current.is_empty() {
            current.push(' ');
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
        assert_eq!(
            told,
            "x a b c\n  ddddddddddddddddddddddddddddddddddddddddd\n  e\n"
        );
        assert_eq!(paragraph("x ", 2, "a\nb", Style::new(), None), "x a\n  b\n");
        assert_eq!(
            paragraph("x ", 2, "a\u{1b}[2Jb", Style::new(), None),
            "x a [2Jb\n"
        );
    }
}
