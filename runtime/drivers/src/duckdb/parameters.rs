//! Values of a statement's parameters.

use std::collections::BTreeMap;

use super::sys::{Param, Statement};
use crate::olap::{QueryError, Value};

/// The values of a statement's parameters, in the order in which they are bound.
pub(super) struct Values<'a>(Vec<&'a Value>);

impl<'a> Values<'a> {
    /// Finds the value of each parameter of a statement.
    ///
    /// # Errors
    /// [`QueryError::Parameters`] for a parameter without a value, a value without a parameter, and a value of a type
    /// that can't be bound.
    pub(super) fn of(
        statement: &Statement<'_>,
        values: &'a BTreeMap<String, Value>,
    ) -> Result<Self, QueryError> {
        let names = statement.parameters();
        let wrong = |message| Err(QueryError::Parameters(message));
        if let Some(name) = values.keys().find(|name| !names.contains(name)) {
            return wrong(match names.is_empty() {
                true => format!("the statement has no parameters, and `${name}` has a value"),
                false => format!("the statement has no parameter `${name}`, which has a value"),
            });
        }
        let mut found = Vec::with_capacity(names.len());
        for name in &names {
            match values.get(name) {
                Some(value) if param(value).is_some() => found.push(value),
                Some(_) => return wrong(format!("the value of the parameter `${name}` can't be bound")),
                None => return wrong(format!("the parameter `${name}` of the statement has no value")),
            }
        }
        Ok(Self(found))
    }

    /// Returns the values as the engine takes them.
    pub(super) fn params(&self) -> Vec<Param<'a>> {
        self.0.iter().filter_map(|value| param(value)).collect()
    }
}

/// Returns a value as the engine takes it; none for types that are written as texts with a cast in the statement.
fn param(value: &Value) -> Option<Param<'_>> {
    Some(match value {
        Value::Null => Param::Null,
        Value::Boolean(value) => Param::Boolean(*value),
        Value::Integer(value) => i64::try_from(*value).map_or(Param::Huge(*value), Param::Integer),
        Value::Float(value) => Param::Double(f64::from(*value)),
        Value::Double(value) => Param::Double(*value),
        Value::Text(text) => Param::Text(text),
        Value::Blob(bytes) => Param::Blob(bytes),
        _ => return None,
    })
}
