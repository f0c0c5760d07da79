//! Cache of answers: a query is not run again while the builds that it reads are unchanged (Q22).
//!
//! | module | holds |
//! |---|---|
//! | [`facts`] | the part of a statement that says whether its answer can be kept: tables, functions |
//! | [`stamp`] | the builds behind those tables, as they are now |
//! | [`kept`] | a bounded map, the least recent out |
//!
//! Invariants:
//! 1. An answer is found by the whole text of its statement. A user's filter is a part of that text, with constants, so users
//!    whose filters differ share nothing.
//! 2. The stamp is taken before the statement runs. Builds are stored after the engine has them: an answer may be newer than
//!    its stamp, and never older.
//! 3. Where anything else may change the answer (a table that is nobody's output, a file, a clock), it is not kept.

mod facts;
mod kept;
mod stamp;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};
use tokio_util::sync::CancellationToken;
use watershed_drivers::olap::{Column, Olap, Query as Statement, QueryError, Value};
use watershed_outputs::Outputs;

use super::resources::Resources;
use facts::{Facts, Reader};
use kept::Kept;
use stamp::Stamp;
use watershed_locks::Unpoisoned as _;

/// The most memory of all cached answers, in bytes: enough for a thousand dashboard tiles.
const ANSWERS: usize = 64 << 20;

/// The largest cached answer, in bytes. A larger one is no dashboard tile, and would evict hundreds of them.
const ANSWER: usize = 1 << 20;

/// The most memory of analysed statements, in bytes.
const STATEMENTS: usize = 8 << 20;

/// The result of a statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// Columns in order.
    pub columns: Vec<Column>,
    /// Rows, with values in the order of the columns.
    pub rows: Vec<Vec<Value>>,
    /// True if the statement has more rows than were asked for.
    pub truncated: bool,
}

/// A statement to run, with its bounds.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The statement as SQL.
    pub sql: String,
    /// The most rows to return.
    pub most: u64,
    /// Time limit of the run.
    pub within: Duration,
    /// Session values of the query, for example of the viewer. Answers of statements that read them are not cached.
    pub attributes: BTreeMap<String, String>,
}

/// Rule for caching an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeping<'a> {
    /// Never cached.
    Never,
    /// Cached while the builds that the statement reads are unchanged.
    Builds,
    /// Cached while the builds and the value of a key query are unchanged. The query stands for data that the project
    /// does not build.
    Key {
        /// The key query as SQL.
        sql: &'a str,
        /// Time for which a value of the key query is reused.
        holds: Duration,
    },
}

/// A run of a statement that several callers can share. Interrupted when the last caller drops it.
type Run = Shared<BoxFuture<'static, Result<Arc<Read>, QueryError>>>;

/// Running statements.
type Runs = HashMap<RunKey, WeakShared<BoxFuture<'static, Result<Arc<Read>, QueryError>>>>;

/// The answer cache of one project.
pub struct Cache {
    outputs: Arc<Outputs>,
    reader: Reader,
    facts: Mutex<Kept<Arc<Facts>>>,
    answers: Mutex<Kept<(Stamp, Arc<Read>)>>,
    keys: Mutex<Kept<(String, Instant)>>,
    runs: Mutex<Runs>,
}

/// A running statement with all inputs that determine its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct RunKey {
    sql: Arc<str>,
    stamp: Stamp,
    within: Duration,
}

impl Cache {
    /// Creates an empty cache for queries over `outputs`.
    #[must_use]
    pub fn new(outputs: Arc<Outputs>) -> Self {
        Self {
            outputs,
            reader: Reader::default(),
            facts: Mutex::new(Kept::new(STATEMENTS)),
            answers: Mutex::new(Kept::new(ANSWERS)),
            keys: Mutex::new(Kept::new(STATEMENTS)),
            runs: Mutex::default(),
        }
    }

