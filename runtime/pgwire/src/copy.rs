//! `COPY ... TO STDOUT`: rows as lines, without the messages of a table.

use bytes::{BufMut as _, BytesMut};
use watershed_drivers::olap::Value;

use crate::state::{BAD_VALUE, NOT_OFFERED, SYNTAX, SqlError};
use crate::text;
use crate::tokens::{Kind, Token, tokens};
use crate::types::Type;

/// A copy of rows to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Copy {
    /// The statement whose rows are copied.
    pub(crate) sql: String,
    /// The form of the lines.
    pub(crate) lines: Lines,
}

/// The form of lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lines {
    is_csv: bool,
    has_header: bool,
    delimiter: u8,
    null: String,
    quote: u8,
}

/// Reads a statement that begins with COPY.
///
/// # Errors
/// For all but a copy of rows to the client, as lines of text or CSV.
pub(crate) fn read(sql: &str) -> Result<Copy, SqlError> {
    let all: Vec<Token<'_>> = tokens(sql).filter(|token| token.kind != Kind::Blank).collect();
    let to = place_of_to(&all).ok_or_else(|| not_offered("a copy of anything but rows to the client"))?;
    if !all.get(to + 1).is_some_and(|place| is_word(place, "stdout")) {
        return Err(not_offered("a copy to files and programs"));
    }
    let (from, end) = match all.get(1) {
        Some(first) => (first.at, all[to].at),
        None => {
            return Err(SqlError::new(
                SYNTAX,
                "a copy is of a statement in brackets, or of a table",
            ));
        }
    };
    let what = sql[from..end].trim();
    let sql = match (
        all.get(1).map(|first| first.kind),
        all.get(to - 1).map(|last| last.kind),
    ) {
        (Some(Kind::Sign('(')), Some(Kind::Sign(')'))) => what[1..what.len() - 1].to_owned(),
        (_, Some(Kind::Sign(')'))) => {
            let mut before = all[..to].iter();
            let open = before.find(|token| token.kind == Kind::Sign('('));
            let unopened = || SqlError::new(SYNTAX, "a bracket of the copy is closed that was not opened");
            let open = open.ok_or_else(unopened)?.at;
            format!(
                "SELECT {} FROM {}",
                sql[open + 1..end].trim().trim_end_matches(')'),
                &sql[from..open]
            )
        }
        _ => format!("SELECT * FROM {what}"),
    };
    Ok(Copy {
        sql,
        lines: Lines::read(&all[to + 2..])?,
    })
}

