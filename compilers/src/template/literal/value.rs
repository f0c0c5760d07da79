//! Values that stand alone in SQL, outside of quotes.

use std::fmt::Write as _;

use gotmpl::Value;

use super::refused;
use crate::template::functions::quote_text;
use crate::template::scope::RenderError;
use crate::template::values;

/// Writes an argument that stands alone: a text that is a number or a word as it is, since it may choose a column.
pub(super) fn argument(out: &mut String, value: &Value, after: &str) -> Result<(), RenderError> {
    let text = match value {
        Value::String(text) => text,
        other => return literal(out, other, after),
    };
    if !is_number(text) && !is_word(text) {
        return Err(refused(
            "an argument that is neither a number nor a word stands within single quotes, as in `'{{ .args.name }}'`",
        ));
    }
    out.push_str(text);
    Ok(())
}

fn is_word(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Returns true for digits with a point among them.
fn is_number(text: &str) -> bool {
    let (whole, rest) = text.split_once('.').unwrap_or((text, "0"));
    [whole, rest]
        .iter()
        .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Writes a value that stands alone, apart from the words around it. `after` is what follows.
pub(super) fn literal(out: &mut String, value: &Value, after: &str) -> Result<(), RenderError> {
    // A word before it would make it a text of another form, as in `e'\\''`, and a text would join it.
    if out.chars().next_back().is_some_and(joins) {
        out.push(' ');
    }
    match value {
        Value::List(items) => {
            let listed = items.iter().map(scalar).collect::<Result<Vec<_>, _>>()?;
            match is_operand_of_in(out, after) {
                true if listed.is_empty() => out.push_str("NULL"),
                true => out.push_str(&listed.join(", ")),
                false => write!(out, "[{}]", listed.join(", ")).unwrap_or_default(),
            }
        }
        value => out.push_str(&scalar(value)?),
    }
    if after.chars().next().is_some_and(joins) {
        out.push(' ');
    }
    Ok(())
}

/// Returns true for characters that would join a literal beside them.
fn joins(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '\'')
}

/// Writes a value that is no list.
fn scalar(value: &Value) -> Result<String, RenderError> {
    Ok(match value {
        Value::Nil => "NULL".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) if *number < 0 => format!("({number})"),
        Value::Int(_) | Value::Uint(_) => value.to_string(),
        Value::Float(number) if number.is_finite() => format!("({number:?})"),
        Value::Float(_) => "NULL".to_owned(),
        Value::List(_) | Value::Map(_) | Value::Function(_) => {
            return Err(refused("an attribute with parts of its own is no value"));
        }
        text => quote_text(&values::text(text).replace('\0', "")),
    })
}

/// Returns true between the brackets of `IN (...)`.
fn is_operand_of_in(before: &str, after: &str) -> bool {
    let Some(before) = before.trim_end().strip_suffix('(') else {
        return false;
    };
    let word = before.trim_end();
    let tail = word.len().checked_sub(2).and_then(|start| word.get(start..));
    after.trim_start().starts_with(')')
        && tail.is_some_and(|tail| tail.eq_ignore_ascii_case("in"))
        && word[..word.len() - 2]
            .chars()
            .next_back()
            .is_none_or(|c| !c.is_alphanumeric() && c != '_')
}
