//! Cursors, which are portals that statements name: `DECLARE`, `FETCH`, `MOVE` and `CLOSE`.

use crate::state::{NOT_OFFERED, SYNTAX, SqlError};
use crate::tokens::{Kind, Token, tokens};

/// A cursor that is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Declare {
    pub(crate) name: String,
    /// The statement whose rows the cursor has.
    pub(crate) sql: String,
    /// True if rows are sent in the binary format to whoever fetches them by a simple statement.
    pub(crate) is_binary: bool,
    /// True if the cursor stays when its transaction ends well.
    pub(crate) is_held: bool,
}

/// Rows that are wanted of a cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fetch {
    pub(crate) name: String,
    /// The most rows; 0 for all.
    pub(crate) most: u64,
    /// True if the rows are sent, and false if they are passed over.
    pub(crate) is_shown: bool,
}

impl Fetch {
    /// Returns the word that answers the statement.
    pub(crate) fn tag(&self) -> &'static str {
        match self.is_shown {
            true => "FETCH",
            false => "MOVE",
        }
    }
}

/// Reads `DECLARE name [options] CURSOR [WITH HOLD] FOR statement`.
///
/// # Errors
/// For cursors that go back, and other forms.
pub(crate) fn declare(sql: &str) -> Result<Declare, SqlError> {
    let form = || {
        SqlError::new(SYNTAX, "the cursor is declared in another form")
            .hint("DECLARE name CURSOR [WITH HOLD] FOR SELECT ...")
    };
    let all: Vec<Token<'_>> = pieces(sql);
    let (name, rest) = match all.as_slice() {
        [_, name, rest @ ..] => (name.name(), rest),
        _ => return Err(form()),
    };
    let end = rest.iter().position(|token| is(token, "for")).ok_or_else(form)?;
    let options: Vec<String> = rest[..end]
        .iter()
        .map(|token| token.text.to_ascii_lowercase())
        .collect();
    let cursor = options
        .iter()
        .position(|word| word == "cursor")
        .ok_or_else(form)?;
    let (before, behind) = (&options[..cursor], &options[cursor + 1..]);
    let before: Vec<&str> = before.iter().map(String::as_str).collect();
    let is_known = |word: &&str| ["binary", "insensitive", "asensitive", "no", "scroll"].contains(word);
    if name.is_empty() || !before.iter().all(is_known) {
        return Err(form());
    }
    if before.contains(&"scroll") && !before.contains(&"no") {
        return Err(forward_only());
    }
    let is_held = match behind.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] | ["without", "hold"] => false,
        ["with", "hold"] => true,
        _ => return Err(form()),
    };
    let from = rest.get(end + 1).ok_or_else(form)?.at;
    Ok(Declare {
        name,
        sql: sql[from..].to_owned(),
        is_binary: before.contains(&"binary"),
        is_held,
    })
}

/// Reads `FETCH` and `MOVE`, each `[NEXT | ALL | FORWARD | n] [FROM | IN] name`.
///
/// # Errors
/// For any direction but forward.
pub(crate) fn fetch(sql: &str) -> Result<Fetch, SqlError> {
    let all = pieces(sql);
    let [verb, rest @ .., name] = all.as_slice() else {
        return Err(SqlError::new(SYNTAX, "the cursor is not named").hint("FETCH 100 FROM name"));
    };
    let rest: Vec<String> = rest.iter().map(|token| token.text.to_ascii_lowercase()).collect();
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    let direction = match rest.as_slice() {
        [direction @ .., "from" | "in"] => direction,
        direction => direction,
    };
    let most = match direction {
        [] | ["next" | "forward"] => 1,
        ["all"] | ["forward", "all"] => 0,
        [number] | ["forward", number] => {
            let number = number.parse().ok().filter(|number| *number > 0);
            number.ok_or_else(forward_only)?
        }
        _ => return Err(forward_only()),
    };
    Ok(Fetch {
        name: name.name(),
        most,
        is_shown: is(verb, "fetch"),
    })
}

