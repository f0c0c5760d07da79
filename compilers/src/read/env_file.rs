//! Parsing of `.env` files: one `NAME=value` per line.

use std::{collections::BTreeMap, ops::Range};

use crate::{
    diagnostics::{At, Code, Findings, Role},
    text::Text,
};

/// Returns true if a text is a valid name of a variable: letters, digits, `_` and `.`, without a leading digit or dot.
pub(crate) fn is_variable_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
}

/// Reads an `.env` file; unreadable lines are reported and skipped, and later lines win. Values may be quoted (between
/// double quotes, `\n`, `\r`, `\t`, `\"` and `\\` are escapes and line breaks are allowed), lines may begin with
/// `export`, and a `#` after a blank begins a comment.
///
/// Outside of single quotes `$NAME` and `${NAME}` stand for variables of lines above, if the name consists of capitals, digits
/// and `_`. Every other dollar sign stands for itself, so that passwords and hashes with dollars stay as they are.
pub(crate) fn read(text: &Text<'_>, findings: &mut Findings) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    let mut at = 0;
    let source = text.str();
    while let Some(rest) = source.get(at..).filter(|rest| !rest.is_empty()) {
        let line_length = rest.find('\n').map_or(rest.len(), |end| end + 1);
        let line = rest.get(..line_length).unwrap_or(rest);
        let statement = line.trim_start();
        let start = at + line.len() - statement.len();
        let statement = statement.trim_end();
        if statement.is_empty() || statement.starts_with('#') {
            at += line_length;
            continue;
        }
        let place = |range: Range<usize>| At {
            role: Role::Yaml,
            span: text.span(start + range.start..start + range.end),
        };
        match Assignment::read(source.get(start..).unwrap_or_default()) {
            Ok(assignment) => {
                let (value, unset) = assignment.expanded(&variables);
                for (name, range) in unset {
                    let message =
                        format!("variable \"{name}\" is not set on a line above, so nothing stands for it");
                    let hint = "single quotes around the value, or `\\$`, keep the dollar sign";
                    findings.add_with_hint(place(range), Code::EnvUnset, message, hint);
                }
                let name = assignment.name;
                if is_variable_name(name) {
                    variables.insert(name.to_owned(), value);
                } else {
                    let message = format!("\"{name}\" is no name for a variable");
                    let hint = "use letters, digits, `_` and `.`, beginning with a letter or `_`";
                    findings.add_with_hint(place(0..statement.len()), Code::InvalidVariable, message, hint);
                }
                at = (start + assignment.used).max(at + line_length);
            }
            Err(message) => {
                findings.add_with_hint(
                    place(0..statement.len()),
                    Code::EnvSyntax,
                    message,
                    "write `NAME=value`",
                );
                at += line_length;
            }
        }
    }
    variables
}

/// The quotes around a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quotes {
    None,
    Single,
    Double,
}

/// A parsed assignment at the beginning of a text.
struct Assignment<'a> {
    name: &'a str,
    /// The value as written, without quotes.
    value: &'a str,
    /// The byte offset of the value.
    value_at: usize,
    quotes: Quotes,
    /// The length of the assignment in bytes, including its line break.
    used: usize,
}

