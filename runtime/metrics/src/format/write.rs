//! Formatting of numbers by patterns.

use super::Digits;
use super::decimal::fixed;
use super::pattern::{Align, Notation, Pattern, Sign, Symbol};

/// The signs of a language for decimals, groups and money.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Locale {
    /// The sign before decimals.
    pub decimal: String,
    /// The sign between groups of digits.
    pub thousands: String,
    /// The sizes of groups from the right, of which the last is repeated; empty, or with a zero, for no groups.
    pub grouping: Vec<usize>,
    /// The texts before and after an amount of money.
    pub currency: [String; 2],
    /// The sign for percentages.
    pub percent: String,
    /// The sign of negative numbers.
    pub minus: String,
}

impl Default for Locale {
    fn default() -> Self {
        Self {
            decimal: ".".to_owned(),
            thousands: ",".to_owned(),
            grouping: vec![3],
            currency: ["$".to_owned(), String::new()],
            percent: "%".to_owned(),
            minus: "\u{2212}".to_owned(),
        }
    }
}

/// SI prefixes, from ten to the power of minus 24 on.
const PREFIXES: [&str; 17] = [
    "y", "z", "a", "f", "p", "n", "µ", "m", "", "k", "M", "G", "T", "P", "E", "Z", "Y",
];

/// Formats a number by a pattern and a locale.
pub(super) fn write(pattern: &Pattern, locale: &Locale, number: f64) -> String {
    let (digits, suffix) = match number.is_finite() {
        true => body(pattern, number),
        false => ("Infinity".to_owned(), ""),
    };
    let is_zero = !digits
        .chars()
        .any(|digit| digit.is_ascii_alphanumeric() && digit != '0');
    // A number that is rounded to zero has no minus.
    let is_negative = number.is_sign_negative() && !(is_zero && pattern.sign != Sign::Plus);
    let mut before = match (is_negative, pattern.sign) {
        (true, Sign::Brackets) => "(".to_owned(),
        (true, _) => locale.minus.clone(),
        (false, Sign::Plus) => "+".to_owned(),
        (false, Sign::Space) => " ".to_owned(),
        (false, _) => String::new(),
    };
    let mut after = suffix.to_owned();
    match (pattern.symbol, pattern.notation) {
        (Symbol::Currency, _) => {
            before += &locale.currency[0];
            after += &locale.currency[1];
        }
        (Symbol::Base, Notation::Base(base, _)) => before += prefix(base),
        _ => {}
    }
    if matches!(pattern.notation, Notation::Percent | Notation::RoundedPercent) {
        after += &locale.percent;
    }
    if is_negative && pattern.sign == Sign::Brackets {
        after.push(')');
    }
    let (whole, rest) = split(&digits);
    let rest = match rest.strip_prefix('.') {
        Some(fraction) => format!("{}{fraction}", locale.decimal),
        None => rest.to_owned(),
    };
    let outside = before.chars().count() + rest.chars().count() + after.chars().count();
    // Zeros before a number are grouped with it.
    let zeros = pattern.group && pattern.fill == '0' && pattern.align == Align::AfterSign;
    let whole = match (pattern.group && number.is_finite(), zeros) {
        (false, _) => whole.to_owned(),
        (true, false) => group(whole, locale),
        (true, true) => padded(whole, pattern.width.saturating_sub(outside), locale),
    };
    align(pattern, &before, &format!("{whole}{rest}"), &after)
}

/// Returns the digits of a number's absolute value, and the suffix of its notation.
fn body(pattern: &Pattern, number: f64) -> (String, &'static str) {
    let precision = pattern.precision;
    let (digits, suffix) = match pattern.notation {
        Notation::Exponent => (
            Digits::significant(number, precision.unwrap_or(6) + 1).scientific(),
            "",
        ),
        Notation::Fixed => (fixed(number, precision.unwrap_or(6)), ""),
        Notation::General => (general(number, precision.unwrap_or(6)), ""),
        Notation::Rounded => (Digits::significant(number, precision.unwrap_or(6)).plain(), ""),
        Notation::Prefix => by_prefix(number, precision.unwrap_or(6)),
        Notation::Percent => (fixed(number * 100.0, precision.unwrap_or(6)), ""),
        Notation::RoundedPercent => (
            Digits::significant(number * 100.0, precision.unwrap_or(6)).plain(),
            "",
        ),
        Notation::Integer => (fixed(number, 0), ""),
        Notation::Base(base, upper) => (in_base(number, base, upper), ""),
        Notation::Shortest => (trim(&general(number, precision.unwrap_or(12))), ""),
    };
    match pattern.trim {
        true => (trim(&digits), suffix),
        false => (digits, suffix),
    }
}

