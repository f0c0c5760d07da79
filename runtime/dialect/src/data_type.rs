//! Types of constants.

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
    /// The name of it.
    pub name: &'static str,
    /// The smallest number.
    pub lowest: i128,
    /// The largest number.
    pub highest: i128,
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
    pub fn of(engine_name: &str) -> Option<Self> {
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