impl<'a> Assignment<'a> {
    fn read(text: &'a str) -> Result<Self, &'static str> {
        let line_end = text.find('\n').unwrap_or(text.len());
        let line = text.get(..line_end).unwrap_or_default();
        let sign = line.find(['=', ':']).ok_or("a line without `=`")?;
        let name = name_of(line.get(..sign).unwrap_or_default());
        let after = text.get(sign + 1..).unwrap_or_default();
        let value = after.trim_start_matches([' ', '\t']);
        let value_at = sign + 1 + after.len() - value.len();
        let quotes = match value.chars().next() {
            Some('\'') => Quotes::Single,
            Some('"') => Quotes::Double,
            _ => {
                let value = line.get(value_at.min(line.len())..).unwrap_or_default();
                let is_set_apart = value_at > sign + 1;
                let value = before_comment(value, is_set_apart).trim_end();
                return Ok(Self {
                    name,
                    value,
                    value_at,
                    quotes: Quotes::None,
                    used: line_end + 1,
                });
            }
        };
        let inner = quoted(value, quotes).ok_or("a quote that does not close")?;
        let behind = value_at + inner.len() + 2;
        let tail = text.get(behind..).unwrap_or_default();
        let tail_end = tail.find('\n').unwrap_or(tail.len());
        let left = tail.get(..tail_end).unwrap_or_default().trim();
        if !left.is_empty() && !left.starts_with('#') {
            return Err("text behind the quote that closes the value");
        }
        Ok(Self {
            name,
            value: inner,
            value_at: value_at + 1,
            quotes,
            used: behind + tail_end + 1,
        })
    }

    /// Returns the value with variables of earlier lines inserted, and the names and places of unset ones.
    fn expanded(&self, known: &BTreeMap<String, String>) -> (String, Vec<(&'a str, Range<usize>)>) {
        let mut unset = Vec::new();
        if self.quotes == Quotes::Single {
            return (self.value.to_owned(), unset);
        }
        let mut value = String::with_capacity(self.value.len());
        let mut rest = self.value;
        while let Some(at) = rest.find(['\\', '$']) {
            let (before, special) = rest.split_at(at);
            value.push_str(before);
            let start = self.value_at + self.value.len() - special.len();
            let used = match special.strip_prefix('\\') {
                Some(escaped) => escape(escaped, self.quotes, &mut value),
                None => match variable(special) {
                    Some((name, length)) => {
                        match known.get(name) {
                            Some(known) => value.push_str(known),
                            None => unset.push((name, start..start + length)),
                        }
                        length
                    }
                    None => {
                        value.push('$');
                        1
                    }
                },
            };
            rest = special.get(used..).unwrap_or_default();
        }
        value.push_str(rest);
        (value, unset)
    }
}

/// Returns the name before the `=`, without `export`.
fn name_of(text: &str) -> &str {
    let name = text.trim();
    match name.strip_prefix("export") {
        Some(rest) if rest.starts_with(char::is_whitespace) => rest.trim(),
        _ => name,
    }
}

/// Returns a value without the comment after it: a `#` behind a blank, or at once if the value is set apart from the
/// `=`.
fn before_comment(value: &str, is_set_apart: bool) -> &str {
    let mut is_apart = is_set_apart;
    for (at, c) in value.char_indices() {
        if c == '#' && is_apart {
            return value.get(..at).unwrap_or_default();
        }
        is_apart = c.is_whitespace();
    }
    value
}

/// Returns the text between the quotes at the start of a text; none if they are not closed.
fn quoted(text: &str, quotes: Quotes) -> Option<&str> {
    let quote = text.chars().next()?;
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' if quotes == Quotes::Double => escaped = true,
            c if c == quote => return text.get(1..at),
            _ => {}
        }
    }
    None
}

/// Appends the character that a backslash escapes; without quotes only `$` can be escaped. Returns the number of bytes
/// consumed.
fn escape(escaped: &str, quotes: Quotes, value: &mut String) -> usize {
    let Some(c) = escaped.chars().next() else {
        value.push('\\');
        return 1;
    };
    if quotes == Quotes::None && c != '$' {
        value.push('\\');
        return 1;
    }
    value.push(match c {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        other => other,
    });
    1 + c.len_utf8()
}

/// Returns the name of the variable at the start of a text (`$NAME` or `${NAME}`), and its length in bytes.
fn variable(text: &str) -> Option<(&str, usize)> {
    let after = text.strip_prefix('$')?;
    let (name, around) = match after.strip_prefix('{') {
        Some(inner) => (inner.split_once('}')?.0, 3),
        None => {
            let end = after.find(|c: char| !is_of_name(c)).unwrap_or(after.len());
            (after.get(..end)?, 1)
        }
    };
    let is_name =
        name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_') && name.chars().all(is_of_name);
    is_name.then_some((name, name.len() + around))
}

