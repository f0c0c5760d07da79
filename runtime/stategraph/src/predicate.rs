//! Conditions on a value, as data that can be stored, compared and shown.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::field::FieldPath;
use crate::value::Value;

/// Comparison of a field. Values that can't be compared, such as a text with a number, satisfy only `!=`.
///
/// ```
/// use serde_json::json;
/// use watershed_stategraph::{Operator, Predicate};
/// let table = json!({"rows": 10, "columns": ["day", "amount"]});
/// let holds = |path, operator, with| Predicate::field(path, operator, with).holds(&table, &|_, _| false);
/// assert!(holds("rows", Operator::Gt, json!(0)));
/// assert!(holds("columns", Operator::Contains, json!("day")));
/// assert!(holds("partition", Operator::Exists, json!(false)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operator {
    /// The field is equal to the value.
    Eq,
    /// The field is missing or not equal to the value.
    Ne,
    /// The field is less: numbers by size, texts by their characters.
    Lt,
    /// The field is less or equal.
    Le,
    /// The field is greater.
    Gt,
    /// The field is greater or equal.
    Ge,
    /// The field is an entry of the given list.
    In,
    /// The field is a list that contains the given entry, or a text that contains the given one.
    Contains,
    /// The field is a text that starts with the given one.
    StartsWith,
    /// The field exists (`true`) or is missing (`false`).
    Exists,
}

impl Operator {
    fn holds(self, found: Option<&Json>, wanted: &Json) -> bool {
        let order = found.and_then(|found| compare(found, wanted));
        match self {
            Self::Eq => found.is_some_and(|found| equal(found, wanted)),
            Self::Ne => !found.is_some_and(|found| equal(found, wanted)),
            Self::Lt => order == Some(Ordering::Less),
            Self::Le => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Self::Gt => order == Some(Ordering::Greater),
            Self::Ge => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
            Self::In => found
                .zip(wanted.as_array())
                .is_some_and(|(found, all)| all.iter().any(|one| equal(found, one))),
            Self::Contains => match (found, wanted) {
                (Some(Json::Array(all)), one) => all.iter().any(|entry| equal(entry, one)),
                (Some(Json::String(text)), Json::String(part)) => text.contains(part.as_str()),
                _ => false,
            },
            Self::StartsWith => match (found, wanted) {
                (Some(Json::String(text)), Json::String(start)) => text.starts_with(start.as_str()),
                _ => false,
            },
            Self::Exists => found.is_some() == wanted.as_bool().unwrap_or(true),
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Self::Eq => "=",
            Self::Ne => "!=",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
            Self::In => "in",
            Self::Contains => "contains",
            Self::StartsWith => "starts with",
            Self::Exists => "exists",
        }
    }
}

/// Compares two JSON values; numbers by size, so that `1` and `1.0` are equal.
fn compare(left: &Json, right: &Json) -> Option<Ordering> {
    match (left, right) {
        (Json::Number(left), Json::Number(right)) => match (left.as_i128(), right.as_i128()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
        },
        (Json::String(left), Json::String(right)) => Some(left.cmp(right)),
        _ => None,
    }
}

fn equal(left: &Json, right: &Json) -> bool {
    left == right || compare(left, right) == Some(Ordering::Equal)
}

/// A condition on the value of a dependency's target.
///
/// ```
/// use serde_json::json;
/// use watershed_stategraph::Predicate;
/// let open = Predicate::field("port", watershed_stategraph::Operator::Ge, json!(1024));
/// assert!(open.holds(&json!({"port": 8080}), &|_, _| false));
/// assert_eq!(open.to_string(), "port >= 1024");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Predicate {
    /// A field compares to a value.
    Field {
        /// Path of the field in the target's value.
        path: FieldPath,
        /// Comparison to make.
        operator: Operator,
        /// Value that the field is compared with.
        value: Json,
    },
    /// All of the predicates hold; true for an empty list.
    All(Vec<Predicate>),
    /// At least one of the predicates holds; false for an empty list.
    Any(Vec<Predicate>),
    /// The predicate does not hold.
    Not(Box<Predicate>),
    /// A predicate that the target's type registered under this name.
    Named(String),
}

