//! Everything that is wrong by a document, each mistake once; and while a command runs, each as it comes.

use std::collections::BTreeSet;

use watershed_api::documents::{
    Diagnostic, ResourceDocument, ResourceError, ResourceName, RunDocument, Severity,
};
use watershed_core::Row;
use watershed_reconcilers::project_parser;

use super::{health, kinds, resource};

/// Something that was found to be wrong while a command runs.
#[derive(Debug, Clone)]
pub(crate) enum Problem {
    /// In a file, or one of several things that are wrong with a resource.
    Finding(Diagnostic),
    /// The failure of a resource, which a finding may tell already.
    Failure(Diagnostic),
}

impl Problem {
    /// Returns the findings in files that the row of the project parser holds.
    pub(crate) fn in_files(row: &Row) -> Vec<Self> {
        let findings = kinds::findings(row).unwrap_or_default();
        findings.into_iter().map(Self::Finding).collect()
    }

    /// Returns whether it says that most of the project goes.
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

/// The findings that were told while a command runs, so that nothing is told twice.
#[derive(Debug, Default)]
pub struct ReportedProblems {
    places: BTreeSet<(String, u32, u32, String)>,
    /// Resources of which an error was told.
    about: BTreeSet<ResourceName>,
    /// The messages that were told of each file.
    messages: BTreeSet<(String, String)>,
}

impl ReportedProblems {
    /// The finding of a problem that was not told yet; from now on it counts as told.
    pub(crate) fn news(&mut self, problem: Problem) -> Option<Diagnostic> {
        let finding = match problem {
            Problem::Finding(finding) => finding,
            Problem::Failure(failure) => {
                let about = failure.resource.as_ref();
                let said = (failure.path.clone(), failure.message.clone());
                if about.is_some_and(|about| self.about.contains(about)) || self.messages.contains(&said) {
                    return None;
                }
                failure
            }
        };
        if finding.severity == Severity::Error {
            self.about.extend(finding.resource.clone());
        }
        self.messages
            .insert((finding.path.clone(), finding.message.clone()));
        self.places.insert(place(&finding)).then_some(finding)
    }

    /// Returns true if a finding was told.
    pub fn holds(&self, finding: &Diagnostic) -> bool {
        self.places.contains(&place(finding))
    }

    /// Counts a finding as told.
    pub fn add(&mut self, finding: &Diagnostic) {
        self.places.insert(place(finding));
    }
}

/// Returns the parts by which two findings are the same, whatever the severity.
fn place(finding: &Diagnostic) -> (String, u32, u32, String) {
    let Diagnostic {
        path, line, column, ..
    } = finding;
    (path.clone(), *line, *column, finding.message.clone())
}

/// Findings in files and failures of resources, in that order. A failure that a finding tells of already is told by
/// it alone, with more of its place: as an error, whatever it was before something failed because of it.
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

/// Failures that have one cause outside of all of them, with the code of their hint: what helps is said with the first.
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

/// A resource's own failure as a finding, to be drawn like those of the compiler.
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
