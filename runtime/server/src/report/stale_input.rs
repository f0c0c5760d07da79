//! Models that were built from old rows of a ref that has failed.

use watershed_api::documents::{Diagnostic, ResourceName, Severity};
use watershed_core::{ErrorKind, Row};
use watershed_proto::{Message as _, ModelStateGlance};
use watershed_reconcilers::model::STALE_INPUT;

use super::health::is_dependency;

/// Returns a warning if the model was built from old rows of a ref that still fails.
pub(super) fn finding(row: &Row) -> Option<Diagnostic> {
    let error = row.error.as_deref().filter(|error| is_dependency(error))?;
    let ErrorKind::Dependency(failed) = &error.kind else {
        return None;
    };
    let state = ModelStateGlance::decode(row.state.as_deref()?).ok()?;
    state.stale_input.then(|| Diagnostic {
        severity: Severity::Warning,
        code: STALE_INPUT.to_owned(),
        path: row.paths.first().map(ToString::to_string).unwrap_or_default(),
        line: 1,
        column: 1,
        end_line: 1,
        end_column: 1,
        message: format!(
            "\"{}\" was built from the last good rows of {} \"{}\", which has failed",
            row.name, failed.kind, failed.name
        ),
        hint: Some("it is built again when that is mended".to_owned()),
        notes: Vec::new(),
        details: None,
        resource: Some(ResourceName::new(row.kind.as_str(), row.name.as_str())),
        related: Vec::new(),
    })
}
