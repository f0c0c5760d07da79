//! Trees of SQL statements: SELECTs, relations and expressions.

use watershed_dialect::SqlType;

/// A SELECT statement, as a tree.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Select {
    /// Named subqueries (CTEs), which the statement and later subqueries can read.
    pub(crate) with: Vec<(String, Select)>,
    /// The expression of which each value keeps one row (`DISTINCT ON`), if any.
    pub(crate) distinct_on: Option<Expr>,
    /// True if equal rows appear once.
    pub(crate) distinct: bool,
    /// True if all columns of the relation come before the listed ones.
    pub(crate) star: bool,
    /// Expressions with the names of their columns.
    pub(crate) columns: Vec<(Expr, String)>,
    pub(crate) from: Option<Relation>,
    pub(crate) filter: Option<Expr>,
    /// The number of leading columns that rows are grouped by.
    pub(crate) group_by: usize,
    pub(crate) order: Vec<Order>,
    pub(crate) limit: Option<u64>,
    pub(crate) offset: u64,
    /// Further statements whose rows are appended (`UNION ALL`).
    pub(crate) union: Vec<Select>,
}

/// An expression that rows are ordered by; NULL comes last in both directions (Q11).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Order {
    pub(crate) by: Expr,
    pub(crate) descending: bool,
}

impl Order {
    /// Returns the ascending order by an expression.
    pub(crate) fn ascending(by: Expr) -> Self {
        Self {
            by,
            descending: false,
        }
    }
}

/// A relation that rows are read from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Relation {
    /// A table, by the parts of its name, or a named subquery.
    Named(Vec<String>),
    /// A statement with an alias.
    Select(Box<Select>, String),
    /// Rows of constants with an alias and the names of columns.
    Rows(Vec<Vec<Expr>>, String, Vec<String>),
    /// Several relations, joined from left to right.
    Joined(Box<Relation>, Vec<Join>),
}

/// A relation to be joined to the previous ones.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Join {
    pub(crate) kind: JoinKind,
    pub(crate) relation: Relation,
    pub(crate) on: Option<Expr>,
}

/// The kind of a join: inner, left, full or cross.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JoinKind {
    Inner,
    Left,
    Full,
    Cross,
}

impl Relation {
    /// Returns the named subquery of `with` as a relation.
    pub(crate) fn named(name: &str) -> Self {
        Self::Named(vec![name.to_owned()])
    }

    /// Joins another relation to this relation.
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
    /// Creates a statement that reads a relation, without columns.
    pub(crate) fn from(relation: Relation) -> Self {
        Self {
            from: Some(relation),
            ..Self::default()
        }
    }

    /// Creates a statement that reads all columns of a relation, to which more can be added.
    pub(crate) fn all_from(relation: Relation) -> Self {
        Self {
            star: true,
            ..Self::from(relation)
        }
    }

    /// Adds a column to the statement.
    #[must_use]
    pub(crate) fn column(mut self, value: Expr, name: impl Into<String>) -> Self {
        self.columns.push((value, name.into()));
        self
    }

    /// Adds a column if there is none, since a statement needs one.
    #[must_use]
    pub(crate) fn with_a_column(self) -> Self {
        if self.columns.is_empty() && !self.star {
            return self.column(Expr::TRUE, "_watershed row");
        }
        self
    }

    /// Adds a condition on rows, joined to previous ones by AND.
    #[must_use]
    pub(crate) fn only(mut self, condition: Expr) -> Self {
        self.filter = Some(match self.filter {
            None => condition,
            Some(filter) => Expr::all(vec![filter, condition]),
        });
        self
    }
}

/// An expression in a SELECT statement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expr {
    /// A column, qualified with a relation if needed.
    Column(Option<String>, String),
    /// An expression by the view's author, as text.
    Foreign(String),
    /// A literal value.
    Constant(Constant),
    /// A call of a function or aggregate.
    Call(&'static str, Vec<Expr>),
    /// An aggregate over the distinct values of its argument.
    Distinct(&'static str, Box<Expr>),
    /// The number of rows (`count(*)`).
    CountAll,
    /// Operands joined by an operator.
    Infix(Infix, Vec<Expr>),
    /// `IS NULL`, or `IS NOT NULL` if false.
    IsNull(Box<Expr>, bool),
    /// `IS NOT TRUE`: true if the operand is false or NULL.
    IsNotTrue(Box<Expr>),
    /// `CASE`: the first result whose condition is true, or else the default.
    Case(Vec<(Expr, Expr)>, Option<Box<Expr>>),
    /// A cast of an expression to a type.
    Cast(Box<Expr>, SqlType),
    /// `IN` a list of constants, or `NOT IN`.
    Among(Box<Expr>, Vec<Expr>, bool),
    /// `IN` the values of a statement.
    InSelect(Box<Expr>, Box<Select>),
    /// `EXISTS`: true if a statement has rows.
    Exists(Box<Select>),
    /// The only value of a statement.
    Scalar(Box<Select>),
    /// A list of the values of expressions.
    List(Vec<Expr>),
    /// A struct of named values.
    Struct(Vec<(String, Expr)>),
    /// The elements of a list for which a condition on the named parameter is true.
    Elements(Box<Expr>, String, Box<Expr>),
    /// An author's expression over a window of neighbouring groups.
    Over {
        function: String,
        partition: Vec<Expr>,
        order: Vec<Order>,
        frame: String,
    },
    /// The rank of a row in an order: `row_number` or `dense_rank`.
    Rank(&'static str, Vec<Order>),
    /// The list of an expression's values in all rows with the same value of another expression.
    Gathered(Box<Expr>, Box<Expr>),
    /// The same value, hidden from the engine's statistics and from moved conditions.
    Opaque(Box<Expr>),
}

/// A value that is written as a literal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Constant {
    Null,
    Boolean(bool),
    Integer(i64),
    Text(String),
    /// A value of a type, given as text.
    Typed(String, SqlType),
}

/// An operator between operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Infix {
    And,
    Or,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Same,
    Like,
    Ilike,
    Plus,
    Minus,
    Divided,
}

