//! Filters: trees of conditions on dimensions and measures.

/// A node in the tree of a filter: a field, a value, or an operation.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    /// The name of a field or computed column.
    Name(String),
    /// A literal value, or a list of values.
    Value(Literal),
    /// An operation on other nodes.
    Condition {
        /// The operator that joins the operands.
        op: Operator,
        /// The operands, in order.
        operands: Vec<Filter>,
    },
    /// The values of a dimension in groups that meet a condition.
    Subquery(Box<Subquery>),
}

/// A literal, as in JSON.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// No value.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A number, with as many of its written digits as JSON keeps.
    Number(serde_json::Number),
    /// A text; also a date or time.
    Text(String),
    /// A list of values, for `in` and `nin`.
    List(Vec<Literal>),
}

/// The values of a dimension in groups that meet a condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Subquery {
    /// The name of the dimension whose values are used.
    pub dimension: String,
    /// The names of measures that `having` may use.
    pub measures: Vec<String>,
    /// The condition on rows, if any.
    pub r#where: Option<Filter>,
    /// The condition on groups, if any.
    pub having: Option<Filter>,
}

/// An operator of filters: logical, or a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    /// True if all operands are true, also without any.
    And,
    /// True if an operand is true; false without any.
    Or,
    /// True if the operand is not true.
    Not,
    /// Equal; with null, true for missing values.
    Eq,
    /// Not equal; with null, true for present values.
    Neq,
    /// Less than.
    Lt,
    /// Less than or equal.
    Lte,
    /// Greater than.
    Gt,
    /// Greater than or equal.
    Gte,
    /// Matches an SQL pattern, case-sensitively.
    Like,
    /// Matches an SQL pattern, ignoring case.
    Ilike,
    /// Does not match an SQL pattern, case-sensitively; true for missing values.
    Nlike,
    /// Does not match an SQL pattern, ignoring case; true for missing values.
    Nilike,
    /// Is in a list or subquery.
    In,
    /// Is not in a list or subquery; true for missing values, unless null is listed.
    Nin,
}

impl Operator {
    /// All operators with their names in JSON.
    pub(super) const NAMES: [(&'static str, Self); 15] = [
        ("and", Self::And),
        ("or", Self::Or),
        ("not", Self::Not),
        ("eq", Self::Eq),
        ("neq", Self::Neq),
        ("lt", Self::Lt),
        ("lte", Self::Lte),
        ("gt", Self::Gt),
        ("gte", Self::Gte),
        ("like", Self::Like),
        ("ilike", Self::Ilike),
        ("nlike", Self::Nlike),
        ("nilike", Self::Nilike),
        ("in", Self::In),
        ("nin", Self::Nin),
    ];

    /// Returns true if the operands are conditions.
    pub fn is_logical(self) -> bool {
        matches!(self, Self::And | Self::Or | Self::Not)
    }

    /// Returns true if the second operand is an SQL pattern.
    pub fn is_pattern(self) -> bool {
        matches!(self, Self::Like | Self::Ilike | Self::Nlike | Self::Nilike)
    }
}
