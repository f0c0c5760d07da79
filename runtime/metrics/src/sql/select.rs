//! Statements and the relations that they read.

use super::expression::Expr;

/// A statement that reads.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Select {
    /// Named statements that this one and the later ones among them may read.
    pub(crate) with: Vec<(String, Select)>,
    /// One row of those that agree in a column.
    pub(crate) distinct_on: Option<Expr>,
    /// Equal rows once.
    pub(crate) distinct: bool,
    /// All columns of what is read, before those listed.
    pub(crate) star: bool,
    /// Columns with their names.
    pub(crate) columns: Vec<(Expr, String)>,
    pub(crate) from: Option<Relation>,
    pub(crate) filter: Option<Expr>,
    /// The first so many columns are grouped by.
    pub(crate) group_by: usize,
    pub(crate) order: Vec<Order>,
    pub(crate) limit: Option<u64>,
    pub(crate) offset: u64,
    /// Rows of further statements, behind the own ones.
    pub(crate) union: Vec<Select>,
}

/// A column that rows are ordered by; what has no value comes last both ways (Q11).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Order {
    pub(crate) by: Expr,
    pub(crate) descending: bool,
}

impl Order {
    /// Orders from the smallest.
    pub(crate) fn ascending(by: Expr) -> Self {
        Self {
            by,
            descending: false,
        }
    }
}

/// Something that rows are read from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Relation {
    /// A table by the parts of its name, or a named statement.
    Named(Vec<String>),
    /// A statement under a name.
    Select(Box<Select>, String),
    /// Rows of constants under a name, with the names of columns.
    Rows(Vec<Vec<Expr>>, String, Vec<String>),
    /// Several, joined from the left.
    Joined(Box<Relation>, Vec<Join>),
}

/// A relation that is joined to those before it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Join {
    pub(crate) kind: JoinKind,
    pub(crate) relation: Relation,
    pub(crate) on: Option<Expr>,
}

/// Kinds of joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JoinKind {
    Inner,
    Left,
    Full,
    Cross,
}

impl Relation {
    /// Names a statement of `with`.
    pub(crate) fn named(name: &str) -> Self {
        Self::Named(vec![name.to_owned()])
    }

    /// Joins another relation.
    pub(crate) fn join(self, kind: JoinKind, relation: Self, on: Option<Expr>) -> Self {
        let join = Join { kind, relation, on };
        match self {
            Self::Joined(first, mut joins) => {
                joins.push(join);
                Self::Joined(first, joins)
            }
            first => Self::Joined(Box::new(first), vec![join]),
        }
    }
}

impl Select {
    /// Reads a relation.
    pub(crate) fn from(relation: Relation) -> Self {
        Self {
            from: Some(relation),
            ..Self::default()
        }
    }

    /// Reads all columns of a relation, and more beside them.
    pub(crate) fn all_from(relation: Relation) -> Self {
        Self {
            star: true,
            ..Self::from(relation)
        }
    }

    /// Adds a column.
    #[must_use]
    pub(crate) fn column(mut self, value: Expr, name: impl Into<String>) -> Self {
        self.columns.push((value, name.into()));
        self
    }

    /// Adds a column where there is none: a statement has one at least.
    #[must_use]
    pub(crate) fn with_a_column(self) -> Self {
        if self.columns.is_empty() && !self.star {
            return self.column(Expr::TRUE, "_watershed row");
        }
        self
    }

    /// Adds a condition that rows meet.
    #[must_use]
    pub(crate) fn only(mut self, condition: Expr) -> Self {
        self.filter = Some(match self.filter {
            None => condition,
            Some(filter) => Expr::all(vec![filter, condition]),
        });
        self
    }
}
