//! Places of texts inside files.

use std::ops::Range;

use watershed_proto::SqlSource;

use crate::{
    diagnostics::{At, Role},
    sql::tokens,
    template::is_template,
    text::{Span, Text, narrow},
    yaml::{Node, Style},
};

/// The text of a value with its place.
pub(crate) fn source(node: &Node) -> SqlSource {
    let text = node.scalar_text().unwrap_or_default();
    TextPlace::from_node(node).source(text.trim(), is_template(&text), true)
}

/// The place of a text in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextPlace {
    role: Role,
    /// Of the first character.
    line: u32,
    column: u32,
    /// Columns before the text's own on each further line.
    indent: u32,
    /// Places inside are not known: all are this.
    whole: Option<Span>,
}

impl TextPlace {
    /// The text of a SQL file, which begins at a byte.
    pub(crate) fn from_file(file: &Text<'_>, start: usize) -> Self {
        let (line, column) = file.position(start);
        Self {
            role: Role::Sql,
            line,
            column,
            indent: 0,
            whole: None,
        }
    }

    /// The text of a YAML scalar, blank space before it trimmed.
    pub(crate) fn from_node(node: &Node) -> Self {
        let value = node.as_str().unwrap_or_default();
        let blank = value
            .get(..value.len() - value.trim_start().len())
            .unwrap_or_default();
        let lines = narrow(blank.matches('\n').count());
        let last = narrow(blank.rsplit('\n').next().unwrap_or_default().chars().count());
        let span = node.at.span;
        let several = value.trim().contains('\n');
        let plain = |column| Self {
            role: node.at.role,
            line: span.line,
            column,
            indent: 0,
            whole: None,
        };
        match node.style {
            Style::Literal => Self {
                role: node.at.role,
                line: span.line + lines,
                column: span.column + last,
                indent: span.column - 1,
                whole: None,
            },
            Style::Plain if !several => plain(span.column),
            Style::Quoted if !several && is_verbatim(value, span) => plain(span.column + 1 + last),
            _ => Self {
                whole: Some(span),
                ..plain(span.column)
            },
        }
    }

    /// A span of the text as a place in the file.
    pub(crate) fn at(&self, span: Span) -> At {
        if let Some(span) = self.whole {
            return At {
                role: self.role,
                span,
            };
        }
        let column = |line, column| {
            if line == 1 {
                self.column + column - 1
            } else {
                self.indent + column
            }
        };
        let span = Span {
            line: self.line + span.line - 1,
            column: column(span.line, span.column),
            end_line: self.line + span.end_line - 1,
            end_column: column(span.end_line, span.end_column),
        };
        At {
            role: self.role,
            span,
        }
    }

    /// A range of the text's bytes as a place in the file.
    pub(crate) fn range(&self, text: &str, range: Range<usize>) -> At {
        self.at(Text::new(text).span(range))
    }

    /// The token at a byte of the text as a place in the file; one column where there is none.
    pub(crate) fn token(&self, text: &str, byte: usize) -> At {
        self.tokens(text).at(byte)
    }

    /// The tokens of the text, for several places in it.
    pub(crate) fn tokens<'t>(&self, text: &'t str) -> TokenPlaces<'t> {
        let mut ranges: Vec<Range<usize>> = tokens(text).into_iter().map(|token| token.range).collect();
        // An action in a comment comes before the comment that holds it, and counts.
        ranges.sort_by_key(|range| (range.start, range.end));
        TokenPlaces {
            place: *self,
            text: Text::new(text),
            ranges,
        }
    }

    /// Returns the source that a spec holds; the path is filled in later.
    pub(crate) fn source(&self, text: &str, templated: bool, engine: bool) -> SqlSource {
        SqlSource {
            path: String::new(),
            text: text.to_owned(),
            line: self.line,
            column: self.column,
            indent: self.indent,
            templated,
            engine,
        }
    }

    /// A whole text as a place in the file: its first line.
    pub(crate) fn whole_text(&self, text: &str) -> At {
        let line = text.lines().next().unwrap_or_default();
        self.range(text, 0..line.len())
    }

    /// The same place, with everything inside standing for the whole value.
    pub(crate) fn whole(self, node: &Node) -> Self {
        Self {
            whole: Some(node.at.span),
            ..self
        }
    }

    pub(crate) fn role(&self) -> Role {
        self.role
    }
}

/// Places of a text's tokens in its file.
pub(crate) struct TokenPlaces<'t> {
    place: TextPlace,
    text: Text<'t>,
    /// By their starts.
    ranges: Vec<Range<usize>>,
}

impl TokenPlaces<'_> {
    /// The token at a byte of the text as a place in the file; one column where there is none.
    pub(crate) fn at(&self, byte: usize) -> At {
        let behind = self.ranges.partition_point(|range| range.start <= byte);
        let before = self.ranges.get(..behind).unwrap_or_default().iter().rev();
        // The innermost: an action inside a comment begins after it.
        let token = before.take(INNER).find(|range| range.contains(&byte));
        let range = token.map_or(byte..byte, |token| byte..token.end);
        let mut at = self.place.at(self.text.span(range));
        if (at.span.line, at.span.column) == (at.span.end_line, at.span.end_column) {
            at.span.end_column += 1;
        }
        at
    }
}

/// Tokens before a place that are looked at: a comment may hold some that end before it.
const INNER: usize = 1_000;

/// Returns true if a quoted text stands in its file as it is: one line, nothing escaped.
fn is_verbatim(value: &str, span: Span) -> bool {
    span.line == span.end_line && (span.end_column - span.column) as usize == value.chars().count() + 2
}
