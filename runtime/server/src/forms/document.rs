//! Rows as the JSON document of `query`, written in parts.

use serde::Serialize;
use watershed_api::documents::QueryDocument;
use watershed_drivers::olap::Column;

use super::Cell;

/// A writer of one document.
#[derive(Debug, Default)]
pub struct Document {
    has_rows: bool,
}

impl Document {
    /// Writes everything before the first row.
    pub fn begin(&self, out: &mut Vec<u8>, columns: &[Column]) {
        let columns = serde_json::to_string(columns).unwrap_or_default();
        let schema = QueryDocument::SCHEMA;
        let head = format!("{{\"schema\":\"{schema}\",\"columns\":{columns},\"rows\":[");
        out.extend_from_slice(head.as_bytes());
    }

    /// Writes rows.
    pub fn write<C: Cell>(&mut self, out: &mut Vec<u8>, rows: &[Vec<C>]) {
        for row in rows {
            if std::mem::replace(&mut self.has_rows, true) {
                out.push(b',');
            }
            let mut before = b'[';
            for cell in row {
                out.push(before);
                before = b',';
                cell.write_json(out);
            }
            let end: &[u8] = if before == b'[' { b"[]" } else { b"]" };
            out.extend_from_slice(end);
        }
    }

    /// Writes everything behind the last row: a flag if a limit cut off rows, or the error that ended them.
    pub fn end(self, out: &mut Vec<u8>, ended: Result<bool, &impl Serialize>) {
        let end = match ended {
            Ok(truncated) => format!("],\"truncated\":{truncated}}}"),
            Err(problem) => {
                let problem = serde_json::to_string(problem).unwrap_or_default();
                format!("],\"error\":{problem}}}")
            }
        };
        out.extend_from_slice(end.as_bytes());
    }
}
