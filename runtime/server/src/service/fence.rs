//! The fence around callers' statements: what passes reads outputs of the project, and nothing else.
//!
//! What the fence needs of the engine is kept with the instance: built-in names for good, macros of the project until
//! something may have changed the engine's data, and trees of texts, which depend on the texts alone.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use watershed_api::{Code, Problem};
use watershed_compilers::sql::{Allowed, Listing, Refused, Tree, guard, listing};
use watershed_compilers::{SqlError, SqlParser as _, SqlPlace};
use watershed_dialect::ENGINE;
use watershed_drivers::olap::{
    Failure, Olap, Query, QueryError, SoleError, Statement, Statements as _, Value, Vocabulary,
    sole_statement,
};
use watershed_locks::Unpoisoned as _;
use watershed_outputs::sql_parser::EngineParser;

use super::problems::of_query;
use crate::report::{Entry, kinds};

/// The mistake of a statement with a part that callers may not use.
const NOT_ALLOWED_SQL_CODE: &str = "not-allowed-sql";

/// Time limit for listing the project's macros.
const LISTING: Duration = Duration::from_secs(30);

/// The most texts whose trees are kept: those that a dashboard or a program asks again and again.
const MOST_TREES: usize = 64;

/// The longest text whose tree is kept, in bytes.
const LONGEST_KEPT: usize = 4 << 10;

/// The largest tree that is kept, in bytes.
const LARGEST_TREE: usize = 64 << 10;

/// What an instance keeps of its engine to judge statements.
#[derive(Default)]
pub(crate) struct Fence {
    known: OnceCell<Known>,
    macros: Mutex<Option<(u64, Arc<Macros>)>>,
    trees: Arc<Mutex<Trees>>,
}

/// The parser and the built-in names of the engine.
#[derive(Clone)]
struct Known {
    parser: Arc<EngineParser>,
    vocabulary: Arc<Vocabulary>,
}

/// The name of the database, and the names of all functions that are not built in.
struct Macros {
    database: String,
    names: BTreeSet<String>,
}

/// Trees of the texts that were asked last, newest at the end.
#[derive(Default)]
struct Trees(VecDeque<(String, Arc<Answer>)>);

/// What the parser answers about a text.
type Answer = Result<Tree, SqlError>;

impl Trees {
    fn get(&mut self, sql: &str) -> Option<Arc<Answer>> {
        let at = self.0.iter().position(|(text, _)| text == sql)?;
        let kept = self.0.remove(at)?;
        let answer = Arc::clone(&kept.1);
        self.0.push_back(kept);
        Some(answer)
    }

    /// Keeps the tree of a text. One that is large for its text is not worth its memory.
    fn put(&mut self, sql: &str, answer: &Arc<Answer>) {
        let is_small = matches!(&**answer, Ok(tree) if tree.document().len() <= LARGEST_TREE);
        if sql.len() > LONGEST_KEPT || !is_small || self.get(sql).is_some() {
            return;
        }
        if self.0.len() >= MOST_TREES {
            self.0.pop_front();
        }
        self.0.push_back((sql.to_owned(), Arc::clone(answer)));
    }
}

/// Returns the statement to run for a caller's statement, once it is known to read outputs alone: the same text, or for
/// `SHOW TABLES` and `SHOW ALL TABLES` the list of the outputs.
///
/// # Errors
/// `project-error` with `sql-syntax` for a text that is no SQL, and `not-allowed` with `not-allowed-sql` for everything else.
pub(crate) async fn check(
    fence: &Fence,
    olap: &Arc<dyn Olap>,
    entries: &[Entry],
    sql: &str,
) -> Result<String, Problem> {
    // The engine gets the text that was judged, and no other.
    let sole = sole_statement(sql)
        .map_err(|error| not_one(error, sql))?
        .to_owned();
    if sole.contains('\0') {
        let at = sole.find('\0');
        return Err(refused("callers may not use NUL in a statement", at, None));
    }
    let Known { parser, vocabulary } = fence.known().await?;
    let macros = fence.macros(olap).await?;
    let live = entries.iter().filter(|entry| !entry.row.intents.is_deleted());
    let outputs = live.filter_map(|entry| kinds::output(&entry.row));
    let outputs: BTreeSet<String> = outputs.map(|table| table.to_ascii_lowercase()).collect();
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

impl Fence {
    /// Returns the parser and the built-in names of the engine, read once.
    async fn known(&self) -> Result<Known, Problem> {
        let known = self.known.get_or_try_init(async || {
            let reading = || {
                let parser = EngineParser::default();
                let vocabulary = Arc::new(parser.vocabulary()?);
                let parser = Arc::new(parser);
                Ok(Known { parser, vocabulary })
            };
            let read = tokio::task::spawn_blocking(reading).await;
            let read = read.map_err(|_| "the list of functions panicked".to_owned());
            let read = read.and_then(|read| read.map_err(|failure: Failure| failure.to_string()));
            read.map_err(|error| Problem::new(Code::Unavailable, error))
        });
        known.await.cloned()
    }

    /// Returns the project's macros, listed anew unless nothing can have changed since they were.
    async fn macros(&self, olap: &Arc<dyn Olap>) -> Result<Arc<Macros>, Problem> {
        let number = olap.changes();
        if let Some((kept, macros)) = &*self.macros.lock().unpoisoned()
            && Some(*kept) == number
        {
            return Ok(Arc::clone(macros));
        }
        // What changes while they are listed makes the number of before an old one.
        let listed = Arc::new(list_macros(olap).await?);
        *self.macros.lock().unpoisoned() = number.map(|number| (number, Arc::clone(&listed)));
        Ok(listed)
    }
}

/// Lists the project's macros.
async fn list_macros(olap: &Arc<dyn Olap>) -> Result<Macros, Problem> {
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
    let mut names = BTreeSet::new();
    for row in rows {
        let mut row = row.into_iter();
        if let Some(name) = row.next() {
            database = name.to_string();
        }
        match row.next() {
            None | Some(Value::Null) => {}
            Some(name) => drop(names.insert(name.to_string().to_ascii_lowercase())),
        }
    }
    Ok(Macros { database, names })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_of_the_texts_asked_last_are_kept_and_no_large_ones() {
        let tree = || Arc::new(Tree::from_document(r#"{"error":false}"#.to_owned()));
        let mut trees = Trees::default();
        for number in 0..MOST_TREES {
            trees.put(&number.to_string(), &tree());
        }
        assert!(trees.get("0").is_some());
        trees.put("new", &tree());
        trees.put("new", &tree());
        assert!(trees.get("0").is_some() && trees.get("1").is_none() && trees.get("2").is_some());
        assert_eq!(trees.0.len(), MOST_TREES);
        let long = "x".repeat(LONGEST_KEPT + 1);
        trees.put(&long, &tree());
        let large = format!(r#"{{"error":false,"x":"{}"}}"#, "x".repeat(LARGEST_TREE));
        trees.put("large", &Arc::new(Tree::from_document(large)));
        assert!(trees.get(&long).is_none() && trees.get("large").is_none());
    }
}
