//! The fence around callers' statements: what passes reads outputs of the project, and nothing else.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use watershed_api::{Code, Problem};
use watershed_compilers::sql::{Allowed, Listing, Refused, guard, listing};
use watershed_compilers::{SqlError, SqlParser as _, SqlPlace};
use watershed_dialect::ENGINE;
use watershed_drivers::olap::{
    Olap, Query, QueryError, SoleError, Statement, Statements as _, Value, Vocabulary, sole_statement,
};
use watershed_outputs::sql_parser::EngineParser;

use super::problems::of_query;
use crate::report::{Entry, kinds};

/// The mistake of a statement with a part that callers may not use.
const NOT_ALLOWED_SQL_CODE: &str = "not-allowed-sql";

/// Time limit for listing the project's macros.
const LISTING: Duration = Duration::from_secs(30);

/// The parser and the built-in names, which are the same for all projects of a process.
static PARSER: LazyLock<Arc<EngineParser>> = LazyLock::new(Arc::default);
static VOCABULARY: OnceCell<Vocabulary> = OnceCell::const_new();

/// Returns the statement to run for a caller's statement, once it is known to read outputs alone: the same text, or for
/// `SHOW TABLES` and `SHOW ALL TABLES` the list of the outputs.
///
/// # Errors
/// `project-error` with `sql-syntax` for a text that is no SQL, and `not-allowed` with `not-allowed-sql` for everything else.
pub(crate) async fn check(olap: &Arc<dyn Olap>, entries: &[Entry], sql: &str) -> Result<String, Problem> {
    // The engine gets the text that was judged, and no other.
    let sole = sole_statement(sql)
        .map_err(|error| not_one(error, sql))?
        .to_owned();
    if sole.contains('\0') {
        let at = sole.find('\0');
        return Err(refused("callers may not use NUL in a statement", at, None));
    }
    let vocabulary = vocabulary().await?;
    let (database, macros) = macros(olap).await?;
    let live = entries.iter().filter(|entry| !entry.row.intents.is_deleted());
    let outputs = live.filter_map(|entry| kinds::output(&entry.row));
    let outputs: BTreeSet<String> = outputs.map(|table| table.to_ascii_lowercase()).collect();
    let parser = Arc::clone(&PARSER);
    let judging = move || {
        let answer = parser.parse(&[&sole]).pop();
        let Some(answer) = answer else {
            return Err(Problem::new(Code::Defect, "the parser gave no answer"));
        };
        if let Err(SqlError::Syntax { message, place }) = &answer {
            return Err(misspelt(&sole, message, *place));
        }
        if let Some(listing) = answer.as_ref().ok().and_then(listing) {
            return Ok(list_of(listing, &outputs));
        }
        let allowed = Allowed {
            outputs: &outputs,
            functions: &vocabulary.functions,
            macros: &macros,
            types: &vocabulary.types,
            database: &database,
        };
        match guard(&answer, allowed) {
            Ok(()) => Ok(sole),
            Err(Refused { at, hint, .. }) if at.is_some_and(|at| at > sole.len()) => {
                Err(refused("callers may not use this statement", None, hint))
            }
            Err(refusal) => Err(refused(&refusal.to_string(), refusal.at, refusal.hint)),
        }
    };
    let judged = tokio::task::spawn_blocking(judging).await;
    judged.unwrap_or_else(|_| Err(Problem::new(Code::Defect, "the check of the statement panicked")))
}

/// Returns the problem of a statement that is no SQL, with the place in bytes.
fn misspelt(sql: &str, message: &str, place: SqlPlace) -> Problem {
    let at = match place {
        SqlPlace::Char(number) => Some(sql.char_indices().nth(number).map_or(sql.len(), |(at, _)| at)),
        SqlPlace::Line { .. } | SqlPlace::Unknown => None,
    };
    Problem::new(Code::ProjectError, message).at("sql-syntax", at)
}

fn refused(message: &str, at: Option<usize>, hint: Option<&str>) -> Problem {
    let problem = Problem::new(Code::NotAllowed, message).at(NOT_ALLOWED_SQL_CODE, at);
    match hint {
        Some(hint) => problem.hint(hint),
        None => problem,
    }
}

fn not_one(error: SoleError, sql: &str) -> Problem {
    match error {
        SoleError::Several { offset } if offset <= sql.len() => refused(
            "callers may not use several statements at once",
            Some(offset),
            None,
        ),
        error => of_query(&QueryError::NotOne(error)),
    }
}

/// Returns the statement that lists the outputs as the engine lists tables.
fn list_of(listing: Listing, outputs: &BTreeSet<String>) -> String {
    let names: Vec<String> = outputs.iter().cloned().collect();
    match listing {
        Listing::Columns => ENGINE.write(&Statement::Described(&names)),
        // No name matches, and the engine takes no empty list.
        Listing::Names if names.is_empty() => ENGINE.write(&Statement::Matching {
            names: &[String::new()],
            pattern: ".",
        }),
        Listing::Names => ENGINE.write(&Statement::Matching {
            names: &names,
            pattern: "",
        }),
    }
}

/// Returns the built-in names of the engine, read once in a process.
async fn vocabulary() -> Result<&'static Vocabulary, Problem> {
    VOCABULARY
        .get_or_try_init(|| async {
            let parser = Arc::clone(&PARSER);
            let read = tokio::task::spawn_blocking(move || parser.vocabulary()).await;
            let read = read.map_err(|_| "the list of functions panicked".to_owned());
            let read = read.and_then(|read| read.map_err(|failure| failure.to_string()));
            read.map_err(|error| Problem::new(Code::Unavailable, error))
        })
        .await
}

/// Returns the name of the database, and the names of all functions that are not built in.
async fn macros(olap: &Arc<dyn Olap>) -> Result<(String, BTreeSet<String>), Problem> {
    let query = Query {
        sql: ENGINE.write(&Statement::Macros),
        limit: None,
        timeout: Some(LISTING),
        attributes: Default::default(),
    };
    let cancel = CancellationToken::new();
    let _interrupt = cancel.clone().drop_guard();
    let read = async { olap.query(query, &cancel).await?.collect().await };
    let rows = read.await.map_err(|error: QueryError| of_query(&error))?;
    let mut database = String::new();
    let mut macros = BTreeSet::new();
    for row in rows {
        let mut row = row.into_iter();
        if let Some(name) = row.next() {
            database = name.to_string();
        }
        match row.next() {
            None | Some(Value::Null) => {}
            Some(name) => drop(macros.insert(name.to_string().to_ascii_lowercase())),
        }
    }
    Ok((database, macros))
}
