//! Findings drawn over the line of the file that they are about.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use watershed_api::documents::{Diagnostic, RelatedPlace, Severity};
use watershed_compilers::diagnostics::{Colour, Drawn, RelatedSpan, Span, draw};
use watershed_drivers::regular;

use super::paragraph::{folded, seen_width};

/// Largest file that is read for a drawing, in bytes: larger ones are not compiled either.
const LARGEST_FILE: usize = 128 * 1024;

/// The amount of detail in drawn findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Details {
    /// With everything that the engine said.
    Shown,
    /// With the reason and the hint alone.
    Left,
}

/// A renderer of findings, which reads each file once.
pub(crate) struct Drawing {
    root: PathBuf,
    details: Details,
    /// Width of the terminal, in columns, if known.
    width: Option<u16>,
    files: HashMap<String, Option<String>>,
}

impl Drawing {
    /// Returns a renderer of findings in files below `root`, for a terminal of `width` columns if there is one.
    pub(crate) fn new(root: &Path, details: Details, width: Option<u16>) -> Self {
        Self {
            root: root.to_path_buf(),
            details,
            width,
            files: HashMap::new(),
        }
    }

    /// Renders a finding, followed by an empty line.
    pub(crate) fn draw(&mut self, finding: &Diagnostic) -> String {
        let (details, width) = (self.details, self.width);
        let path = visible(&finding.path);
        let source = self.source(&finding.path);
        let drawn = Drawn {
            path: &path,
            ..drawn(finding, details)
        };
        format!("{}\n", fitted(&draw(drawn, source, Colour::Always), width))
    }

    fn source(&mut self, path: &str) -> Option<&str> {
        // Its lines are values, which are not shown.
        if path.ends_with(".env") {
            return None;
        }
        let root = &self.root;
        let file = self
            .files
            .entry(path.to_owned())
            .or_insert_with(|| read(&root.join(path)));
        file.as_deref()
    }
}

/// Breaks the message and the remarks of a drawn finding at the width of the terminal; lines of the file stay as they are.
pub(crate) fn fitted(drawn: &str, width: Option<u16>) -> String {
    let line = |(number, line): (usize, &str)| {
        let plain = anstream::adapter::strip_str(line).to_string();
        let is_wide = width.is_some_and(|width| seen_width(line) > usize::from(width));
        match plain.find(": ") {
            _ if !is_wide => format!("{line}\n"),
            _ if number == 0 => folded(line, MESSAGE_INDENT, width),
            Some(label) if plain.trim_start().starts_with("= ") => folded(line, label + 2, width),
            _ => format!("{line}\n"),
        }
    };
    drawn.lines().enumerate().map(line).collect()
}

/// Indent of the further lines of a finding's message, in columns.
const MESSAGE_INDENT: usize = 2;

/// Returns a path in one line: a file's name may hold line feeds.
fn visible(path: &str) -> Cow<'_, str> {
    if path.chars().any(char::is_control) {
        return Cow::Owned(
            path.chars()
                .map(|c| if c.is_control() { '␣' } else { c })
                .collect(),
        );
    }
    Cow::Borrowed(path)
}

fn read(path: &Path) -> Option<String> {
    let bytes = regular::read(path, LARGEST_FILE).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

fn drawn(finding: &Diagnostic, details: Details) -> Drawn<'_> {
    Drawn {
        severity: match finding.severity {
            Severity::Error => watershed_compilers::Severity::Error,
            Severity::Warning => watershed_compilers::Severity::Warning,
            Severity::Hint => watershed_compilers::Severity::Hint,
        },
        code: &finding.code,
        path: &finding.path,
        span: Span {
            line: finding.line,
            column: finding.column,
            end_line: finding.end_line,
            end_column: finding.end_column,
        },
        message: &finding.message,
        hint: finding.hint.as_deref(),
        related: finding.related.iter().map(seen).collect(),
        notes: &finding.notes,
        details: finding.details.as_deref().filter(|_| details == Details::Shown),
    }
}

fn seen(place: &RelatedPlace) -> RelatedSpan<'_> {
    RelatedSpan {
        path: &place.path,
        span: Span {
            line: place.line,
            column: place.column,
            end_line: place.end_line,
            end_column: place.end_column,
        },
        message: &place.message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(line: u32, column: u32, end_line: u32, end_column: u32) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            code: "unknown-key".into(),
            path: "a.yaml".into(),
            line,
            column,
            end_line,
            end_column,
            message: "unknown key `materialise`".into(),
            hint: Some("did you mean `materialize`?".into()),
            notes: Vec::new(),
            details: None,
            resource: None,
            related: Vec::new(),
        }
    }

    #[test]
    fn a_finding_is_drawn_over_its_line() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join("a.yaml"), "type: model\nmaterialise: true\n").unwrap();
        let drawn = Drawing::new(temp.path(), Details::Left, None).draw(&finding(2, 1, 2, 12));
        let plain = anstream::adapter::strip_str(&drawn).to_string();
        assert!(
            plain.starts_with("error[unknown-key]: unknown key `materialise`\n"),
            "{plain}"
        );
        assert!(plain.contains("a.yaml:2:1"), "{plain}");
        assert!(plain.contains("^^^^^^^^^^^\n"), "{plain}");
        assert!(plain.contains("hint: did you mean"), "{plain}");
    }

    #[test]
    fn message_and_hint_are_broken_at_blanks_and_the_line_of_the_file_is_not() {
        let temp = tempfile::tempdir().unwrap();
        let line = format!("materialise: true # {}", "why ".repeat(20));
        std::fs::write(temp.path().join("a.yaml"), format!("type: model\n{line}\n")).unwrap();
        let drawn = Drawing::new(temp.path(), Details::Left, Some(36)).draw(&finding(2, 1, 2, 12));
        let plain = anstream::adapter::strip_str(&drawn).to_string();
        assert!(
            plain.starts_with("error[unknown-key]: unknown key\n  `materialise`\n"),
            "{plain}"
        );
        assert!(plain.contains(line.trim_end()), "{plain}");
        assert!(
            plain.ends_with("  = hint: did you mean\n          `materialize`?\n\n"),
            "{plain}"
        );
    }

    #[test]
    fn a_place_outside_the_file_is_told_without_a_drawing() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join("a.yaml"), "x").unwrap();
        for place in [
            finding(9, 1, 9, 2),
            finding(1, 90, 1, 95),
            finding(1, 1, 40, 1),
            finding(0, 0, 0, 0),
        ] {
            let drawn = Drawing::new(temp.path(), Details::Left, None).draw(&place);
            assert!(drawn.contains("a.yaml"), "{drawn}");
        }
        let missing =
            Drawing::new(&temp.path().join("nowhere"), Details::Left, None).draw(&finding(2, 1, 2, 12));
        assert!(
            anstream::adapter::strip_str(&missing)
                .to_string()
                .contains("a.yaml:2:1")
        );
    }
}
