//! The reason why a request has no answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::documents::ResourceName;
use crate::hint::Hint;

/// The reason why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    /// Kind of the problem, by which programs decide what to do.
    pub code: Code,
    /// Message for people: what was attempted, and what prevented it.
    pub message: String,
    /// Suggested fix; none if none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Hint>,
    /// The error in a statement or a resource that caused the problem; none for other problems.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Box<Mistake>>,
    /// The resource that the problem is about; none if it concerns no resource or several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<Box<ResourceName>>,
    /// The resources that an ambiguous name may mean; empty for other problems.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<ResourceName>,
    /// True if the same request may succeed later without any change by hand.
    pub retryable: bool,
}

/// A mistake in a statement that was sent, or in a file of the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mistake {
    /// Name of the mistake, as `docs/diagnostics.md` lists it.
    pub code: String,
    /// Offset of the mistake in the statement, in bytes; none if the place is unknown.
    pub offset: Option<usize>,
}

impl Problem {
    /// Returns a problem with a code and a message, without a hint.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: None,
            at: None,
            resource: None,
            candidates: Vec::new(),
            retryable: code.is_retryable(),
        }
    }

    /// Adds a hint: a suggested fix.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Hint>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the code of the underlying error, and its offset in the statement if known.
    #[must_use]
    pub fn at(mut self, code: impl Into<String>, offset: Option<usize>) -> Self {
        let code = code.into();
        self.at = Some(Box::new(Mistake { code, offset }));
        self
    }

    /// Adds the resource that the problem is about.
    #[must_use]
    pub fn about(mut self, resource: ResourceName) -> Self {
        self.resource = Some(Box::new(resource));
        self
    }

    /// Returns the problem of a resource that has no rows to write: never built, or of a kind without rows.
    pub fn without_rows(name: &str) -> Self {
        let show = crate::hint::operation("show", [name]);
        Self::new(Code::WrongState, format!("`{name}` has no rows to write"))
            .hint(format!("{show} says what there is of it"))
    }
}
