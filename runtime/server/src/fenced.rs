//! The memory of the fence around callers' statements: built-in names for good, macros of the project until something may
//! have changed the engine's data, and trees of texts, which depend on the texts alone.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use watershed_api::{Code, Problem};
use watershed_compilers::{SqlError, Tree};
use watershed_controller::resource::Revision;
use watershed_dialect::ENGINE;
use watershed_drivers::olap::{
    Failure, Olap, Query, QueryError, Statement, Statements as _, Value, Vocabulary,
};
use watershed_locks::Unpoisoned as _;
use watershed_outputs::sql_parser::EngineParser;

/// The most texts whose trees are kept: those that a dashboard or a program asks again and again.
const MOST_TREES: usize = 64;

/// The longest text whose tree is kept, in bytes.
const LONGEST_KEPT: usize = 4 << 10;

/// The largest tree that is kept, in bytes.
const LARGEST_TREE: usize = 64 << 10;

/// The memory of an instance about its engine, by which statements are judged.
#[derive(Default)]
pub(crate) struct Fence {
    known: OnceCell<Known>,
    macros: Mutex<Option<(u64, Arc<Macros>)>>,
    pub(crate) trees: Arc<Mutex<Trees>>,
}

/// The parser and the built-in names of the engine.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) parser: Arc<EngineParser>,
    pub(crate) vocabulary: Arc<Vocabulary>,
}

/// The name of the database, and the names of all functions that are not built in.
pub(crate) struct Macros {
    pub(crate) database: String,
    pub(crate) names: BTreeSet<String>,
}

/// The state by which a statement is judged besides its text: the outputs at a revision of the catalog, and the macros at
/// a count of changes of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) revision: Revision,
    pub(crate) changes: u64,
}

/// Trees of the texts that were asked last, newest at the end.
#[derive(Default)]
pub(crate) struct Trees(VecDeque<Kept>);

struct Kept {
    text: String,
    answer: Arc<Answer>,
    /// The moment at which the text passed, and the statement that was run for it; none if it never did.
    passed: Option<(Moment, String)>,
}

/// An answer of the parser about a text.
pub(crate) type Answer = Result<Tree, SqlError>;

impl Trees {
    pub(crate) fn get(&mut self, sql: &str) -> Option<Arc<Answer>> {
        Some(Arc::clone(&self.find(sql)?.answer))
    }

    /// Returns the statement to run for a text that passed at this moment: nothing has changed since that could refuse it.
    pub(crate) fn passed(&mut self, sql: &str, now: Moment) -> Option<String> {
        let (then, statement) = self.find(sql)?.passed.as_ref()?;
        (*then == now).then(|| statement.clone())
    }

    /// Keeps the statement to run for a text that passed at a moment.
    pub(crate) fn pass(&mut self, sql: &str, now: Moment, statement: &str) {
        if let Some(kept) = self.find(sql) {
            kept.passed = Some((now, statement.to_owned()));
        }
    }

    /// Finds a text, which is then the newest.
    fn find(&mut self, sql: &str) -> Option<&mut Kept> {
        let at = self.0.iter().position(|kept| kept.text == sql)?;
        let kept = self.0.remove(at)?;
        self.0.push_back(kept);
        self.0.back_mut()
    }

    /// Keeps the tree of a text. One that is large for its text is not worth its memory.
    pub(crate) fn put(&mut self, sql: &str, answer: &Arc<Answer>) {
        let is_small = matches!(&**answer, Ok(tree) if tree.document().len() <= LARGEST_TREE);
        if sql.len() > LONGEST_KEPT || !is_small || self.get(sql).is_some() {
            return;
        }
        if self.0.len() >= MOST_TREES {
            self.0.pop_front();
        }
        self.0.push_back(Kept {
            text: sql.to_owned(),
            answer: Arc::clone(answer),
            passed: None,
        });
    }
}

/// Time limit for listing the project's macros.
const LISTING: Duration = Duration::from_secs(30);

impl Fence {
    /// Returns the parser and the built-in names of the engine, read once.
    pub(crate) async fn known(&self) -> Result<Known, Problem> {
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
    pub(crate) async fn macros(&self, olap: &Arc<dyn Olap>) -> Result<Arc<Macros>, QueryError> {
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
async fn list_macros(olap: &Arc<dyn Olap>) -> Result<Macros, QueryError> {
    let query = Query {
        timeout: Some(LISTING),
        ..Query::new(ENGINE.write(&Statement::Macros))
    };
    let cancel = CancellationToken::new();
    let _interrupt = cancel.clone().drop_guard();
    let read = async { olap.query(query, &cancel).await?.collect().await };
    let rows: Result<_, QueryError> = read.await;
    let rows = rows?;
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
        let [now, later] = [1, 2].map(|revision| Moment {
            revision: Revision(revision),
            changes: 7,
        });
        trees.pass("new", now, "FROM new");
        assert_eq!(trees.passed("new", now).as_deref(), Some("FROM new"));
        assert_eq!(trees.passed("new", later), None);
        assert_eq!(trees.passed("0", now), None);
        let long = "x".repeat(LONGEST_KEPT + 1);
        trees.put(&long, &tree());
        let large = format!(r#"{{"error":false,"x":"{}"}}"#, "x".repeat(LARGEST_TREE));
        trees.put("large", &Arc::new(Tree::from_document(large)));
        assert!(trees.get(&long).is_none() && trees.get("large").is_none());
    }
}
