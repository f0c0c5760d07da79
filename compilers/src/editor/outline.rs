//! The path of keys to a place in YAML that may not parse, found by indentation.

use std::collections::BTreeSet;

/// A place in a text under edit.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    lines: Vec<&'a str>,
    /// The 0-based index of the place's line.
    row: usize,
    /// The byte offset of the place in its line.
    byte: usize,
}

/// The path of keys to a place, and the sort of text there.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Spot<'a> {
    /// The keys from the top to the mapping or value that contains the place.
    pub(super) path: Vec<&'a str>,
    pub(super) part: Part,
    /// The other keys of the mapping at the place.
    pub(super) siblings: BTreeSet<&'a str>,
}

/// The syntactic part of YAML at a place.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Part {
    /// A key, or an item of a list.
    #[default]
    Key,
    /// The value of the last key of the path.
    Value,
    /// A block of text over several lines, with its content up to the place.
    Text(String),
}

/// A line of YAML, split into its parts.
struct Line<'a> {
    /// The number of leading blanks.
    indent: usize,
    /// The column of the first dash, if there is one.
    dash: Option<usize>,
    /// The column of the content after dashes.
    column: usize,
    key: Option<&'a str>,
    value: &'a str,
    /// True if the line has only blanks or a comment.
    is_blank: bool,
}

impl<'a> Line<'a> {
    fn read(line: &'a str) -> Self {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let mut column = indent;
        let mut dash = None;
        let mut rest = line.get(indent..).unwrap_or_default();
        while rest == "-" || rest.starts_with("- ") {
            dash.get_or_insert(column);
            let behind = rest.get(1..).unwrap_or_default();
            let blanks = behind.len() - behind.trim_start_matches(' ').len();
            column += 1 + blanks;
            rest = behind.get(blanks..).unwrap_or_default();
        }
        let (key, value) = entry(rest);
        Self {
            indent,
            dash,
            column,
            key,
            value,
            is_blank: rest.trim().is_empty() && dash.is_none() || rest.starts_with('#'),
        }
    }

    /// Returns true if the line begins a block of text over several lines (`|` or `>`).
    fn opens_text(&self) -> bool {
        let value = self.value.trim();
        let rest = value.strip_prefix(['|', '>']);
        rest.is_some_and(|rest| {
            let mark = rest.split(" #").next().unwrap_or_default().trim();
            mark.chars().all(|c| matches!(c, '+' | '-' | '0'..='9'))
        })
    }
}

/// Splits the content of a line into key and value.
fn entry(content: &str) -> (Option<&str>, &str) {
    if content.starts_with(['#', '{', '[', '&', '*', '|', '>']) {
        return (None, content);
    }
    let end = content.find(": ").or_else(|| {
        let trimmed = content.trim_end();
        trimmed.ends_with(':').then(|| trimmed.len() - 1)
    });
    match end.and_then(|end| Some((content.get(..end)?, content.get(end + 1..)?))) {
        Some((key, value)) => (Some(key.trim().trim_matches(['"', '\''])), value),
        None => (None, content),
    }
}

impl<'a> Cursor<'a> {
    /// Returns the cursor at a 1-based line and column, moved into the text if it is outside.
    pub(super) fn new(text: &'a str, line: u32, column: u32) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines: Vec<&str> = text.split('\n').map(|line| line.trim_end_matches('\r')).collect();
        let row = (line.max(1) as usize - 1).min(lines.len().saturating_sub(1));
        let shown = lines.get(row).copied().unwrap_or_default();
        let byte = shown
            .char_indices()
            .nth(column.max(1) as usize - 1)
            .map_or(shown.len(), |(at, _)| at);
        Self { lines, row, byte }
    }

