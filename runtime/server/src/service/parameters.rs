//! Values of a statement's parameters, as a caller sends them.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use watershed_api::request::Parameters;
use watershed_api::{Code, Problem};
use watershed_drivers::olap::Value;

/// Returns the values by the names that the engine gives the parameters.
///
/// # Errors
/// `bad-argument` for a list or an object as a value.
pub(crate) fn values(parameters: Parameters) -> Result<BTreeMap<String, Value>, Problem> {
    let named: Vec<(String, Json)> = match parameters {
        Parameters::Named(values) => values.into_iter().collect(),
        Parameters::Placed(values) => (1..)
            .zip(values)
            .map(|(place, value): (usize, _)| (place.to_string(), value))
            .collect(),
    };
    let value = |(name, value)| match scalar(value) {
        Some(value) => Ok((name, value)),
        None => {
            let message = format!("the parameter `${name}` takes a text, a number, `true`, `false` or null");
            Err(Problem::new(Code::BadArgument, message)
                .hint("write a list or a date as text, and cast the parameter"))
        }
    };
    named.into_iter().map(value).collect()
}

fn scalar(value: Json) -> Option<Value> {
    Some(match value {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Boolean(value),
        Json::Number(number) => match number.as_i128() {
            Some(integer) => Value::Integer(integer),
            None => Value::Double(number.as_f64()?),
        },
        Json::String(text) => Value::Text(text),
        Json::Array(_) | Json::Object(_) => return None,
    })
}
