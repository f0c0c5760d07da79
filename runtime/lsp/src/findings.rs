//! Diagnostics as editors show them.

use std::collections::{BTreeMap, BTreeSet};

use async_lsp::lsp_types::{
    Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, DiagnosticTag, Location, NumberOrString,
    PublishDiagnosticsParams,
};
use watershed_compilers::{self as compilers, Code, Severity};

use crate::{host::Redactor, position::Lines, workspace::Workspace};

/// The largest number of findings of one file that the editor is sent; further ones are shown once others are fixed.
const MOST: usize = 1_000;

/// The findings that the editor was last sent, by path, so that only changes are sent.
#[derive(Debug, Default)]
pub(crate) struct Published(BTreeMap<String, Shown>);

/// The findings of a file: those of the compiler, and their form for the editor.
#[derive(Debug, Default, PartialEq)]
struct Shown {
    found: Vec<compilers::Diagnostic>,
    shown: Vec<Diagnostic>,
}

impl Published {
    /// Returns the findings of the files where they have changed since they were last sent.
    pub(crate) fn news(&mut self, workspace: &Workspace) -> Vec<PublishDiagnosticsParams> {
        let mut now: BTreeMap<&str, Vec<compilers::Diagnostic>> = BTreeMap::new();
        for found in workspace.project().diagnostics() {
            now.entry(&found.path).or_default().push(found.clone());
        }
        let known = self.0.keys().cloned();
        let paths: BTreeSet<String> = known.chain(now.keys().map(|path| (*path).to_owned())).collect();
        let mut news = Vec::new();
        let mut redactor = None;
        for path in paths {
            let found = now.remove(path.as_str()).unwrap_or_default();
            let before = self.0.get(&path);
            let version = workspace.version(&path);
            // A text that changed moves what is said of it, though its findings may be equal by line and column.
            if version.is_none() && before.is_some_and(|before| before.found == found) {
                continue;
            }
            let redactor = redactor.get_or_insert_with(|| workspace.host().redactor(workspace.project()));
            let shown = shown(&found, workspace, redactor);
            let is_news = before.map_or(!shown.is_empty(), |before| before.shown != shown);
            if is_news && let Some(uri) = workspace.uri(&path) {
                news.push(PublishDiagnosticsParams::new(uri, shown.clone(), version));
            }
            if found.is_empty() {
                self.0.remove(&path);
            } else {
                self.0.insert(path, Shown { found, shown });
            }
        }
        news
    }
}

/// Returns the findings of one file in the form for the editor, without the values of secrets.
fn shown(found: &[compilers::Diagnostic], workspace: &Workspace, redactor: &Redactor) -> Vec<Diagnostic> {
    let Some(first) = found.first() else {
        return Vec::new();
    };
    let text = workspace.text(&first.path);
    let lines = Lines::new(&text);
    let found = found.iter().take(MOST);
    let shown = found.map(|found| {
        let mut shown = one(found, &lines, workspace);
        shown.message = redactor(&shown.message);
        shown
    });
    shown.collect()
}

fn one(found: &compilers::Diagnostic, lines: &Lines<'_>, workspace: &Workspace) -> Diagnostic {
    let severity = match found.severity {
        Severity::Error => DiagnosticSeverity::ERROR,
        Severity::Warning => DiagnosticSeverity::WARNING,
        Severity::Hint => DiagnosticSeverity::HINT,
    };
    let message = match &found.hint {
        Some(hint) => format!("{}\n{hint}", found.message),
        None => found.message.clone(),
    };
    let tags = (found.code == Code::DeprecatedKey).then(|| vec![DiagnosticTag::DEPRECATED]);
    Diagnostic {
        range: lines.range(found.span),
        severity: Some(severity),
        code: Some(NumberOrString::String(found.code.as_str().to_owned())),
        code_description: None,
        source: Some("watershed".to_owned()),
        message,
        related_information: related(found, workspace),
        tags,
        data: None,
    }
}

fn related(
    found: &compilers::Diagnostic,
    workspace: &Workspace,
) -> Option<Vec<DiagnosticRelatedInformation>> {
    let places = found.related.iter().filter_map(|related| {
        let text = workspace.text(&related.path);
        let range = Lines::new(&text).range(related.span);
        let location = Location::new(workspace.uri(&related.path)?, range);
        let message = related.message.clone();
        Some(DiagnosticRelatedInformation { location, message })
    });
    let places: Vec<_> = places.collect();
    (!places.is_empty()).then_some(places)
}
