//! Statements as trees: what is read, and the expressions over it.

use watershed_dialect::SqlType;

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

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expr {
    /// A column of a relation, or of the only relation that has it.
    Column(Option<String>, String),
    /// An expression of a view's author.
    Foreign(String),
    /// A constant.
    Constant(Constant),
    /// A function or an aggregate over arguments.
    Call(&'static str, Vec<Expr>),
    /// An aggregate over the distinct values of an argument.
    Distinct(&'static str, Box<Expr>),
    /// The number of rows.
    CountAll,
    /// Operands with an operator between them.
    Infix(Infix, Vec<Expr>),
    /// `IS NULL`, or `IS NOT NULL`.
    IsNull(Box<Expr>, bool),
    /// True where the operand is not true.
    IsNotTrue(Box<Expr>),
    /// The first result whose condition holds.
    Case(Vec<(Expr, Expr)>, Option<Box<Expr>>),
    /// A conversion.
    Cast(Box<Expr>, SqlType),
    /// Equal to one of some constants, or to none.
    Among(Box<Expr>, Vec<Expr>, bool),
    /// Equal to one of a statement's values.
    InSelect(Box<Expr>, Box<Select>),
    /// A statement has rows.
    Exists(Box<Select>),
    /// The only value of a statement.
    Scalar(Box<Select>),
    /// A list.
    List(Vec<Expr>),
    /// Named values.
    Struct(Vec<(String, Expr)>),
    /// The elements of a list for which a condition on the named parameter holds.
    Elements(Box<Expr>, String, Box<Expr>),
    /// A function of an author over neighbouring groups.
    Over {
        function: String,
        partition: Vec<Expr>,
        order: Vec<Order>,
        frame: String,
    },
    /// A place among rows in an order: `row_number` or `dense_rank`.
    Rank(&'static str, Vec<Order>),
    /// The list of an expression's values in all rows that agree in another.
    Gathered(Box<Expr>, Box<Expr>),
    /// The same value, of which the engine's statistics say nothing, and through which it moves no condition.
    Opaque(Box<Expr>),
}

/// A constant.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Constant {
    Null,
    Boolean(bool),
    Integer(i64),
    Text(String),
    /// A value of a type, by its text.
    Typed(String, SqlType),
}

/// Operators between operands.
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

    /// Names a column.
    pub(crate) fn column(name: impl Into<String>) -> Self {
        Self::Column(None, name.into())
    }

    /// Names a column of a relation.
    pub(crate) fn of(relation: &str, name: impl Into<String>) -> Self {
        Self::Column(Some(relation.to_owned()), name.into())
    }

    /// Makes a constant of a type.
    pub(crate) fn typed(text: impl Into<String>, data_type: SqlType) -> Self {
        Self::Constant(Constant::Typed(text.into(), data_type))
    }

    /// Makes a constant of text.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Constant(Constant::Text(text.into()))
    }

    /// Puts an operator between two operands.
    pub(crate) fn infix(self, operator: Infix, right: Self) -> Self {
        Self::Infix(operator, vec![self, right])
    }

    /// Joins conditions: all must hold; without any, true.
    pub(crate) fn all(mut conditions: Vec<Self>) -> Self {
        match conditions.len() {
            0 => Self::TRUE,
            1 => conditions.remove(0),
            _ => Self::Infix(Infix::And, conditions),
        }
    }

    /// Joins conditions: one must hold; without any, false.
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

    /// Returns true unless evaluation can't fail, whatever the values are.
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

    /// Returns a condition of the same meaning whose parts are evaluated one after the other, each only where those before
    /// it leave it open. AND and OR promise no order, and an engine stops early in one plan and not in another.
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

    /// Replaces NULL.
    pub(crate) fn or(self, other: Self) -> Self {
        Self::Call("coalesce", vec![self, other])
    }

    /// Chooses between two results.
    pub(crate) fn when(condition: Self, then: Self, otherwise: Self) -> Self {
        Self::Case(vec![(condition, then)], Some(Box::new(otherwise)))
    }
}
