//! Decimal digits of numbers, rounded to nearest and half away from zero.

/// The number of further digits that show whether a number is exactly halfway; no 64-bit number needs more.
const DECIDING: usize = 40;

/// Returns the absolute value, increased minimally if exactly halfway, so that the standard library, which rounds half
/// to even, rounds it up.
fn tipped(number: f64, precision: usize, text: impl Fn(f64, usize) -> String) -> f64 {
    let number = number.abs();
    let digits = |text: String| text.split('e').next().unwrap_or_default().to_owned();
    let longer = digits(text(number, precision + 1));
    let longest = digits(text(number, precision + DECIDING));
    match longer.ends_with('5') && longest.trim_end_matches('0') == longer {
        true => number.next_up(),
        false => number,
    }
}

/// Formats an absolute value with a number of digits after the point.
pub(super) fn fixed(number: f64, precision: usize) -> String {
    let text = |number: f64, precision: usize| format!("{number:.precision$}");
    text(tipped(number, precision, text), precision)
}

/// The digits of a finite number in scientific form: `d.ddd` times ten to the `exponent`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Digits {
    /// The digits, at least one.
    pub(super) digits: String,
    /// The power of ten of the first digit.
    pub(super) exponent: i32,
}

impl Digits {
    /// Returns the given number of significant digits of an absolute value, at least one.
    pub(super) fn significant(number: f64, count: usize) -> Self {
        let text = |number: f64, precision: usize| format!("{number:.precision$e}");
        let precision = count.max(1) - 1;
        Self::read(&text(tipped(number, precision, text), precision))
    }

    /// Returns the fewest digits that identify the number.
    pub(super) fn shortest(number: f64) -> Self {
        Self::read(&format!("{:e}", number.abs()))
    }

    fn read(scientific: &str) -> Self {
        let (digits, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
        Self {
            digits: digits.chars().filter(char::is_ascii_digit).collect(),
            exponent: exponent.parse().unwrap_or_default(),
        }
    }

    /// Formats the digits without an exponent.
    pub(super) fn plain(&self) -> String {
        let count = i32::try_from(self.digits.len()).unwrap_or(i32::MAX);
        if self.exponent < 0 {
            let zeros = usize::try_from(-self.exponent - 1).unwrap_or_default();
            return format!("0.{}{}", "0".repeat(zeros), self.digits);
        }
        if self.exponent + 1 >= count {
            let zeros = usize::try_from(self.exponent + 1 - count).unwrap_or_default();
            return format!("{}{}", self.digits, "0".repeat(zeros));
        }
        let whole = usize::try_from(self.exponent + 1).unwrap_or_default();
        let (whole, fraction) = self.digits.split_at_checked(whole).unwrap_or((&self.digits, ""));
        format!("{whole}.{fraction}")
    }

    /// Formats the digits with an exponent: `1.5e+3`.
    pub(super) fn scientific(&self) -> String {
        let (first, rest) = self.digits.split_at_checked(1).unwrap_or((&self.digits, ""));
        let point = if rest.is_empty() { "" } else { "." };
        let sign = if self.exponent < 0 { '-' } else { '+' };
        format!("{first}{point}{rest}e{sign}{}", self.exponent.abs())
    }
}
