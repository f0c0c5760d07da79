//! The wish of a statement, told from its words.

use crate::copy::{self, Copy};
use crate::cursor::{self, Declare, Fetch};
use crate::savepoints::Step;
use crate::settings;
use crate::state::{NOT_OFFERED, READ_ONLY, SYNTAX, SqlError};
use crate::tokens::{Kind, tokens};

/// The wish of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Rows; whether the statement may be asked is judged elsewhere.
    Rows,
    /// Rows as lines.
    Copy(Copy),
    /// A cursor, whose rows are fetched by other statements.
    Declare(Declare),
    /// Rows of a cursor.
    Fetch(Fetch),
    /// The end of a cursor of a name, or of all of them.
    Close(Option<String>),
    /// The value of a setting, by its name.
    Setting(String, &'static str),
    /// The schemas in which names without one are looked for.
    Look(Vec<String>),
    /// The beginning of a transaction.
    Begin,
    /// The end of a transaction.
    End(End),
    /// A step with a savepoint.
    Savepoint(Step),
    /// Something that changes nothing for a reader, by the word that answers it.
    Nothing(&'static str),
    /// To forget a prepared statement, or all of them.
    Forget(Option<String>),
    /// To forget all that the session has.
    Discard,
}

/// The end of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Commit,
    Rollback,
}

/// Words with which statements begin that read.
const READING: [&str; 13] = [
    "select",
    "with",
    "values",
    "table",
    "from",
    "describe",
    "desc",
    "summarize",
    "explain",
    "show",
    "pivot",
    "unpivot",
    "(",
];
/// Statements about others that are prepared by SQL, where the protocol does the same.
const ABOUT_STATEMENTS: [&str; 2] = ["prepare", "execute"];

/// Tells what one statement asks for.
///
/// # Errors
/// For whatever does more than read, and for settings that can't be changed.
pub(crate) fn ask(sql: &str) -> Result<Ask, SqlError> {
    let words = words(sql);
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    match word(0) {
        "show" if word(1) == "transaction" => Ok(setting("transaction_isolation")),
        "show" if word(1) == "time" && word(2) == "zone" => Ok(setting("timezone")),
        "show" if settings::get(word(1)).is_some() && words.len() == 2 => Ok(setting(word(1))),
        first if READING.contains(&first) => match writes(sql) {
            true => Err(read_only(sql)),
            false => Ok(Ask::Rows),
        },
        "set" => match search_path(&words) {
            Some(schemas) => Ok(Ask::Look(schemas)),
            None => set(&words).map(|()| Ask::Nothing("SET")),
        },
        "reset" => Ok(Ask::Nothing("RESET")),
        "begin" | "start" => begin(&words).map(|()| Ask::Begin),
        "commit" | "end" => Ok(Ask::End(End::Commit)),
        "rollback" | "abort" if words.iter().any(|word| word == "to") => step(&words, Step::Back),
        "rollback" | "abort" => Ok(Ask::End(End::Rollback)),
        "savepoint" => step(&words, Step::Set),
        "release" => step(&words, Step::Release),
        "discard" => Ok(Ask::Discard),
        "deallocate" => {
            let name = words.iter().skip(1).find(|word| *word != "prepare").cloned();
            Ok(Ask::Forget(name.filter(|name| name != "all")))
        }
        "copy" => copy::read(sql).map(Ask::Copy),
        "declare" => declare(sql),
        "fetch" | "move" => cursor::fetch(sql).map(Ask::Fetch),
        "close" => cursor::close(sql).map(Ask::Close),
        "unlisten" => Ok(Ask::Nothing("UNLISTEN")),
        first if ABOUT_STATEMENTS.contains(&first) => {
            let message = format!("{} is not offered here", first.to_uppercase());
            Err(SqlError::new(NOT_OFFERED, message)
                .hint("prepare by the protocol, as drivers do, or ask with one SELECT"))
        }
        "" => Err(SqlError::new(SYNTAX, "there is no statement")),
        _ => Err(read_only(sql)),
    }
}

fn declare(sql: &str) -> Result<Ask, SqlError> {
    let declared = cursor::declare(sql)?;
    match ask(&declared.sql)? {
        Ask::Rows => Ok(Ask::Declare(declared)),
        _ => Err(SqlError::new(SYNTAX, "a cursor is declared for a SELECT")),
    }
}

fn setting(name: &str) -> Ask {
    Ask::Setting(name.to_owned(), settings::get(name).unwrap_or_default())
}

