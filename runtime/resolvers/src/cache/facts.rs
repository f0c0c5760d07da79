//! Analysis of a statement from the engine's parse tree, to decide whether its answer can be cached.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OnceCell;
use watershed_compilers::SqlParser as _;
use watershed_compilers::sql::{Outcome, SqlAnalysis, names_in};
use watershed_dialect::ENGINE;
use watershed_drivers::olap::{Olap, Statement, Statements as _, Value};
use watershed_outputs::sql_parser::EngineParser;

use super::{Reading, run};

/// Keywords that read the clock without parentheses; the parse tree shows them as columns.
const CLOCKS: [&str; 5] = [
    "current_date",
    "current_time",
    "current_timestamp",
    "localtime",
    "localtimestamp",
];

/// Deterministic functions that the engine does not list, or lists as table functions too.
const UNLISTED: [&str; 18] = [
    "array_list",
    "cume_dist",
    "dense_rank",
    "fill",
    "first_value",
    "generate_series",
    "grouping",
    "grouping_id",
    "lag",
    "last_value",
    "lead",
    "nth_value",
    "ntile",
    "percent_rank",
    "range",
    "rank",
    "row_number",
    "unnest",
];

/// Functions that depend on settings or on the current time.
const OF_THE_MOMENT: [&str; 4] = ["age", "current_setting", "getenv", "getvariable"];

/// Time limit for listing the engine's functions.
const LISTING: Duration = Duration::from_secs(30);

/// The parts of one statement that decide about caching.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    /// Tables that the statement reads; none if its rows depend on more than tables and its text.
    pub(super) tables: Option<Vec<String>>,
    /// Functions and types in the statement, in lower case.
    pub(super) names: Vec<String>,
}

impl Facts {
    /// Estimates the memory of the facts, in bytes.
    pub(super) fn weight(&self) -> usize {
        let tables = self.tables.iter().flatten();
        tables.chain(&self.names).map(|text| text.len() + 24).sum()
    }
}

/// Analyser of statements, with the engine's deterministic functions.
#[derive(Debug, Default)]
pub(super) struct Reader {
    parser: Arc<EngineParser>,
    consistent: OnceCell<BTreeSet<String>>,
}

impl Reader {
    /// Returns the facts of a statement; none if the engine can't be asked.
    pub(super) async fn facts(&self, sql: &str, olap: &Arc<dyn Olap>) -> Option<Facts> {
        let consistent = self.consistent.get_or_try_init(|| consistent(olap)).await.ok()?;
        let (parser, text) = (Arc::clone(&self.parser), sql.to_owned());
        let parsed = tokio::task::spawn_blocking(move || {
            let answer = parser.parse(&[&text]).pop()?;
            Some(SqlAnalysis::read(&text, &answer))
        });
        Some(facts(sql, &parsed.await.ok()??, consistent))
    }

    /// Returns true if all these functions and types are deterministic. False before the first statement was analysed.
    pub(super) fn is_consistent<'n>(&self, mut names: impl Iterator<Item = &'n str>) -> bool {
        let known = self.consistent.get();
        known.is_some_and(|known| names.all(|name| is_consistent(name, known)))
    }
}

async fn consistent(olap: &Arc<dyn Olap>) -> Result<BTreeSet<String>, ()> {
    let reading = Reading {
        sql: ENGINE.write(&Statement::Steady),
        most: u64::from(u16::MAX),
        within: LISTING,
        attributes: Default::default(),
    };
    let read = run(Arc::clone(olap), reading).await.map_err(drop)?;
    let name = |row: &Vec<Value>| row.first().map(|name| name.to_string().to_lowercase());
    Ok(read.rows.iter().filter_map(name).collect())
}

fn is_consistent(name: &str, known: &BTreeSet<String>) -> bool {
    (known.contains(name) || UNLISTED.contains(&name)) && !OF_THE_MOMENT.contains(&name)
}

fn facts(sql: &str, read: &SqlAnalysis, consistent: &BTreeSet<String>) -> Facts {
    let is_one = read.outcome() == Outcome::Parsed && read.statements == 1;
    let reads_files = !read.files.is_empty() || !read.untold.is_empty();
    let is_local = read.tables.iter().all(|table| !table.foreign);
    let is_steady = read.names.iter().all(|name| is_consistent(name, consistent)) && !tells_the_time(sql);
    let is_told = is_one && !reads_files && is_local && is_steady;
    let tables = read.tables.iter().map(|table| table.name.clone());
    Facts {
        tables: is_told.then(|| tables.collect()),
        names: read.names.clone(),
    }
}

/// Returns true if a text contains a keyword that may read the clock.
pub(super) fn tells_the_time(sql: &str) -> bool {
    let names = names_in(sql);
    CLOCKS.iter().any(|clock| names.contains(*clock))
}

#[cfg(test)]
mod tests {
    use watershed_drivers::duckdb::{Engine, Options};

    use super::*;

    #[tokio::test]
    async fn what_depends_on_more_than_tables_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::new(Options::new(folder.path().join("main.duckdb"), folder.path()));
        let olap: Arc<dyn Olap> = Arc::new(engine.clone());
        let reader = Reader::default();
        for kept in [
            "SELECT 1",
            "WITH t AS (SELECT * FROM orders) SELECT sum(a), count(*), row_number() OVER () FROM t GROUP BY GROUPING SETS ((b), ())",
            "SELECT grouping(b), unnest([1]), CAST(a AS DECIMAL(18, 3)), make_timestamp(epoch_us(t)), a IN (1, 2) FROM orders",
            "SELECT date_trunc('day', t), CASE WHEN isfinite(x) THEN x END FROM main.orders ORDER BY ALL",
        ] {
            let facts = reader.facts(kept, &olap).await.unwrap();
            assert!(facts.tables.is_some(), "{kept}: {:?}", facts.names);
        }
        for refused in [
            "SELECT now()",
            "SELECT current_date",
            "SELECT random() FROM orders",
            "SELECT age(t) FROM orders",
            "SELECT current_setting('threads')",
            "SELECT * FROM read_csv('a.csv')",
            "SELECT * FROM 'a.parquet'",
            "SELECT nextval('s')",
            "SELECT mine(a) FROM orders",
            "SELECT * FROM other.orders",
            "SELECT * FROM duckdb_tables()",
            "SELECT 1; SELECT 2",
        ] {
            let facts = reader.facts(refused, &olap).await.unwrap();
            assert_eq!(facts.tables, None, "{refused}");
        }
        engine.close().await.unwrap();
    }
}
