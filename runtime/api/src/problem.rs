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
    /// The kind of the problem.
    pub code: Code,
    /// The attempt, and the obstacle.
    pub message: String,
    /// A remedy to try; none if none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Hint>,
    /// The mistake in a statement or a resource that is to blame; none if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Box<Mistake>>,
    /// The resource that the problem is about; none if it is about no single one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<Box<ResourceName>>,
    /// The candidates among which the name that was given does not decide; empty unless it is ambiguous.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<ResourceName>,
    /// True if the same request may succeed later, without anything being changed by hand.
    pub retryable: bool,
}

/// A mistake in a statement that was sent, or in a file of the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mistake {
    /// The name of the mistake, as `docs/diagnostics.md` lists it.
    pub code: String,
    /// The place, in bytes of the statement; none if no place is known.
    pub offset: Option<usize>,
}

impl Problem {
    /// Returns a problem without a hint.
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

    /// Adds something that may help.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Hint>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Names the mistake that is to blame.
    #[must_use]
    pub fn at(mut self, code: impl Into<String>, offset: Option<usize>) -> Self {
        let code = code.into();
        self.at = Some(Box::new(Mistake { code, offset }));
        self
    }

    /// Names the resource that the problem is about.
    #[must_use]
    pub fn about(mut self, resource: ResourceName) -> Self {
        self.resource = Some(Box::new(resource));
        self
    }

    /// Refuses to write the rows of a resource that has none: it was never built, or is of a kind without rows.
    pub fn without_rows(name: &str) -> Self {
        let show = crate::hint::operation("show", [name]);
        Self::new(Code::WrongState, format!("`{name}` has no rows to write"))
            .hint(format!("{show} says what there is of it"))
    }
}