impl Predicate {
    /// Creates a predicate that compares a field with a value.
    pub fn field(path: &str, operator: Operator, value: Json) -> Self {
        Self::Field {
            path: FieldPath::new(path),
            operator,
            value,
        }
    }

    /// Returns true if the predicate holds for a value; `named` evaluates named predicates.
    pub fn holds<V: Value>(&self, value: &V, named: &dyn Fn(&str, &V) -> bool) -> bool {
        match self {
            Self::Field {
                path,
                operator,
                value: wanted,
            } => operator.holds(value.field(path).as_ref(), wanted),
            Self::All(all) => all.iter().all(|one| one.holds(value, named)),
            Self::Any(any) => any.iter().any(|one| one.holds(value, named)),
            Self::Not(other) => !other.holds(value, named),
            Self::Named(name) => named(name, value),
        }
    }

    /// Returns the names of all registered predicates that this one uses.
    pub(crate) fn names(&self) -> Vec<&str> {
        match self {
            Self::Field { .. } => Vec::new(),
            Self::All(all) | Self::Any(all) => all.iter().flat_map(Self::names).collect(),
            Self::Not(other) => other.names(),
            Self::Named(name) => vec![name],
        }
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, all: &[Self], word: &str| {
            let parts: Vec<String> = all.iter().map(ToString::to_string).collect();
            write!(f, "({})", parts.join(word))
        };
        match self {
            Self::Field {
                path,
                operator: Operator::Exists,
                value,
            } if value == &Json::Bool(false) => {
                write!(f, "{path} is missing")
            }
            Self::Field {
                path,
                operator: Operator::Exists,
                ..
            } => write!(f, "{path} exists"),
            Self::Field {
                path,
                operator,
                value,
            } => write!(f, "{path} {} {value}", operator.sign()),
            Self::All(all) => list(f, all, " and "),
            Self::Any(any) => list(f, any, " or "),
            Self::Not(other) => write!(f, "not {other}"),
            Self::Named(name) => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn holds(predicate: &Predicate, value: Json) -> bool {
        predicate.holds(&value, &|name, value| {
            name == "even" && value.as_i64().is_some_and(|n| n % 2 == 0)
        })
    }

    #[test]
    fn fields_are_compared_by_size_and_only_with_their_like() {
        for (operator, value, expected) in [
            (Operator::Eq, json!(2.0), true),
            (Operator::Ne, json!(2), false),
            (Operator::Lt, json!(3), true),
            (Operator::Le, json!(2), true),
            (Operator::Gt, json!(1), true),
            (Operator::Ge, json!("1"), false),
            (Operator::In, json!([1, 2]), true),
            (Operator::Exists, json!(true), true),
        ] {
            let predicate = Predicate::field("a.0", operator, value);
            assert_eq!(holds(&predicate, json!({"a": [2]})), expected, "{predicate}");
        }
    }

    #[test]
    fn a_missing_field_satisfies_only_its_absence() {
        assert!(holds(&Predicate::field("a", Operator::Ne, json!(1)), json!({})));
        assert!(holds(
            &Predicate::field("a", Operator::Exists, json!(false)),
            json!({})
        ));
        assert!(!holds(&Predicate::field("a", Operator::Lt, json!(1)), json!({})));
    }

    #[test]
    fn predicates_combine_and_are_shown_as_people_write_them() {
        let predicate = Predicate::All(vec![
            Predicate::Named("even".into()),
            Predicate::Not(Box::new(Predicate::field("", Operator::Gt, json!(8)))),
        ]);
        assert!(holds(&predicate, json!(4)) && !holds(&predicate, json!(10)) && !holds(&predicate, json!(3)));
        assert_eq!(predicate.to_string(), "(even and not value > 8)");
    }
}
