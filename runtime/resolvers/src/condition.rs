//! Conversion of SQL conditions, as people type them, to filters of metrics queries.

use serde_json::{Value, json};
use watershed_compilers::{SqlError, SqlParser as _};
use watershed_outputs::sql_parser::EngineParser;

/// The deepest nesting of a condition.
const DEEPEST: usize = 32;

/// Converts an SQL condition to a filter in JSON. The engine parses the text; only comparisons of fields with constants
/// are supported, as in filters.
///
/// # Errors
/// A text that is no condition, and a part that filters don't have.
pub fn filter(sql: &str) -> Result<Value, String> {
    let node = sole_node(&format!("SELECT 1 WHERE (\n{sql}\n)"))?;
    match node.get("where_clause") {
        Some(condition) if is_only_condition(&node) => read(condition),
        _ => Err("this is not one condition".to_owned()),
    }
}

/// Returns the parse tree of a text that is a single statement.
pub(super) fn sole_node(sql: &str) -> Result<Value, String> {
    let tree = match EngineParser::default().parse(&[sql]).pop() {
        Some(Ok(tree)) => tree,
        Some(Err(SqlError::Syntax { message, .. })) => return Err(message),
        Some(Err(error)) => return Err(error.to_string()),
        None => return Err("the engine gave no answer".to_owned()),
    };
    let mut document: Value = serde_json::from_str(tree.document()).map_err(|error| error.to_string())?;
    let statements = document.get_mut("statements").and_then(Value::as_array_mut);
    match statements.map(Vec::as_mut_slice) {
        Some([statement]) => Ok(statement.get_mut("node").map(Value::take).unwrap_or_default()),
        _ => Err("this is not one statement".to_owned()),
    }
}

/// Converts the parse tree of a condition to a filter in JSON.
pub(super) fn read(node: &Value) -> Result<Value, String> {
    read_at(node, 0)
}

/// Returns true if a statement has no clause beside the condition.
fn is_only_condition(node: &Value) -> bool {
    text(node, "type") == "SELECT_NODE"
        && ["group_expressions", "having", "qualify", "modifiers", "sample"]
            .into_iter()
            .all(|key| is_empty(node, key))
}

/// Returns true if a field of a parse tree is missing, null or empty.
pub(super) fn is_empty(node: &Value, key: &str) -> bool {
    let part = node.get(key);
    part.is_none_or(|part| part.is_null() || part.as_array().is_some_and(Vec::is_empty))
}

fn read_at(node: &Value, depth: usize) -> Result<Value, String> {
    if depth > DEEPEST {
        return Err("the condition is nested too deep".to_owned());
    }
    let children = || {
        children(node)
            .iter()
            .map(|child| read_at(child, depth + 1))
            .collect::<Result<Vec<_>, _>>()
    };
    match text(node, "type") {
        "CONJUNCTION_AND" => Ok(condition("and", children()?)),
        "CONJUNCTION_OR" => Ok(condition("or", children()?)),
        "OPERATOR_NOT" => negated(node, depth),
        "COMPARE_EQUAL" => compared(node, "eq"),
        "COMPARE_NOTEQUAL" => compared(node, "neq"),
        "COMPARE_LESSTHAN" => compared(node, "lt"),
        "COMPARE_LESSTHANOREQUALTO" => compared(node, "lte"),
        "COMPARE_GREATERTHAN" => compared(node, "gt"),
        "COMPARE_GREATERTHANOREQUALTO" => compared(node, "gte"),
        "COMPARE_IN" => listed(node, "in"),
        "COMPARE_NOT_IN" => listed(node, "nin"),
        "COMPARE_BETWEEN" => between(node, ["gte", "lte", "and"]),
        "OPERATOR_IS_NULL" => null(node, "eq"),
        "OPERATOR_IS_NOT_NULL" => null(node, "neq"),
        "FUNCTION" => matched(node),
        "COLUMN_REF" => Ok(condition("eq", vec![field(node)?, json!({"val": true})])),
        other => Err(unknown(other)),
    }
}

