//! Settings inside SQL: `-- @key: value` lines and `{{ configure }}` calls.

use std::collections::BTreeMap;

use crate::{
    diagnostics::{At, Code, Finding, Findings, Role},
    kinds::{self, COMMON},
    resource::Kind,
    sql::{TokenKind, tokens},
    template::Config,
    text::{Span, Text, narrow},
    yaml::{self, Data, Entry, Map, Node, Style, overlay},
};

/// An annotation in SQL: key and value with their places.
struct Annotation<'a> {
    key: &'a str,
    key_span: Span,
    value: &'a str,
    value_span: Span,
}

/// Parses the annotations of a text into a mapping; dotted keys become nested mappings. With `is_indented`, skips the
/// first line, which is preceded by blanks in the file.
pub(crate) fn read(
    text: &str,
    is_indented: bool,
    place: impl Fn(Span) -> At + Copy,
    findings: &mut Findings,
) -> Map {
    let mut map = Map::new();
    for (index, line) in text.lines().enumerate().skip(usize::from(is_indented)) {
        let Some(annotation) = annotation(line, narrow(index + 1)) else {
            continue;
        };
        let key_at = place(annotation.key_span);
        let value = setting(place(annotation.value_span), annotation.value);
        insert(&mut map, annotation.key, key_at, value, findings);
    }
    passed_over(text, is_indented, place, findings);
    map
}

/// Reports comments that look like annotations and do not begin at the start of a line.
fn passed_over(text: &str, is_indented: bool, place: impl Fn(Span) -> At, findings: &mut Findings) {
    // Hardly any text has one, and each is looked at whenever the project is read.
    let may_hold = |(index, line): (usize, &str)| {
        let begins = line.starts_with("--") && !(is_indented && index == 0);
        !begins && line.contains("--") && line.contains('@')
    };
    if !text.lines().enumerate().any(may_hold) {
        return;
    }
    let begins_no_line = |span: &Span| span.column > 1 || is_indented && span.line == 1;
    let whole = Text::new(text);
    let comments = tokens(text)
        .into_iter()
        .filter(|token| token.kind == TokenKind::Comment);
    for comment in comments {
        let span = whole.span(comment.range.clone());
        let Some(found) = annotation(comment.text.trim_end(), span.line).filter(|_| begins_no_line(&span))
        else {
            continue;
        };
        let first = found.key.split('.').next().unwrap_or_default();
        let is_known = COMMON.key(first).is_some()
            || kinds::keys(Kind::Model).is_some_and(|keys| keys.key(first).is_some());
        if is_known {
            let message = format!(
                "the annotation \"@{}\" is not read: it does not begin its line",
                found.key
            );
            let hint = "put it on a line of its own, without blanks before `--`";
            findings.add_with_hint(place(span), Code::AnnotationIgnored, message, hint);
        }
    }
}

/// Reads the settings of `configure` calls as a mapping.
pub(crate) fn read_configs(configs: &[Config], place: impl Fn(usize) -> At, findings: &mut Findings) -> Map {
    let mut map = Map::new();
    for config in configs {
        let at = place(config.offset);
        if config.key.is_empty() {
            match yaml::load(&Text::new(&config.value), Role::Sql) {
                Ok(loaded) => match moved(loaded.root, at).data {
                    Data::Map(settings) => overlay(&mut map, &settings),
                    _ => findings.add(
                        at,
                        Code::InvalidValue,
                        "`configure` takes a key and a value, or a mapping",
                    ),
                },
                Err(error) => findings.push(Finding { at, ..*error }),
            }
        } else {
            let value = setting(at, &config.value);
            insert(&mut map, &config.key, at, value, findings);
        }
    }
    map
}

fn setting(at: At, text: &str) -> Node {
    Node {
        style: Style::Annotation,
        ..Node::new(at, Data::String(text.to_owned()))
    }
}

/// Returns a node in which every place is that of the `configure` call.
fn moved(mut node: Node, at: At) -> Node {
    node.at = at;
    node.data = match node.data {
        Data::List(list) => Data::List(list.into_iter().map(|item| moved(item, at)).collect()),
        Data::Map(map) => Data::Map(
            map.into_iter()
                .map(|(key, entry)| {
                    (
                        key,
                        Entry {
                            key_at: at,
                            value: moved(entry.value, at),
                        },
                    )
                })
                .collect(),
        ),
        scalar => scalar,
    };
    node
}

