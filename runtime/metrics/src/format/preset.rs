//! Number formats that the project format names as presets.

use super::Digits;
use super::decimal::fixed;

/// A named number format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Preset {
    /// All digits, unrounded.
    Plain,
    /// Few digits, with a letter for thousands, millions, billions and trillions.
    Humanize,
    /// An amount of money, preceded by the given currency sign.
    Currency(char),
    /// A share of 1, as a percentage.
    Percentage,
    /// A duration in milliseconds, in a suitable unit.
    Milliseconds,
}

/// The presets, by the names that files use.
const PRESETS: [(&str, Preset); 6] = [
    ("none", Preset::Plain),
    ("humanize", Preset::Humanize),
    ("currency_usd", Preset::Currency('$')),
    ("currency_eur", Preset::Currency('€')),
    ("percentage", Preset::Percentage),
    ("interval_ms", Preset::Milliseconds),
];

/// The letters that stand for powers of 1000.
const LETTERS: [&str; 5] = ["", "k", "M", "B", "T"];

/// Lengths of units in milliseconds, largest first.
const UNITS: [(f64, &str); 5] = [
    (31_557_600_000.0, "y"),
    (86_400_000.0, "d"),
    (3_600_000.0, "h"),
    (60_000.0, "m"),
    (1_000.0, "s"),
];

/// Shares below this one stand for none: sums of floating-point numbers that should be equal differ by so much.
const ROUNDING: f64 = 1e-12;

impl Preset {
    pub(super) fn find(name: &str) -> Option<Self> {
        let found = PRESETS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, preset)| *preset)
    }

    pub(super) fn write(self, number: f64) -> String {
        let number = match self {
            Self::Percentage if number.abs() < ROUNDING => 0.0,
            _ => number,
        };
        let sign = if number < 0.0 { "-" } else { "" };
        if number.is_infinite() {
            return format!("{sign}∞");
        }
        let text = match self {
            Self::Plain => Digits::shortest(number).plain(),
            Self::Humanize => humanize(number),
            Self::Currency(symbol) => format!("{symbol}{}", money(number)),
            Self::Percentage => format!("{}%", humanize(number * 100.0)),
            Self::Milliseconds => milliseconds(number),
        };
        format!("{sign}{text}")
    }
}

/// Formats an absolute value with one digit after the point, and a letter from 1000 on.
fn humanize(number: f64) -> String {
    scaled(number, 1)
}

/// Formats an absolute amount of money, with cents below 1000 and a letter from there on.
fn money(number: f64) -> String {
    if number.abs() < 999.995 {
        fixed(number, 2)
    } else {
        scaled(number, 1)
    }
}

/// Formats an absolute value by the power of 1000 that makes it less than 1000 after rounding.
fn scaled(number: f64, places: usize) -> String {
    let mut left = number.abs();
    let mut letters = LETTERS.iter().peekable();
    while let Some(letter) = letters.next() {
        let text = fixed(left, places);
        let is_last = letters.peek().is_none();
        if is_last || text.parse().is_ok_and(|rounded: f64| rounded < 1_000.0) {
            return small(left, &text) + letter;
        }
        left /= 1_000.0;
    }
    String::new()
}

/// Returns a rounded text without trailing zeros. A number that would round to zero keeps its first two digits.
fn small(number: f64, rounded: &str) -> String {
    let is_zero = rounded.parse::<f64>().is_ok_and(|rounded| rounded == 0.0);
    if is_zero && number > 0.0 {
        let digits = Digits::significant(number, 2);
        // Below a millionth the zeros say less than an exponent.
        return match digits.exponent {
            ..-6 => digits.scientific(),
            _ => digits.plain().trim_end_matches('0').to_owned(),
        };
    }
    match rounded.contains('.') {
        true => rounded.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => rounded.to_owned(),
    }
}

/// Formats an absolute number of milliseconds in the largest unit that it reaches.
fn milliseconds(number: f64) -> String {
    let number = number.abs();
    let unit = UNITS.iter().find(|(length, _)| number >= *length);
    let (length, name) = unit.copied().unwrap_or((1.0, "ms"));
    let count = number / length;
    format!("{} {name}", small(count, &fixed(count, 1)))
}
