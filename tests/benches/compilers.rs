//! The speed of the compiler: `cargo bench -p watershed-tests --bench compilers -- [--json] [--models N]`.
//!
//! | figure | what is measured |
//! |---|---|
//! | `parse_1k_cold_s` | a project of 1,000 models compiled from nothing, the engine's parser included |
//! | `parse_1k_cached_ms` | the same with what an earlier process learned: the engine is not asked |
//! | `edit_one_of_1k_ms` | one model's SQL edited in a compiled project |
//! | `rename_one_of_1k_ms` | one model renamed, with its readers bound anew |

#![allow(clippy::expect_used, clippy::print_stdout, missing_docs)]

use std::{sync::Arc, time::Instant};

use rand::{Rng, SeedableRng, rngs::SmallRng, seq::SliceRandom};
use serde_json::json;
use watershed_compilers::{FileEvent, Options, Project, SqlError, SqlParser, Tree, Trust};
use watershed_drivers::duckdb::Parser;

const SAMPLES: usize = 7;
const LAYERS: usize = 6;

/// The engine's parser, counting what it is asked.
struct Engine {
    parser: Parser,
    version: String,
    asked: std::cell::Cell<usize>,
}

impl SqlParser for Engine {
    fn version(&self) -> &str {
        &self.version
    }

    fn parse(&self, statements: &[&str]) -> Vec<Result<Tree, SqlError>> {
        self.asked.set(self.asked.get() + statements.len());
        let documents = self
            .parser
            .documents(statements)
            .expect("the engine's parser works");
        documents.into_iter().map(Tree::from_document).collect()
    }
}

/// A project in layers: each model reads one to three of the layer above, by plain names.
fn project(models: usize) -> Vec<(String, String)> {
    let mut rng = SmallRng::seed_from_u64(7);
    let mut files = vec![
        (
            "rill.yaml".to_owned(),
            "display_name: Generated project\nolap_connector: duckdb\n".to_owned(),
        ),
        (
            "sources/raw_events.yaml".to_owned(),
            "type: source\nconnector: local_file\npath: data/events.csv\n".to_owned(),
        ),
    ];
    let mut above = vec!["raw_events".to_owned()];
    let mut made = 0;
    for layer in 0..LAYERS {
        let size = models / LAYERS + usize::from(layer < models % LAYERS);
        let mut names = Vec::with_capacity(size);
        for _ in 0..size {
            made += 1;
            let name = format!("m{}_{made:04}", layer + 1);
            let mut refs = above.clone();
            refs.shuffle(&mut rng);
            refs.truncate(rng.random_range(1..=3));
            let head = if rng.random_bool(0.4) {
                "-- @materialize: true\n"
            } else {
                ""
            };
            files.push((
                format!("models/{name}.sql"),
                format!("{head}{}", sql(&refs, made)),
            ));
            names.push(name);
        }
        above = names;
    }
    files
}

fn sql(refs: &[String], salt: usize) -> String {
    match refs {
        [one] => format!(
            "WITH ranked AS (\n    SELECT *, row_number() OVER (PARTITION BY bucket ORDER BY amount DESC, day) AS place\n    \
             FROM {one}\n)\nSELECT bucket, day, (amount + {salt})::BIGINT AS amount, events\nFROM ranked\nWHERE place <= 25\n"
        ),
        [one, two] => format!(
            "SELECT a.bucket, a.day,\n       (coalesce(a.amount - b.amount, a.amount) % 1000003 + {salt})::BIGINT AS amount,\n       \
             greatest(a.events, coalesce(b.events, 0)) AS events\nFROM {one} AS a\nLEFT JOIN {two} AS b ON b.bucket = a.bucket \
             AND b.day = a.day\n"
        ),
        several => {
            let parts: Vec<_> = several
                .iter()
                .map(|name| format!("SELECT bucket, day, amount, events FROM {name}"))
                .collect();
            format!(
                "WITH everything AS (\n    {}\n)\nSELECT bucket, day, (sum(amount) % 1000003 + {salt})::BIGINT AS amount, \
                 max(events) AS events\nFROM everything\nGROUP BY bucket, day\n",
                parts.join("\n    UNION ALL ")
            )
        }
    }
}