/// Parses `-- @key` or `-- @key: value` at the start of a line.
fn annotation(line: &str, number: u32) -> Option<Annotation<'_>> {
    let rest = line
        .strip_prefix("--")?
        .trim_start_matches([' ', '\t'])
        .strip_prefix('@')?;
    let end = rest
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')))
        .unwrap_or(rest.len());
    let (key, after) = rest.split_at(end);
    let after = after.trim_end();
    let value = match after.trim_start_matches([' ', '\t']) {
        "" => "",
        value => value.strip_prefix(':')?.trim(),
    };
    if key.is_empty() {
        return None;
    }
    let column = |part: &str| {
        let offset = part.as_ptr() as usize - line.as_ptr() as usize;
        narrow(line.get(..offset).unwrap_or_default().chars().count() + 1)
    };
    let span = |part: &str, from: u32| Span {
        line: number,
        column: from,
        end_line: number,
        end_column: column(part) + narrow(part.chars().count()),
    };
    let key_span = span(key, column(key).saturating_sub(1));
    let value_span = if value.is_empty() {
        key_span
    } else {
        span(value, column(value))
    };
    Some(Annotation {
        key,
        key_span,
        value,
        value_span,
    })
}

/// The largest number of parts of a dotted key, the depth to which YAML is read.
const MAX_PARTS: usize = 24;

/// Inserts a value under a dotted key; reports a part that already has a scalar value.
fn insert(map: &mut Map, key: &str, key_at: At, value: Node, findings: &mut Findings) {
    let mut parts: Vec<&str> = key.split('.').filter(|part| !part.is_empty()).collect();
    let Some(last) = parts.pop() else { return };
    if parts.len() >= MAX_PARTS {
        let message = format!("the annotation is nested more than {MAX_PARTS} levels deep");
        return findings.add(key_at, Code::YamlLimit, message);
    }
    let mut level = map;
    for part in parts {
        let entry = level.entry(part.to_owned()).or_insert_with(|| Entry {
            key_at,
            value: Node::new(key_at, Data::Map(BTreeMap::new())),
        });
        match &mut entry.value.data {
            Data::Map(below) => level = below,
            _ => return conflict(key, key_at, findings),
        }
    }
    if level
        .get(last)
        .is_some_and(|entry| matches!(entry.value.data, Data::Map(_)))
    {
        return conflict(key, key_at, findings);
    }
    level.insert(last.to_owned(), Entry { key_at, value });
}

fn conflict(key: &str, at: At, findings: &mut Findings) {
    let message = format!("annotation \"@{key}\" is a value and holds other keys at once");
    findings.add(at, Code::ConflictingKeys, message);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> (String, usize) {
        let mut findings = Findings::default();
        let map = read(
            text,
            false,
            |span| At {
                role: Role::Sql,
                span,
            },
            &mut findings,
        );
        let node = Node::new(At::start(Role::Sql), Data::Map(map));
        (
            serde_json::Value::from(&node.to_value()).to_string(),
            findings.iter().count(),
        )
    }

    #[test]
    fn annotations_stand_anywhere_at_the_line_start() {
        let text =
            "-- @materialize: true\nSELECT 1\n--@refresh.cron: 0 0 * * *\r\n -- @no: 1\n-- @flag\n-- @x y\n";
        assert_eq!(
            json(text),
            (
                r#"{"flag":"","materialize":"true","refresh":{"cron":"0 0 * * *"}}"#.into(),
                0
            )
        );
    }

    #[test]
    fn a_key_is_a_value_or_holds_others() {
        assert_eq!(json("-- @a: 1\n-- @a.b: 2\n").1, 1);
        assert_eq!(json("-- @a.b: 1\n-- @a: 2\n").1, 1);
    }

    #[test]
    fn keys_and_values_have_places() {
        let annotation = annotation("-- @é", 1);
        assert!(annotation.is_none());
        let found = super::annotation("-- @key: välue", 3).expect("one");
        assert_eq!((found.key_span.column, found.key_span.end_column), (4, 8));
        assert_eq!(
            (
                found.value_span.line,
                found.value_span.column,
                found.value_span.end_column
            ),
            (3, 10, 15)
        );
    }
}
