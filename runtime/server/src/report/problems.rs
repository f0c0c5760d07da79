//! Everything that is wrong by a document, each mistake once.

use crate::documents::{Diagnostic, ResourceDocument, ResourceError, RunDocument, Severity};

/// Findings in files and failures of resources, in that order. A failure that a finding tells of already is told by
/// it alone, with more of its place: as an error, whatever it was before something failed because of it.
pub(crate) fn problems(document: &RunDocument) -> Vec<Diagnostic> {
    let failures = || {
        document
            .resources
            .iter()
            .filter_map(|resource| Some((resource, resource.error.as_ref()?)))
    };
    let findings = document.diagnostics.iter().map(|finding| {
        let failed = failures().find(|(resource, error)| says_same(finding, resource, error));
        match failed {
            Some((_, error)) if finding.severity != Severity::Error => Diagnostic {
                severity: Severity::Error,
                code: error.code.clone(),
                ..finding.clone()
            },
            _ => finding.clone(),
        }
    });
    let untold = failures().filter(|(resource, error)| {
        let tells = |finding: &Diagnostic| {
            let is_error =
                finding.severity == Severity::Error && finding.resource.as_ref() == Some(&resource.id());
            is_error || says_same(finding, resource, error)
        };
        !document.diagnostics.iter().any(tells)
    });
    let untold = untold.map(|(resource, error)| of_failure(resource, error));
    findings.chain(untold).collect()
}

fn says_same(finding: &Diagnostic, resource: &ResourceDocument, error: &ResourceError) -> bool {
    finding.message == error.message
        && (finding.resource.as_ref() == Some(&resource.id())
            || finding.resource.is_none() && resource.paths.contains(&finding.path))
}

/// A resource's own failure as a finding, to be drawn like those of the compiler.
fn of_failure(resource: &ResourceDocument, error: &ResourceError) -> Diagnostic {
    let path = resource.paths.first().cloned().unwrap_or_default();
    let (path, line, column, end_column) = match &error.at {
        Some(at) => (at.path.clone(), at.line, at.column, at.column + 1),
        None => (path, 1, 1, 1),
    };
    Diagnostic {
        severity: Severity::Error,
        code: error.code.clone(),
        path,
        line,
        column,
        end_line: line,
        end_column,
        message: error.message.clone(),
        hint: error.hint.clone(),
        notes: Vec::new(),
        details: error.details.clone(),
        resource: Some(resource.id()),
    }
}
