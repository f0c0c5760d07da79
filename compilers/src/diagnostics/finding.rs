//! Findings of a group of files, before they are given the paths of the files.

use watershed_proto::Spot;

use super::{Code, Diagnostic, DiagnosticResource, Related, Severity};
use crate::text::Span;

/// The role of a file among those that make up a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Role {
    /// The manifest of the project, such as `rill.yaml`.
    Manifest,
    /// The YAML file of the resource.
    Yaml,
    /// The SQL file of the resource.
    Sql,
    /// A second YAML file of the same stem.
    SecondYaml,
}

/// A place in one of the files of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct At {
    pub(crate) role: Role,
    pub(crate) span: Span,
}

impl At {
    /// Returns the beginning of a file.
    pub(crate) fn start(role: Role) -> Self {
        Self {
            role,
            span: Span::START,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    pub(crate) at: At,
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) related: Vec<Nearby>,
}

/// Another place in the same files that a finding refers to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Nearby {
    pub(crate) at: At,
    pub(crate) message: &'static str,
}

impl Nearby {
    /// Returns the note that something was first declared at a place.
    pub(crate) fn first(at: At) -> Self {
        Self {
            at,
            message: "first defined here",
        }
    }
}

impl Finding {
    /// Returns the diagnostic of the finding in the file at `path`; places in other files are dropped.
    pub(crate) fn in_file(&self, path: &str, resource: Option<&DiagnosticResource>) -> Diagnostic {
        self.in_files(path, resource, |role| (role == self.at.role).then_some(path))
    }

    /// Returns the diagnostic of the finding in the file at `path`; `paths` returns the paths of the other files.
    pub(crate) fn in_files<'a>(
        &self,
        path: &str,
        resource: Option<&DiagnosticResource>,
        paths: impl Fn(Role) -> Option<&'a str>,
    ) -> Diagnostic {
        let related = self.related.iter().filter_map(|nearby| {
            Some(Related {
                path: paths(nearby.at.role)?.to_owned(),
                span: nearby.at.span,
                message: nearby.message.to_owned(),
            })
        });
        Diagnostic {
            path: path.to_owned(),
            span: self.at.span,
            severity: self.code.severity(),
            code: self.code,
            message: self.message.clone(),
            hint: self.hint.clone(),
            resource: resource.cloned(),
            related: related.collect(),
        }
    }
}

/// Returns a place in the form of specs; none if it is not in the resource's YAML file.
pub(crate) fn spot(at: At) -> Option<Spot> {
    (at.role == Role::Yaml).then_some(Spot {
        line: at.span.line,
        column: at.span.column,
    })
}

/// Findings collected so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Findings(Vec<Finding>);

/// The number of findings of a group after which warnings and hints are dropped.
const MAX_LIGHT: usize = 200;

impl Findings {
    /// Returns true if further warnings and hints would be dropped.
    pub(crate) fn is_full(&self) -> bool {
        self.0.len() >= MAX_LIGHT
    }

    pub(crate) fn add(&mut self, at: At, code: Code, message: impl Into<String>) {
        self.push(Finding {
            at,
            code,
            message: message.into(),
            hint: None,
            related: Vec::new(),
        });
    }

    pub(crate) fn add_with_hint(
        &mut self,
        at: At,
        code: Code,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.push(Finding {
            at,
            code,
            message: message.into(),
            hint: Some(hint.into()),
            related: Vec::new(),
        });
    }

    /// Adds a finding about a second declaration, with the place of the first.
    pub(crate) fn add_second(
        &mut self,
        at: At,
        first: Option<At>,
        code: Code,
        message: impl Into<String>,
        hint: Option<&str>,
    ) {
        self.push(Finding {
            at,
            code,
            message: message.into(),
            hint: hint.map(str::to_owned),
            related: first.map(Nearby::first).into_iter().collect(),
        });
    }

    pub(crate) fn push(&mut self, finding: Finding) {
        if finding.code.severity() == Severity::Error || !self.is_full() {
            self.0.push(finding);
        }
    }

    /// Returns true if there are errors, apart from those about a second YAML file, which is not read.
    pub(crate) fn has_errors(&self) -> bool {
        let read = self
            .0
            .iter()
            .filter(|finding| finding.at.role != Role::SecondYaml);
        read.into_iter()
            .any(|finding| finding.code.severity() == Severity::Error)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.0.iter()
    }
}
