//! The fence around callers' SQL against a referee: random statements of allowed parts, half of them with one forbidden part
//! at a random depth. The referee knows what was put in; the engine runs what passes, beside files and settings with a mark.
//!
//! An ordinary run asks a few hundred, one with `WATERSHED_PROOF=ci` some thousand; `WATERSHED_STATEMENTS` says how many, and
//! `WATERSHED_SEED` from which seed.

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::json;
use watershed_api::request::RunRequest;

use crate::http::{SHOP, Served};
use crate::project::Place;
use crate::roles::told;

/// Numbers that read beyond the outputs, or change something.
const FORBIDDEN: [&str; 18] = [
    "(SELECT count(*) FROM read_text('marked.csv'))",
    "(SELECT count(*) FROM read_csv('marked.csv'))",
    "(SELECT count(*) FROM 'marked.csv')",
    "(SELECT count(*) FROM glob('*'))",
    "(SELECT count(*) FROM duckdb_settings())",
    "(SELECT count(*) FROM duckdb_tables)",
    "(SELECT count(*) FROM information_schema.tables)",
    "(SELECT count(*) FROM pg_catalog.pg_class)",
    "(SELECT count(*) FROM sqlite_master)",
    "(SELECT count(*) FROM nowhere)",
    "(WITH c AS (SELECT content FROM read_text('marked.csv')) SELECT count(*) FROM c)",
    "length(current_setting('threads'))",
    "length(getvariable('x'))",
    "length(json_serialize_plan('SELECT 1'))",
    "nextval('s')",
    "length(pg_get_viewdef(1))",
    "sleep_ms(1)",
    "txid_current()",
];

/// A writer of random statements.
struct Writer {
    random: StdRng,
    /// The forbidden part that is still to be put in; none if there is none, or none any more.
    forbidden: Option<&'static str>,
}

impl Writer {
    fn pick<'t>(&mut self, from: &[&'t str]) -> &'t str {
        from[self.random.random_range(0..from.len())]
    }

    /// Writes a number, of whatever is in scope.
    fn number(&mut self, depth: usize) -> String {
        if let Some(forbidden) = self.forbidden
            && (depth == 0 || self.random.random_ratio(1, 6))
        {
            self.forbidden = None;
            return forbidden.to_owned();
        }
        if depth == 0 {
            return self.pick(&["1", "2", "NULL", "a", "t.a"]).to_owned();
        }
        let (one, depth) = (depth, depth - 1);
        match self.random.random_range(0..14) {
            0 => format!("({} + {})", self.number(depth), self.number(depth)),
            1 => format!(
                "CASE WHEN {} > {} THEN {} ELSE 0 END",
                self.number(depth),
                self.number(depth),
                self.number(depth)
            ),
            2 => format!("nullif({}, {})", self.number(depth), self.number(depth)),
            3 => format!("coalesce({}, 3)", self.number(depth)),
            4 => format!("list_sum([{}, {}])", self.number(depth), self.number(depth)),
            5 => format!("(SELECT max(a) FROM {})", self.source(depth)),
            6 => format!("TRY_CAST({} AS DECIMAL(18, 3))", self.number(depth)),
            7 => format!(
                "list_sum(list_transform([1, 2], lambda x: x + {}))",
                self.number(depth)
            ),
            8 => format!(
                "({} IN (SELECT a FROM {}))::INTEGER",
                self.number(depth),
                self.source(depth)
            ),
            9 => format!("({{'k': {}}}).k", self.number(depth)),
            10 => format!("[{}, 2][1:2][1]", self.number(depth)),
            11 => format!(
                "({} BETWEEN 1 AND {})::INTEGER",
                self.number(depth),
                self.number(depth)
            ),
            12 => format!(
                "(EXISTS (SELECT 1 FROM {} WHERE {} = 1))::INTEGER",
                self.source(depth),
                self.number(depth)
            ),
            _ => format!("greatest({}, length(uuid()::VARCHAR), {one})", self.number(depth)),
        }
    }

    /// Writes something to select from, with a column `a` of the name `t`.
    fn source(&mut self, depth: usize) -> String {
        if depth == 0 {
            let plain = ["late", "main.late", "gone"];
            let table = self.pick(&plain);
            let column = if table == "gone" { "x" } else { "delay" };
            return format!("(SELECT {column} AS a FROM {table}) AS t");
        }
        let depth = depth - 1;
        match self.random.random_range(0..7) {
            0 => format!("range({}, 4) AS t(a)", self.pick(&["0", "1"])),
            1 => format!("(VALUES ({}), (2)) AS t(a)", self.alone(depth)),
            2 => format!("unnest([1, {}]) AS t(a)", self.alone(depth)),
            3 => format!(
                "(SELECT t.a FROM {} JOIN {} ON {}) AS t",
                self.source(depth),
                self.source(depth).replace(" AS t", " AS u"),
                self.condition(depth)
            ),
            4 => format!("({}) AS t", self.select(depth)),
            _ => self.source(depth),
        }
    }

    /// Writes a number with nothing in scope.
    fn alone(&mut self, depth: usize) -> String {
        format!("(SELECT max({}) FROM {})", self.number(depth), self.source(depth))
    }

    fn condition(&mut self, depth: usize) -> String {
        format!("{} > 0", self.number(depth))
    }

    /// Writes a query with one column `a`.
    fn select(&mut self, depth: usize) -> String {
        let number = self.number(depth);
        let source = self.source(depth);
        match self.random.random_range(0..12) {
            0 => format!(
                "SELECT {number} AS a FROM {source} WHERE {}",
                self.condition(depth)
            ),
            1 => format!(
                "SELECT max({number}) AS a FROM {source} GROUP BY {} HAVING max(a) > {}",
                self.number(depth),
                self.alone(depth)
            ),
            2 => format!(
                "SELECT {number} AS a FROM {source} ORDER BY {} LIMIT 3",
                self.number(depth)
            ),
            3 => format!(
                "SELECT sum({number}) OVER (PARTITION BY {} ORDER BY a) AS a FROM {source}",
                self.number(depth)
            ),
            4 => format!(
                "SELECT count(*) FILTER (WHERE {}) AS a FROM {source}",
                self.condition(depth)
            ),
            5 => format!(
                "SELECT {number} AS a FROM {source} QUALIFY row_number() OVER (ORDER BY {}) = 1",
                self.number(depth)
            ),
            6 => format!(
                "SELECT DISTINCT ON ({}) {number} AS a FROM {source}",
                self.number(depth)
            ),
            7 => format!(
                "SELECT {number} AS a FROM {source} UNION ALL ({})",
                self.select(depth.saturating_sub(1))
            ),
            8 => {
                let inner = self.select(depth.saturating_sub(1));
                format!(
                    "WITH c AS ({inner}) SELECT {number} AS a FROM (SELECT a FROM c) AS t, {source_u}",
                    source_u = source.replace(" AS t", " AS u")
                )
            }
            9 => format!("SELECT a FROM (SELECT * REPLACE ({number} AS a) FROM {source})"),
            10 => format!("SELECT {number} AS a FROM {source} LIMIT {}", self.alone(depth)),
            _ => format!("SELECT {number} AS a FROM {source}"),
        }
    }
}

