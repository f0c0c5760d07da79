//! Findings drawn over the line of the file that they are about.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};

use crate::documents::{Diagnostic, Severity};

/// Files larger than this are not compiled either.
const LARGEST_FILE: u64 = 128 * 1024;
/// A finding over more lines is drawn at its first one.
const MOST_LINES: u32 = 6;
/// Width of drawings where no terminal says another.
const WIDTH: usize = 120;
const RENDERER: Renderer = Renderer::styled().term_width(WIDTH);

/// Draws findings; reads each file once.
pub(crate) struct Drawing {
    root: PathBuf,
    files: HashMap<String, Option<String>>,
}

impl Drawing {
    /// Draws findings about files below `root`.
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            root: root.to_path_buf(),
            files: HashMap::new(),
        }
    }

    /// One finding, with an empty line behind it.
    pub(crate) fn draw(&mut self, finding: &Diagnostic) -> String {
        let level = match finding.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Hint => Level::NOTE.with_name("note"),
        };
        let title = level
            .primary_title(finding.message.as_str())
            .id(finding.code.as_str());
        let source = self.source(&finding.path);
        let mut group = match source.and_then(|source| excerpt(source, finding)) {
            Some((text, span)) => title.element(
                Snippet::source(text)
                    .line_start(finding.line as usize)
                    .path(finding.path.as_str())
                    .annotation(AnnotationKind::Primary.span(span)),
            ),
            None if is_whole_file(finding) => title.element(Origin::path(finding.path.as_str())),
            None => {
                let place = Origin::path(finding.path.as_str()).line(finding.line as usize);
                title.element(place.char_column(finding.column as usize))
            }
        };
        if let Some(hint) = &finding.hint {
            group = group.element(Level::HELP.with_name("hint").message(hint.as_str()));
        }
        format!("{}\n\n", RENDERER.render(&[group]))
    }

    fn source(&mut self, path: &str) -> Option<&str> {
        let root = &self.root;
        let file = self
            .files
            .entry(path.to_owned())
            .or_insert_with(|| read(&root.join(path)));
        file.as_deref()
    }
}

fn read(path: &Path) -> Option<String> {
    let size = std::fs::metadata(path).ok()?.len();
    if size > LARGEST_FILE {
        return None;
    }
    let bytes = std::fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// The lines that a finding is about, and its bytes in them.
fn excerpt<'a>(source: &'a str, finding: &Diagnostic) -> Option<(&'a str, Range<usize>)> {
    if is_whole_file(finding) {
        return None;
    }
    let first = finding.line.max(1);
    let last = if finding.end_line.saturating_sub(first) >= MOST_LINES {
        first
    } else {
        finding.end_line.max(first)
    };
    let mut lines = source.split_inclusive('\n').skip(first as usize - 1);
    let begin = offset(source, lines.next()?);
    let end_line = match last - first {
        0 => source.get(begin..)?.split_inclusive('\n').next()?,
        more => lines.nth(more as usize - 1)?,
    };
    let end = offset(source, end_line) + end_line.trim_end_matches(['\n', '\r']).len();
    let text = source.get(begin..end)?;
    let from = column(text, finding.column);
    let to = if last == finding.end_line {
        offset(source, end_line) - begin + column(end_line, finding.end_column)
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

/// Whether a finding is about a file rather than a place in it.
fn is_whole_file(finding: &Diagnostic) -> bool {
    (finding.line, finding.column, finding.end_line, finding.end_column) == (1, 1, 1, 1)
}

/// Where a part of a text begins in it.
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
            resource: None,
        }
    }

    #[test]
    fn a_finding_is_drawn_over_its_line() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join("a.yaml"), "type: model\nmaterialise: true\n").unwrap();
        let drawn = Drawing::new(temp.path()).draw(&finding(2, 1, 2, 12));
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
            let drawn = Drawing::new(temp.path()).draw(&place);
            assert!(drawn.contains("a.yaml"), "{drawn}");
        }
        let missing = Drawing::new(&temp.path().join("nowhere")).draw(&finding(2, 1, 2, 12));
        assert!(
            anstream::adapter::strip_str(&missing)
                .to_string()
                .contains("a.yaml:2:1")
        );
    }

    #[test]
    fn columns_count_characters() {
        let text = "größe: wrong";
        let (excerpt, span) = excerpt(text, &finding(1, 8, 1, 13)).unwrap();
        assert_eq!(&excerpt[span], "wrong");
    }
}
