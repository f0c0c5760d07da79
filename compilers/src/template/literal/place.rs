//! Insertion of values at the marks in SQL, which is tokenized as the database would.

use gotmpl::Value;
use watershed_dialect::{backslashed, doubled};

use super::value::{self, argument, literal};
use super::{Given, Giver, MARK, refused};
use crate::template::scope::RenderError;
use crate::template::values;

/// The lexical rules by which SQL texts and comments end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// The rules of the engine, which Postgres and SQLite share.
    Engine,
    /// The rules of MySQL: backslash escapes in every text, double-quoted texts, comments after `#`.
    Mysql,
}

/// Types whose name before a text makes a typed literal, as in `DATE '2024-03-01'`.
const TYPES: [&str; 5] = ["date", "time", "timestamp", "timestamptz", "interval"];

/// The lexical context at a place of SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stretch {
    Plain,
    /// A text literal, with the byte offset in the result at which it begins.
    Quoted {
        begin: usize,
        quote: char,
        escapes: bool,
    },
    /// A quoted name, with its quote.
    Name(char),
    /// A comment up to the end of the line.
    Line,
    /// A block comment, with the number of nested comments that are open.
    Block(u32),
    /// Text behind a dollar sign in a context that does not read dollar quotes.
    Dollar,
    /// A dollar-quoted text, with the byte range in the result of its opening tag.
    Tagged {
        begin: usize,
        end: usize,
    },
}

/// A lexer of SQL, with the rules by which values are inserted.
pub(super) struct Reader {
    dialect: Dialect,
    /// True if dollar-quoted texts are read; otherwise a value behind a dollar sign is refused.
    reads_dollars: bool,
}

impl Reader {
    /// Returns the reader for rules and API queries, which contain values of viewers and callers.
    pub(super) fn of_rules() -> Self {
        Self {
            dialect: Dialect::Engine,
            reads_dollars: false,
        }
    }

    /// Returns the reader for a model's SQL.
    pub(super) fn of_models(dialect: Dialect) -> Self {
        Self {
            dialect,
            reads_dollars: true,
        }
    }

    /// Replaces marks by the values that they stand for.
    pub(super) fn place(&self, marked: &str, found: &[Given]) -> Result<String, RenderError> {
        let mut out = String::with_capacity(marked.len());
        let mut stretch = Stretch::Plain;
        // The literal that is being read stands for NULL.
        let mut absent = false;
        // Where the last text with escapes ended: one on the next line goes on with it.
        let mut escapes_to = None;
        let mut rest = marked;
        while let Some(c) = rest.chars().next() {
            if c == MARK {
                let (given, after) = taken(rest, found)?;
                rest = after;
                match stretch {
                    Stretch::Plain => self.alone(&mut out, given, rest)?,
                    Stretch::Quoted { .. } if matches!(given.value, Value::Nil) => absent = true,
                    stretch => out.push_str(&self.within(stretch, given, &out)?),
                }
                continue;
            }
            let between = escapes_to.filter(|_| c == '\'').and_then(|end| out.get(end..));
            let goes_on = between.is_some_and(is_line_end);
            let (next, length) = self.step(stretch, rest, &out, goes_on);
            let (read, after) = rest.split_at(length);
            out.push_str(read);
            rest = after;
            if matches!(
                (stretch, next),
                (Stretch::Quoted { escapes: true, .. }, Stretch::Plain)
            ) {
                escapes_to = Some(out.len());
            }
            if let (Stretch::Quoted { begin, .. }, Stretch::Plain, true) = (stretch, next, absent) {
                out.truncate(begin);
                push_null(&mut out);
                absent = false;
            }
            stretch = next;
        }
        Ok(out)
    }

    /// Writes a value outside of quotes; `after` is the text behind it.
    fn alone(&self, out: &mut String, given: &Given, after: &str) -> Result<(), RenderError> {
        let backslashes = self.dialect == Dialect::Mysql;
        match given.giver {
            Giver::Viewer => literal(out, &given.value, after, backslashes),
            Giver::Caller => argument(out, &given.value, after),
            Giver::Run => value::of_run(out, &given.value, after, backslashes),
            Giver::Items => value::items(out, &given.value, backslashes),
        }
    }

