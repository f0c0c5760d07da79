//! The text of an open document, and its edits.

use std::sync::Arc;

use async_lsp::lsp_types::{TextDocumentContentChangeEvent, Url};
use watershed_compilers::{FileEvent, FileProblem};

use crate::position::byte_at;

/// The largest number of bytes of a document that are kept: far more than are compiled, so that a file that grows too
/// large is reported as such, and can shrink again.
const MOST_BYTES: usize = 4 << 20;

/// A document that is open in the editor.
#[derive(Debug)]
pub(crate) struct Document {
    /// The address by which the editor refers to the document.
    pub(crate) uri: Url,
    pub(crate) version: i32,
    text: Text,
}

/// The text of an open document.
#[derive(Debug)]
enum Text {
    Known(String),
    /// The length in bytes of a text that is too large to keep. Edits are ignored until the editor sends the whole
    /// text.
    TooLarge(usize),
}

impl Document {
    pub(crate) fn new(uri: Url, version: i32, text: String) -> Self {
        Self {
            uri,
            version,
            text: Text::of(text),
        }
    }

    /// Returns the number of bytes that are kept of the text.
    pub(crate) fn bytes(&self) -> usize {
        match &self.text {
            Text::Known(text) => text.len(),
            Text::TooLarge(_) => 0,
        }
    }

    /// Applies an edit of the editor to the text.
    pub(crate) fn edit(&mut self, change: TextDocumentContentChangeEvent) {
        let Some(range) = change.range else {
            self.text = Text::of(change.text);
            return;
        };
        let Text::Known(text) = &mut self.text else { return };
        let (start, end) = (byte_at(text, range.start), byte_at(text, range.end));
        text.replace_range(start..end.max(start), &change.text);
        if text.len() > MOST_BYTES {
            self.text = Text::TooLarge(text.len());
        }
    }

    /// Returns the event that tells the compiler of the document's text, under a path.
    pub(crate) fn event(&self, path: &str) -> FileEvent {
        let path = path.to_owned();
        match &self.text {
            Text::Known(text) => FileEvent::Written {
                path,
                content: Arc::from(text.as_bytes()),
            },
            Text::TooLarge(bytes) => FileEvent::Unreadable {
                path,
                problem: FileProblem::TooLarge(u64::try_from(*bytes).unwrap_or(u64::MAX)),
            },
        }
    }
}

impl Text {
    fn of(text: String) -> Self {
        match text.len() {
            bytes if bytes > MOST_BYTES => Text::TooLarge(bytes),
            _ => Text::Known(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use async_lsp::lsp_types::{Position, Range};

    use super::*;

    fn document(text: &str) -> Document {
        let uri = Url::parse("file:///a.sql").expect("an address");
        Document::new(uri, 1, text.to_owned())
    }

    fn edit(document: &mut Document, range: Option<((u32, u32), (u32, u32))>, text: &str) {
        let position = |(line, character)| Position::new(line, character);
        document.edit(TextDocumentContentChangeEvent {
            range: range.map(|(start, end)| Range::new(position(start), position(end))),
            range_length: None,
            text: text.to_owned(),
        });
    }

    fn text(document: &Document) -> String {
        match document.event("a.sql") {
            FileEvent::Written { content, .. } => String::from_utf8_lossy(&content).into_owned(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn edits_count_as_the_editor_does_and_never_leave_the_text() {
        let mut document = document("SELECT '\u{1F600}' AS a\nFROM b");
        edit(&mut document, Some(((0, 15), (0, 15))), "x");
        assert_eq!(text(&document), "SELECT '\u{1F600}' AS xa\nFROM b");
        edit(&mut document, Some(((1, 5), (9, 9))), "c");
        assert_eq!(text(&document), "SELECT '\u{1F600}' AS xa\nFROM c");
        edit(&mut document, Some(((1, 5), (0, 0))), "d");
        assert_eq!(text(&document), "SELECT '\u{1F600}' AS xa\nFROM dc");
        edit(&mut document, None, "SELECT 1");
        assert_eq!(text(&document), "SELECT 1");
    }

    #[test]
    fn a_document_that_is_too_large_is_said_to_be_until_it_is_sent_whole() {
        let mut document = document(&"a".repeat(MOST_BYTES));
        edit(&mut document, Some(((0, 0), (0, 0))), "b");
        assert!(text(&document).contains("TooLarge"));
        edit(&mut document, Some(((0, 0), (0, 1))), "");
        assert!(text(&document).contains("TooLarge"));
        edit(&mut document, None, "a");
        assert_eq!(text(&document), "a");
    }
}
