//! Conversion between types: whether values fit into another type, and the common type of two.
//!
//! A value is held if the cast makes the same value of it, and the cast back the one that it was. So a number may become a longer
//! one or a text, and nothing is rounded, cut or set to another zone. Whatever is not known here holds itself alone.

use super::{ColumnType, Field, Integer, Tick};

/// The most digits of a decimal type.
const MOST_DIGITS: u8 = 38;
/// Number of decimal digits that a DOUBLE always preserves.
const DIGITS_OF_DOUBLE: u8 = 15;
/// Number of decimal digits that a FLOAT always preserves.
const DIGITS_OF_FLOAT: u8 = 6;

/// Compatibility of a type with the values of another, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::duckdb) enum Fit {
    /// All values fit.
    Always,
    /// Some values fit: those that survive a cast there and back.
    Looked,
    /// No value fits.
    Never,
}

impl Fit {
    fn when(holds: bool) -> Self {
        match holds {
            true => Self::Always,
            false => Self::Never,
        }
    }

    /// Returns the fit of a composite type: the worst of its parts.
    fn of_all(parts: impl IntoIterator<Item = Self>) -> Self {
        parts.into_iter().max().unwrap_or(Self::Always)
    }
}

/// Returns the fit of another type's values into a column.
pub(in crate::duckdb) fn fit(into: &ColumnType, from: &ColumnType) -> Fit {
    use ColumnType as T;
    if into == from {
        return Fit::Always;
    }
    match (into, from) {
        (_, T::Null) => Fit::Always,
        (T::Float | T::Double, T::Float | T::Integer(_) | T::Decimal { .. }) => fit_inexact(into, from),
        (T::Integer(_) | T::Decimal { .. }, T::Integer(_) | T::Decimal { .. }) => fit_exact(into, from),
        (T::Timestamp(into), T::Date | T::Timestamp(_)) => fit_timestamp(*into, from),
        (T::List(into), T::List(from) | T::Array(from, _)) => fit(into, from),
        (T::Array(into, size), T::Array(from, other)) if size == other => fit(into, from),
        (T::Struct(into), T::Struct(from)) | (T::Union(into), T::Union(from)) => fit_fields(into, from),
        (T::Tuple(into), T::Tuple(from)) if into.len() == from.len() => {
            Fit::of_all(into.iter().zip(from).map(|(into, from)| fit(into, from)))
        }
        (T::Map(key, value), T::Map(other_key, other_value)) => {
            Fit::of_all([fit(key, other_key), fit(value, other_value)])
        }
        (into, from) => Fit::when(holds_scalar(into, from)),
    }
}

/// Returns the fit into an exact number: a shorter type may refuse large values, and decimals are never rounded.
fn fit_exact(into: &ColumnType, from: &ColumnType) -> Fit {
    use ColumnType as T;
    let ((whole, scale), (other_whole, other_scale)) = (digits(into), digits(from));
    let holds = match (into, from) {
        (T::Integer(into), T::Integer(from)) => holds_integer(*into, *from),
        (T::Integer(into), T::Decimal { width, scale: 0 }) => into.signed && *width <= into.whole_digits(),
        (T::Integer(_), _) => return Fit::Never,
        _ if other_scale > scale => return Fit::Never,
        _ => other_whole <= whole,
    };
    match (holds, into, from) {
        (true, _, _) => Fit::Always,
        // The engine can't try that: one that is too large ends the transaction.
        (false, T::Decimal { .. }, T::Integer(Integer { bits: 128, .. })) => Fit::Never,
        (false, _, _) => Fit::Looked,
    }
}

/// Returns the fit into a floating-point number, which holds most exact numbers in practice.
fn fit_inexact(into: &ColumnType, from: &ColumnType) -> Fit {
    use ColumnType as T;
    let (bits, most_digits) = match into {
        T::Float => (f32::MANTISSA_DIGITS, DIGITS_OF_FLOAT),
        _ => (f64::MANTISSA_DIGITS, DIGITS_OF_DOUBLE),
    };
    let holds = match from {
        T::Integer(from) => from.value_bits() <= bits,
        T::Decimal { width, .. } => *width <= most_digits,
        _ => true,
    };
    match holds {
        true => Fit::Always,
        false => Fit::Looked,
    }
}

/// Returns the fit into a timestamp. Microsecond timestamps hold dates and coarser units; other units have other
/// ranges, and the engine casts none of them to another.
fn fit_timestamp(into: Tick, from: &ColumnType) -> Fit {
    use ColumnType as T;
    match (into, from) {
        (Tick::Second | Tick::Micro, T::Date) => Fit::Always,
        (Tick::Milli | Tick::Nano, T::Date) => Fit::Looked,
        (Tick::Micro, T::Timestamp(Tick::Second | Tick::Milli)) => Fit::Always,
        (Tick::Nano, T::Timestamp(Tick::Micro)) => Fit::Looked,
        _ => Fit::Never,
    }
}

/// Returns the fit into a structure: missing fields become NULL, and additional ones do not fit.
fn fit_fields(into: &[Field], from: &[Field]) -> Fit {
    let fits = |field: &Field| {
        let into = into.iter().find(|into| into.is(field));
        into.map_or(Fit::Never, |into| fit(&into.column_type, &field.column_type))
    };
    Fit::of_all(from.iter().map(fits))
}

fn holds(into: &ColumnType, from: &ColumnType) -> bool {
    fit(into, from) == Fit::Always
}

fn holds_scalar(into: &ColumnType, from: &ColumnType) -> bool {
    use ColumnType as T;
    match (into, from) {
        (T::Text, from) => is_written(from),
        (T::Json, from) => is_json(from),
        (T::Enum(into), T::Enum(from)) => from.iter().all(|value| into.contains(value)),
        (T::Union(members), from) => members.iter().any(|member| member.column_type == *from),
        _ => false,
    }
}

