//! Findings drawn for people: the message, the source line with the place underlined, the hint.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::{Diagnostic, Related, Severity, Span};

/// Tells whether a drawing has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Plain text.
    Never,
    /// ANSI escapes.
    Always,
}

/// A finding as it is drawn, whoever holds it.
#[derive(Debug, Clone)]
pub struct Drawn<'a> {
    /// The severity.
    pub severity: Severity,
    /// The code.
    pub code: &'a str,
    /// The file.
    pub path: &'a str,
    /// The place in the file.
    pub span: Span,
    /// A description.
    pub message: &'a str,
    /// A hint.
    pub hint: Option<&'a str>,
    /// Other places that it speaks of, each with what stands there.
    pub related: Vec<RelatedSpan<'a>>,
    /// The lines that it was found in.
    pub notes: &'a [String],
    /// All that was said, where that is more and is wanted.
    pub details: Option<&'a str>,
}

/// Another place that a finding speaks of, whoever holds it.
#[derive(Debug, Clone, Copy)]
pub struct RelatedSpan<'a> {
    /// The file.
    pub path: &'a str,
    /// The place in it.
    pub span: Span,
    /// A few words about that place.
    pub message: &'a str,
}

impl<'a> From<&'a Related> for RelatedSpan<'a> {
    fn from(related: &'a Related) -> Self {
        Self {
            path: &related.path,
            span: related.span,
            message: &related.message,
        }
    }
}

impl<'a> From<&'a Diagnostic> for Drawn<'a> {
    fn from(found: &'a Diagnostic) -> Self {
        Self {
            severity: found.severity,
            code: found.code.as_str(),
            path: &found.path,
            span: found.span,
            message: &found.message,
            hint: found.hint.as_deref(),
            related: found.related.iter().map(RelatedSpan::from).collect(),
            notes: &[],
            details: None,
        }
    }
}

/// Columns that a drawing takes at most.
const WIDTH: usize = 120;
/// Bytes of lines that are drawn: of longer ones, which no person writes, the place alone is told.
const LONGEST: usize = 8 << 10;
/// A finding over more lines is drawn at its first one.
const MOST_LINES: u32 = 6;

/// Draws one finding. `source` is the text of its file; without it, and where the finding is about the file as a whole,
/// only path and place are told. The drawing ends without a line break.
pub fn draw<'a>(found: impl Into<Drawn<'a>>, source: Option<&str>, colour: Colour) -> String {
    let found = found.into();
    let renderer = match colour {
        Colour::Never => Renderer::plain(),
        Colour::Always => Renderer::styled(),
    };
    let level = match found.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Hint => Level::NOTE.with_name("note"),
    };
    let title = level.primary_title(found.message).id(found.code);
    let span = found.span;
    let source = source.map(|source| source.strip_prefix('\u{feff}').unwrap_or(source));
    let excerpt = source.and_then(|source| excerpt(source, span));
    let group: Group<'_> = match excerpt {
        Some((text, range)) => title.element(
            Snippet::source(text)
                .line_start(span.line as usize)
                .path(found.path)
                .annotation(AnnotationKind::Primary.span(range)),
        ),
        None if span == Span::START => title.element(Origin::path(found.path)),
        None => {
            let place = Origin::path(found.path).line(span.line as usize);
            title.element(place.char_column(span.column as usize))
        }
    };
    let notes = found.notes.join("\n");
    let notes = (!notes.is_empty()).then(|| Level::NOTE.with_name("found").message(notes.as_str()));
    let group = match notes {
        Some(notes) => group.element(notes),
        None => group,
    };
    let related: Vec<String> = found.related.iter().map(told).collect();
    let group = group.elements(
        related
            .iter()
            .map(|told| Level::NOTE.with_name("see").message(told.as_str())),
    );
    let hint = found.hint.map(|hint| Level::HELP.with_name("hint").message(hint));
    let group = match hint {
        Some(hint) => group.element(hint),
        None => group,
    };
    let group = match found.details {
        Some(details) => group.element(Level::NOTE.with_name("engine").message(details)),
        None => group,
    };
    renderer.term_width(WIDTH).render(&[group])
}

