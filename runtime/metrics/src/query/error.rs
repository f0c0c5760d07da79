//! Errors of queries, each with its place in the query's JSON.

use std::fmt;

/// The reason why a query is refused, with a stable name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// The query has an unknown key.
    UnknownKey,
    /// A value has another type than its key requires.
    WrongType,
    /// A required key is missing or empty.
    MissingKey,
    /// Keys exclude each other, or a key needs another one.
    ConflictingKeys,
    /// A name is not a field of the view, or the field is not allowed there.
    UnknownField,
    /// The viewer may not see a field.
    NotAllowed,
    /// Two columns have the same name, or a computed column has the name of a field.
    DuplicateName,
    /// A grain is unknown, or below the smallest.
    InvalidGrain,
    /// A dimension that is not a time is cut to a grain.
    NotATime,
    /// A range, an offset or a time zone is invalid.
    InvalidRange,
    /// A literal or field is compared with a value of another type.
    MixedTypes,
    /// A window measure is queried without the dimension that orders it.
    DimensionRequired,
    /// A limit of queries is exceeded.
    TooLarge,
}

impl Code {
    /// Returns the stable name of the reason.
    pub fn name(self) -> &'static str {
        match self {
            Self::UnknownKey => "unknown-key",
            Self::WrongType => "wrong-type",
            Self::MissingKey => "missing-key",
            Self::ConflictingKeys => "conflicting-keys",
            Self::UnknownField => "unknown-field",
            Self::NotAllowed => "not-allowed",
            Self::DuplicateName => "duplicate-name",
            Self::InvalidGrain => "invalid-grain",
            Self::NotATime => "not-a-time",
            Self::InvalidRange => "invalid-range",
            Self::MixedTypes => "mixed-types",
            Self::DimensionRequired => "dimension-required",
            Self::TooLarge => "query-too-large",
        }
    }
}

/// An error that refuses a query, with its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {message}")]
pub struct QueryError {
    /// The reason for the refusal.
    pub code: Code,
    /// The place in the query's JSON, such as `where.cond.exprs[0].name`; `query` for the whole query.
    pub at: String,
    /// The description of the mistake.
    pub message: String,
    /// Advice, such as the nearest known name.
    pub hint: Option<String>,
}

impl QueryError {
    /// Creates an error at a key of the query.
    pub(crate) fn new(code: Code, at: &str, message: impl Into<String>) -> Self {
        Self {
            code,
            at: at.to_owned(),
            message: message.into(),
            hint: None,
        }
    }
}

/// A place in a query's JSON form.
#[derive(Debug, Clone, Copy)]
pub(super) enum At<'p> {
    Query,
    Key(&'p At<'p>, &'p str),
    Item(&'p At<'p>, usize),
}

impl<'p> At<'p> {
    pub(super) fn key(&'p self, key: &'p str) -> Self {
        Self::Key(self, key)
    }

    pub(super) fn item(&'p self, index: usize) -> Self {
        Self::Item(self, index)
    }

    /// Creates an error at this place.
    pub(super) fn error(&self, code: Code, message: impl Into<String>) -> QueryError {
        QueryError {
            code,
            at: self.to_string(),
            message: message.into(),
            hint: None,
        }
    }

    /// Creates an error about an unknown name, with the nearest known name as a hint, or a list of known names if none
    /// is near.
    pub(super) fn unknown<'n>(
        &self,
        code: Code,
        message: String,
        name: &str,
        known: impl Iterator<Item = &'n str>,
    ) -> QueryError {
        let wanted = name.to_lowercase();
        let known: Vec<&str> = known.collect();
        let near = known
            .iter()
            .copied()
            .map(|known| (strsim::osa_distance(&known.to_lowercase(), &wanted), known))
            .filter(|(distance, known)| *distance <= 2.max(known.len() / 3) && *distance < wanted.len())
            .min();
        QueryError {
            hint: near
                .map(|(_, known)| format!("did you mean \"{known}\"?"))
                .or_else(|| choice(&known)),
            ..self.error(code, message)
        }
    }
}

/// The largest number of names in a hint.
const MOST_NAMES: usize = 16;

/// Returns a hint that lists the known names; none if there are none.
pub(super) fn choice(known: &[&str]) -> Option<String> {
    let shown = known.get(..MOST_NAMES).unwrap_or(known).join(", ");
    match known.len().saturating_sub(MOST_NAMES) {
        _ if known.is_empty() => None,
        0 => Some(format!("one of: {shown}")),
        more => Some(format!("one of: {shown} and {more} more")),
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Query => f.write_str("query"),
            Self::Key(Self::Query, key) => f.write_str(key),
            Self::Key(parent, key) => write!(f, "{parent}.{key}"),
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}