fn negated(node: &Value, depth: usize) -> Result<Value, String> {
    match children(node) {
        // As in SQL, what has no value is not outside a range either.
        [range] if text(range, "type") == "COMPARE_BETWEEN" => between(range, ["lt", "gt", "or"]),
        [one] => Ok(condition("not", vec![read_at(one, depth + 1)?])),
        _ => Err(unknown("NOT")),
    }
}

/// Converts a comparison; a constant on the left is moved to the right.
fn compared(node: &Value, op: &str) -> Result<Value, String> {
    let side = |key: &str| node.get(key).unwrap_or(&Value::Null);
    let (left, right) = (side("left"), side("right"));
    if is_field(left) {
        return Ok(condition(op, vec![field(left)?, constant(right)?]));
    }
    let mirrored = match op {
        "lt" => "gt",
        "lte" => "gte",
        "gt" => "lt",
        "gte" => "lte",
        same => same,
    };
    Ok(condition(mirrored, vec![field(right)?, constant(left)?]))
}

fn listed(node: &Value, op: &str) -> Result<Value, String> {
    let Some((first, rest)) = children(node).split_first() else {
        return Err(unknown("IN"));
    };
    let values = rest.iter().map(literal).collect::<Result<Vec<_>, _>>()?;
    Ok(condition(op, vec![field(first)?, json!({ "val": values })]))
}

fn between(node: &Value, [low, high, joined]: [&str; 3]) -> Result<Value, String> {
    let part = |key: &str| node.get(key).unwrap_or(&Value::Null);
    let name = field(part("input"))?;
    let low = condition(low, vec![name.clone(), constant(part("lower"))?]);
    let high = condition(high, vec![name, constant(part("upper"))?]);
    Ok(condition(joined, vec![low, high]))
}

fn null(node: &Value, op: &str) -> Result<Value, String> {
    match children(node) {
        [one] => Ok(condition(op, vec![field(one)?, json!({"val": null})])),
        _ => Err(unknown("IS NULL")),
    }
}

/// Converts a pattern match, which the parse tree has as a function call.
fn matched(node: &Value) -> Result<Value, String> {
    let op = match text(node, "function_name") {
        "~~" => "like",
        "~~*" => "ilike",
        "!~~" => "nlike",
        "!~~*" => "nilike",
        other => return Err(unknown(&format!("{other}()"))),
    };
    match children(node) {
        [name, pattern] => Ok(condition(op, vec![field(name)?, constant(pattern)?])),
        _ => Err(unknown("LIKE")),
    }
}

pub(super) fn condition(op: &str, exprs: Vec<Value>) -> Value {
    json!({"cond": {"op": op, "exprs": exprs}})
}

fn is_field(node: &Value) -> bool {
    text(node, "type") == "COLUMN_REF"
}

pub(super) fn field(node: &Value) -> Result<Value, String> {
    let names = node.get("column_names").and_then(Value::as_array);
    match names.map(Vec::as_slice) {
        Some([Value::String(name)]) if is_field(node) => Ok(json!({ "name": name })),
        _ => Err("a comparison has a field on one side and a constant on the other".to_owned()),
    }
}

fn constant(node: &Value) -> Result<Value, String> {
    Ok(json!({ "val": literal(node)? }))
}

/// Converts a constant to JSON. Dates and times become texts, whose types are checked later.
pub(super) fn literal(node: &Value) -> Result<Value, String> {
    match text(node, "type") {
        "VALUE_CONSTANT" => {
            let value = node.get("value").unwrap_or(&Value::Null);
            let kind = value.get("type");
            let scale = kind
                .and_then(|kind| kind.get("type_info"))
                .and_then(|info| info.get("scale"));
            match (value.get("value"), scale.and_then(Value::as_u64)) {
                (None, _) => Ok(Value::Null),
                (Some(digits), Some(scale)) => decimal(digits, scale),
                (Some(value), None) => Ok(value.clone()),
            }
        }
        "OPERATOR_CAST" => {
            let child = literal(node.get("child").unwrap_or(&Value::Null))?;
            let kind = node.get("cast_type").map_or("", |kind| text(kind, "id"));
            match (kind, &child) {
                ("BOOLEAN", Value::String(text)) => Ok(Value::Bool(text == "t" || text == "true")),
                _ => Ok(child),
            }
        }
        other => Err(unknown(other)),
    }
}

