//! Findings, their codes and places, and how they are drawn.

mod code;
mod draw;
mod finding;
pub mod page;

pub use code::Code;
pub use draw::{Colour, Drawn, RelatedSpan, draw};

pub(crate) use finding::{At, Finding, Findings, Nearby, Role, spot};

pub use crate::text::Span;

use crate::resource::ResourceKey;

/// The severity of a finding. The worse sorts first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Something does not work.
    Error,
    /// Something works and is likely not meant.
    Warning,
    /// Something could be said better.
    Hint,
}

impl Severity {
    /// As documents write it.
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
    /// The severity.
    pub severity: Severity,
    /// The code; stable.
    pub code: Code,
    /// A description: lower case, no full stop, names in quotes or backquotes.
    pub message: String,
    /// A hint.
    pub hint: Option<String>,
    /// The resource that it concerns.
    pub resource: Option<DiagnosticResource>,
    /// Other places that it speaks of: where something was declared first.
    pub related: Vec<Related>,
}

/// Another place that a finding speaks of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Related {
    /// The file's path.
    pub path: String,
    /// The place in it.
    pub span: Span,
    /// A few words about that place.
    pub message: String,
}

/// The resource that a finding concerns.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DiagnosticResource {
    /// Its identity.
    pub key: ResourceKey,
    /// Its name as it was written.
    pub name: String,
}