    /// Returns a value as written inside a text literal, a name or a comment.
    fn within(&self, stretch: Stretch, given: &Given, before: &str) -> Result<String, RenderError> {
        let is_of_run = given.giver == Giver::Run;
        let no_place = || {
            refused(match is_of_run {
                true => "a value that is NULL or a list can't stand within quotes or a comment",
                false => {
                    "a value stands alone or within single quotes, not in a name, a comment or another form of text"
                }
            })
        };
        let text = match &given.value {
            Value::List(_) | Value::Map(_) | Value::Function(_)
                if matches!(stretch, Stretch::Quoted { .. }) =>
            {
                return Err(refused(
                    "a list can't stand within quotes: write it without them, as in `x IN ({{ .user.groups }})`",
                ));
            }
            Value::Nil | Value::List(_) | Value::Map(_) | Value::Function(_) => return Err(no_place()),
            value => value::without_nul(&values::text(value))?.to_owned(),
        };
        match stretch {
            Stretch::Quoted {
                quote,
                escapes: false,
                ..
            } => Ok(doubled(&text, quote)),
            // A backslash of the author's before the value would escape what it begins with.
            Stretch::Quoted {
                quote, escapes: true, ..
            } if is_of_run && !ends_in_escape(before) => Ok(doubled(&backslashed(&text), quote)),
            Stretch::Name(quote) if is_of_run => Ok(doubled(&text, quote)),
            Stretch::Line | Stretch::Block(_) if is_of_run => Ok(words(&text)),
            Stretch::Tagged { .. } if is_of_run && !text.contains('$') => Ok(text),
            Stretch::Tagged { .. } if is_of_run => Err(refused(
                "a value with a dollar sign can't stand in a text between dollar signs: use single quotes",
            )),
            _ => Err(no_place()),
        }
    }

    /// Returns the context after the next token of a text, and the token's length in bytes. `before` is the result so
    /// far; with `goes_on`, a text literal continues one with escapes.
    fn step(&self, stretch: Stretch, text: &str, before: &str, goes_on: bool) -> (Stretch, usize) {
        let first = text.chars().next().map_or(1, char::len_utf8);
        let starts = |with: &str| text.starts_with(with);
        match stretch {
            Stretch::Plain => self.step_out(text, before, goes_on),
            Stretch::Quoted { escapes: true, .. } if starts("\\") => {
                // A mark is no second half of an escape.
                let second = text.chars().nth(1).filter(|second| *second != MARK);
                (stretch, first + second.map_or(0, char::len_utf8))
            }
            Stretch::Quoted { quote, .. } | Stretch::Name(quote) => {
                let mut chars = text.chars();
                match (chars.next() == Some(quote), chars.next() == Some(quote)) {
                    (true, true) => (stretch, 2 * first),
                    (true, false) => (Stretch::Plain, first),
                    (false, _) => (stretch, first),
                }
            }
            Stretch::Line if starts("\n") || starts("\r") => (Stretch::Plain, 1),
            Stretch::Block(open) if starts("/*") => (Stretch::Block(open + 1), 2),
            Stretch::Block(1) if starts("*/") => (Stretch::Plain, 2),
            Stretch::Block(open) if starts("*/") => (Stretch::Block(open - 1), 2),
            Stretch::Tagged { begin, end } => match before.get(begin..end).filter(|tag| starts(tag)) {
                Some(tag) => (Stretch::Plain, tag.len()),
                None => (stretch, first),
            },
            Stretch::Line | Stretch::Block(_) | Stretch::Dollar => (stretch, first),
        }
    }

    /// Returns true if a line comment begins with `--`; in MySQL a blank must follow.
    fn begins_comment(&self, text: &str) -> bool {
        let after = text.strip_prefix("--");
        after.is_some_and(|after| {
            self.dialect != Dialect::Mysql
                || after.is_empty()
                || after.starts_with(|c: char| c.is_whitespace() || c.is_control())
        })
    }

