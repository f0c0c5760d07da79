//! Refusals of a query, each with a place in its JSON form.

use std::fmt;

/// The reasons for which a query is refused; their names are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// A key that queries do not have.
    UnknownKey,
    /// A value of another type than its key takes.
    WrongType,
    /// A key that is missing.
    MissingKey,
    /// Keys that exclude each other, or of which one needs another.
    ConflictingKeys,
    /// A name that no field of the view has, or none that may stand there.
    UnknownField,
    /// A field that the viewer may not see.
    NotAllowed,
    /// Two columns with one name, or a computed one with a field's.
    DuplicateName,
    /// A grain that is no grain, or below the smallest.
    InvalidGrain,
    /// A dimension that is no time is cut to a grain.
    NotATime,
    /// A range or an offset that does not follow the grammar, or a zone that is unknown.
    InvalidRange,
    /// A literal or field of another type than what it is compared with.
    MixedTypes,
    /// A measure over neighbouring groups without the dimension that orders them.
    DimensionRequired,
    /// A limit of queries is exceeded.
    TooLarge,
}

impl Code {
    /// Returns the stable name.
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

/// The error of a query that is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {message}")]
pub struct QueryError {
    /// The reason.
    pub code: Code,
    /// The place in the query's JSON form: `where.cond.exprs[0].name`; `query` for the whole.
    pub at: String,
    /// The mistake, in words.
    pub message: String,
    /// Advice, such as the nearest name.
    pub hint: Option<String>,
}

impl QueryError {
    /// Makes an error at a key of the query.
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

    /// Makes an error at this place.
    pub(super) fn error(&self, code: Code, message: impl Into<String>) -> QueryError {
        QueryError {
            code,
            at: self.to_string(),
            message: message.into(),
            hint: None,
        }
    }

    /// Makes an error about a name, with the nearest one that would do; if none is near, with all or the first of them.
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

/// Names in a hint at most.
const MOST_NAMES: usize = 12;

/// Lists the names to choose from, if there are any.
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