impl Expr {
    pub(crate) const TRUE: Self = Self::Constant(Constant::Boolean(true));
    pub(crate) const FALSE: Self = Self::Constant(Constant::Boolean(false));
    pub(crate) const NULL: Self = Self::Constant(Constant::Null);

    /// Returns the expression for a column without the name of its relation.
    pub(crate) fn column(name: impl Into<String>) -> Self {
        Self::Column(None, name.into())
    }

    /// Returns the expression for a column of a named relation.
    pub(crate) fn of(relation: &str, name: impl Into<String>) -> Self {
        Self::Column(Some(relation.to_owned()), name.into())
    }

    /// Returns a constant of a type, given as text.
    pub(crate) fn typed(text: impl Into<String>, data_type: SqlType) -> Self {
        Self::Constant(Constant::Typed(text.into(), data_type))
    }

    /// Returns the expression for a text constant.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Constant(Constant::Text(text.into()))
    }

    /// Returns the operation on two operands.
    pub(crate) fn infix(self, operator: Infix, right: Self) -> Self {
        Self::Infix(operator, vec![self, right])
    }

    /// Joins conditions by AND; true if there are none.
    pub(crate) fn all(mut conditions: Vec<Self>) -> Self {
        match conditions.len() {
            0 => Self::TRUE,
            1 => conditions.remove(0),
            _ => Self::Infix(Infix::And, conditions),
        }
    }

    /// Joins conditions by OR; false if there are none.
    pub(crate) fn any(mut conditions: Vec<Self>) -> Self {
        match conditions.len() {
            0 => Self::FALSE,
            1 => conditions.remove(0),
            _ => Self::Infix(Infix::Or, conditions),
        }
    }

    pub(crate) fn missing(self) -> Self {
        Self::IsNull(Box::new(self), true)
    }

    pub(crate) fn present(self) -> Self {
        Self::IsNull(Box::new(self), false)
    }

    pub(crate) fn untrue(self) -> Self {
        Self::IsNotTrue(Box::new(self))
    }

    pub(crate) fn cast(self, data_type: SqlType) -> Self {
        Self::Cast(Box::new(self), data_type)
    }

    /// Returns true unless the evaluation can't fail for any values.
    pub(crate) fn may_fail(&self) -> bool {
        match self {
            Self::Column(..) | Self::Constant(_) => false,
            Self::Infix(operator, operands) => {
                let arithmetic = matches!(operator, Infix::Plus | Infix::Minus | Infix::Divided);
                arithmetic || operands.iter().any(Self::may_fail)
            }
            Self::IsNull(operand, _) | Self::IsNotTrue(operand) => operand.may_fail(),
            Self::Among(operand, values, _) => operand.may_fail() || values.iter().any(Self::may_fail),
            _ => true,
        }
    }

    /// Returns an equivalent condition whose parts are evaluated in order, each only if the previous ones leave the
    /// result open. AND and OR guarantee no order.
    pub(crate) fn in_order(self) -> Self {
        match self {
            Self::Infix(operator @ (Infix::And | Infix::Or), operands)
                if operands.iter().any(Self::may_fail) =>
            {
                let mut operands = operands.into_iter().map(Self::in_order).rev();
                let last = operands.next().unwrap_or(Self::TRUE);
                operands.fold(last, |rest, first| match operator {
                    Infix::And => Self::when(first, rest, Self::FALSE),
                    _ => Self::when(first, Self::TRUE, rest),
                })
            }
            Self::IsNotTrue(operand) => operand.in_order().untrue(),
            other => other,
        }
    }

    /// Replaces NULL by another value.
    pub(crate) fn or(self, other: Self) -> Self {
        Self::Call("coalesce", vec![self, other])
    }

    /// Chooses between two results by a condition.
    pub(crate) fn when(condition: Self, then: Self, otherwise: Self) -> Self {
        Self::Case(vec![(condition, then)], Some(Box::new(otherwise)))
    }
}