    /// Returns the rows of a statement, and true if they were cached.
    ///
    /// # Errors
    /// Those of the engine, none of which is kept.
    ///
    /// # Cancel safety
    /// Dropping the future interrupts the engine, unless somebody else waits for the same.
    pub(super) async fn read(
        &self,
        reading: Reading,
        keeping: Keeping<'_>,
        resources: &dyn Resources,
    ) -> Result<(Arc<Read>, bool), QueryError> {
        let Some(stamp) = self.stamp(&reading, keeping, resources).await else {
            let read = run(Arc::clone(self.outputs.olap()), reading).await?;
            return Ok((read, false));
        };
        let found = self.answers.lock().unpoisoned().get(&reading.sql).cloned();
        if let Some((_, read)) = found.filter(|(of, _)| *of == stamp) {
            return Ok((read, true));
        }
        let key = RunKey {
            sql: reading.sql.as_str().into(),
            stamp,
            within: reading.within,
        };
        let running = self.running(&key, reading);
        let ended = running.await;
        self.runs().remove(&key);
        let read = ended?;
        let weight = weight(&read) + key.sql.len();
        if weight <= ANSWER {
            let mut answers = self.answers.lock().unpoisoned();
            answers.put(&key.sql, (key.stamp, Arc::clone(&read)), weight);
        }
        Ok((read, false))
    }

    /// Returns a fingerprint of an answer's dependencies beside its statement; none if the answer can't be cached.
    async fn stamp(
        &self,
        reading: &Reading,
        keeping: Keeping<'_>,
        resources: &dyn Resources,
    ) -> Option<Stamp> {
        let key = match keeping {
            Keeping::Never => return None,
            Keeping::Builds => None,
            Keeping::Key { sql, holds } => Some(self.key(sql, holds).await?),
        };
        let facts = self.facts(&reading.sql).await?;
        stamp::of(&facts, &self.reader, &self.outputs, resources, key, reading.most)
    }

    async fn facts(&self, sql: &str) -> Option<Arc<Facts>> {
        if let Some(facts) = self.facts.lock().unpoisoned().get(sql) {
            return Some(Arc::clone(facts));
        }
        let facts = Arc::new(self.reader.facts(sql, self.outputs.olap()).await?);
        let mut known = self.facts.lock().unpoisoned();
        known.put(sql, Arc::clone(&facts), sql.len() + facts.weight());
        Some(facts)
    }

    /// Returns the value of an author's key query; none if the query fails or has no value.
    async fn key(&self, sql: &str, holds: Duration) -> Option<String> {
        let known = self.keys.lock().unpoisoned().get(sql).cloned();
        if let Some((value, _)) = known.filter(|(_, until)| Instant::now() < *until) {
            return Some(value);
        }
        let reading = Reading {
            sql: sql.to_owned(),
            most: 1,
            within: KEY,
            attributes: BTreeMap::new(),
        };
        // What it says holds from before it was asked.
        let until = Instant::now() + holds;
        let read = run(Arc::clone(self.outputs.olap()), reading).await.ok()?;
        let value = format!("{:?}", read.rows);
        let mut keys = self.keys.lock().unpoisoned();
        keys.put(sql, (value.clone(), until), sql.len() + value.len());
        Some(value)
    }

    /// Returns the running execution of a statement, or starts one.
    fn running(&self, key: &RunKey, reading: Reading) -> Run {
        let mut runs = self.runs();
        if let Some(running) = runs.get(key).and_then(WeakShared::upgrade) {
            return running;
        }
        // Those that everybody has left.
        runs.retain(|_, run| run.upgrade().is_some());
        let running = run(Arc::clone(self.outputs.olap()), reading).boxed().shared();
        if let Some(run) = running.downgrade() {
            runs.insert(key.clone(), run);
        }
        running
    }

    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unpoisoned()
    }
}

/// Time limit of a key query, which delays each query that depends on it.
const KEY: Duration = Duration::from_secs(10);

/// Runs a statement. Dropping the future interrupts the engine.
///
/// # Errors
/// Those of the engine.
pub(super) async fn run(olap: Arc<dyn Olap>, reading: Reading) -> Result<Arc<Read>, QueryError> {
    let statement = Statement {
        sql: reading.sql,
        limit: Some(reading.most),
        timeout: Some(reading.within),
        attributes: reading.attributes,
        ..Statement::default()
    };
    let cancel = CancellationToken::new();
    let _interrupt = cancel.clone().drop_guard();
    let mut rows = olap.query(statement, &cancel).await?;
    let columns = rows.columns().to_vec();
    let found = rows.collect().await?;
    Ok(Arc::new(Read {
        columns,
        truncated: rows.truncated(),
        rows: found,
    }))
}

