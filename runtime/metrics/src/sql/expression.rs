//! Expressions of a statement.

use super::select::{Order, Select};

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

/// Types that are written into statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SqlType {
    /// Truth.
    Boolean,
    /// A type of integers.
    Integer(Integer),
    /// A width and a scale.
    Decimal(u8, u8),
    /// 32 bits.
    Float,
    /// 64 bits.
    Double,
    /// Text.
    Text,
    /// A day.
    Date,
    /// A time without a zone.
    Timestamp,
    /// An instant.
    Instant,
}

/// A type of integers with its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Integer {
    pub(crate) name: &'static str,
    pub(crate) lowest: i128,
    pub(crate) highest: i128,
}

const INTEGERS: [Integer; 9] = [
    Integer::new("TINYINT", i8::MIN as i128, i8::MAX as i128),
    Integer::new("SMALLINT", i16::MIN as i128, i16::MAX as i128),
    Integer::new("INTEGER", i32::MIN as i128, i32::MAX as i128),
    Integer::new("BIGINT", i64::MIN as i128, i64::MAX as i128),
    Integer::new("HUGEINT", i128::MIN, i128::MAX),
    Integer::new("UTINYINT", 0, u8::MAX as i128),
    Integer::new("USMALLINT", 0, u16::MAX as i128),
    Integer::new("UINTEGER", 0, u32::MAX as i128),
    Integer::new("UBIGINT", 0, u64::MAX as i128),
];

impl Integer {
    const fn new(name: &'static str, lowest: i128, highest: i128) -> Self {
        Self {
            name,
            lowest,
            highest,
        }
    }
}

impl SqlType {
    /// Reads the engine's name of a type; `None` for those that no constant is written in.
    pub(crate) fn of(engine_name: &str) -> Option<Self> {
        let name = engine_name.trim().to_ascii_uppercase();
        if let Some(integer) = INTEGERS.iter().find(|integer| integer.name == name) {
            return Some(Self::Integer(*integer));
        }
        if let Some(inner) = name
            .strip_prefix("DECIMAL(")
            .and_then(|rest| rest.strip_suffix(')'))
        {
            let (width, scale) = inner.split_once(',')?;
            return Some(Self::Decimal(
                width.trim().parse().ok()?,
                scale.trim().parse().ok()?,
            ));
        }
        Some(match name.as_str() {
            "BOOLEAN" => Self::Boolean,
            "FLOAT" => Self::Float,
            "DOUBLE" => Self::Double,
            "VARCHAR" => Self::Text,
            "DATE" => Self::Date,
            "TIMESTAMP" => Self::Timestamp,
            "TIMESTAMP WITH TIME ZONE" => Self::Instant,
            _ => return None,
        })
    }
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

    /// Replaces NULL.
    pub(crate) fn or(self, other: Self) -> Self {
        Self::Call("coalesce", vec![self, other])
    }

    /// Chooses between two results.
    pub(crate) fn when(condition: Self, then: Self, otherwise: Self) -> Self {
        Self::Case(vec![(condition, then)], Some(Box::new(otherwise)))
    }
}
