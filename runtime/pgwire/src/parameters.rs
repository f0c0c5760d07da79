//! Values of parameters, written into a statement as constants of their types.
//!
//! Each value becomes a quoted text, cast to its type. Whoever judges the statement judges the one that the engine gets.
//!
//! An array in `= ANY ($1)` becomes a list of alternatives, `IN (...)`: elements of which nobody said the type have that of what
//! they are compared with, and conditions of metrics views know such lists.

use bytes::Bytes;

use watershed_dialect::{ENGINE, Quoting as _};

use crate::state::{BAD_VALUE, NOT_OFFERED, PROTOCOL, SqlError, TOO_MANY};
use crate::tokens::{Kind, Token, tokens};
use crate::types::{self, Form};
use crate::{binary, text, typing};

/// The longest statement with its values, in bytes.
const LONGEST: usize = 16 << 20;

/// The values of a statement's parameters.
pub(crate) struct Values<'a> {
    pub(crate) values: &'a [Option<Bytes>],
    /// Formats as in the protocol: one for each value, one for all, or none for texts.
    pub(crate) formats: &'a [i16],
    /// Types that the client said; 0 for those that were left open.
    pub(crate) declared: &'a [u32],
    /// Types with those that were found for the client.
    pub(crate) types: &'a [u32],
}

impl Values<'_> {
    fn format(&self, at: usize) -> i16 {
        match self.formats {
            [] => 0,
            [all] => *all,
            each => each.get(at).copied().unwrap_or(0),
        }
    }

    /// Returns true for a text whose type the client left open.
    fn is_open(&self, at: usize) -> bool {
        self.format(at) == 0 && self.declared.get(at).is_none_or(|oid| *oid == 0)
    }

    /// Returns the type of a value. An open text is read by the engine as what it needs: more forms than those of Postgres.
    fn oid(&self, at: usize) -> u32 {
        let known = self.types.get(at).copied().unwrap_or(0);
        let is_array = || {
            let value = self.values.get(at).and_then(Option::as_ref);
            types::element_of(known).is_some() && value.is_none_or(|value| value.starts_with(b"{"))
        };
        match self.is_open(at) && !is_array() {
            // NULL alone needs a type.
            true if self.values.get(at).is_some_and(Option::is_some) => 0,
            _ => known,
        }
    }

    fn constants(&self) -> Result<Vec<String>, SqlError> {
        if !(self.formats.len() <= 1 || self.formats.len() == self.values.len()) {
            return Err(SqlError::new(
                PROTOCOL,
                "there are not as many formats as parameters",
            ));
        }
        let values = self.values.iter().enumerate();
        let constant = |(at, value): (usize, &Option<Bytes>)| {
            constant(value.as_deref(), self.format(at), self.oid(at)).map_err(|error| of_parameter(error, at))
        };
        values.map(constant).collect()
    }

    /// Returns the elements of an array, by its number, as constants; none for a value that is no array.
    fn alternatives(&self, number: usize) -> Result<Option<String>, SqlError> {
        let Some((at, value)) = number
            .checked_sub(1)
            .and_then(|at| Some((at, self.values.get(at)?)))
        else {
            return Ok(None);
        };
        let element = types::element_of(self.types.get(at).copied().unwrap_or(0));
        let element = match (element, self.is_open(at)) {
            (_, true) => 0,
            (Some(element), false) => element,
            (None, false) => return Ok(None),
        };
        let Some(value) = value else {
            return Ok(Some("NULL".to_owned()));
        };
        let elements = elements(value, self.format(at), element).map_err(|error| of_parameter(error, at))?;
        Ok(Some(match elements.is_empty() {
            true => "SELECT NULL WHERE false".to_owned(),
            false => elements.join(", "),
        }))
    }
}

fn of_parameter(error: SqlError, at: usize) -> SqlError {
    SqlError {
        message: format!("parameter ${}: {}", at + 1, error.message),
        ..error
    }
}