/// Returns true if a character may stand in the name of an inserted variable.
fn is_of_name(c: char) -> bool {
    c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    type Variables = Vec<(String, String)>;

    fn read_all(text: &str) -> (Variables, Vec<(Code, u32)>) {
        let mut findings = Findings::default();
        let variables = read(&Text::new(text), &mut findings);
        (
            variables.into_iter().collect(),
            findings.iter().map(|f| (f.code, f.at.span.line)).collect(),
        )
    }

    #[test]
    fn values_are_read_as_shells_do() {
        let (variables, findings) = read_all(
            "# c\nA=1\nexport B = two # c\nC='#3 $A'\nD=\"x\\n${A}\"\r\nE=\nF: y\nG=\"two\nlines\"\nA.b=$A-x\nH=a#b\n",
        );
        let expected = [
            ("A", "1"),
            ("A.b", "1-x"),
            ("B", "two"),
            ("C", "#3 $A"),
            ("D", "x\n1"),
            ("E", ""),
            ("F", "y"),
            ("G", "two\nlines"),
            ("H", "a#b"),
        ];
        assert_eq!(variables, expected.map(|(k, v)| (k.to_owned(), v.to_owned())));
        assert_eq!(findings, []);
    }

    #[test]
    fn a_broken_line_costs_itself_only() {
        let (variables, findings) = read_all("A=1\nnonsense\n2B=1\nC=\"open\nD=4\n");
        assert_eq!(variables.len(), 2, "{variables:?}");
        assert_eq!(
            findings,
            [
                (Code::EnvSyntax, 2),
                (Code::InvalidVariable, 3),
                (Code::EnvSyntax, 4)
            ]
        );
    }

    fn value_of(line: &str) -> (String, usize) {
        let (variables, findings) = read_all(&format!("SET=s\nset=low\n{line}\n"));
        let value = variables.into_iter().find(|(name, _)| name == "A");
        (value.map(|(_, value)| value).unwrap_or_default(), findings.len())
    }

    #[test]
    fn dollar_signs_that_begin_no_variable_stay() {
        for (line, value) in [
            ("A=abc$def", "abc$def"),
            ("A=\"abc$def\"", "abc$def"),
            ("A=$2a$10$bY3ZpvQN/nTF", "$2a$10$bY3ZpvQN/nTF"),
            ("A=pa$$word", "pa$$word"),
            ("A=pa$", "pa$"),
            ("A=$", "$"),
            ("A=${set}$set", "${set}$set"),
            ("A=${}${", "${}${"),
            ("A=$(SET)", "$(SET)"),
            ("A=${SET-x}", "${SET-x}"),
            ("A=$1SET", "$1SET"),
            ("A='$SET'", "$SET"),
            ("A=\\$SET", "$SET"),
            ("A=\"\\$SET\"", "$SET"),
            ("A=\"\\\\$SET\"", "\\s"),
            ("A=c:\\new\\$SET", "c:\\new$SET"),
            ("A=$SETup", "sup"),
            ("A=x${SET}y$SET.z", "xsys.z"),
            ("A=\"$SET\\n\\t\\\"\"", "s\n\t\""),
        ] {
            assert_eq!(value_of(line), (value.to_owned(), 0), "{line}");
        }
    }

    #[test]
    fn a_variable_that_is_not_set_above_is_told_where_it_stands() {
        let mut findings = Findings::default();
        let variables = read(&Text::new("A=x$LATER\nLATER=1\nB=\"${GONE}$A\"\n"), &mut findings);
        assert_eq!((&*variables["A"], &*variables["B"]), ("x", "x"));
        let told: Vec<_> = findings
            .iter()
            .map(|f| (f.code, f.at.span.line, f.at.span.column, f.at.span.end_column))
            .collect();
        assert_eq!(told, [(Code::EnvUnset, 1, 4, 10), (Code::EnvUnset, 3, 4, 11)]);
    }

    #[test]
    fn blanks_of_any_kind_set_words_and_comments_apart() {
        for (line, value) in [
            ("A=two\t# note", "two"),
            ("export\tA=four", "four"),
            ("export  A = four", "four"),
            ("A=\t'four'\t# note", "four"),
            ("A=#secret", "#secret"),
            ("A= # nothing", ""),
            ("A=a#b #c # d", "a#b"),
            ("A=\"x\"#y", "x"),
            ("A: x", "x"),
        ] {
            assert_eq!(value_of(line), (value.to_owned(), 0), "{line:?}");
        }
        let (_, findings) = read_all("A='it'it\nB=\"x\"y\nexporter=1\n");
        assert_eq!(findings, [(Code::EnvSyntax, 1), (Code::EnvSyntax, 2)]);
    }
}
