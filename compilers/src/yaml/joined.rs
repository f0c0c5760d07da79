//! The check for SQL comments in folded YAML texts, where they swallow the following lines.

use super::node::{Node, Style};
use crate::diagnostics::{At, Code, Finding};
use crate::sql::{TokenKind, tokens};
use crate::text::{Span, narrow};

/// Returns true if the value of a key is SQL.
fn takes_sql(key: &str) -> bool {
    key.ends_with("sql") || key.ends_with("_exec") || key == "expression"
}

/// Returns a finding about an SQL comment that swallows the following lines, as YAML joins them.
pub(super) fn comment(source: &str, key: &Node, value: &Node) -> Option<Finding> {
    let is_joined = matches!(value.style, Style::Folded | Style::Plain | Style::Quoted);
    if !is_joined || !key.as_str().is_some_and(takes_sql) {
        return None;
    }
    let text = value.as_str().filter(|text| text.contains("--"))?;
    let span = value.at.span;
    let lines = source.lines().enumerate();
    let first = span.line.saturating_sub(1) as usize;
    let lines: Vec<(usize, &str)> = lines
        .skip(first)
        .take(span.end_line.saturating_sub(span.line) as usize + 1)
        .collect();
    let comments = tokens(text)
        .into_iter()
        .filter(|token| token.kind == TokenKind::Comment && token.text.starts_with("--"));
    let found = comments
        .map(|token| token.text.trim_end())
        .find_map(|comment| lines.iter().find_map(|(at, line)| cut_off(comment, *at, line)))?;
    Some(Finding {
        at: At {
            role: value.at.role,
            span: found,
        },
        code: Code::CommentJoined,
        message: "the lines of this text are joined, so the comment takes what follows with it".into(),
        hint: Some("write `|` in the place of `>`, or `/* ... */` around the comment".to_owned()),
        related: Vec::new(),
    })
}

/// Returns the place of a comment on a line, if the comment continues beyond the line.
fn cut_off(comment: &str, at: usize, line: &str) -> Option<Span> {
    let (begin, _) = line.match_indices("--").find(|(begin, _)| {
        let own = line.get(*begin..).unwrap_or_default().trim_end();
        comment.len() > own.len() && comment.starts_with(own)
    })?;
    let column = |bytes: usize| narrow(line.get(..bytes).unwrap_or_default().chars().count() + 1);
    let number = narrow(at + 1);
    Some(Span {
        line: number,
        column: column(begin),
        end_line: number,
        end_column: column(line.trim_end().len()),
    })
}
