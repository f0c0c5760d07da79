//! The places of texts and their tokens in files.

use std::ops::Range;

use watershed_proto::SqlSource;

use crate::{
    diagnostics::{At, Role},
    sql::tokens,
    template::is_template,
    text::{Span, Text, narrow},
    yaml::{Node, Style},
};

/// Returns the SQL of a YAML value with its place.
pub(crate) fn source(node: &Node) -> SqlSource {
    let text = node.scalar_text().unwrap_or_default();
    TextPlace::from_node(node).source(text.trim(), is_template(&text), true)
}

/// The place at which a text begins in a file of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextPlace {
    role: Role,
    /// The 1-based line of the first character.
    line: u32,
    column: u32,
    /// Columns of indentation before each line after the first.
    indent: u32,
    /// The span that stands for every place inside, if places inside the text are not known.
    whole: Option<Span>,
}

impl TextPlace {
    /// Returns the place of the text that begins at byte `start` of a SQL file.
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

    /// Returns the place of a YAML scalar's text without leading blanks.
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

    /// Returns the place in the file of a span of the text.
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

    /// Returns the place in the file of a byte range of the text.
    pub(crate) fn range(&self, text: &str, range: Range<usize>) -> At {
        self.at(Text::new(text).span(range))
    }

    /// Returns the place in the file of the token at a byte of the text; one column wide if there is no token.
    pub(crate) fn token(&self, text: &str, byte: usize) -> At {
        self.tokens(text).at(byte)
    }

    /// Tokenizes the text, to find several places in it.
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

    /// Returns the SQL source for a spec; the path is filled in later.
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

    /// Returns the place of the text's first line, which stands for the whole text.
    pub(crate) fn whole_text(&self, text: &str) -> At {
        let line = text.lines().next().unwrap_or_default();
        self.range(text, 0..line.len())
    }

    /// Returns this place with every inner place replaced by the span of the whole value.
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

/// The tokens of a text, with the place of the text in its file.
pub(crate) struct TokenPlaces<'t> {
    place: TextPlace,
    text: Text<'t>,
    /// Byte ranges of tokens, ordered by start.
    ranges: Vec<Range<usize>>,
}

impl TokenPlaces<'_> {
    /// Returns the place in the file of the token at a byte; one column wide if there is no token.
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

/// The number of earlier tokens to search, as a comment may contain many that end before the byte.
const INNER: usize = 1_000;

/// Returns true if a quoted text stands verbatim in its file: on one line and without escapes.
fn is_verbatim(value: &str, span: Span) -> bool {
    span.line == span.end_line && (span.end_column - span.column) as usize == value.chars().count() + 2
}