/// Returns the place of the word TO outside of brackets.
fn place_of_to(all: &[Token<'_>]) -> Option<usize> {
    let mut depth = 0_usize;
    all.iter()
        .skip(1)
        .position(|token| {
            match token.kind {
                Kind::Sign('(') => depth += 1,
                Kind::Sign(')') => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && is_word(token, "to")
        })
        .map(|at| at + 1)
        .filter(|at| *at > 1)
}

fn not_offered(what: &str) -> SqlError {
    SqlError::new(NOT_OFFERED, format!("{what} is not offered here"))
        .hint("copy a SELECT in brackets to STDOUT, or ask with it alone")
}

fn is_word(token: &Token<'_>, word: &str) -> bool {
    token.kind == Kind::Word && token.text.eq_ignore_ascii_case(word)
}

impl Lines {
    /// Reads options: in brackets with commas, or in the older form one after another.
    fn read(options: &[Token<'_>]) -> Result<Self, SqlError> {
        let words = options.iter().filter(|token| {
            !matches!(token.kind, Kind::Sign('(' | ')' | ',' | ';'))
                && !is_word(token, "with")
                && !is_word(token, "as")
        });
        let words: Vec<&Token<'_>> = words.collect();
        let (mut is_csv, mut has_header) = (false, false);
        let (mut delimiter, mut null, mut quote) = (None, None, b'"');
        let mut at = 0;
        while let Some(word) = words.get(at) {
            let value = words.get(at + 1).map(|value| value.text.trim_matches('\''));
            let needed = || {
                let message = format!("`{}` takes a value", word.text);
                value.ok_or_else(|| SqlError::new(SYNTAX, message))
            };
            at += 2;
            match word.text.to_ascii_lowercase().as_str() {
                "format" => is_csv = format(needed()?)?,
                "csv" | "text" => {
                    is_csv = word.text.eq_ignore_ascii_case("csv");
                    at -= 1;
                }
                "header" => match value.map(str::to_ascii_lowercase).as_deref() {
                    Some("true" | "on" | "1") => has_header = true,
                    Some("false" | "off" | "0") => has_header = false,
                    _ => {
                        has_header = true;
                        at -= 1;
                    }
                },
                "delimiter" => delimiter = Some(one_sign(needed()?)?),
                "quote" => quote = one_sign(needed()?)?,
                "null" => null = Some(needed()?.to_owned()),
                "encoding"
                    if value.is_some_and(|value| {
                        ["utf8", "utf-8"].contains(&value.to_ascii_lowercase().as_str())
                    }) => {}
                other => return Err(not_offered(&format!("the option `{other}` of a copy"))),
            }
        }
        let usual = if is_csv { (b',', "") } else { (b'\t', "\\N") };
        Ok(Self {
            is_csv,
            has_header,
            delimiter: delimiter.unwrap_or(usual.0),
            null: null.unwrap_or_else(|| usual.1.to_owned()),
            quote,
        })
    }

    /// Returns the line with the names of columns; none if it is not asked for.
    pub(crate) fn header<'n>(&self, names: impl Iterator<Item = &'n str>) -> Option<BytesMut> {
        self.has_header.then(|| {
            let mut line = BytesMut::new();
            for (at, name) in names.enumerate() {
                self.separate(at, &mut line);
                self.field(name.as_bytes(), &mut line);
            }
            line.put_u8(b'\n');
            line
        })
    }

    /// Returns the line of a row.
    pub(crate) fn line(&self, row: &[Value], types: &[Type]) -> BytesMut {
        let (mut line, mut field) = (BytesMut::new(), BytesMut::new());
        for (at, (value, own)) in row.iter().zip(types).enumerate() {
            self.separate(at, &mut line);
            match value {
                Value::Null => line.put_slice(self.null.as_bytes()),
                value => {
                    field.clear();
                    text::write(value, own.form, &mut field);
                    self.field(&field, &mut line);
                }
            }
        }
        line.put_u8(b'\n');
        line
    }

    fn separate(&self, at: usize, line: &mut BytesMut) {
        if at > 0 {
            line.put_u8(self.delimiter);
        }
    }

    fn field(&self, field: &[u8], line: &mut BytesMut) {
        match self.is_csv {
            true => self.field_of_csv(field, line),
            false => self.field_of_text(field, line),
        }
    }

    fn field_of_text(&self, field: &[u8], line: &mut BytesMut) {
        for byte in field {
            match byte {
                b'\\' => line.put_slice(b"\\\\"),
                b'\n' => line.put_slice(b"\\n"),
                b'\r' => line.put_slice(b"\\r"),
                b'\t' => line.put_slice(b"\\t"),
                byte if *byte == self.delimiter => line.put_slice(&[b'\\', *byte]),
                byte => line.put_u8(*byte),
            }
        }
    }

    fn field_of_csv(&self, field: &[u8], line: &mut BytesMut) {
        // What looks like NULL, or like the end of all lines, is none.
        let is_quoted = field == self.null.as_bytes()
            || field == b"\\."
            || field
                .iter()
                .any(|byte| [self.delimiter, self.quote, b'\n', b'\r'].contains(byte));
        if !is_quoted {
            return line.put_slice(field);
        }
        line.put_u8(self.quote);
        for byte in field {
            if *byte == self.quote {
                line.put_u8(self.quote);
            }
            line.put_u8(*byte);
        }
        line.put_u8(self.quote);
    }
}

/// Returns true for CSV, and false for text.
fn format(name: &str) -> Result<bool, SqlError> {
    match name.to_ascii_lowercase().as_str() {
        "csv" => Ok(true),
        "text" => Ok(false),
        other => Err(not_offered(&format!("the format `{other}` of a copy"))),
    }
}

/// Reads one sign of ASCII that ends no line and is no backslash.
fn one_sign(text: &str) -> Result<u8, SqlError> {
    match text.as_bytes() {
        [sign] if sign.is_ascii() && ![b'\n', b'\r', b'\\', 0].contains(sign) => Ok(*sign),
        _ => Err(SqlError::new(
            BAD_VALUE,
            format!("`{text}` is not one sign of ASCII"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{TEXT, of};

    fn lines(options: &str) -> Lines {
        read(&format!("COPY (SELECT 1) TO STDOUT {options}"))
            .unwrap()
            .lines
    }

    #[test]
    fn s_api27_a_copy_to_the_client_is_read_and_no_other() {
        for (sql, statement) in [
            ("COPY (SELECT 'to' FROM t) TO STDOUT", "SELECT 'to' FROM t"),
            (
                "copy ( SELECT (1) ) to stdout (format csv, header)",
                " SELECT (1) ",
            ),
            ("COPY t TO STDOUT WITH CSV HEADER", "SELECT * FROM t"),
            (
                "COPY main.\"to\" (a, \"b\") TO STDOUT;",
                "SELECT a, \"b\" FROM main.\"to\" ",
            ),
        ] {
            assert_eq!(read(sql).map(|copy| copy.sql), Ok(statement.to_owned()), "{sql}");
        }
        for sql in [
            "COPY t FROM STDIN",
            "COPY t TO '/tmp/a'",
            "COPY t TO PROGRAM 'id'",
            "COPY (SELECT 1) TO STDOUT (FORMAT binary)",
            "COPY (SELECT 1) TO STDOUT (FORCE_QUOTE *)",
            "COPY TO STDOUT",
            "COPY",
        ] {
            assert_eq!(read(sql).map_err(|error| error.state), Err(NOT_OFFERED), "{sql}");
        }
        let unopened = read("COPY t) TO STDOUT");
        assert_eq!(unopened.map_err(|error| error.state), Err(SYNTAX));
        for sql in [
            "COPY t TO STDOUT (DELIMITER 'ab')",
            "COPY t TO STDOUT (DELIMITER '\\')",
        ] {
            assert_eq!(read(sql).map_err(|error| error.state), Err(BAD_VALUE), "{sql}");
        }
    }

    #[test]
    fn s_api27_lines_have_the_form_of_postgres() {
        let row = [
            Value::Text("a\tb\\\n".to_owned()),
            Value::Null,
            Value::Text(String::new()),
            Value::Boolean(true),
            Value::Text("x,\"y\"".to_owned()),
        ];
        let types = [TEXT, TEXT, TEXT, of("BOOLEAN"), TEXT];
        let told = |options: &str| String::from_utf8(lines(options).line(&row, &types).to_vec()).unwrap();
        assert_eq!(told(""), "a\\tb\\\\\\n\t\\N\t\tt\tx,\"y\"\n");
        assert_eq!(told("CSV"), "\"a\tb\\\n\",,\"\",t,\"x,\"\"y\"\"\"\n");
        assert_eq!(
            told("(FORMAT csv, DELIMITER ';', NULL '-')"),
            "\"a\tb\\\n\";-;;t;\"x,\"\"y\"\"\"\n"
        );
        let header = lines("CSV HEADER").header(["a", "b,c"].into_iter());
        assert_eq!(header.unwrap(), &b"a,\"b,c\"\n"[..]);
        assert_eq!(lines("").header(["a"].into_iter()), None);
    }
}
