//! Literals of filters as constants of the compared type. The column itself is never cast in a way that can fail, since
//! a failure would reveal a hidden value (Q6).

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

use watershed_dialect::{Dialect as _, ENGINE, SqlType};

use super::clock;
use crate::query::{Literal, Operator};
use crate::sql::{Expr, Infix};
use crate::view::DataType;

/// A value to be compared, with its type.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Operand {
    pub(super) value: Expr,
    pub(super) data_type: DataType,
    pub(super) engine_type: String,
}

/// A number as a constant of a column's type.
enum Number {
    /// The number is a value of the type.
    Exact(Expr),
    /// The number lies between the two nearest values of the type, either of which may not exist.
    Between(Option<Expr>, Option<Expr>),
    /// The type has no exact constants, so that both sides are compared as 64-bit floating-point numbers.
    Approximate(Expr),
}

impl Operand {
    /// Returns the comparison of the value with a literal.
    pub(super) fn compare(&self, operator: Operator, literal: &Literal) -> Expr {
        match (operator, literal) {
            (Operator::Eq, Literal::Null) => return self.value.clone().missing(),
            (Operator::Neq, Literal::Null) => return self.value.clone().present(),
            (Operator::Nlike | Operator::Nilike, Literal::Null) => return Expr::TRUE,
            (_, Literal::Null | Literal::List(_)) => return Expr::FALSE,
            _ => {}
        }
        if let (Some(infix), Literal::Text(pattern)) = (pattern(operator), literal) {
            let found = self.as_text().infix(infix, Expr::text(pattern));
            return match operator {
                Operator::Nlike | Operator::Nilike => found.untrue(),
                _ => found,
            };
        }
        let Some(infix) = ordering(operator) else {
            return Expr::FALSE;
        };
        if let Literal::Number(number) = literal {
            return self.compare_number(infix, number);
        }
        match self.constant(literal) {
            Some(constant) => self.comparable().infix(infix, constant),
            None => Expr::FALSE,
        }
    }

    /// Returns the condition that the value is in a list; NULL is if the list contains null.
    pub(super) fn among(&self, literals: &[&Literal]) -> Expr {
        let has_null = literals.contains(&&Literal::Null);
        let mut approximate = Vec::new();
        let mut constants = Vec::new();
        for literal in literals {
            match literal {
                Literal::Null | Literal::List(_) => {}
                Literal::Number(number) => match number_of(number, &self.engine_type) {
                    Number::Exact(constant) => constants.push(constant),
                    Number::Approximate(constant) => approximate.push(constant),
                    Number::Between(..) => {}
                },
                literal => constants.extend(self.constant(literal)),
            }
        }
        let mut parts = Vec::new();
        if !constants.is_empty() {
            parts.push(Expr::Among(Box::new(self.comparable()), constants, true));
        }
        if !approximate.is_empty() {
            let value = self.value.clone().cast(SqlType::Double);
            parts.push(Expr::Among(Box::new(value), approximate, true));
        }
        if has_null {
            parts.push(self.value.clone().missing());
        }
        Expr::any(parts)
    }

    /// Returns the comparison of the value with another field of the same type.
    pub(super) fn compare_field(&self, operator: Operator, other: &Self) -> Expr {
        let Some(infix) = ordering(operator) else {
            return Expr::FALSE;
        };
        if self.data_type == DataType::Number && self.engine_type != other.engine_type {
            let left = self.value.clone().cast(SqlType::Double);
            return left.infix(infix, other.value.clone().cast(SqlType::Double));
        }
        self.comparable().infix(infix, other.comparable())
    }

    fn compare_number(&self, infix: Infix, number: &serde_json::Number) -> Expr {
        match number_of(number, &self.engine_type) {
            Number::Exact(constant) => self.value.clone().infix(infix, constant),
            Number::Approximate(constant) => {
                let value = self.value.clone().cast(SqlType::Double);
                value.infix(infix, constant)
            }
            Number::Between(below, above) => {
                let (infix, bound) = match infix {
                    Infix::Less | Infix::LessOrEqual => (Infix::LessOrEqual, below),
                    Infix::Greater | Infix::GreaterOrEqual => (Infix::GreaterOrEqual, above),
                    Infix::NotEqual => return self.value.clone().present(),
                    _ => return Expr::FALSE,
                };
                match bound {
                    Some(bound) => self.value.clone().infix(infix, bound),
                    None => Expr::FALSE,
                }
            }
        }
    }

    /// Returns the value in the type of its constants: enums and the like as text.
    fn comparable(&self) -> Expr {
        match self.data_type {
            DataType::Text => self.as_text(),
            _ => self.value.clone(),
        }
    }

