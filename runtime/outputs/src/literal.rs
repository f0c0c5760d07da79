//! Conversion of values in documents to constants of statements.

use watershed_dialect::Literal;
use watershed_proto::{Value, value::Kind};

/// Converts a value of a document to a constant.
#[must_use]
pub fn literal(value: &Value) -> Literal {
    match &value.kind {
        None => Literal::Null,
        Some(Kind::Bool(value)) => Literal::Boolean(*value),
        Some(Kind::Int(value)) => Literal::Integer(*value),
        Some(Kind::Float(value)) => Literal::Float(*value),
        Some(Kind::String(text)) => Literal::Text(text.clone()),
        Some(Kind::List(values)) => Literal::List(values.values.iter().map(literal).collect()),
        Some(Kind::Map(map)) => {
            let entries = map
                .fields
                .iter()
                .map(|(name, value)| (name.clone(), literal(value)));
            Literal::Map(entries.collect())
        }
    }
}