/// Converts a decimal, which the parse tree has as an integer and a scale.
fn decimal(digits: &Value, scale: u64) -> Result<Value, String> {
    let text = digits.as_str().map_or_else(|| digits.to_string(), str::to_owned);
    let written = format!("{text}e-{scale}");
    let number = written.parse::<f64>().map_err(|error| error.to_string())?;
    Ok(json!(number))
}

pub(super) fn children(node: &Value) -> &[Value] {
    node.get("children")
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

pub(super) fn text<'v>(node: &'v Value, key: &str) -> &'v str {
    node.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn unknown(part: &str) -> String {
    let part = part
        .trim_start_matches("COMPARE_")
        .trim_start_matches("OPERATOR_")
        .replace('_', " ");
    format!(
        "filters have no {}: they compare fields with constants",
        part.to_lowercase()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_become_filters() {
        for (sql, expected) in [
            (
                "a = 'x'",
                json!({"cond": {"op": "eq", "exprs": [{"name": "a"}, {"val": "x"}]}}),
            ),
            (
                "5 < a",
                json!({"cond": {"op": "gt", "exprs": [{"name": "a"}, {"val": 5}]}}),
            ),
            (
                "a > -1.5",
                json!({"cond": {"op": "gt", "exprs": [{"name": "a"}, {"val": -1.5}]}}),
            ),
            (
                "a NOT IN ('x', 2, NULL)",
                json!({"cond": {"op": "nin", "exprs": [{"name": "a"}, {"val": ["x", 2, null]}]}}),
            ),
            (
                "\"My field\" IS NOT NULL",
                json!({"cond": {"op": "neq", "exprs": [{"name": "My field"}, {"val": null}]}}),
            ),
            (
                "a NOT ILIKE 'x%'",
                json!({"cond": {"op": "nilike", "exprs": [{"name": "a"}, {"val": "x%"}]}}),
            ),
            (
                "day >= DATE '2024-01-01'",
                json!({"cond": {"op": "gte", "exprs": [{"name": "day"}, {"val": "2024-01-01"}]}}),
            ),
            (
                "a = true -- always",
                json!({"cond": {"op": "eq", "exprs": [{"name": "a"}, {"val": true}]}}),
            ),
            (
                "a NOT BETWEEN 1 AND 2",
                json!({"cond": {"op": "or", "exprs": [
                    {"cond": {"op": "lt", "exprs": [{"name": "a"}, {"val": 1}]}},
                    {"cond": {"op": "gt", "exprs": [{"name": "a"}, {"val": 2}]}},
                ]}}),
            ),
            (
                "NOT (a = 1 OR b)",
                json!({"cond": {"op": "not", "exprs": [{"cond": {"op": "or", "exprs": [
                    {"cond": {"op": "eq", "exprs": [{"name": "a"}, {"val": 1}]}},
                    {"cond": {"op": "eq", "exprs": [{"name": "b"}, {"val": true}]}},
                ]}}]}}),
            ),
        ] {
            assert_eq!(filter(sql), Ok(expected), "{sql}");
        }
    }

    #[test]
    fn brackets_that_meet_are_one_condition_after_all() {
        assert!(filter("a = 1) OR (b = 2").is_ok());
    }

    #[test]
    fn what_filters_do_not_have_is_refused() {
        for sql in [
            "",
            "a =",
            "a = b",
            "upper(a) = 'X'",
            "a IN (SELECT 1)",
            "a + 1 = 2",
            "1 = 1",
            "t.a = 1",
            "a = 1) GROUP BY (a",
            "a = 1; SELECT 2",
            "a SIMILAR TO 'x'",
        ] {
            assert!(filter(sql).is_err(), "{sql}");
        }
    }
}