fn written(path: &str, content: &str) -> FileEvent {
    FileEvent::Written {
        path: path.to_owned(),
        content: Arc::from(content.as_bytes()),
    }
}

fn events(files: &[(String, String)]) -> Vec<FileEvent> {
    files
        .iter()
        .map(|(path, content)| written(path, content))
        .collect()
}

/// Seconds of each sample, and the median.
fn timed(mut work: impl FnMut(usize) -> f64) -> f64 {
    let mut seconds: Vec<f64> = (0..SAMPLES).map(&mut work).collect();
    seconds.sort_by(f64::total_cmp);
    seconds[SAMPLES / 2]
}

fn compiled(files: &[(String, String)], engine: &Engine, cache: Option<&[u8]>) -> (Project, f64) {
    let events = events(files);
    let mut project = Project::new(Options::default());
    let start = Instant::now();
    if let Some(cache) = cache {
        project.import_cache(cache);
    }
    project.apply(events, engine);
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(project.trust(), Trust::Whole);
    assert!(project.diagnostics().is_empty(), "{:?}", project.diagnostics());
    assert_eq!(project.resources().count() + 1, files.len());
    (project, seconds)
}

fn edit(project: &mut Project, files: &[(String, String)], engine: &Engine, sample: usize) -> f64 {
    let (path, content) = &files[files.len() / 2 + sample];
    let edited = written(
        path,
        &content.replace(")::BIGINT", &format!(" + {sample})::BIGINT")),
    );
    let start = Instant::now();
    let changes = project.apply([edited], engine);
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(changes.changed.len(), 1);
    seconds
}

fn rename(project: &mut Project, files: &[(String, String)], engine: &Engine, sample: usize) -> f64 {
    let (path, content) = &files[10 + sample];
    let renamed = path.replace(".sql", "_renamed.sql");
    let events = [
        FileEvent::Removed { path: path.clone() },
        written(&renamed, content),
    ];
    let start = Instant::now();
    let changes = project.apply(events, engine);
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!((changes.added.len(), changes.removed.len()), (1, 1));
    seconds
}

fn peak_rss_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap_or_default();
    line.trim()
        .trim_end_matches(" kB")
        .parse::<f64>()
        .unwrap_or_default()
        / 1024.0
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let as_json = arguments.iter().any(|argument| argument == "--json");
    let models = arguments
        .iter()
        .position(|argument| argument == "--models")
        .and_then(|at| arguments.get(at + 1)?.parse().ok())
        .unwrap_or(1_000);
    let tell = |name: &str, value: f64, unit: &str| {
        let peak = peak_rss_mb().round();
        if as_json {
            println!(
                "{}",
                json!({"name": name, "value": value, "unit": unit, "samples": SAMPLES, "peak_rss_mb": peak})
            );
        } else {
            println!("{name:<24} {value:>10.3} {unit:<3} median of {SAMPLES}, peak {peak} MB");
        }
    };
    let size = if models % 1_000 == 0 {
        format!("{}k", models / 1_000)
    } else {
        models.to_string()
    };
    let files = project(models);
    let engine = Engine {
        parser: Parser::new(),
        version: Parser::version(),
        asked: 0.into(),
    };
    // The first call opens the engine; that is no part of compiling.
    engine.parse(&["SELECT 1"]).clear();

    let cold = timed(|_| compiled(&files, &engine, None).1);
    tell(&format!("parse_{size}_cold_s"), cold, "s");

    let (mut project, _) = compiled(&files, &engine, None);
    let cache = project.export_cache().expect("something was learned");
    let asked = engine.asked.get();
    let cached = timed(|_| compiled(&files, &engine, Some(&cache)).1);
    assert_eq!(engine.asked.get(), asked, "the engine is not asked again");
    tell(&format!("parse_{size}_cached_ms"), cached * 1e3, "ms");

    let edited = timed(|sample| edit(&mut project, &files, &engine, sample));
    tell(&format!("edit_one_of_{size}_ms"), edited * 1e3, "ms");
    let renamed = timed(|sample| rename(&mut project, &files, &engine, sample));
    tell(&format!("rename_one_of_{size}_ms"), renamed * 1e3, "ms");
}