/// Estimates the memory of an answer, in bytes.
fn weight(read: &Read) -> usize {
    let columns = read.columns.iter();
    let heads: usize = columns
        .map(|column| column.name.len() + column.data_type.len() + 64)
        .sum();
    let mut total = heads;
    for value in read.rows.iter().flatten() {
        total = total.saturating_add(of_value(value));
        if total > ANSWER {
            break;
        }
    }
    total
}

fn of_value(value: &Value) -> usize {
    let inside = match value {
        Value::Text(text) => text.len(),
        Value::Blob(bytes) => bytes.len(),
        Value::List(items) => items.iter().map(of_value).sum(),
        Value::Struct(fields) => fields
            .iter()
            .map(|(name, value)| name.len() + of_value(value))
            .sum(),
        Value::Map(entries) => entries
            .iter()
            .map(|(key, value)| of_value(key) + of_value(value))
            .sum(),
        _ => 0,
    };
    size_of::<Value>().saturating_add(inside)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use watershed_core::{Key, Row};
    use watershed_drivers::duckdb::{Engine, Options};

    use super::*;

    /// A project without any resources.
    struct Nothing;

    impl Resources for Nothing {
        fn find(&self, _: &Key) -> Option<Arc<Row>> {
            None
        }

        fn rows(&self) -> Vec<Arc<Row>> {
            Vec::new()
        }
    }

    async fn cache(folder: &tempfile::TempDir) -> (Engine, Cache) {
        let file = folder.path().join("main.duckdb");
        let engine = Engine::new(Options::new(file, folder.path()));
        let outputs = Outputs::new(Arc::new(engine.clone()), folder.path().join("proof")).await;
        (engine, Cache::new(Arc::new(outputs)))
    }

    fn reading(sql: &str) -> Reading {
        Reading {
            sql: sql.to_owned(),
            most: 10,
            within: Duration::from_secs(600),
            attributes: BTreeMap::new(),
        }
    }

    /// Covers Q22: each of these runs alone would take years.
    #[tokio::test]
    async fn equal_statements_share_one_run_which_ends_when_the_last_waiter_goes() {
        let folder = tempfile::tempdir().unwrap();
        let (engine, cache) = cache(&folder).await;
        let years = "SELECT count(*) AS n FROM range(1000000000000) a, range(1000000000000) b";
        let ask = || Box::pin(cache.read(reading(years), Keeping::Builds, &Nothing));
        let (mut first, mut second) = (ask(), ask());
        let is_shared = || {
            let runs = cache.runs();
            runs.values()
                .filter_map(WeakShared::upgrade)
                .any(|run| run.strong_count() == Some(3))
        };
        while !is_shared() {
            assert!(futures::poll!(&mut first).is_pending());
            assert!(futures::poll!(&mut second).is_pending());
            tokio::task::yield_now().await;
        }
        assert_eq!(cache.runs().len(), 1);
        drop(first);
        assert!(
            futures::poll!(&mut second).is_pending(),
            "it goes on for the other"
        );
        assert!(!engine.give_up_file().await, "somebody works in it");
        drop(second);
        while !engine.give_up_file().await {
            tokio::task::yield_now().await;
        }
        assert!(cache.runs().values().all(|run| run.upgrade().is_none()));
        engine.close().await.unwrap();
    }

    /// Covers Q22: the bound on the size of answers, and errors.
    #[tokio::test]
    async fn large_answers_and_errors_are_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (engine, cache) = cache(&folder).await;
        let large = format!("SELECT repeat('x', {ANSWER})");
        for (sql, kept) in [("SELECT 1", true), (large.as_str(), false)] {
            for again in [false, true] {
                let (_, cached) = cache.read(reading(sql), Keeping::Builds, &Nothing).await.unwrap();
                assert_eq!(cached, kept && again, "{sql}");
            }
        }
        let wrong = reading("SELECT CAST('x' AS INTEGER)");
        for _ in 0..2 {
            assert!(
                cache
                    .read(wrong.clone(), Keeping::Builds, &Nothing)
                    .await
                    .is_err()
            );
        }
        let (_, cached) = cache
            .read(reading("SELECT 1"), Keeping::Never, &Nothing)
            .await
            .unwrap();
        assert!(!cached);
        engine.close().await.unwrap();
    }
}