    /// Returns the context after the next token outside of quotes and comments, and the token's length in bytes.
    fn step_out(&self, text: &str, before: &str, goes_on: bool) -> (Stretch, usize) {
        let first = text.chars().next().map_or(1, char::len_utf8);
        let is_mysql = self.dialect == Dialect::Mysql;
        let quoted = |begin, quote, escapes| Stretch::Quoted {
            begin,
            quote,
            escapes,
        };
        let at = before.len();
        let next = match text.chars().next() {
            Some('\'') if is_mysql || goes_on => quoted(at, '\'', true),
            Some('\'') if before.ends_with(['e', 'E']) && is_prefix(before) => quoted(at - 1, '\'', true),
            Some('\'') => quoted(at, '\'', false),
            Some('"') if is_mysql => quoted(at, '"', true),
            Some('`') if is_mysql => Stretch::Name('`'),
            Some('"') => Stretch::Name('"'),
            Some('#') if is_mysql => Stretch::Line,
            Some('-') if self.begins_comment(text) => return (Stretch::Line, 2),
            Some('/') if text.starts_with("/*") => return (Stretch::Block(1), 2),
            Some('$') if !self.reads_dollars => Stretch::Dollar,
            Some('$') if !is_mysql && !before.ends_with(is_word) => {
                return match tag_length(text) {
                    Some(length) => {
                        let (begin, end) = (at, at + length);
                        (Stretch::Tagged { begin, end }, length)
                    }
                    None => (Stretch::Plain, 1),
                };
            }
            _ => Stretch::Plain,
        };
        (next, first)
    }
}

/// Splits off the mark at the start of a text, and returns its value and the rest.
fn taken<'t, 'v>(text: &'t str, found: &'v [Given]) -> Result<(&'v Given, &'t str), RenderError> {
    let mut parts = text.splitn(3, MARK);
    let (_, number, after) = (parts.next(), parts.next(), parts.next());
    let value = number
        .and_then(|number| number.parse::<usize>().ok())
        .and_then(|number| found.get(number));
    match (value, after) {
        (Some(value), Some(after)) => Ok((value, after)),
        _ => Err(refused("a value was changed after it was written")),
    }
}

/// Writes NULL in place of a text literal; typed, if the name of a type precedes.
fn push_null(out: &mut String) {
    let before = out.trim_end();
    let word_at = before.rfind(|c| !is_word(c)).map_or(0, |at| {
        at + before
            .get(at..)
            .and_then(|rest| rest.chars().next())
            .map_or(1, char::len_utf8)
    });
    let word = before.get(word_at..).unwrap_or_default().to_owned();
    match TYPES.iter().any(|known| known.eq_ignore_ascii_case(&word)) {
        true => {
            out.truncate(word_at);
            out.push_str(&format!("CAST(NULL AS {word})"));
        }
        false => out.push_str("NULL"),
    }
}

/// Returns true if a text has only blanks and comments, with a line break among them.
fn is_line_end(between: &str) -> bool {
    let is_blank = |line: &str| line.trim().is_empty() || line.trim_start().starts_with("--");
    between.contains(['\n', '\r']) && between.split(['\n', '\r']).all(is_blank)
}

/// Returns a text with all but word characters replaced, so that it can't end a comment.
fn words(text: &str) -> String {
    text.chars().map(|c| if is_word(c) { c } else { '_' }).collect()
}

/// Returns true if a text ends in an odd number of backslashes.
fn ends_in_escape(text: &str) -> bool {
    (text.len() - text.trim_end_matches('\\').len()) % 2 == 1
}

/// Returns the length of the `$tag$` at the start of a text, if there is one.
fn tag_length(text: &str) -> Option<usize> {
    let tag = text.strip_prefix('$')?;
    let end = tag.find(|c| !is_word(c))?;
    let begins_well = !tag.starts_with(|c: char| c.is_ascii_digit());
    (begins_well && tag.get(end..)?.starts_with('$')).then_some(end + 2)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns true if the last letter of a text is a separate word, as the prefix of a text with escapes is.
fn is_prefix(text: &str) -> bool {
    let before = text.chars().rev().nth(1);
    before.is_none_or(|c| !is_word(c))
}
