//! The fence around callers' statements: what passes reads outputs of the project, and nothing else.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use watershed_api::{Code, Problem};
use watershed_compilers::sql::{Allowed, Listing, Refused, guard, listing};
use watershed_compilers::{SqlError, SqlParser as _, SqlPlace};
use watershed_dialect::ENGINE;
use watershed_drivers::olap::{Olap, QueryError, SoleError, Statement, Statements as _, sole_statement};
use watershed_locks::Unpoisoned as _;

use super::live::Live;
use super::place::Place as _;
use super::problems::of_query;
use crate::fenced::{Known, Moment};
use crate::instance::Instance;
use crate::report::kinds;

/// The mistake of a statement with a part that callers may not use.
const NOT_ALLOWED_SQL_CODE: &str = "not-allowed-sql";

/// Returns the statement to run for a caller's statement, once it is known to read outputs alone: the same text, or for
/// `SHOW TABLES` and `SHOW ALL TABLES` the list of the outputs.
///
/// # Errors
/// `project-error` with `sql-syntax` for a text that is no SQL, and `not-allowed` with `not-allowed-sql` for everything else.
pub(crate) async fn check(instance: &Instance, olap: &Arc<dyn Olap>, sql: &str) -> Result<String, Problem> {
    let fence = &instance.slots.fence;
    // The engine gets the text that was judged, and no other.
    let sole = sole_statement(sql).map_err(|error| not_one(error, sql))?;
    // What changes while the statement is judged makes a later moment.
    let revision = instance.controller().revision();
    let now = olap.changes().map(|changes| Moment { revision, changes });
    let passed = |now| fence.trees.lock().unpoisoned().passed(sole, now);
    if let Some(statement) = now.and_then(passed) {
        return Ok(statement);
    }
    let statement = judge(instance, olap, sole).await?;
    if let Some(now) = now {
        fence.trees.lock().unpoisoned().pass(sole, now, &statement);
    }
    Ok(statement)
}

/// Judges a single statement by its tree, the outputs and the macros.
async fn judge(instance: &Instance, olap: &Arc<dyn Olap>, sole: &str) -> Result<String, Problem> {
    let sole = sole.to_owned();
    if sole.contains('\0') {
        let at = sole.find('\0');
        return Err(refused("callers may not use NUL in a statement", at, None));
    }
    let fence = &instance.slots.fence;
    let entries = Live::of(instance).listing().await?.entries;
    let Known { parser, vocabulary } = fence.known().await?;
    let macros = fence.macros(olap).await.map_err(|error| of_query(&error))?;
    let outputs = kinds::outputs(&entries);
    let trees = Arc::clone(&fence.trees);
    let judging = move || {
        let kept = trees.lock().unpoisoned().get(&sole);
        let Some(answer) = kept.or_else(|| parser.parse(&[&sole]).pop().map(Arc::new)) else {
            return Err(Problem::new(Code::Defect, "the parser gave no answer"));
        };
        trees.lock().unpoisoned().put(&sole, &answer);
        if let Err(SqlError::Syntax { message, place }) = &*answer {
            return Err(misspelt(&sole, message, *place));
        }
        if let Some(listing) = (*answer).as_ref().ok().and_then(listing) {
            return Ok(list_of(listing, &outputs));
        }
        let allowed = Allowed {
            outputs: &outputs,
            functions: &vocabulary.functions,
            macros: &macros.names,
            types: &vocabulary.types,
            database: &macros.database,
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

fn refused(message: &str, at: Option<usize>, hint: Option<Cow<'static, str>>) -> Problem {
    let problem = Problem::new(Code::NotAllowed, message).at(NOT_ALLOWED_SQL_CODE, at);
    match hint {
        Some(hint) => problem.hint(hint.into_owned()),
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
