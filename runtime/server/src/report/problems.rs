//! Problems of a project, each once: all of a document, or each as it comes up while a command runs.

use std::collections::{BTreeMap, BTreeSet};

use watershed_api::documents::{
    Diagnostic, ResourceDocument, ResourceError, ResourceName, RunDocument, Severity,
};
use watershed_core::Row;
use watershed_reconcilers::project_parser;

use super::{Entry, document, health, kinds, resource};

/// A problem found while a command runs.
#[derive(Debug, Clone)]
pub(crate) enum Problem {
    /// A finding in a file, or one of several findings about a resource.
    Finding(Diagnostic),
    /// The error of a resource, which a finding may report already.
    Failure(Diagnostic),
    /// A finding of the parse before the command: not news, but it has the place of an error that was stored without.
    Earlier(Diagnostic),
}

impl Problem {
    /// Returns the findings in files, from the row of the project parser.
    pub(crate) fn in_files(row: &Row) -> Vec<Self> {
        let findings = kinds::findings(row).unwrap_or_default();
        findings.into_iter().map(Self::Finding).collect()
    }

    /// Returns the findings in files that were stored before the command.
    pub(crate) fn of_before(entries: &[Entry]) -> Vec<Self> {
        let findings = document::findings(entries);
        findings.into_iter().map(Self::Earlier).collect()
    }

    /// Returns true if the finding says that most of the project would be removed.
    pub(crate) fn is_of_removal(&self) -> bool {
        matches!(self, Self::Finding(found) if found.code == project_parser::REMOVAL_CODE)
    }

    /// Returns the problems of a resource after its last run.
    pub(crate) fn after_run(row: &Row) -> Vec<Self> {
        let found = kinds::problems(row);
        let error = health::own_error(row);
        match error.filter(|_| found.iter().all(|found| found.severity != Severity::Error)) {
            None => found.into_iter().map(Self::Finding).collect(),
            Some(error) => {
                let paths: Vec<String> = row.paths.iter().map(ToString::to_string).collect();
                let id = ResourceName::new(row.kind.as_str(), row.name.as_str());
                let failure = diagnose(id, &paths, &resource::failure(error));
                let found = found.into_iter().map(Self::Finding);
                found.chain([Self::Failure(failure)]).collect()
            }
        }
    }
}

/// The findings that a command has already reported, kept so that none is reported twice.
#[derive(Debug, Default)]
pub struct ReportedProblems {
    places: BTreeSet<PlaceAndMessage>,
    /// Resources of which an error was reported.
    about: BTreeSet<ResourceName>,
    /// Pairs of file and message that were reported.
    messages: BTreeSet<(String, String)>,
    /// Findings of the parse before the command, by file and message.
    earlier: BTreeMap<(String, String), Diagnostic>,
}

/// The identity of a finding: path, line, column and message.
type PlaceAndMessage = (String, u32, u32, String);

impl ReportedProblems {
    /// Returns the finding of a problem if it was not reported yet, and records it as reported.
    pub(crate) fn news(&mut self, problem: Problem) -> Option<Diagnostic> {
        let finding = match problem {
            Problem::Finding(finding) => finding,
            Problem::Earlier(finding) => {
                let said = (finding.path.clone(), finding.message.clone());
                self.earlier.insert(said, finding);
                return None;
            }
            Problem::Failure(failure) => {
                let about = failure.resource.as_ref();
                let said = (failure.path.clone(), failure.message.clone());
                if about.is_some_and(|about| self.about.contains(about)) || self.messages.contains(&said) {
                    return None;
                }
                let is_placed = failure.line > 1 || failure.column > 1;
                let found = self.earlier.get(&said);
                match found.filter(|found| !is_placed || place(found) == place(&failure)) {
                    // The finding has a place that ends somewhere, which no stored error has.
                    Some(found) => Diagnostic {
                        severity: Severity::Error,
                        code: failure.code,
                        resource: failure.resource,
                        ..found.clone()
                    },
                    None => failure,
                }
            }
        };
        if finding.severity == Severity::Error {
            self.about.extend(finding.resource.clone());
        }
        self.messages
            .insert((finding.path.clone(), finding.message.clone()));
        self.places.insert(place(&finding)).then_some(finding)
    }

    /// Returns true if a finding was reported.
    pub fn holds(&self, finding: &Diagnostic) -> bool {
        self.places.contains(&place(finding))
    }

    /// Records a finding as reported.
    pub fn add(&mut self, finding: &Diagnostic) {
        self.places.insert(place(finding));
    }
}

/// Returns the identity of a finding: place, code and message without its severity.
fn place(finding: &Diagnostic) -> PlaceAndMessage {
    let Diagnostic {
        path, line, column, ..
    } = finding;
    (path.clone(), *line, *column, finding.message.clone())
}

/// Returns the findings in files, then the failures of resources that no finding reports already.
///
/// A finding that reports a failure counts as an error, whatever its own severity.
pub fn problems(document: &RunDocument) -> Vec<Diagnostic> {
    let failures = || {
        document
            .resources
            .iter()
            .filter(|resource| resource.selected)
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
    let untold = untold.map(|(resource, error)| diagnose(resource.id(), &resource.paths, error));
    let mut all: Vec<Diagnostic> = findings.chain(untold).collect();
    say_once(&mut all);
    all
}

/// Codes of failures with one common cause, whose hint is shown once.
const ONE_CAUSE: [&str; 1] = ["missing-extension"];

fn say_once(problems: &mut [Diagnostic]) {
    let mut said = std::collections::BTreeSet::new();
    for problem in problems
        .iter_mut()
        .filter(|one| ONE_CAUSE.contains(&one.code.as_str()))
    {
        if let Some(hint) = problem.hint.take()
            && said.insert(hint.clone())
        {
            problem.hint = Some(hint);
        }
    }
}

fn says_same(finding: &Diagnostic, resource: &ResourceDocument, error: &ResourceError) -> bool {
    finding.message == error.message
        && (finding.resource.as_ref() == Some(&resource.id())
            || finding.resource.is_none() && resource.paths.contains(&finding.path))
}

/// Converts a resource's own error to a finding, as the compiler reports them.
fn diagnose(resource: ResourceName, paths: &[String], error: &ResourceError) -> Diagnostic {
    let path = paths.first().cloned().unwrap_or_default();
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
        resource: Some(resource),
        related: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(line: u32, end_column: u32, severity: Severity) -> Diagnostic {
        Diagnostic {
            severity,
            code: "invalid-value".to_owned(),
            path: "models/a.sql".to_owned(),
            line,
            column: 1,
            end_line: line,
            end_column,
            message: "invalid cron schedule \"x\"".to_owned(),
            hint: None,
            notes: Vec::new(),
            details: None,
            resource: None,
            related: Vec::new(),
        }
    }

    #[test]
    fn a_stored_error_is_told_at_the_place_that_was_found_before_unless_it_has_another() {
        let earlier = Problem::Earlier(finding(7, 9, Severity::Warning));
        for (line, told_end) in [(7, 9), (1, 9), (8, 2)] {
            let mut reported = ReportedProblems::default();
            assert!(reported.news(earlier.clone()).is_none(), "no news by itself");
            let told = reported.news(Problem::Failure(finding(line, 2, Severity::Error)));
            let told = told.expect("an error that nobody was told of");
            assert_eq!((told.severity, told.end_column), (Severity::Error, told_end));
            let again = Problem::Finding(finding(told.line, 9, Severity::Warning));
            assert!(reported.news(again).is_none(), "the same once more");
        }
    }
}