/// Formats significant digits, with an exponent for very large and very small numbers.
fn general(number: f64, precision: usize) -> String {
    let precision = precision.max(1);
    let digits = Digits::significant(number, precision);
    let limit = i32::try_from(precision).unwrap_or(i32::MAX);
    if digits.exponent < -6 || digits.exponent >= limit {
        digits.scientific()
    } else {
        digits.plain()
    }
}

fn by_prefix(number: f64, precision: usize) -> (String, &'static str) {
    let digits = Digits::significant(number, precision);
    let exponent = if number == 0.0 { 0 } else { digits.exponent };
    let step = exponent.div_euclid(3).clamp(-8, 8);
    let scaled = Digits {
        exponent: digits.exponent - step * 3,
        ..digits
    };
    let name = usize::try_from(step + 8)
        .ok()
        .and_then(|index| PREFIXES.get(index));
    (scaled.plain(), name.copied().unwrap_or_default())
}

/// Formats an integer in another base; limited to 128 bits.
fn in_base(number: f64, base: u32, upper: bool) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rounded, and not negative"
    )]
    let whole = number.abs().round() as u128;
    match (base, upper) {
        (2, _) => format!("{whole:b}"),
        (8, _) => format!("{whole:o}"),
        (_, true) => format!("{whole:X}"),
        (_, false) => format!("{whole:x}"),
    }
}

fn prefix(base: u32) -> &'static str {
    match base {
        2 => "0b",
        8 => "0o",
        _ => "0x",
    }
}

/// Removes trailing zeros of a fraction.
fn trim(digits: &str) -> String {
    let (mantissa, exponent) = match digits.find('e') {
        Some(at) => digits.split_at_checked(at).unwrap_or((digits, "")),
        None => (digits, ""),
    };
    if !mantissa.contains('.') {
        return digits.to_owned();
    }
    let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
    format!("{mantissa}{exponent}")
}

/// Splits digits into the integer part and the rest, which begins with a point or an exponent.
fn split(digits: &str) -> (&str, &str) {
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits.split_at_checked(end).unwrap_or((digits, ""))
}

/// Inserts the signs between groups of digits.
fn group(digits: &str, locale: &Locale) -> String {
    let mut groups = Vec::new();
    let mut left = digits;
    let mut sizes = locale.grouping.iter().copied();
    let mut size = sizes.next().unwrap_or_default();
    while size > 0 && left.len() > size {
        let Some((before, group)) = left.split_at_checked(left.len() - size) else {
            break;
        };
        groups.push(group);
        left = before;
        size = sizes.next().unwrap_or(size);
    }
    groups.push(left);
    groups.reverse();
    groups.join(&locale.thousands)
}

/// Adds leading zeros until the grouped digits reach a width.
fn padded(digits: &str, width: usize, locale: &Locale) -> String {
    let mut digits = digits.to_owned();
    loop {
        let grouped = group(&digits, locale);
        if grouped.chars().count() >= width {
            return grouped;
        }
        digits.insert(0, '0');
    }
}

fn align(pattern: &Pattern, before: &str, digits: &str, after: &str) -> String {
    let text = [before, digits, after].concat();
    let missing = pattern.width.saturating_sub(text.chars().count());
    let fill = |count: usize| String::from(pattern.fill).repeat(count);
    match pattern.align {
        Align::Right => fill(missing) + &text,
        Align::Left => text + &fill(missing),
        Align::Centre => [fill(missing / 2), text, fill(missing - missing / 2)].concat(),
        Align::AfterSign => [before, &fill(missing), digits, after].concat(),
    }
}
