//! Values of parameters, written into a statement as constants of their types.
//!
//! Each value becomes a quoted text, cast to its type. Whoever judges the statement judges the one that the engine gets.

use bytes::Bytes;

use watershed_dialect::{ENGINE, Quoting as _};

use crate::binary;
use crate::state::{BAD_VALUE, NOT_OFFERED, PROTOCOL, SqlError, TOO_MANY};
use crate::tokens::{Kind, tokens};
use crate::types::{self, Form};

/// The longest statement with its values, in bytes.
const LONGEST: usize = 16 << 20;

/// Returns the number of parameters of a statement: the greatest that it names.
pub(crate) fn number_in(sql: &str) -> usize {
    let numbers = tokens(sql).filter_map(|token| match token.kind {
        Kind::Parameter(number) => Some(number),
        _ => None,
    });
    numbers.max().unwrap_or(0)
}

/// Returns values as constants; `formats` and `types` are those of the protocol.
pub(crate) fn constants(
    values: &[Option<Bytes>],
    formats: &[i16],
    types: &[u32],
) -> Result<Vec<String>, SqlError> {
    if !(formats.len() <= 1 || formats.len() == values.len()) {
        return Err(SqlError::new(
            PROTOCOL,
            "there are not as many formats as parameters",
        ));
    }
    let format = |at: usize| match formats {
        [] => 0,
        [all] => *all,
        each => each.get(at).copied().unwrap_or(0),
    };
    let values = values.iter().enumerate();
    values
        .map(|(at, value)| {
            let oid = types.get(at).copied().unwrap_or(0);
            constant(value.as_ref(), format(at), oid).map_err(|error| SqlError {
                message: format!("parameter ${}: {}", at + 1, error.message),
                ..error
            })
        })
        .collect()
}

/// Returns NULL for each parameter, with its type: by these a statement is described before it has values.
pub(crate) fn unknown(types: &[u32]) -> Result<Vec<String>, SqlError> {
    types.iter().map(|oid| constant(None, 0, *oid)).collect()
}

fn constant(value: Option<&Bytes>, format: i16, oid: u32) -> Result<String, SqlError> {
    let Some((form, engine)) = types::parameter(oid) else {
        let message = format!("parameters of the type {oid} are not offered");
        return Err(SqlError::new(NOT_OFFERED, message).hint("send the value as a text, and cast it"));
    };
    let bad = || SqlError::new(BAD_VALUE, "the value is none of its type");
    let Some(value) = value else {
        return Ok(match (form, engine) {
            (_, Some(engine)) => format!("CAST(NULL AS {engine})"),
            (Form::Numeric, None) => "CAST(NULL AS DOUBLE)".to_owned(),
            _ => "NULL".to_owned(),
        });
    };
    let text = match format {
        0 if form == Form::Bytes => bytes_of_text(value).ok_or_else(bad)?,
        0 => std::str::from_utf8(value).map_err(|_| bad())?.to_owned(),
        1 => binary::read(value, form).ok_or_else(bad)?,
        _ => return Err(SqlError::new(PROTOCOL, format!("there is no format {format}"))),
    };
    if text.contains('\0') {
        return Err(bad());
    }
    let quoted = ENGINE.text(&text);
    Ok(match engine {
        Some(engine) => format!("CAST({quoted} AS {engine})"),
        // A constant of digits has a type of as many digits as it needs.
        None if form == Form::Numeric && is_number(&text) => text,
        None if form == Form::Numeric => format!("CAST({quoted} AS DOUBLE)"),
        None => quoted,
    })
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    are_digits(whole) && are_digits(fraction) && digits.len() <= 39
}

/// Reads bytes as Postgres writes them, `\x00ff`, into the engine's form.
fn bytes_of_text(value: &[u8]) -> Option<String> {
    let digits = std::str::from_utf8(value).ok()?.strip_prefix("\\x")?;
    if digits.len() % 2 != 0 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let pairs = digits
        .as_bytes()
        .chunks(2)
        .map(|pair| String::from_utf8_lossy(pair));
    Some(pairs.map(|pair| format!("\\x{pair}")).collect())
}

/// Puts constants into the places of parameters.
pub(crate) fn put(sql: &str, constants: &[String]) -> Result<String, SqlError> {
    let mut whole = String::with_capacity(sql.len());
    for token in tokens(sql) {
        match token.kind {
            Kind::Parameter(number) => {
                let constant = number.checked_sub(1).and_then(|at| constants.get(at));
                let constant = constant
                    .ok_or_else(|| SqlError::new("42P02", format!("there is no parameter ${number}")))?;
                // A sign or word before or behind stays one of its own.
                whole.push_str(" (");
                whole.push_str(constant);
                whole.push_str(") ");
            }
            _ => whole.push_str(token.text),
        }
        if whole.len() > LONGEST {
            return Err(SqlError::new(
                TOO_MANY,
                "the statement with its values is too long",
            ));
        }
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put_one(sql: &str, value: &[u8], format: i16, oid: u32) -> Result<String, SqlError> {
        let constants = constants(&[Some(Bytes::copy_from_slice(value))], &[format], &[oid])?;
        put(sql, &constants)
    }

    #[test]
    fn values_stay_values() {
        for (value, oid, text) in [
            ("x' OR 'a'='a", 25, "CAST('x'' OR ''a''=''a' AS VARCHAR)"),
            ("5", 23, "CAST('5' AS INTEGER)"),
            ("5", 0, "'5'"),
            ("1.50", 1700, "1.50"),
            ("1) OR (1=1", 1700, "CAST('1) OR (1=1' AS DOUBLE)"),
            ("\\x00fF", 17, "CAST('\\x00\\xfF' AS BLOB)"),
        ] {
            let put = put_one("SELECT a=$1", value.as_bytes(), 0, oid).unwrap();
            assert_eq!(put, format!("SELECT a= ({text}) "));
        }
        assert_eq!(
            put_one("SELECT $1", &[0, 0, 0, 7], 1, 23).unwrap(),
            "SELECT  (CAST('7' AS INTEGER)) "
        );
        // A parameter in a text is none.
        assert_eq!(put_one("SELECT '$1'", b"5", 0, 23).unwrap(), "SELECT '$1'");
    }

    #[test]
    fn values_that_are_none_of_their_type_are_refused() {
        for (value, format, oid, state) in [
            (&b"\xff"[..], 0, 25, BAD_VALUE),
            (b"a\0b", 0, 25, BAD_VALUE),
            (b"a\0b", 0, 0, BAD_VALUE),
            (&[1][..], 1, 23, BAD_VALUE),
            (b"xy", 0, 17, BAD_VALUE),
            (b"x", 2, 25, PROTOCOL),
            (b"x", 0, 600, NOT_OFFERED),
        ] {
            let refused = put_one("SELECT $1", value, format, oid).unwrap_err();
            assert_eq!(refused.state, state, "{value:?}");
        }
        assert_eq!(put("SELECT $2", &["1".to_owned()]).unwrap_err().state, "42P02");
        assert_eq!(put("SELECT $0", &["1".to_owned()]).unwrap_err().state, "42P02");
        assert_eq!(number_in("SELECT $3, $1"), 3);
    }
}