    /// Returns the value as text, a conversion that can't fail.
    fn as_text(&self) -> Expr {
        if self.engine_type.eq_ignore_ascii_case("VARCHAR") {
            return self.value.clone();
        }
        self.value.clone().cast(SqlType::Text)
    }

    fn constant(&self, literal: &Literal) -> Option<Expr> {
        match (self.data_type, literal) {
            (_, Literal::Boolean(flag)) => Some(if *flag { Expr::TRUE } else { Expr::FALSE }),
            (DataType::Date, Literal::Text(text)) => {
                let date: Date = text.parse().ok()?;
                Some(Expr::typed(date.to_string(), SqlType::Date))
            }
            (DataType::Timestamp, Literal::Text(text)) => Some(clock::timestamp(moment(text)?)),
            (DataType::Instant, Literal::Text(text)) => {
                Some(Expr::typed(clock::local_text(moment(text)?), SqlType::Instant))
            }
            (_, Literal::Text(text)) => Some(Expr::text(text)),
            _ => None,
        }
    }
}

/// Parses a time; without an offset it is UTC.
fn moment(text: &str) -> Option<Timestamp> {
    let utc = |local: DateTime| local.to_zoned(TimeZone::UTC).ok().map(|at| at.timestamp());
    text.parse::<Timestamp>()
        .ok()
        .or_else(|| text.parse::<DateTime>().ok().and_then(utc))
        .or_else(|| {
            text.parse::<Date>()
                .ok()
                .and_then(|date| utc(date.at(0, 0, 0, 0)))
        })
}

/// Returns a number as a constant of an engine's type.
fn number_of(number: &serde_json::Number, engine_type: &str) -> Number {
    let text = number.to_string();
    match ENGINE.read_type(engine_type) {
        Some(SqlType::Integer(integer)) => {
            let constant = |value: i128| Expr::typed(value.to_string(), SqlType::Integer(integer));
            let (below, above) = neighbours(number);
            if below == above && (integer.lowest()..=integer.highest()).contains(&below) {
                return Number::Exact(constant(below));
            }
            let lower = (below >= integer.lowest()).then(|| constant(below.min(integer.highest())));
            let upper = (above <= integer.highest()).then(|| constant(above.max(integer.lowest())));
            Number::Between(lower, upper)
        }
        Some(SqlType::Decimal(width, scale)) if fits_decimal(&text, width, scale) => {
            Number::Exact(Expr::typed(text, SqlType::Decimal(width, scale)))
        }
        Some(SqlType::Float) if is_float(number) => Number::Exact(Expr::typed(text, SqlType::Float)),
        Some(SqlType::Double) => Number::Exact(Expr::typed(text, SqlType::Double)),
        _ => Number::Approximate(Expr::typed(text, SqlType::Double)),
    }
}

/// Returns the nearest integers below and above a number; both equal the number if it is an integer.
fn neighbours(number: &serde_json::Number) -> (i128, i128) {
    if let Some(value) = number.as_i64() {
        return (i128::from(value), i128::from(value));
    }
    if let Some(value) = number.as_u64() {
        return (i128::from(value), i128::from(value));
    }
    let value = number.as_f64().unwrap_or_default();
    // Saturates at the ends of the widest type, which is where every comparison has its answer already.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "rounded beforehand, and saturating"
    )]
    let ends = (value.floor() as i128, value.ceil() as i128);
    ends
}

/// Returns true if a decimal type holds the number with all digits as written.
fn fits_decimal(text: &str, width: u8, scale: u8) -> bool {
    let digits = text.trim_start_matches('-');
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = whole.trim_start_matches('0');
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let fraction = fraction.trim_end_matches('0');
    plain && fraction.len() <= usize::from(scale) && whole.len() <= usize::from(width.saturating_sub(scale))
}

fn is_float(number: &serde_json::Number) -> bool {
    let value = number.as_f64().unwrap_or(f64::INFINITY);
    value.abs() <= f64::from(f32::MAX)
}

fn pattern(operator: Operator) -> Option<Infix> {
    match operator {
        Operator::Like | Operator::Nlike => Some(Infix::Like),
        Operator::Ilike | Operator::Nilike => Some(Infix::Ilike),
        _ => None,
    }
}

fn ordering(operator: Operator) -> Option<Infix> {
    Some(match operator {
        Operator::Eq => Infix::Equal,
        Operator::Neq => Infix::NotEqual,
        Operator::Lt => Infix::Less,
        Operator::Lte => Infix::LessOrEqual,
        Operator::Gt => Infix::Greater,
        Operator::Gte => Infix::GreaterOrEqual,
        _ => return None,
    })
}
