//! Masking of unquoted templates in YAML.
//!
//! `key: {{ .env.x }}` is a mapping inside a mapping to YAML, and a text to the person who wrote it. Such a stretch is
//! masked with as many letters before the file is parsed, so that all other places stay right, and put back after.

use std::{collections::BTreeMap, ops::Range};

/// The character that replaces an unquoted template, from the private use area.
const MASK: char = '\u{F8FF}';

/// The text with unquoted templates masked. Offsets count characters, as the YAML parser's do.
#[derive(Debug)]
pub(super) struct Masked {
    chars: Vec<char>,
    stretches: BTreeMap<usize, String>,
}

impl Masked {
    pub(super) fn new(text: &str) -> Self {
        Self {
            chars: text.chars().collect(),
            stretches: BTreeMap::new(),
        }
    }

    pub(super) fn text(&self) -> String {
        self.chars.iter().collect()
    }

    /// Returns the original text of the masked stretch that begins at a character.
    pub(super) fn original(&self, at: usize) -> Option<&str> {
        self.stretches.get(&at).map(String::as_str)
    }

    /// Returns true if a template begins at a character.
    pub(super) fn opens_at(&self, at: usize) -> bool {
        self.chars.get(at..at + 2) == Some(&['{', '{'])
    }

    /// Masks the template that begins at a character; returns false if it does not end on its line.
    pub(super) fn mask(&mut self, at: usize, in_flow: bool) -> bool {
        let Some(stretch) = self.stretch(at, in_flow) else {
            return false;
        };
        let Some(chars) = self.chars.get_mut(stretch) else {
            return false;
        };
        self.stretches.insert(at, chars.iter().collect());
        chars.fill(MASK);
        true
    }

    /// Returns the position of the first unmasked template that begins a value, on the line of a character.
    pub(super) fn first_on_line(&self, at: usize) -> Option<usize> {
        let at = at.min(self.chars.len());
        let start = self
            .chars
            .get(..at)?
            .iter()
            .rposition(|c| *c == '\n')
            .map_or(0, |end| end + 1);
        let line = self
            .chars
            .get(start..)?
            .iter()
            .take_while(|c| **c != '\n')
            .count();
        (start..start + line).find(|at| self.opens_at(*at) && self.begins_a_value(start, *at))
    }

    fn begins_a_value(&self, line_start: usize, at: usize) -> bool {
        let before = self.chars.get(line_start..at).unwrap_or_default();
        let mut before = before.iter().rev().skip_while(|c| **c == ' ');
        matches!(before.next(), Some(':' | '-' | '[' | ',') | None)
    }

    /// Returns the range from a template to the end of the line or, in a flow collection, of the item, without a
    /// comment and blanks at the end.
    fn stretch(&self, at: usize, in_flow: bool) -> Option<Range<usize>> {
        let rest = self.chars.get(at..)?;
        let line = rest.iter().position(|c| *c == '\n').unwrap_or(rest.len());
        let mut end = 0;
        let mut inside = false;
        let mut index = 0;
        while index < line {
            match (rest.get(index)?, rest.get(index + 1), inside) {
                ('{', Some('{'), false) => (inside, index) = (true, index + 2),
                ('}', Some('}'), true) => (inside, index, end) = (false, index + 2, index + 2),
                (' ', Some('#'), false) => break,
                (',' | ']' | '}', _, false) if in_flow => break,
                (' ' | '\r', _, false) => index += 1,
                (_, _, false) => (index, end) = (index + 1, index + 1),
                (_, _, true) => index += 1,
            }
        }
        (!inside && end > 0).then_some(at..at + end)
    }
}
