//! Findings drawn for people: the message, the source line with the place underlined, the hint.

use std::{borrow::Cow, ops::Range};

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::{Diagnostic, Severity, Span};

/// Whether a drawing has colours; who draws to what decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Plain text.
    Never,
    /// ANSI escapes.
    Always,
}

/// Columns that a drawing takes at most.
const WIDTH: usize = 140;

/// Draws one finding. `source` is the text of its file, as [`Project::source`](crate::Project::source) has it; without
/// it only path and place are told. The drawing ends without a line break.
pub fn draw(diagnostic: &Diagnostic, source: Option<&str>, colour: Colour) -> String {
    let renderer = match colour {
        Colour::Never => Renderer::plain(),
        Colour::Always => Renderer::styled(),
    };
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Hint => Level::HELP.with_name("hint"),
    };
    let title = level
        .primary_title(diagnostic.message.as_str())
        .id(diagnostic.code.as_str());
    let span = diagnostic.span;
    let group: Group<'_> = match source.and_then(|source| excerpt(source, span)) {
        Some((text, range)) => title.element(
            Snippet::source(text)
                .path(diagnostic.path.as_str())
                .line_start(span.line as usize)
                .annotation(AnnotationKind::Primary.span(range)),
        ),
        None => title.element(
            Origin::path(diagnostic.path.as_str())
                .line(span.line as usize)
                .char_column(span.column as usize),
        ),
    };
    let hint = diagnostic.hint.as_deref().map(|hint| Level::HELP.message(hint));
    let group = match hint {
        Some(hint) => group.element(hint),
        None => group,
    };
    renderer.term_width(WIDTH).render(&[group])
}

/// The lines of a place, and the place as a range of bytes in them.
fn excerpt(source: &str, span: Span) -> Option<(Cow<'_, str>, Range<usize>)> {
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    let lines: Vec<&str> = source
        .split('\n')
        .skip(span.line.saturating_sub(1) as usize)
        .take((span.end_line.max(span.line) - span.line) as usize + 1)
        .map(|line| line.strip_suffix('\r').unwrap_or(line))
        .collect();
    let first = lines.first()?;
    let byte = |line: &str, column: u32| {
        let characters = column.saturating_sub(1) as usize;
        line.char_indices()
            .nth(characters)
            .map_or(line.len(), |(at, _)| at)
    };
    let before_last: usize = lines.iter().rev().skip(1).map(|line| line.len() + 1).sum();
    let start = byte(first, span.column);
    let end = before_last + byte(lines.last()?, span.end_column);
    Some((lines.join("\n").into(), start..end.max(start)))
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
  = help: did you mean `materialize`?";
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
}
