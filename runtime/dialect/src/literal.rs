//! Values as documents have them.

/// A value to be written into a statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// No value.
    Null,
    /// Truth.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// Another number.
    Float(f64),
    /// A text.
    Text(String),
    /// A time without a zone, in microseconds since 1970.
    Timestamp(i64),
    /// Values in an order.
    List(Vec<Literal>),
    /// Values with names.
    Map(Vec<(String, Literal)>),
}

impl Literal {
    /// Returns the values with commas between them, each written by `write`.
    pub(crate) fn joined<T>(values: &[T], write: impl Fn(&T) -> String) -> String {
        let values: Vec<String> = values.iter().map(write).collect();
        values.join(", ")
    }
}
