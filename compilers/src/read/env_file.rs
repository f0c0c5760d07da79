//! `.env` files: one `NAME=value` a line.

use std::collections::BTreeMap;

use crate::{
    diagnostics::{At, Code, Findings, Role},
    text::Text,
};

/// Returns true if a variable can have a name: letters, digits, `_` and `.`, no digit or dot first.
pub(crate) fn is_variable_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
}

/// Reads a file; a line that can't be read is a finding and costs itself only. Later lines win. Values may be quoted
/// (between double quotes `\n`, `\"`, `\\` and `${NAME}` mean something, and lines may follow), and begin with
/// `export`; ` #` begins a comment.
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
        match assignment(source.get(start..).unwrap_or_default(), &variables) {
            Ok((name, value, used)) if is_variable_name(&name) => {
                variables.insert(name, value);
                at = (start + used).max(at + line_length);
            }
            Ok((name, _, used)) => {
                let at_name = At {
                    role: Role::Yaml,
                    span: text.span(start..start + statement.len()),
                };
                let message = format!("\"{name}\" is no name for a variable");
                let hint = "use letters, digits, `_` and `.`, beginning with a letter or `_`";
                findings.add_with_hint(at_name, Code::InvalidVariable, message, hint);
                at = (start + used).max(at + line_length);
            }
            Err(message) => {
                let at_line = At {
                    role: Role::Yaml,
                    span: text.span(start..start + statement.len()),
                };
                findings.add_with_hint(at_line, Code::EnvSyntax, message, "write `NAME=value`");
                at += line_length;
            }
        }
    }
    variables
}

/// One assignment at the beginning of a text: name, value, and the bytes that it takes.
fn assignment(text: &str, known: &BTreeMap<String, String>) -> Result<(String, String, usize), &'static str> {
    let line_end = text.find('\n').unwrap_or(text.len());
    let line = text.get(..line_end).unwrap_or_default();
    let sign = line.find(['=', ':']).ok_or("a line without `=`")?;
    let name = line.get(..sign).unwrap_or_default().trim();
    let name = name.strip_prefix("export ").unwrap_or(name).trim().to_owned();
    let after = text.get(sign + 1..).unwrap_or_default();
    let value = after.trim_start_matches([' ', '\t']);
    let value_at = sign + 1 + after.len() - value.len();
    match value.chars().next() {
        Some(quote @ ('\'' | '"')) => {
            let (inner, length) = quoted(value, quote).ok_or("a quote that does not close")?;
            let value = if quote == '"' {
                expand(&unescape(inner), known)
            } else {
                inner.to_owned()
            };
            let used = value_at + length;
            let tail = text
                .get(used..)
                .and_then(|tail| tail.find('\n'))
                .map_or(text.len(), |end| used + end + 1);
            Ok((name, value, tail))
        }
        _ => {
            let value = line.get(value_at.min(line.len())..).unwrap_or_default();
            let value = value
                .find(" #")
                .and_then(|comment| value.get(..comment))
                .unwrap_or(value);
            let value = if value.starts_with('#') { "" } else { value.trim() };
            Ok((name, expand(value, known), line_end + 1))
        }
    }
}

fn quoted(text: &str, quote: char) -> Option<(&str, usize)> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' if quote == '"' => escaped = true,
            c if c == quote => return Some((text.get(1..at)?, at + 1)),
            _ => {}
        }
    }
    None
}

fn unescape(text: &str) -> String {
    let mut value = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, true) => match chars.next() {
                Some('n') => value.push('\n'),
                Some('r') => value.push('\r'),
                Some('t') => value.push('\t'),
                Some('$') => value.push_str("\\$"),
                Some(other) => value.push(other),
                None => value.push('\\'),
            },
            (c, false) => value.push(c),
        }
    }
    value
}

/// Puts in variables of lines above: `${NAME}` and `$NAME`; `\$` is a dollar sign.
fn expand(text: &str, known: &BTreeMap<String, String>) -> String {
    let mut value = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, after) = rest.split_at(at);
        if let Some(before) = before.strip_suffix('\\') {
            value.push_str(before);
            value.push('$');
            rest = after.get(1..).unwrap_or_default();
            continue;
        }
        value.push_str(before);
        let after = after.get(1..).unwrap_or_default();
        let (name, tail) = match after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            Some((name, tail)) => (name, tail),
            None => after.split_at(
                after
                    .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                    .unwrap_or(after.len()),
            ),
        };
        if is_variable_name(name) {
            value.push_str(known.get(name).map_or("", String::as_str));
        } else {
            value.push('$');
            value.push_str(name);
        }
        rest = tail;
    }
    value.push_str(rest);
    value
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
}