    /// Returns the whole line of the place.
    pub(super) fn line(&self) -> &'a str {
        self.lines.get(self.row).copied().unwrap_or_default()
    }

    /// Returns the line up to the place.
    pub(super) fn before(&self) -> &'a str {
        self.line().get(..self.byte).unwrap_or_default()
    }

    /// Returns the number of the line, counted from 1.
    pub(super) fn line_number(&self) -> u32 {
        crate::text::narrow(self.row + 1)
    }

    /// Returns the text from its beginning up to the place.
    pub(super) fn text_before(&self) -> String {
        let mut text = self.lines.get(..self.row).unwrap_or_default().join("\n");
        if self.row > 0 {
            text.push('\n');
        }
        text.push_str(self.before());
        text
    }

    /// Returns the part of the word before the place, as typed so far.
    pub(super) fn word(&self) -> &'a str {
        let before = self.before();
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
        let start = before.trim_end_matches(is_part).len();
        let word = before.get(start..).unwrap_or_default();
        // A table and its column, a template's name: what stands before the last point is no part of the word.
        let after_point = word.rfind('.').map_or(0, |at| at + 1);
        let word = word.get(after_point..).unwrap_or_default();
        word.trim_start_matches('-')
    }

    /// Returns the 1-based column at which the typed word begins.
    pub(super) fn word_column(&self) -> u32 {
        let before = self.before().chars().count();
        crate::text::narrow(before - self.word().chars().count() + 1)
    }

    /// Returns the unquoted value of a key without indentation; none if there is no such key.
    pub(super) fn top_value(&self, key: &str) -> Option<&'a str> {
        let mut lines = self.lines.iter().map(|line| Line::read(line));
        let found = lines.find(|line| line.indent == 0 && line.dash.is_none() && line.key == Some(key))?;
        let value = found.value.split(" #").next().unwrap_or_default();
        Some(value.trim().trim_matches(['"', '\'']))
    }

    /// Returns the path of keys to the place.
    pub(super) fn spot(&self) -> Spot<'a> {
        if let Some(opener) = self.opener() {
            return self.in_text(opener);
        }
        let typed = Line::read(self.before());
        let mut spot = Spot::default();
        if let (Some(key), false) = (typed.key, typed.is_blank) {
            spot.part = Part::Value;
            spot.path = self.parents(self.row, &typed, &mut BTreeSet::new());
            spot.path.push(key);
            return spot;
        }
        let mut siblings = BTreeSet::new();
        spot.path = self.parents(self.row, &typed, &mut siblings);
        self.siblings_below(&typed, &mut siblings);
        spot.siblings = siblings;
        spot
    }

    /// Returns the index of the line that opens the multi-line text around the place, if there is one.
    fn opener(&self) -> Option<usize> {
        let own = self.line();
        let own_indent = own.len() - own.trim_start_matches(' ').len();
        let mut indent = if own.trim().is_empty() {
            self.byte
        } else {
            own_indent
        };
        for row in (0..self.row).rev() {
            let line = Line::read(self.lines.get(row)?);
            let is_empty = self.lines.get(row)?.trim().is_empty();
            if is_empty || line.indent >= indent {
                continue;
            }
            if line.opens_text() && line.key.is_some() {
                return Some(row);
            }
            indent = line.indent;
        }
        None
    }

    fn in_text(&self, opener: usize) -> Spot<'a> {
        let line = Line::read(self.lines.get(opener).copied().unwrap_or_default());
        let mut path = self.parents(opener, &line, &mut BTreeSet::new());
        path.extend(line.key);
        let mut text = self
            .lines
            .get(opener + 1..self.row)
            .unwrap_or_default()
            .join("\n");
        text.push('\n');
        text.push_str(self.before());
        Spot {
            path,
            part: Part::Text(text),
            siblings: BTreeSet::new(),
        }
    }

    /// Returns the whole multi-line text around the place, if there is one.
    pub(super) fn whole_text(&self) -> Option<String> {
        let opener = self.opener()?;
        let indent = Line::read(self.lines.get(opener)?).indent;
        let rest = self.lines.get(opener + 1..)?.iter();
        let lines = rest.take_while(|line| line.trim().is_empty() || Line::read(line).indent > indent);
        Some(lines.copied().collect::<Vec<_>>().join("\n"))
    }

    /// Returns the keys above a line, and adds its sibling keys above to `siblings`.
    fn parents(&self, row: usize, own: &Line<'a>, siblings: &mut BTreeSet<&'a str>) -> Vec<&'a str> {
        let mut path = Vec::new();
        // A parent's key stands before `limit`; that of a list may stand at the column of its dashes.
        let (mut limit, mut in_list) = match own.dash {
            Some(dash) => (dash, true),
            None => (own.column, false),
        };
        let mut beside = own.dash.is_none();
        for line in self.lines.get(..row).unwrap_or_default().iter().rev() {
            if limit == 0 && !in_list && !beside {
                break;
            }
            let line = Line::read(line);
            let Some(key) = line.key.filter(|_| !line.is_blank) else {
                continue;
            };
            let is_parent = line.column < limit || (in_list && line.column == limit && line.dash.is_none());
            if is_parent {
                path.push(key);
                beside = false;
                (limit, in_list) = match line.dash {
                    Some(dash) => (dash, true),
                    None => (line.column, false),
                };
            } else if beside && line.column == limit {
                siblings.insert(key);
                if let Some(dash) = line.dash {
                    (limit, in_list, beside) = (dash, true, false);
                }
            } else if !in_list
                && line.column == limit
                && let Some(dash) = line.dash
            {
                (limit, in_list) = (dash, true);
            }
        }
        path.reverse();
        path
    }

    /// Adds the sibling keys below a line to `siblings`.
    fn siblings_below(&self, own: &Line<'a>, siblings: &mut BTreeSet<&'a str>) {
        for line in self.lines.get(self.row + 1..).unwrap_or_default() {
            let line = Line::read(line);
            if line.is_blank {
                continue;
            }
            if line.column < own.column || line.dash.is_some_and(|dash| dash < own.column) {
                return;
            }
            if line.column == own.column {
                siblings.extend(line.key);
            }
        }
    }
}
