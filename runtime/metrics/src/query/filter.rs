//! Filters: conditions on dimensions and measures, as trees.

/// A part of a filter.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    /// A field or computed column.
    Name(String),
    /// A value, or a list of values.
    Value(Literal),
    /// An operation on others.
    Condition {
        /// The operation.
        op: Operator,
        /// Its operands.
        operands: Vec<Filter>,
    },
    /// The values of a dimension in groups that meet conditions.
    Subquery(Box<Subquery>),
}

/// A value as JSON writes it.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// No value.
    Null,
    /// Truth.
    Boolean(bool),
    /// A number, with the digits that it was written with as far as JSON keeps them.
    Number(serde_json::Number),
    /// Text, also that of days and times.
    Text(String),
    /// Several values, for `in` and `nin`.
    List(Vec<Literal>),
}

/// The values of a dimension in groups that meet conditions.
#[derive(Debug, Clone, PartialEq)]
pub struct Subquery {
    /// The dimension whose values are meant.
    pub dimension: String,
    /// The measures that `having` may name.
    pub measures: Vec<String>,
    /// The rows that groups are made of.
    pub r#where: Option<Filter>,
    /// The groups that count.
    pub having: Option<Filter>,
}

/// The operations of filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    /// All operands hold; without any, true.
    And,
    /// One operand holds; without any, false.
    Or,
    /// The operand does not hold.
    Not,
    /// Equal; with null: has no value.
    Eq,
    /// Not equal; with null: has a value.
    Neq,
    /// Less.
    Lt,
    /// Less or equal.
    Lte,
    /// Greater.
    Gt,
    /// Greater or equal.
    Gte,
    /// Matches an SQL pattern.
    Like,
    /// Matches an SQL pattern in any case.
    Ilike,
    /// Does not match an SQL pattern; what has no value stays.
    Nlike,
    /// Does not match an SQL pattern in any case; what has no value stays.
    Nilike,
    /// Is among values.
    In,
    /// Is not among values; what has no value stays, unless null is among them.
    Nin,
}

impl Operator {
    /// All operations with their names.
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

    /// Returns true if the second operand is a pattern.
    pub fn is_pattern(self) -> bool {
        matches!(self, Self::Like | Self::Ilike | Self::Nlike | Self::Nilike)
    }
}
