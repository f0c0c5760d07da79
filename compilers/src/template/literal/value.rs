//! Values written in SQL outside of quotes.

use std::fmt::Write as _;

use gotmpl::Value;
use watershed_dialect::{ENGINE, MySql, Quoting as _};

use super::refused;
use crate::template::scope::RenderError;
use crate::template::values;

/// Writes an argument outside of quotes. Numbers and words are written verbatim, since they may choose a column; other
/// texts are refused.
pub(super) fn argument(out: &mut String, value: &Value, after: &str) -> Result<(), RenderError> {
    let text = match value {
        Value::String(text) => text,
        other => return literal(out, other, after, false),
    };
    if !is_number(text) && !is_word(text) {
        return Err(refused(
            "an argument that is neither a number nor a word stands within single quotes, as in `'{{ .args.name }}'`",
        ));
    }
    out.push_str(text);
    Ok(())
}

/// Writes a value of a run outside of quotes. Numbers and names are written verbatim, as partitions can be tables and
/// columns; other texts become literals. Directly beside a word, the value becomes part of it.
pub(super) fn of_run(
    out: &mut String,
    value: &Value,
    after: &str,
    backslashes: bool,
) -> Result<(), RenderError> {
    let is_piece = out.ends_with(is_part) || out.ends_with('$') || after.starts_with(is_part);
    // A word before a quote would be its prefix.
    let may_be_bare = !after.starts_with(['\'', '"', '$']);
    match value {
        Value::Int(number) if *number >= 0 => out.push_str(&number.to_string()),
        Value::Uint(number) => out.push_str(&number.to_string()),
        Value::String(text) if may_be_bare && (is_name(text) || is_number(text)) => out.push_str(text),
        Value::String(text) if may_be_bare && is_piece && text.chars().all(is_part) => out.push_str(text),
        _ if is_piece => {
            return Err(refused(
                "a value beside a word is a piece of it, and holds letters, digits and `_` alone; set it apart by a blank or quotes",
            ));
        }
        Value::String(text) if is_signed(text) => write!(out, "({text})").unwrap_or_default(),
        value => return literal(out, value, after, backslashes),
    }
    Ok(())
}

/// Writes the items of a list, separated by commas.
pub(super) fn items(out: &mut String, list: &Value, backslashes: bool) -> Result<(), RenderError> {
    let Value::List(items) = list else {
        return Err(refused("it is no list"));
    };
    let items = items.iter().map(|item| scalar(item, backslashes));
    let items = items.collect::<Result<Vec<_>, _>>()?;
    out.push_str(&items.join(", "));
    Ok(())
}

fn is_word(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Returns true if a text consists of words separated by points.
fn is_name(text: &str) -> bool {
    text.split('.')
        .all(|part| part.chars().all(is_part) && part.starts_with(|c: char| c.is_alphabetic() || c == '_'))
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns true if a text consists of digits, with at most one point among them.
fn is_number(text: &str) -> bool {
    let (whole, rest) = text.split_once('.').unwrap_or((text, "0"));
    [whole, rest]
        .iter()
        .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns true if a text is a number with a minus sign.
fn is_signed(text: &str) -> bool {
    text.strip_prefix('-').is_some_and(is_number)
}

/// Writes a value as a literal, with blanks to keep it apart from adjacent words; `after` is the text behind it.
pub(super) fn literal(
    out: &mut String,
    value: &Value,
    after: &str,
    backslashes: bool,
) -> Result<(), RenderError> {
    // A word before it would make it a text of another form, as in `e'\\''`, and a text would join it.
    if out.chars().next_back().is_some_and(joins) {
        out.push(' ');
    }
    match value {
        Value::List(items) => {
            let listed = items.iter().map(|item| scalar(item, backslashes));
            let listed = listed.collect::<Result<Vec<_>, _>>()?;
            match is_operand_of_in(out, after) {
                true if listed.is_empty() => out.push_str("NULL"),
                true => out.push_str(&listed.join(", ")),
                false => write!(out, "[{}]", listed.join(", ")).unwrap_or_default(),
            }
        }
        value => out.push_str(&scalar(value, backslashes)?),
    }
    if after.chars().next().is_some_and(joins) {
        out.push(' ');
    }
    Ok(())
}

/// Returns true if a character would merge with an adjacent literal.
fn joins(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '\'')
}

/// Returns a value other than a list as a literal; `backslashes` is true if a backslash escapes in texts.
fn scalar(value: &Value, backslashes: bool) -> Result<String, RenderError> {
    Ok(match value {
        Value::Nil => "NULL".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) if *number < 0 => format!("({number})"),
        Value::Int(_) | Value::Uint(_) => value.to_string(),
        Value::Float(number) if number.is_finite() => format!("({number:?})"),
        Value::Float(_) => "NULL".to_owned(),
        Value::List(_) | Value::Map(_) | Value::Function(_) => {
            return Err(refused("a value with parts of its own is none that SQL takes"));
        }
        text => {
            let text = values::text(text);
            let text = without_nul(&text)?;
            match backslashes {
                true => MySql.text(text),
                false => ENGINE.text(text),
            }
        }
    })
}

/// Returns a text unchanged, after checking that SQL can hold it.
///
/// # Errors
/// When it holds a NUL character: without it the value would be another.
pub(super) fn without_nul(text: &str) -> Result<&str, RenderError> {
    match text.contains('\0') {
        true => Err(refused(
            "a value holds a NUL character, which no text in SQL can hold",
        )),
        false => Ok(text),
    }
}

/// Returns true if the place between two texts is inside the brackets of `IN (...)`.
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