/// Reads `CLOSE`: the name of a cursor, or none for all.
///
/// # Errors
/// For anything but one name.
pub(crate) fn close(sql: &str) -> Result<Option<String>, SqlError> {
    match pieces(sql).as_slice() {
        [_, all] if is(all, "all") => Ok(None),
        [_, name] => Ok(Some(name.name())),
        _ => Err(SqlError::new(SYNTAX, "CLOSE takes the name of a cursor")),
    }
}

fn forward_only() -> SqlError {
    SqlError::new(NOT_OFFERED, "cursors go forward only").hint("FETCH 100 FROM name; or FETCH ALL FROM name")
}

/// Returns the pieces of a statement that mean something.
fn pieces(sql: &str) -> Vec<Token<'_>> {
    let meant = |token: &Token<'_>| token.kind != Kind::Blank && token.kind != Kind::Sign(';');
    tokens(sql).filter(meant).collect()
}

fn is(token: &Token<'_>, word: &str) -> bool {
    token.kind == Kind::Word && token.text.eq_ignore_ascii_case(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s_api28_cursors_go_forward() {
        let declared = |sql: &str| {
            let Declare {
                name,
                sql,
                is_binary,
                is_held,
            } = declare(sql).unwrap();
            (name, sql, is_binary, is_held)
        };
        let own = |name: &str, sql: &str| (name.to_owned(), sql.to_owned());
        for (sql, (name, query), is_binary, is_held) in [
            (
                "DECLARE c CURSOR FOR SELECT 1",
                own("c", "SELECT 1"),
                false,
                false,
            ),
            (
                "declare \"My \"\"c\" no scroll cursor without hold for\nTABLE t",
                own("My \"c", "TABLE t"),
                false,
                false,
            ),
            (
                "DECLARE C BINARY INSENSITIVE CURSOR WITH HOLD FOR WITH x AS (SELECT 1) SELECT * FROM x FOR",
                own("c", "WITH x AS (SELECT 1) SELECT * FROM x FOR"),
                true,
                true,
            ),
        ] {
            assert_eq!(declared(sql), (name, query, is_binary, is_held), "{sql}");
        }
        for (sql, state) in [
            ("DECLARE c SCROLL CURSOR FOR SELECT 1", NOT_OFFERED),
            ("DECLARE c CURSOR FOR", SYNTAX),
            ("DECLARE c", SYNTAX),
            ("DECLARE", SYNTAX),
        ] {
            assert_eq!(declare(sql).map_err(|error| error.state), Err(state), "{sql}");
        }
        let fetched = |sql: &str| fetch(sql).map(|own| (own.name.clone(), own.most, own.tag()));
        for (sql, most, tag) in [
            ("FETCH c", 1, "FETCH"),
            ("FETCH NEXT FROM c", 1, "FETCH"),
            ("fetch forward 100 in \"c\"", 100, "FETCH"),
            ("FETCH 7 FROM c;", 7, "FETCH"),
            ("MOVE ALL FROM c", 0, "MOVE"),
            ("MOVE FORWARD ALL IN c", 0, "MOVE"),
        ] {
            assert_eq!(fetched(sql), Ok(("c".to_owned(), most, tag)), "{sql}");
        }
        for sql in [
            "FETCH 0 FROM c",
            "FETCH -1 FROM c",
            "FETCH PRIOR FROM c",
            "MOVE ABSOLUTE 3 FROM c",
        ] {
            assert_eq!(fetch(sql).map_err(|error| error.state), Err(NOT_OFFERED), "{sql}");
        }
        assert_eq!(close("CLOSE ALL"), Ok(None));
        assert_eq!(close("close \"A\""), Ok(Some("A".to_owned())));
        assert!(close("CLOSE").is_err());
    }
}