/// Returns the number of statements, and the seed.
fn extent() -> (u64, u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let usual = match std::env::var("WATERSHED_PROOF").as_deref() {
        Ok("ci") => 2_000,
        _ => 300,
    };
    (
        number("WATERSHED_STATEMENTS").unwrap_or(usual),
        number("WATERSHED_SEED").unwrap_or(1),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api24_random_statements_pass_exactly_if_every_part_is_allowed() {
    let place = Place::new(&[]);
    std::fs::write(place.root().join("marked.csv"), "MARKED\nMARKED\n").expect("a file");
    let files = || {
        let names = std::fs::read_dir(place.root()).expect("a folder");
        let mut names: Vec<_> = names.map(|entry| entry.expect("an entry").file_name()).collect();
        names.sort();
        names
    };
    let served = Served::with(&place, told).await;
    let before = files();
    let (statements, seed) = extent();
    let (mut passed, mut refused, mut answered) = (0_u64, 0_u64, 0_u64);
    for number in 0..statements {
        let mut random = StdRng::seed_from_u64(seed * 1_000_000 + number);
        let forbidden = random
            .random_bool(0.5)
            .then(|| FORBIDDEN[random.random_range(0..FORBIDDEN.len())]);
        let mut writer = Writer { random, forbidden };
        let depth = writer.random.random_range(1..5);
        let sql = writer.select(depth);
        // A statement may be written to its end before the part is put in, or leave out what was written.
        let is_allowed = forbidden.is_none_or(|part| !sql.contains(part));
        let body = json!({"sql": sql, "limit": 5, "timeout_ms": 10_000});
        let answer = served
            .client
            .send(
                "POST",
                &format!("{SHOP}/query"),
                &[("x-caller", "read+query")],
                Some(&body),
            )
            .await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        if text.contains("sql-syntax") {
            continue;
        }
        let was_refused = answer.status == 403 && text.contains("not-allowed-sql");
        assert_eq!(
            was_refused, !is_allowed,
            "statement {number} of seed {seed}: {sql}: {text}"
        );
        assert!(was_refused || !text.contains("MARKED"), "{sql}: {text}");
        passed += u64::from(!was_refused);
        refused += u64::from(was_refused);
        answered += u64::from(answer.status == 200);
    }
    assert_eq!(files(), before, "nothing was written");
    // The referee is worth something only if the engine runs most of what passes.
    assert!(
        refused * 5 > statements && answered * 2 > passed,
        "{passed} passed, {answered} of them ran, {refused} refused"
    );
    served.close().await;
}

/// Lists the calls of the engine's functions: one for each name and number of arguments, all of whose texts are a path.
const CALLS: &str = "-- @materialize: true
SELECT DISTINCT ON (name, type, length(arguments)) * FROM (
  SELECT function_name AS name, function_type AS type,
    array_to_string(list_transform(coalesce(parameter_types, []), lambda t: CASE
      WHEN t IS NULL OR t IN ('VARCHAR', 'ANY', 'T') THEN '''PATH'''
      WHEN t LIKE '%[]' THEN '[''PATH'']'
      WHEN t LIKE '%INT%' OR t IN ('DOUBLE', 'FLOAT', 'DECIMAL') THEN '1'
      WHEN t = 'BOOLEAN' THEN 'true'
      ELSE 'NULL' END), ', ') AS arguments
  FROM duckdb_functions()) ORDER BY ALL
";

/// Each function that the engine has is refused or opens no file: one that is there is not read, and nobody misses one
/// that is not.
#[tokio::test(flavor = "multi_thread")]
async fn s_api24_every_function_of_the_engine_is_refused_or_opens_no_file() {
    let place = Place::new(&[("models/calls.sql", CALLS)]);
    let traps = tempfile::tempdir().expect("a folder");
    let paths = ["marked.csv", "missing.csv"].map(|name| traps.path().join(name));
    std::fs::write(&paths[0], "c0ntent\nc0ntent\n").expect("a file");
    let served = Served::with(&place, told).await;
    let ask = async |sql: &str, limit: u64| {
        let body = json!({"sql": sql, "limit": limit, "timeout_ms": 10_000});
        let caller = [("x-caller", "read+query")];
        let path = format!("{SHOP}/query");
        served.client.send("POST", &path, &caller, Some(&body)).await
    };
    let listed = ask("FROM calls", 100_000).await.json();
    let (mut refused, mut answered) = (0, 0);
    for row in listed["rows"].as_array().expect("rows") {
        let [name, kind, arguments] = [0, 1, 2].map(|at| row[at].as_str().unwrap_or_default());
        for path in &paths {
            let path = path.display().to_string();
            let arguments = arguments.replace("PATH", &path);
            let call = format!("\"{}\"({arguments})", name.replace('"', "\"\""));
            let sql = match kind {
                "table" | "table_macro" => format!("SELECT * FROM {call}"),
                "pragma" => format!("PRAGMA {name}"),
                _ => format!("SELECT {call}"),
            };
            let answer = ask(&sql, 5).await;
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            let opened = [
                "c0ntent",
                "IO Error",
                "Permission Error",
                "No files found",
                "No such file",
            ];
            assert!(!opened.iter().any(|words| text.contains(words)), "{sql}: {text}");
            refused += usize::from(answer.status == 403);
            answered += usize::from(answer.status == 200);
        }
    }
    let left = std::fs::read_dir(traps.path()).expect("a folder").count();
    assert_eq!(left, 1, "nothing was written");
    // The engine has some hundred functions that read or write files or settings, and more that compute.
    assert!(
        refused > 200 && answered > 400,
        "{refused} refused, {answered} answered"
    );
    served.close().await;
}

/// Macros are listed once while nothing changes, but never is one overlooked: it would hide what it reads.
#[tokio::test(flavor = "multi_thread")]
async fn s_api24_a_macro_counts_from_the_moment_that_it_is_made() {
    let place = Place::new(&[]);
    let served = Served::with(&place, told).await;
    let ask = async || {
        let body = json!({"sql": "SELECT nullif(1, 2) AS a"});
        let caller = [("x-caller", "read+query")];
        let path = format!("{SHOP}/query");
        let answer = served.client.send("POST", &path, &caller, Some(&body));
        let answer = answer.await;
        (answer.status, String::from_utf8_lossy(&answer.body).into_owned())
    };
    let run = async || {
        let run = served.owner.instance.run(RunRequest::default()).await;
        run.expect("the project comes to rest");
    };
    for _ in 0..3 {
        let (status, text) = ask().await;
        assert_eq!(status, 200, "{text}");
    }
    let made = "CREATE MACRO nullif(a, b) AS (SELECT count(*) FROM duckdb_settings())";
    place.write("init.sql", made);
    run().await;
    for _ in 0..2 {
        let (status, text) = ask().await;
        assert_eq!(status, 403, "{text}");
        assert!(text.contains("macro `nullif`"), "{text}");
    }
    std::fs::remove_file(place.root().join("init.sql")).expect("it is there");
    run().await;
    let (status, text) = ask().await;
    assert_eq!(status, 200, "{text}");
    served.close().await;
}
