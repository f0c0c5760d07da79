//! Tests of cancelled questions: the engine stops working on them at every stage.

#![expect(
    clippy::unwrap_used,
    reason = "what fails here fails the test, with its place"
)]

use std::fs;
use std::path::Path;
use std::pin::Pin;
use std::time::{Duration, Instant};

use watershed::metrics::Query;
use watershed::{AnswerFile, Instance, Options, Runtime, Source, Viewer};

const DEADLINE: Duration = Duration::from_secs(60);
/// The time that a question runs before it is cancelled, enough for the engine to have begun.
const BUSY: Duration = Duration::from_millis(300);

/// A view over more rows than anybody could read.
const HUGE: &str = "SELECT make_timestamp(i) AS at, i, j FROM range(1000000000) a(i), range(1000000) b(j)";
const VIEW: &str = "version: 1
type: metrics_view
model: huge
timeseries: at
dimensions: [{column: at}]
measures: [{name: total, expression: sum(sqrt(i * j))}]
";

async fn opened(root: &Path) -> Instance {
    for (file, text) in [
        ("watershed.yaml", ""),
        ("models/huge.sql", HUGE),
        ("metrics/huge.yaml", VIEW),
        (
            "apis/total.yaml",
            "type: api\nsql: SELECT sum(sqrt(i * j)) AS total FROM huge\n",
        ),
    ] {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let instance = Runtime::new().open(Options::new(root)).await.unwrap();
    instance.controller().wait_until_idle(DEADLINE).await.unwrap();
    instance
}

/// Returns the CPU time of all threads of this process, in ticks of the system.
fn worked() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let field = |at: usize| fields.split_whitespace().nth(at).unwrap().parse::<u64>().unwrap();
    field(11) + field(12)
}

/// Waits until the process uses less than a fifth of one core.
async fn until_idle(stage: &str) {
    let began = Instant::now();
    loop {
        let (before, window) = (worked(), Duration::from_millis(200));
        tokio::time::sleep(window).await;
        if worked() - before < 4 {
            return;
        }
        assert!(began.elapsed() < DEADLINE, "{stage}: the engine goes on");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_nobody_waits_for_leaves_the_engine_idle_and_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("project");
    let instance = opened(&root).await;
    let (now, owner) = ("2024-06-01T00:00:00Z".parse().unwrap(), Viewer::Owner);
    let query = |text: &str| -> Query { text.parse().unwrap() };
    let whole = query(r#"{"metrics_view": "huge", "measures": ["total"]}"#);
    let ends = query(r#"{"metrics_view": "huge", "measures": ["total"], "time_range": "P7D"}"#);
    let rows = query(r#"{"metrics_view": "huge", "rows": true}"#);
    let nothing = serde_json::Map::new();
    let files = folder.path().join("files");
    fs::create_dir(&files).unwrap();
    let file = |name: &str| AnswerFile {
        file: files.join(name),
        ..AnswerFile::default()
    };
    let (csv, parquet, xlsx) = (file("a.csv"), file("a.parquet"), file("a.xlsx"));
    let call = Source::Call {
        api: "total",
        args: &nothing,
    };
    type Question<'q> = Pin<Box<dyn Future<Output = ()> + 'q>>;
    let export = |source, to| -> Question<'_> {
        let writing = instance.export(source, &owner, now, to);
        Box::pin(async { drop(writing.await) })
    };
    let metrics = |query| -> Question<'_> {
        let asking = instance.metrics(query, &owner, now);
        Box::pin(async { drop(asking.await) })
    };
    let called = async { drop(instance.call("total", nothing.clone(), &owner, now, 10).await) };
    let stages: [(&str, Question<'_>); 7] = [
        ("the statement", metrics(&whole)),
        ("the ends of the data", metrics(&ends)),
        ("a call", Box::pin(called)),
        ("rows into CSV", export(Source::Metrics(&rows), &csv)),
        ("rows into Parquet", export(Source::Metrics(&rows), &parquet)),
        ("rows into a sheet", export(Source::Metrics(&rows), &xlsx)),
        ("a call into a file", export(call, &csv)),
    ];
    for (stage, question) in stages {
        let before = worked();
        let answered = tokio::time::timeout(BUSY, question).await;
        assert!(answered.is_err(), "{stage}: there is no answer so soon");
        assert!(worked() > before, "{stage}: the engine was at it");
        until_idle(stage).await;
        let left: Vec<_> = fs::read_dir(&files).unwrap().collect();
        assert!(left.is_empty(), "{stage}: {left:?}");
    }
    instance.close(DEADLINE).await.unwrap();
}
