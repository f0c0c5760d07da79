//! Outputs whose name hides a view of the engine.

use watershed_api::documents::{Diagnostic, ResourceName, Severity};
use watershed_core::Row;
use watershed_dialect::{Dialect as _, ENGINE};

/// Returns a warning if the name of a resource's output hides a view of the engine.
pub(super) fn finding(row: &Row, output: &str) -> Option<Diagnostic> {
    let own = ENGINE
        .own_views()
        .iter()
        .find(|own| output.eq_ignore_ascii_case(own))?;
    let hint =
        "give it another name; `SHOW TABLES`, and what else looks for the engine's view, fails until then";
    Some(Diagnostic {
        severity: Severity::Warning,
        code: "hides-engine-view".to_owned(),
        path: row.paths.first().map(ToString::to_string).unwrap_or_default(),
        line: 1,
        column: 1,
        end_line: 1,
        end_column: 1,
        message: format!("\"{output}\" hides the engine's own view `{own}`"),
        hint: Some(hint.to_owned()),
        notes: Vec::new(),
        details: None,
        resource: Some(ResourceName {
            kind: row.kind.to_string(),
            name: row.name.to_string(),
        }),
        related: Vec::new(),
    })
}