/// Returns the step with the savepoint that the last word names.
fn step(words: &[String], of: fn(String) -> Step) -> Result<Ask, SqlError> {
    match words {
        [_, .., name] if !["to", "savepoint"].contains(&name.as_str()) => {
            Ok(Ask::Savepoint(of(name.clone())))
        }
        _ => Err(SqlError::new(SYNTAX, "a savepoint has a name")),
    }
}

fn read_only(sql: &str) -> SqlError {
    let word = words(sql).into_iter().next().unwrap_or_default();
    let message = format!("{} can't be run: this endpoint reads only", word.to_uppercase());
    SqlError::new(READ_ONLY, message).hint("tables are changed by changing the project's files")
}

/// Returns the words and signs of a statement in lower case, texts without their quotes.
fn words(sql: &str) -> Vec<String> {
    /// More than any statement has that is told from its words.
    const MOST: usize = 24;
    let kept = tokens(sql).filter(|token| token.kind != Kind::Blank && token.kind != Kind::Sign(';'));
    kept.take(MOST)
        .map(|token| match token.kind {
            Kind::Quoted => token.text.trim_matches(['\'', '"']).to_owned(),
            _ => token.text.to_ascii_lowercase(),
        })
        .collect()
}

/// Returns true if a statement that begins as one that reads goes on as one that writes, as behind WITH and EXPLAIN. What is
/// missed here is refused by whoever judges the statement, in other words.
fn writes(sql: &str) -> bool {
    let kept = tokens(sql).filter(|token| token.kind != Kind::Blank);
    let words: Vec<String> = kept.map(|token| token.text.to_ascii_lowercase()).collect();
    // A column may be called like a statement.
    let is_name = |at: usize| at.checked_sub(1).is_some_and(|before| words[before] == "as");
    words.windows(3).enumerate().any(|(at, part)| {
        let is_write = matches!(
            [&*part[0], &*part[1], &*part[2]],
            ["insert" | "merge", "into", _] | ["delete", "from", _] | ["update", _, "set"]
        );
        is_write && !is_name(at)
    })
}

/// Returns what follows `SET`, without the word for how long it holds.
fn set_words(words: &[String]) -> Vec<&str> {
    let lasting = usize::from(
        words
            .get(1)
            .is_some_and(|word| word == "session" || word == "local"),
    );
    words.iter().skip(1 + lasting).map(String::as_str).collect()
}

/// Returns the schemas of `SET search_path`; none for another setting.
fn search_path(words: &[String]) -> Option<Vec<String>> {
    match set_words(words).as_slice() {
        ["search_path", "=" | "to", "default"] => Some(vec!["main".to_owned()]),
        ["search_path", "=" | "to", schemas @ ..] => {
            let texts = schemas.iter().flat_map(|text| text.split(','));
            let names = texts.map(|name| name.trim().to_owned());
            Some(names.filter(|name| !name.is_empty()).collect())
        }
        _ => None,
    }
}

fn set(words: &[String]) -> Result<(), SqlError> {
    match set_words(words).as_slice() {
        ["characteristics" | "transaction", ..] => mode(words),
        ["time", "zone", value, ..] => settings::check("timezone", value),
        ["names", value, ..] => settings::check("client_encoding", value),
        [
            "transaction_read_only" | "default_transaction_read_only",
            _,
            "off" | "false" | "0" | "no",
        ] => Err(SqlError::new(READ_ONLY, "this endpoint reads only")),
        [name, "=" | "to", value, ..] => settings::check(name, value),
        ["role" | "authorization", ..] => {
            Err(SqlError::new("42501", "the user of a session stays the same")
                .hint("sign in with another token"))
        }
        _ => Err(SqlError::new(
            SYNTAX,
            "SET takes a name, `=` or `TO`, and a value",
        )),
    }
}

/// Checks the modes of a transaction: each statement sees one state of all tables, and a transaction no state of its own.
fn mode(words: &[String]) -> Result<(), SqlError> {
    let has = |word: &str| words.iter().any(|own| own == word);
    if has("write") {
        return Err(
            SqlError::new(READ_ONLY, "a transaction can't write: this endpoint reads only")
                .hint("leave out READ WRITE"),
        );
    }
    if has("repeatable") || has("serializable") {
        let message =
            "each statement sees what is there when it begins; a transaction keeps no state of its own";
        return Err(SqlError::new(NOT_OFFERED, message).hint("READ COMMITTED is offered"));
    }
    Ok(())
}

