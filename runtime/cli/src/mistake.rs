//! An error in a typed statement, drawn over its line.

use watershed_api::Mistake as Named;
use watershed_api::documents::At;
use watershed_compilers::diagnostics::{Colour, Drawn, Span, draw};
use watershed_drivers::olap::TextPosition;

/// The name shown in place of a file's for a statement that was typed.
pub(super) const TYPED: &str = "query";

/// The engine's error in a statement, with the statement if it is known.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct Mistake {
    pub(super) message: String,
    pub(super) named: Named,
    /// The name of the statement's file, and its text; none if unknown.
    pub(super) text: Option<(String, String)>,
}

impl Mistake {
    /// Returns the place of the error; none if the engine named none.
    pub(super) fn at(&self) -> Option<At> {
        let ((path, sql), offset) = self.text.as_ref().zip(self.named.offset)?;
        let place = TextPosition::at_byte(sql, offset.min(sql.len()));
        Some(At {
            path: path.clone(),
            line: number(place.line),
            column: number(place.column),
        })
    }

    /// Draws the error over its line; none if no place is known.
    pub(super) fn drawn(&self, hint: Option<&str>) -> Option<String> {
        let at = self.at()?;
        let (path, sql) = self.text.as_ref()?;
        let drawn = Drawn {
            severity: watershed_compilers::Severity::Error,
            code: &self.named.code,
            path,
            span: Span {
                line: at.line,
                column: at.column,
                end_line: at.line,
                end_column: at.column + 1,
            },
            message: &self.message,
            hint,
            related: Vec::new(),
            notes: &[],
            details: None,
        };
        Some(format!("{}\n", draw(drawn, Some(sql), Colour::Always)))
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
