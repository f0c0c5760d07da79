//! Values that are written into statements as constants.

/// A value to be written into a statement as a constant.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// SQL `NULL`.
    Null,
    /// A truth value.
    Boolean(bool),
    /// A whole number of 64 bits.
    Integer(i64),
    /// A floating-point number of 64 bits.
    Float(f64),
    /// A string, without quotes.
    Text(String),
    /// A time without a zone, in microseconds since 1970.
    Timestamp(i64),
    /// An ordered list of values.
    List(Vec<Literal>),
    /// Values under names, in order.
    Map(Vec<(String, Literal)>),
}

impl Literal {
    /// Joins values with commas, each written by `write`.
    pub(crate) fn joined<T>(values: &[T], write: impl Fn(&T) -> String) -> String {
        let values: Vec<String> = values.iter().map(write).collect();
        values.join(", ")
    }
}
