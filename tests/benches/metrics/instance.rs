//! Questions to a running project.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use watershed::metrics::{Query, jiff};
use watershed::{Instance, Options, Runtime, Viewer};
use watershed_drivers::duckdb::ByHand;
use watershed_tests::measure::{Report, Unit, time};

/// Longer than anything takes.
pub(super) const DEADLINE: Duration = Duration::from_secs(600);

/// Questions of each sort.
const ROUNDS: usize = 2_000;

/// A small table: what is measured is what stands around it.
const SMALL: &str = "SELECT i % 7 AS k, i AS v FROM range(1000) t(i)";

/// Opens a project of these files.
pub(super) async fn opened(root: &Path, files: &[(String, String)]) -> Instance {
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let instance = Runtime::new().open(Options::new(root)).await.unwrap();
    instance.controller().wait_until_idle(DEADLINE).await.unwrap();
    instance
}

fn view(cache: &str) -> String {
    format!(
        "version: 1\ntype: metrics_view\nmodel: small\ndimensions: [{{column: k}}]\n\
         measures: [{{name: n, expression: count(*)}}, {{name: s, expression: sum(v)}}]\n{cache}"
    )
}

pub(super) async fn measure(report: &Report) {
    let names = ["overhead_p50_us", "overhead_p99_us", "cached_p50_us"];
    if !names.iter().any(|name| report.wants(name)) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let files = [
        ("watershed.yaml".to_owned(), String::new()),
        (
            "models/small.sql".to_owned(),
            format!("-- @materialize: true\n{SMALL}"),
        ),
        ("metrics/plain.yaml".to_owned(), view("cache: {enabled: false}\n")),
        ("metrics/kept.yaml".to_owned(), view("")),
    ];
    let instance = opened(&folder.path().join("shop"), &files).await;
    let now: jiff::Timestamp = "2024-06-01T00:00:00Z".parse().unwrap();
    let query = |view: &str| -> Query {
        format!(r#"{{"metrics_view": "{view}", "dimensions": ["k"], "measures": ["n", "s"]}}"#)
            .parse()
            .unwrap()
    };
    let asked = async |query: &Query| {
        let mut took = Vec::new();
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            let answer = instance.metrics(query, &Viewer::Owner, now).await.unwrap();
            took.push(begun.elapsed().as_secs_f64() * 1e6);
            assert_eq!(answer.rows.len(), 7);
        }
        took.sort_by(f64::total_cmp);
        took
    };
    let plain = asked(&query("plain")).await;
    let kept = asked(&query("kept")).await;
    instance.close(DEADLINE).await.unwrap();

    // The statement of the plan, as `--sql` prints it.
    let sql = "SELECT p.k, p.n, p.s FROM (SELECT k, n, s FROM (SELECT k, count(*) AS n, sum(v) AS s FROM small GROUP BY 1)) p ORDER BY p.k NULLS LAST";
    let raw = ByHand::in_memory();
    raw.run(&format!("CREATE TABLE small AS {SMALL}"));
    let mut alone: Vec<f64> = (0..ROUNDS)
        .map(|_| time(|| raw.run(sql)).0.as_secs_f64() * 1e6)
        .collect();
    alone.sort_by(f64::total_cmp);
    let at = |sorted: &[f64], share: usize| sorted[(sorted.len() - 1) * share / 100];
    report.print(
        "overhead_p50_us",
        Unit::Microseconds,
        vec![at(&plain, 50) - at(&alone, 50)],
    );
    report.print(
        "overhead_p99_us",
        Unit::Microseconds,
        vec![at(&plain, 99) - at(&alone, 99)],
    );
    report.print("cached_p50_us", Unit::Microseconds, vec![at(&kept, 50)]);
}