/// Returns the common type of an existing and a new column, if any. Numbers and times never become text, so that
/// readers of the column keep working.
pub(in crate::duckdb) fn common(old: &ColumnType, new: &ColumnType) -> Option<ColumnType> {
    use ColumnType as T;
    if holds(old, new) {
        return Some(old.clone());
    }
    let both = |a: &T, b: &T| common(a, b).map(Box::new);
    match (old, new) {
        (T::Boolean | T::Integer(_) | T::Float | T::Double | T::Decimal { .. }, T::Text) => None,
        (T::Date | T::Time | T::Timestamp(_), T::Text) => None,
        (old, T::Json) if !matches!(old, T::Text) => None,
        (_, T::Text | T::Json) if !holds(new, old) => None,
        (T::Integer(a), T::Integer(b)) => wider_integer(*a, *b).map(T::Integer),
        (T::Integer(_) | T::Decimal { .. }, T::Integer(_) | T::Decimal { .. }) => wider_decimal(old, new),
        (T::Float, new) if holds(&T::Double, new) => Some(T::Double),
        (old, T::Float) if holds(&T::Double, old) => Some(T::Double),
        (T::Timestamp(Tick::Second | Tick::Milli), T::Timestamp(Tick::Second | Tick::Milli)) => {
            Some(T::Timestamp(Tick::Micro))
        }
        (T::Enum(old), T::Enum(new)) => {
            let added = new.iter().filter(|value| !old.contains(value));
            Some(T::Enum(old.iter().chain(added).cloned().collect()))
        }
        (T::List(a) | T::Array(a, _), T::List(b) | T::Array(b, _)) => both(a, b).map(T::List),
        (T::Map(a, b), T::Map(c, d)) => Some(T::Map(both(a, c)?, both(b, d)?)),
        (T::Struct(a), T::Struct(b)) => common_fields(a, b).map(T::Struct),
        (T::Union(a), T::Union(b)) => common_fields(a, b).map(T::Union),
        _ => holds(new, old).then(|| new.clone()),
    }
}

/// Returns the fields of two structures: all of the first, then the additional ones of the second.
fn common_fields(old: &[Field], new: &[Field]) -> Option<Vec<Field>> {
    let both = old.iter().map(|field| {
        let other = new.iter().find(|other| other.is(field));
        let column_type = match other {
            Some(other) => common(&field.column_type, &other.column_type)?,
            None => field.column_type.clone(),
        };
        let name = field.name.clone();
        Some(Field { name, column_type })
    });
    let mut fields = both.collect::<Option<Vec<_>>>()?;
    let is_new = |field: &&Field| !old.iter().any(|other| other.is(field));
    // The engine casts no structure into one that shares no field with it.
    if new.iter().filter(is_new).count() == new.len() {
        return None;
    }
    fields.extend(new.iter().filter(is_new).cloned());
    Some(fields)
}

/// Returns true for types whose text form is lossless, and the same in every session.
fn is_written(from: &ColumnType) -> bool {
    use ColumnType as T;
    match from {
        T::Boolean | T::Integer(_) | T::Float | T::Double | T::Decimal { .. } => true,
        T::Json | T::Enum(_) | T::Date | T::Time | T::Timestamp(_) => true,
        T::Other(name) => name == "UUID",
        _ => false,
    }
}

/// Returns true for types whose values JSON can represent. Not for texts, which would be parsed as JSON.
fn is_json(from: &ColumnType) -> bool {
    use ColumnType as T;
    let is_item = |item: &T| matches!(item, T::Text) || is_json(item);
    match from {
        T::Json | T::Null | T::Boolean | T::Double => true,
        T::Integer(it) => it.bits <= 64,
        T::List(item) => is_item(item),
        T::Struct(fields) => fields.iter().all(|field| is_item(&field.column_type)),
        _ => false,
    }
}

impl Integer {
    /// Returns the number of bits of the largest number.
    fn value_bits(self) -> u32 {
        self.bits - u32::from(self.signed)
    }

    /// Returns the number of decimal digits of the largest number.
    fn most_digits(self) -> u8 {
        self.whole_digits() + 1
    }

    /// Returns the number of decimal digits up to which every number is representable.
    fn whole_digits(self) -> u8 {
        match self.value_bits() {
            7 | 8 => 2,
            15 | 16 => 4,
            31 | 32 => 9,
            63 => 18,
            64 => 19,
            _ => 38,
        }
    }
}

fn holds_integer(into: Integer, from: Integer) -> bool {
    into.value_bits() >= from.value_bits() && (into.signed || !from.signed)
}

/// Returns the numbers of digits before and after the decimal point.
fn digits(number: &ColumnType) -> (u8, u8) {
    match number {
        ColumnType::Integer(it) => (it.most_digits(), 0),
        ColumnType::Decimal { width, scale } => (width.saturating_sub(*scale), *scale),
        _ => (0, 0),
    }
}

fn wider_integer(a: Integer, b: Integer) -> Option<Integer> {
    let signed = a.signed || b.signed;
    let bits = [8, 16, 32, 64, 128].into_iter();
    let mut all = bits.map(|bits| Integer { signed, bits });
    all.find(|it| holds_integer(*it, a) && holds_integer(*it, b))
}

fn wider_decimal(a: &ColumnType, b: &ColumnType) -> Option<ColumnType> {
    let ((whole_a, scale_a), (whole_b, scale_b)) = (digits(a), digits(b));
    let scale = scale_a.max(scale_b);
    let width = whole_a.max(whole_b).checked_add(scale)?;
    (width <= MOST_DIGITS).then_some(ColumnType::Decimal { width, scale })
}

#[cfg(test)]
mod tests;
