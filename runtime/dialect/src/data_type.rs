//! Types in which constants are written.

/// Types that are written into statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SqlType {
    /// A truth value.
    Boolean,
    /// An integer of a fixed width.
    Integer(Integer),
    /// A decimal number: its width and its scale, in digits.
    Decimal(u8, u8),
    /// A floating-point number of 32 bits.
    Float,
    /// A floating-point number of 64 bits.
    Double,
    /// A string of any length.
    Text,
    /// A calendar day.
    Date,
    /// A time without a zone.
    Timestamp,
    /// A point in time, independent of a time zone.
    Instant,
}

/// A fixed-width integer type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Integer {
    /// The width of the type, in bits.
    pub bits: u8,
    /// True if the type has negative numbers.
    pub signed: bool,
}

impl Integer {
    /// The widest integer type in which constants are written.
    pub const WIDEST: Self = Self::new(128, true);

    pub(crate) const fn new(bits: u8, signed: bool) -> Self {
        Self { bits, signed }
    }

    /// Returns the smallest number of the type.
    #[must_use]
    pub fn lowest(self) -> i128 {
        match self.signed {
            true => i128::MIN >> (128 - u32::from(self.bits)),
            false => 0,
        }
    }

    /// Returns the largest number of the type.
    #[must_use]
    pub fn highest(self) -> i128 {
        i128::MAX >> (128 - u32::from(self.bits) - u32::from(!self.signed))
    }
}

impl From<Integer> for SqlType {
    fn from(integer: Integer) -> Self {
        Self::Integer(integer)
    }
}

/// Reads the width and scale of a decimal type from its brackets, as in `(18, 3)`.
pub(crate) fn decimal(brackets: &str) -> Option<SqlType> {
    let inner = brackets.strip_prefix('(')?.strip_suffix(')')?;
    let (width, scale) = inner.split_once(',')?;
    Some(SqlType::Decimal(
        width.trim().parse().ok()?,
        scale.trim().parse().ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_the_range_of_their_bits() {
        let range = |bits, signed| {
            let integer = Integer::new(bits, signed);
            (integer.lowest(), integer.highest())
        };
        assert_eq!(range(8, true), (-128, 127));
        assert_eq!(range(8, false), (0, 255));
        assert_eq!(range(64, true), (i64::MIN.into(), i64::MAX.into()));
        assert_eq!(range(64, false), (0, u64::MAX.into()));
        assert_eq!(range(128, true), (i128::MIN, i128::MAX));
    }
}
