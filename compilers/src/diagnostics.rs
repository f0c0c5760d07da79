//! Diagnostics: findings about project files, with their codes, places and rendering.

mod code;
mod draw;
mod finding;
pub mod page;

pub use code::Code;
pub use draw::{Colour, Drawn, RelatedSpan, draw};

pub(crate) use finding::{At, Finding, Findings, Nearby, Role, spot};

pub use crate::text::Span;

use crate::resource::ResourceKey;

/// The severity of a finding; the worst sorts first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// A fault that keeps a resource, or a part of it, from working.
    Error,
    /// Input that works but is probably not what the author meant.
    Warning,
    /// A suggestion to write something in a better way.
    Hint,
}

impl Severity {
    /// Returns the word for the severity in documents: `error`, `warning` or `hint`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Hint => "hint",
        }
    }
}

/// A finding about a project file. Ordered by path, place, severity, code.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Diagnostic {
    /// The file's path, without a leading slash.
    pub path: String,
    /// The place in the file.
    pub span: Span,
    /// The severity of the finding, given by its code.
    pub severity: Severity,
    /// The stable code of the finding.
    pub code: Code,
    /// The description: lower case, no full stop, names in quotes or backquotes.
    pub message: String,
    /// Advice on how to fix the finding, if there is any.
    pub hint: Option<String>,
    /// The resource that the finding concerns, if known.
    pub resource: Option<DiagnosticResource>,
    /// Other places that the message refers to, such as the first declaration of a name.
    pub related: Vec<Related>,
}

/// Another place that a finding refers to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Related {
    /// The path of the other file, without a leading slash.
    pub path: String,
    /// The place in the other file.
    pub span: Span,
    /// A few words about the other place, such as "first defined here".
    pub message: String,
}

/// The resource that a finding concerns.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DiagnosticResource {
    /// The kind and name of the resource.
    pub key: ResourceKey,
    /// The resource's name in its original case.
    pub name: String,
}
