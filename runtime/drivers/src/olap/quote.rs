//! Names and texts as SQL. The only place where either is written into a statement.

/// A name in double quotes: whatever it holds, it stays one name.
pub fn quote_identifier(name: &str) -> String {
    quoted(name, '"')
}

/// A text in single quotes.
pub fn quote_literal(text: &str) -> String {
    quoted(text, '\'')
}

fn quoted(text: &str, quote: char) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for c in text.chars() {
        if c == quote {
            out.push(quote);
        }
        out.push(c);
    }
    out.push(quote);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_within_are_doubled() {
        assert_eq!(
            quote_identifier(r#"a"; drop table b; --"#),
            r#""a""; drop table b; --""#
        );
        assert_eq!(quote_literal("it's"), "'it''s'");
    }
}
