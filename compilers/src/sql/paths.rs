//! Escaping of paths that must not be read as glob patterns.

use std::borrow::Cow;

use super::{scan::path_places, token::TokenKind};

/// The characters of glob patterns that can also occur in paths.
const SPECIAL: [char; 4] = ['*', '?', '[', '{'];

/// Returns true if a path would be read as a glob pattern. Web addresses never are.
#[must_use]
pub fn is_pattern(path: &str) -> bool {
    let is_of_web = ["http://", "https://"]
        .iter()
        .any(|scheme| path.starts_with(scheme));
    !is_of_web && path.contains(SPECIAL)
}

/// Returns the glob pattern that matches only the given path.
#[must_use]
pub fn literal_path(path: &str) -> Cow<'_, str> {
    if !is_pattern(path) {
        return Cow::Borrowed(path);
    }
    let mut pattern = String::with_capacity(path.len() + 2);
    for c in path.chars() {
        match SPECIAL.contains(&c) {
            true => pattern.extend(['[', c, ']']),
            false => pattern.push(c),
        }
    }
    Cow::Owned(pattern)
}

/// Returns a statement in which the given paths, where files are read, are escaped so that they match only themselves.
#[must_use]
pub fn with_literal_paths<'a>(sql: &'a str, paths: &[String]) -> Cow<'a, str> {
    if paths.is_empty() {
        return Cow::Borrowed(sql);
    }
    let mut edited = String::with_capacity(sql.len());
    let mut copied = 0;
    for token in path_places(sql) {
        let quote = match token.kind {
            TokenKind::Text => '\'',
            TokenKind::Quoted => '"',
            _ => continue,
        };
        edited.push_str(sql.get(copied..token.range.start).unwrap_or_default());
        push_literally(&mut edited, token.text, paths, quote);
        copied = token.range.end;
    }
    edited.push_str(sql.get(copied..).unwrap_or_default());
    Cow::Owned(edited)
}

/// Appends a quoted text in which the given paths are escaped.
fn push_literally(edited: &mut String, text: &str, paths: &[String], quote: char) {
    let written = |path: &str| path.replace(quote, &format!("{quote}{quote}"));
    let mut known: Vec<(String, String)> = paths
        .iter()
        .map(|path| (written(path), written(&literal_path(path))))
        .collect();
    // A file before the folder that it is in.
    known.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let found = known
            .iter()
            .find(|(path, _)| !path.is_empty() && rest.starts_with(path));
        let length = match found {
            Some((path, pattern)) => {
                edited.push_str(pattern);
                path.len()
            }
            None => {
                edited.push(c);
                c.len_utf8()
            }
        };
        rest = rest.get(length..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_pattern_by_its_characters() {
        for (path, pattern) in [
            ("data/a.csv", "data/a.csv"),
            ("data/a[1].csv", "data/a[[]1].csv"),
            ("s3://b/w?y*{z}", "s3://b/w[?]y[*][{]z}"),
            ("https://h/a.csv?x=[1]", "https://h/a.csv?x=[1]"),
        ] {
            assert_eq!(literal_path(path), pattern);
            assert_eq!(is_pattern(path), path != pattern);
        }
    }

    #[test]
    fn paths_stand_for_themselves_where_files_are_read() {
        let paths = ["d[1]/it's?.csv".to_owned(), "d[1]".to_owned()];
        for (sql, expected) in [
            (
                "SELECT 'd[1]/it''s?.csv' AS file FROM read_csv('d[1]/it''s?.csv', header = true)",
                "SELECT 'd[1]/it''s?.csv' AS file FROM read_csv('d[[]1]/it''s[?].csv', header = true)",
            ),
            (
                "FROM 'd[1]/it''s?.csv' -- d[1]",
                "FROM 'd[[]1]/it''s[?].csv' -- d[1]",
            ),
            ("FROM \"d[1]/it's?.csv\"", "FROM \"d[[]1]/it's[?].csv\""),
            (
                "FROM read_parquet(['s3://b/d[1]/*.parquet', 'e[1]']) WHERE x = 'd[1]'",
                "FROM read_parquet(['s3://b/d[[]1]/*.parquet', 'e[1]']) WHERE x = 'd[1]'",
            ),
            (
                "FROM read_csv('x/' || 'd[1]' || '/a.csv', names = ['d[1]']), (FROM glob('d[1]'))",
                "FROM read_csv('x/' || 'd[[]1]' || '/a.csv', names = ['d[1]']), (FROM glob('d[[]1]'))",
            ),
        ] {
            assert_eq!(with_literal_paths(sql, &paths), expected);
            assert_eq!(with_literal_paths(sql, &[]), sql);
        }
    }
}