/// Returns a statement with NULL for each parameter, with its type: so a statement is described before it has values.
pub(crate) fn described(sql: &str, types: &[u32]) -> Result<String, SqlError> {
    let values = Values {
        values: &vec![None; types.len()],
        formats: &[],
        declared: types,
        types,
    };
    bound(sql, &values)
}

/// Returns a statement with its values as constants.
pub(crate) fn bound(sql: &str, values: &Values<'_>) -> Result<String, SqlError> {
    let constants = values.constants()?;
    let all: Vec<Token<'_>> = tokens(sql).collect();
    let mut places = typing::any_of_parameters(&all).into_iter().peekable();
    let (mut whole, mut at) = (String::with_capacity(sql.len()), 0);
    while let Some(token) = all.get(at) {
        at += 1;
        if let Some((range, number)) = places.next_if(|(range, _)| range.start + 1 == at)
            && let Some(list) = values.alternatives(number)?
        {
            whole.push_str(&format!(" IN ({list}) "));
            at = range.end;
        } else if let Kind::Parameter(number) = token.kind {
            let constant = number.checked_sub(1).and_then(|at| constants.get(at));
            let constant =
                constant.ok_or_else(|| SqlError::new("42P02", format!("there is no parameter ${number}")))?;
            // A sign or word before or behind stays one of its own.
            whole.push_str(&format!(" ({constant}) "));
        } else {
            whole.push_str(token.text);
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

/// Returns the elements of an array as constants.
fn elements(value: &[u8], format: i16, element: u32) -> Result<Vec<String>, SqlError> {
    let bad = || SqlError::new(BAD_VALUE, "the value is no array of its type with one dimension");
    match format {
        0 => {
            let text = std::str::from_utf8(value).map_err(|_| bad())?;
            let elements = text::read_array(text).ok_or_else(bad)?;
            let own = |own: &Option<String>| constant(own.as_ref().map(String::as_bytes), 0, element);
            elements.iter().map(own).collect()
        }
        _ => {
            let elements = binary::read_array(value, element).ok_or_else(bad)?;
            elements
                .into_iter()
                .map(|own| constant(own, format, element))
                .collect()
        }
    }
}

/// Returns an array as a list of constants.
fn list(value: Option<&[u8]>, format: i16, element: u32) -> Result<String, SqlError> {
    let name = match types::parameter(element) {
        Some((_, Some(engine))) => engine,
        _ => "DOUBLE",
    };
    let Some(value) = value else {
        return Ok(format!("CAST(NULL AS {name}[])"));
    };
    let constants = elements(value, format, element)?;
    let list = format!("[{}]", constants.join(", "));
    // Numbers without a bound have the type that all of them need.
    Ok(match element == types::NUMERIC.0 && !constants.is_empty() {
        true => list,
        false => format!("CAST({list} AS {name}[])"),
    })
}

fn constant(value: Option<&[u8]>, format: i16, oid: u32) -> Result<String, SqlError> {
    if let Some(element) = types::element_of(oid) {
        return list(value, format, element);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn put(sql: &str, value: &[u8], format: i16, (declared, known): (u32, u32)) -> Result<String, SqlError> {
        let values = Values {
            values: &[Some(Bytes::copy_from_slice(value))],
            formats: &[format],
            declared: &[declared],
            types: &[known],
        };
        bound(sql, &values)
    }

    fn put_one(sql: &str, value: &[u8], format: i16, oid: u32) -> Result<String, SqlError> {
        put(sql, value, format, (oid, oid))
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
            (
                "{1,NULL}",
                1007,
                "CAST([CAST('1' AS INTEGER), CAST(NULL AS INTEGER)] AS INTEGER[])",
            ),
            (
                "{\"x'] OR true --\"}",
                1009,
                "CAST([CAST('x''] OR true --' AS VARCHAR)] AS VARCHAR[])",
            ),
            ("{1.5,2}", 1231, "[1.5, 2]"),
            ("{}", 1231, "CAST([] AS DOUBLE[])"),
            ("1 day", 1186, "CAST('1 day' AS INTERVAL)"),
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
            (b"{{1}}", 0, 1007, BAD_VALUE),
            (&[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 23][..], 1, 1007, BAD_VALUE),
        ] {
            let refused = put_one("SELECT $1", value, format, oid).unwrap_err();
            assert_eq!(refused.state, state, "{value:?}");
        }
        for none in ["SELECT $2", "SELECT $0", "SELECT 1 = ANY($0)"] {
            assert_eq!(put_one(none, b"{}", 0, 25).unwrap_err().state, "42P02", "{none}");
        }
    }

    #[test]
    fn arrays_come_in_binary_too() {
        let int = |number: i32| number.to_be_bytes().to_vec();
        let array = [int(1), int(1), int(23), int(2), int(1), int(4), int(7), int(-1)].concat();
        assert_eq!(
            put_one("SELECT $1", &array, 1, 1007).unwrap(),
            "SELECT  (CAST([CAST('7' AS INTEGER), CAST(NULL AS INTEGER)] AS INTEGER[])) "
        );
        let none = [int(0), int(0), int(23)].concat();
        let put = put_one("SELECT $1", &none, 1, 1007).unwrap();
        assert_eq!(put, "SELECT  (CAST([] AS INTEGER[])) ");
        let interval = [&[0, 0, 0, 0, 0, 0, 0, 9][..], &int(-2), &int(14)].concat();
        assert!(
            put_one("$1", &interval, 1, 1186)
                .unwrap()
                .contains("'14 months -2 days 9 microseconds'")
        );
    }

    #[test]
    fn arrays_that_are_compared_are_lists_of_alternatives() {
        let any = |value: &str, oid| put("SELECT a = ANY($1)", value.as_bytes(), 0, oid);
        assert_eq!(
            any("{1,xQQ}".replace("QQ", "'").as_str(), (0, 0)).unwrap(),
            "SELECT a  IN ('1', 'x\'\'') "
        );
        // A text is read by the engine also where the type of the elements is known.
        assert_eq!(any("{1}", (0, 1007)).unwrap(), "SELECT a  IN ('1') ");
        assert_eq!(
            any("{1}", (1007, 1007)).unwrap(),
            "SELECT a  IN (CAST('1' AS INTEGER)) "
        );
        assert_eq!(
            any("{}", (0, 0)).unwrap(),
            "SELECT a  IN (SELECT NULL WHERE false) "
        );
        assert_eq!(any("1) OR (true", (0, 0)).unwrap_err().state, BAD_VALUE);
        // Elsewhere the value stays what it is.
        let both = put("SELECT $1 IS NULL OR a = ANY($1)", b"{}", 0, (0, 0)).unwrap();
        assert_eq!(
            both,
            "SELECT  ('{}')  IS NULL OR a  IN (SELECT NULL WHERE false) "
        );
        assert_eq!(described("a = ANY($1)", &[0]).unwrap(), "a  IN (NULL) ");
    }

    #[test]
    fn a_text_of_open_type_is_read_by_the_engine() {
        let open = |value: &str, known| put("$1", value.as_bytes(), 0, (0, known)).unwrap();
        assert_eq!(
            open("2024-01-01 00:00:00.123456789", 1114),
            " ('2024-01-01 00:00:00.123456789') "
        );
        assert_eq!(open("[a, b]", 1009), " ('[a, b]') ");
        assert_eq!(open("{a}", 1009), " (CAST([CAST('a' AS VARCHAR)] AS VARCHAR[])) ");
        let binary = put("$1", &[0, 0, 0, 7], 1, (0, 23)).unwrap();
        assert_eq!(binary, " (CAST('7' AS INTEGER)) ");
        assert_eq!(described("$1", &[23]).unwrap(), " (CAST(NULL AS INTEGER)) ");
    }
}
