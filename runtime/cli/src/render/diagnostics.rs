//! Findings drawn over the line of the file that they are about.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use watershed_api::documents::{Diagnostic, RelatedPlace, Severity};
use watershed_compilers::diagnostics::{Colour, Drawn, RelatedSpan, Span, draw};
use watershed_drivers::regular;

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
    files: HashMap<String, Option<String>>,
}

impl Drawing {
    /// Returns a renderer of findings in files below `root`.
    pub(crate) fn new(root: &Path, details: Details) -> Self {
        Self {
            root: root.to_path_buf(),
            details,
            files: HashMap::new(),
        }
    }

    /// Renders a finding, followed by an empty line.
    pub(crate) fn draw(&mut self, finding: &Diagnostic) -> String {
        let details = self.details;
        let path = visible(&finding.path);
        let source = self.source(&finding.path);
        let drawn = Drawn {
            path: &path,
            ..drawn(finding, details)
        };
        format!("{}\n\n", draw(drawn, source, Colour::Always))
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
        let drawn = Drawing::new(temp.path(), Details::Left).draw(&finding(2, 1, 2, 12));
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
    fn a_place_outside_the_file_is_told_without_a_drawing() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join("a.yaml"), "x").unwrap();
        for place in [
            finding(9, 1, 9, 2),
            finding(1, 90, 1, 95),
            finding(1, 1, 40, 1),
            finding(0, 0, 0, 0),
        ] {
            let drawn = Drawing::new(temp.path(), Details::Left).draw(&place);
            assert!(drawn.contains("a.yaml"), "{drawn}");
        }
        let missing = Drawing::new(&temp.path().join("nowhere"), Details::Left).draw(&finding(2, 1, 2, 12));
        assert!(
            anstream::adapter::strip_str(&missing)
                .to_string()
                .contains("a.yaml:2:1")
        );
    }
}
