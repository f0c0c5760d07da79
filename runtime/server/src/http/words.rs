//! Parameters of a call, parsed from the query string or the body.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};
use watershed_api::{Code, Problem};

/// The query parameters of a path, each with its JSON schema.
pub(super) type Parameters = Vec<(String, Value)>;

/// The type of a query parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Text,
    Number,
    Flag,
    List,
    Anything,
}

impl Type {
    fn of(schema: &Value) -> Self {
        let named = |name: &str| match &schema["type"] {
            Value::String(one) => one == name,
            Value::Array(several) => several.iter().any(|one| one == name),
            _ => false,
        };
        match () {
            () if named("array") => Self::List,
            () if named("integer") => Self::Number,
            () if named("boolean") => Self::Flag,
            () if schema["anyOf"].is_array() || schema["type"].is_null() => Self::Anything,
            () => Self::Text,
        }
    }
}

/// Parses a query string. Refuses unknown parameters, and repeated ones that take a single value.
///
/// # Errors
/// `bad-argument`, with the name of the word.
pub(super) fn query(query: Option<&str>, parameters: &Parameters, takes_all: bool) -> Result<Value, Problem> {
    let known: BTreeMap<&str, Type> = parameters
        .iter()
        .map(|(name, schema)| (name.as_str(), Type::of(schema)))
        .collect();
    let mut words = Map::new();
    for (name, text) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        let text = with_pluses(&name, text);
        let kind = match known.get(name.as_ref()) {
            Some(kind) => *kind,
            None if takes_all => Type::Text,
            None => return Err(unknown(&name, known.keys().copied())),
        };
        let there = words.get_mut(name.as_ref());
        match (kind, there) {
            (Type::List, Some(Value::Array(list))) => list.push(text.into()),
            (_, Some(_)) => {
                let message = format!("`{name}` stands twice in the address");
                return Err(Problem::new(Code::BadArgument, message));
            }
            (kind, None) => drop(words.insert(name.to_string(), value(&name, &text, kind)?)),
        }
    }
    Ok(Value::Object(words))
}

/// Restores a plus at the beginning or end of a selection, which the query decoding has turned into a blank.
fn with_pluses<'t>(name: &str, text: Cow<'t, str>) -> Cow<'t, str> {
    let plain = text.trim_matches(' ');
    if !matches!(name, "select" | "exclude") || plain.len() == text.len() {
        return text;
    }
    let (before, after) = (text.starts_with(' '), text.ends_with(' '));
    let plus = |is_there: bool| if is_there { "+" } else { "" };
    Cow::Owned(format!("{}{plain}{}", plus(before), plus(after)))
}

fn value(name: &str, text: &str, kind: Type) -> Result<Value, Problem> {
    let wrong = |wanted: &str| {
        let message = format!("`{name}` takes {wanted}, not `{text}`");
        Problem::new(Code::BadArgument, message)
    };
    match kind {
        Type::Text | Type::Anything => Ok(text.into()),
        Type::List => Ok(Value::Array(vec![text.into()])),
        Type::Number => {
            let number: u64 = text.parse().map_err(|_| wrong("a whole number"))?;
            Ok(Value::Number(Number::from(number)))
        }
        Type::Flag => match text {
            "" | "true" => Ok(true.into()),
            "false" => Ok(false.into()),
            _ => Err(wrong("`true` or `false`")),
        },
    }
}

fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Problem {
    let problem = Problem::new(Code::BadArgument, format!("the address takes no `{name}`"));
    match crate::report::hints::nearest(name, known.clone()) {
        Some(near) => problem.hint(format!("did you mean `{near}`?")),
        None => {
            let list: Vec<String> = known.map(|name| format!("`{name}`")).collect();
            match list.is_empty() {
                true => problem.hint("it takes nothing"),
                false => problem.hint(format!("it takes {}", list.join(", "))),
            }
        }
    }
}

/// Converts the parameters of a route that exists only over HTTP.
///
/// # Errors
/// `bad-argument`, for a value that there is not.
pub(super) fn form<F: DeserializeOwned>(words: Value) -> Result<F, Problem> {
    serde_json::from_value(words).map_err(|error| Problem::new(Code::BadArgument, error.to_string()))
}

/// Parses a JSON body; an empty body is an empty object.
///
/// # Errors
/// `bad-argument`, with the place.
pub(super) fn body(bytes: &[u8]) -> Result<Value, Problem> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Value::Object(Map::new()));
    }
    serde_json::from_slice(bytes)
        .map_err(|error| Problem::new(Code::BadArgument, format!("the body is no JSON: {error}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parameters() -> Parameters {
        vec![
            (
                "select".into(),
                json!({"type": "array", "items": {"type": "string"}}),
            ),
            ("limit".into(), json!({"type": ["integer", "null"]})),
            ("all".into(), json!({"type": "boolean"})),
            ("since".into(), json!({"type": ["string", "null"]})),
        ]
    }

    #[test]
    fn words_have_the_types_of_their_schemas() {
        let read = query(
            Some("select=a&select=b%2Bc&limit=5&all=true&since=x"),
            &parameters(),
            false,
        );
        assert_eq!(
            read.unwrap(),
            json!({"select": ["a", "b+c"], "limit": 5, "all": true, "since": "x"})
        );
        let above = query(Some("select=+routes"), &parameters(), false).unwrap();
        assert_eq!(above, json!({"select": ["+routes"]}));
        assert_eq!(query(None, &parameters(), false).unwrap(), json!({}));
        assert_eq!(
            query(Some("all"), &parameters(), false).unwrap(),
            json!({"all": true})
        );
    }

    #[test]
    fn words_that_no_form_has_are_refused_with_the_nearest_one() {
        for wrong in [
            "selct=a",
            "limit=-1",
            "limit=",
            "limit=1&limit=2",
            "all=yes",
            "=",
            "a%00b=1",
        ] {
            let refused = query(Some(wrong), &parameters(), false).unwrap_err();
            assert_eq!(refused.code, Code::BadArgument, "{wrong}");
        }
        let refused = query(Some("selct=a"), &parameters(), false).unwrap_err();
        assert_eq!(refused.hint.unwrap().as_str(), "did you mean `select`?");
    }

    #[test]
    fn a_body_of_deep_json_is_refused() {
        let deep = "[".repeat(100_000);
        assert!(body(deep.as_bytes()).is_err());
        assert_eq!(body(b" ").unwrap(), json!({}));
    }
}