/// Another place in one line.
fn told(seen: &RelatedSpan<'_>) -> String {
    let RelatedSpan { path, span, message } = seen;
    match *span == Span::START {
        true => format!("{path} ({message})"),
        false => format!("{path}:{}:{} ({message})", span.line, span.column),
    }
}

/// The lines that a finding is about, and its bytes in them. None where they are too long: of these no more is read than it
/// takes to see that, as there may be very many findings in one line.
fn excerpt(source: &str, span: Span) -> Option<(&str, Range<usize>)> {
    if span == Span::START {
        return None;
    }
    let first = span.line.max(1);
    let last = if span.end_line.saturating_sub(first) >= MOST_LINES {
        first
    } else {
        span.end_line.max(first)
    };
    let begin = start_of_line(source, first as usize)?;
    let rest = source.get(begin..)?;
    let near = rest.as_bytes().get(..LONGEST + 2);
    if near.is_some_and(|near| !near.contains(&b'\n')) {
        return None;
    }
    let end_line = rest.split_inclusive('\n').nth((last - first) as usize)?;
    let end = offset(source, end_line) + end_line.trim_end_matches(['\n', '\r']).len();
    let text = source.get(begin..end).filter(|text| text.len() <= LONGEST)?;
    let from = column(text, span.column);
    let to = if last == span.end_line {
        offset(source, end_line) - begin + column(end_line, span.end_column)
    } else {
        text.len()
    };
    let (from, to) = (from.min(text.len()), to.min(text.len()));
    // An empty span still points at something.
    let to = if to > from {
        to
    } else {
        from + text[from..].chars().next().map_or(0, char::len_utf8)
    };
    Some((text, from..to))
}

/// Returns the offset of a line, counted from 1; none if the text has fewer.
fn start_of_line(source: &str, line: usize) -> Option<usize> {
    let start = match line {
        0 | 1 => 0,
        _ => {
            let before = source.split_inclusive('\n').nth(line - 2)?;
            offset(source, before) + before.len()
        }
    };
    (start < source.len()).then_some(start)
}

/// Returns the offset of a part of a text.
fn offset(whole: &str, part: &str) -> usize {
    part.as_ptr() as usize - whole.as_ptr() as usize
}

/// Bytes before a 1-based column of characters.
fn column(line: &str, column: u32) -> usize {
    line.char_indices()
        .nth(column.max(1) as usize - 1)
        .map_or(line.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::Code;

    #[test]
    fn the_place_is_underlined_below_its_line() {
        let diagnostic = Diagnostic {
            path: "models/a.yaml".into(),
            span: Span {
                line: 2,
                column: 1,
                end_line: 2,
                end_column: 12,
            },
            severity: Severity::Warning,
            code: Code::MisspelledKey,
            message: "unknown key \"materialise\" is passed on to the input".into(),
            hint: Some("did you mean `materialize`?".into()),
            resource: None,
            related: Vec::new(),
        };
        let drawn = draw(
            &diagnostic,
            Some("sql: SELECT 'é'\r\nmaterialise: true\r\n"),
            Colour::Never,
        );
        let expected = "\
warning[misspelled-key]: unknown key \"materialise\" is passed on to the input
 --> models/a.yaml:2:1
  |
2 | materialise: true
  | ^^^^^^^^^^^
  |
  = hint: did you mean `materialize`?";
        assert_eq!(drawn, expected);
        assert!(draw(&diagnostic, None, Colour::Never).contains("--> models/a.yaml:2:1"));
    }

    #[test]
    fn places_outside_of_the_text_do_no_harm() {
        for (line, column) in [(1, 99), (99, 1), (0, 0)] {
            let span = Span {
                line,
                column,
                end_line: line + 3,
                end_column: 0,
            };
            let _ = excerpt("a\nb", span);
        }
    }

    #[test]
    fn columns_count_characters() {
        let span = Span {
            line: 1,
            column: 8,
            end_line: 1,
            end_column: 13,
        };
        let (text, range) = excerpt("größe: wrong", span).expect("it is there");
        assert_eq!(&text[range], "wrong");
    }
}
