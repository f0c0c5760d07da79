//! Kept answers: a question that was answered is not asked again while the builds that it reads are the same (Q22).
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

/// Bytes of all answers: those of a thousand tiles of dashboards.
const ANSWERS: usize = 64 << 20;

/// Bytes of one answer: more is no tile, and would put hundreds of them out.
const ANSWER: usize = 1 << 20;

/// Bytes of statements of which is known what they read.
const STATEMENTS: usize = 8 << 20;

/// The rows of a statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<Vec<Value>>,
    /// There are more.
    pub truncated: bool,
}

/// A statement to be read.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The statement.
    pub sql: String,
    /// Rows to return at most.
    pub most: u64,
    /// The longest that it may take.
    pub within: Duration,
    /// Texts that travel beside it. A statement that reads them is not kept.
    pub attributes: BTreeMap<String, String>,
}

/// A way to keep an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeping<'a> {
    /// It is not kept.
    Never,
    /// While the builds that it reads are the same.
    Builds,
    /// While the value of some SQL is the same too, which stands for what nobody here builds.
    Key {
        /// The SQL.
        sql: &'a str,
        /// The time for which its value is taken for true.
        holds: Duration,
    },
}

/// A run of a statement that several may wait for. It is interrupted when the last of them goes.
type Run = Shared<BoxFuture<'static, Result<Arc<Read>, QueryError>>>;

/// The runs under way.
type Runs = HashMap<RunKey, WeakShared<BoxFuture<'static, Result<Arc<Read>, QueryError>>>>;

/// Answers of one project, shared by all who ask.
pub struct Cache {
    outputs: Arc<Outputs>,
    reader: Reader,
    facts: Mutex<Kept<Arc<Facts>>>,
    answers: Mutex<Kept<(Stamp, Arc<Read>)>>,
    keys: Mutex<Kept<(String, Instant)>>,
    runs: Mutex<Runs>,
}

/// The statement of a run, with all that its outcome depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct RunKey {
    sql: Arc<str>,
    stamp: Stamp,
    within: Duration,
}

impl Cache {
    /// Returns an empty one, for what is built among `outputs`.
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

    /// Returns the rows of a statement, and whether they were kept.
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

    /// Returns what the answer depends on beside its statement; none if it can't be kept.
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

    /// Returns the value of the SQL that an author stands for what nobody here builds; none if it has none.
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

    /// Returns the run of a statement that is under way, or begins one.
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

/// The longest that the SQL of a key may take: it stands before each question.
const KEY: Duration = Duration::from_secs(10);

/// Runs a statement. The engine is interrupted when the future is dropped.
///
/// # Errors
/// Those of the engine.
pub(super) async fn run(olap: Arc<dyn Olap>, reading: Reading) -> Result<Arc<Read>, QueryError> {
    let statement = Statement {
        sql: reading.sql,
        limit: Some(reading.most),
        timeout: Some(reading.within),
        attributes: reading.attributes,
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

/// Returns the bytes that an answer takes, nearly.
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

    /// Nothing is built.
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

    /// Q22: run alone, this would take years.
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

    /// Q22: answers up to a bound, and no error.
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