fn begin(words: &[String]) -> Result<(), SqlError> {
    match words.first().map(String::as_str) == Some("start")
        && words.get(1).is_none_or(|word| word != "transaction")
    {
        true => Err(SqlError::new(SYNTAX, "START is followed by TRANSACTION")),
        false => mode(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s_api28_anything_but_reading_is_25006() {
        for writing in [
            "INSERT INTO t VALUES (1)",
            "/* a */ update t set a = 1",
            "DELETE FROM t",
            "MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE",
            "TRUNCATE t",
            "CREATE TABLE t (a int)",
            "CREATE TEMP TABLE t AS SELECT 1",
            "DROP TABLE t",
            "ALTER TABLE t ADD b int",
            "GRANT ALL ON t TO u",
            "COMMENT ON TABLE t IS 'x'",
            "DO $$ BEGIN END $$",
            "CALL f()",
            "LISTEN a",
            "NOTIFY a",
            "LOCK TABLE t",
            "VACUUM",
            "REFRESH MATERIALIZED VIEW v",
            "ATTACH 'x'",
            "INSTALL httpfs",
            "LOAD httpfs",
            "PRAGMA version",
            "CHECKPOINT",
            "EXPORT DATABASE 'x'",
            "IMPORT DATABASE 'x'",
            "USE other",
            "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a",
            "WITH a AS (DELETE FROM t RETURNING *) SELECT * FROM a",
            "EXPLAIN ANALYZE DELETE FROM t",
            "EXPLAIN INSERT INTO t VALUES (1)",
            "DECLARE c CURSOR FOR DELETE FROM t",
            "BEGIN READ WRITE",
            "SET TRANSACTION READ WRITE",
            "SET default_transaction_read_only = off",
            "x",
        ] {
            assert_eq!(
                ask(writing).err().map(|error| error.state),
                Some(READ_ONLY),
                "{writing}"
            );
        }
    }

    #[test]
    fn s_api28_what_a_reader_needs_is_there() {
        for (sql, asked) in [
            ("SELECT 1", Ask::Rows),
            ("(SELECT 1)", Ask::Rows),
            ("-- a\nSELECT \"update\" FROM t", Ask::Rows),
            ("SHOW TABLES", Ask::Rows),
            ("WITH p AS (SELECT a AS delete FROM t) TABLE p", Ask::Rows),
            ("CLOSE ALL", Ask::Close(None)),
            ("show server_version", setting("server_version")),
            (
                "SHOW TRANSACTION ISOLATION LEVEL",
                setting("transaction_isolation"),
            ),
            ("SET application_name = 'x'", Ask::Nothing("SET")),
            (
                "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
                Ask::Nothing("SET"),
            ),
            ("SET TIME ZONE 'UTC'", Ask::Nothing("SET")),
            ("set extra_float_digits to 3", Ask::Nothing("SET")),
            ("BEGIN", Ask::Begin),
            ("START TRANSACTION ISOLATION LEVEL READ COMMITTED", Ask::Begin),
            ("COMMIT", Ask::End(End::Commit)),
            ("ROLLBACK", Ask::End(End::Rollback)),
            ("DISCARD ALL", Ask::Discard),
            ("SAVEPOINT \"_a\"", Ask::Savepoint(Step::Set("_a".to_owned()))),
            (
                "RELEASE SAVEPOINT a;",
                Ask::Savepoint(Step::Release("a".to_owned())),
            ),
            ("ROLLBACK WORK TO a", Ask::Savepoint(Step::Back("a".to_owned()))),
            ("DEALLOCATE ALL", Ask::Forget(None)),
            ("DEALLOCATE \"_pg3_0\"", Ask::Forget(Some("_pg3_0".to_owned()))),
        ] {
            assert_eq!(ask(sql), Ok(asked), "{sql}");
        }
        for (sql, state) in [
            ("SET timezone = 'Europe/Paris'", "22023"),
            ("SET client_encoding TO latin1", "22023"),
            ("SET ROLE admin", "42501"),
            ("BEGIN ISOLATION LEVEL SERIALIZABLE", NOT_OFFERED),
            ("SAVEPOINT", SYNTAX),
            ("ROLLBACK TO", SYNTAX),
            ("COPY t FROM PROGRAM 'id'", NOT_OFFERED),
            ("COPY t TO PROGRAM 'id'", NOT_OFFERED),
            ("EXECUTE a", NOT_OFFERED),
            ("DECLARE c CURSOR FOR SHOW server_version", SYNTAX),
        ] {
            assert_eq!(ask(sql).err().map(|error| error.state), Some(state), "{sql}");
        }
    }
}
