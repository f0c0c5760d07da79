//! Rendering of findings for people: message, underlined source line, hint.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::{Diagnostic, Related, Severity, Span};

/// The use of colours in a rendered finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Plain text.
    Never,
    /// Text with ANSI escapes.
    Always,
}

/// A borrowed finding, ready to be rendered.
#[derive(Debug, Clone)]
pub struct Drawn<'a> {
    /// The severity of the finding: error, warning or hint.
    pub severity: Severity,
    /// The stable code of the finding.
    pub code: &'a str,
    /// The path of the file with the finding.
    pub path: &'a str,
    /// The place in the file.
    pub span: Span,
    /// The description of the finding.
    pub message: &'a str,
    /// Advice on how to fix the finding, if there is any.
    pub hint: Option<&'a str>,
    /// Other places that the finding refers to, each with a short message.
    pub related: Vec<RelatedSpan<'a>>,
    /// Lines of context, shown as notes.
    pub notes: &'a [String],
    /// The full text of the error, if it says more than the message and is asked for.
    pub details: Option<&'a str>,
}

/// A borrowed place that a finding refers to besides its own.
#[derive(Debug, Clone, Copy)]
pub struct RelatedSpan<'a> {
    /// The path of the other file.
    pub path: &'a str,
    /// The place in the other file.
    pub span: Span,
    /// A few words about the other place.
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

/// The maximum width of a rendered finding, in columns.
const WIDTH: usize = 120;
/// The maximum length of shown source lines, in bytes; for longer ones only the place is shown.
const LONGEST: usize = 8 << 10;
/// The maximum number of source lines shown; of longer spans only the first line is.
const MOST_LINES: u32 = 6;

/// Renders one finding without a final line break. `source` is the text of the file; without it, or if the finding is
/// about the whole file, only path and place are shown.
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

/// Formats another place as one line.
fn told(seen: &RelatedSpan<'_>) -> String {
    let RelatedSpan { path, span, message } = seen;
    match *span == Span::START {
        true => format!("{path} ({message})"),
        false => format!("{path}:{}:{} ({message})", span.line, span.column),
    }
}

/// Returns the lines of a finding and its byte range in them; none if they are too long. Reads only as much as shows
/// that a line is too long, as one line may have many findings.
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

/// Returns the byte offset of a 1-based line; none if the text has fewer lines.
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

/// Returns the byte offset of `part`, a slice of `whole`.
fn offset(whole: &str, part: &str) -> usize {
    part.as_ptr() as usize - whole.as_ptr() as usize
}

/// Returns the number of bytes before a 1-based column, which counts characters.
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
