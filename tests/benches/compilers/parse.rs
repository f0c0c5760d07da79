//! The compiler alone: files in memory, the engine's parser.

use std::{cell::Cell, process::Command, sync::Arc};

use watershed_compilers::{FileEvent, Options, Project, SqlError, SqlParser, Tree, Trust};
use watershed_drivers::duckdb::Parser;
use watershed_tests::measure::{Report, Unit, time};

use crate::generated;

const SAMPLES: usize = 7;
const FILES: usize = 10_000;
/// Of each hundred files so many are YAML.
const YAML_PERCENT: usize = 30;
const READERS: usize = 1_000;
/// The argument of the process whose memory is measured.
pub(crate) const CHILD: &str = "--compile-10k";

/// The engine's parser, counting what it is asked.
struct Engine {
    parser: Parser,
    version: String,
    asked: Cell<usize>,
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

impl Engine {
    /// The first call opens the engine; that is no part of compiling.
    fn open() -> Self {
        let engine = Self {
            parser: Parser::new(),
            version: Parser::version(),
            asked: Cell::new(0),
        };
        engine.parse(&["SELECT 1"]).clear();
        engine
    }
}

pub(crate) fn measure(report: &Report) {
    let own = [
        "parse_10k_cold_s",
        "parse_10k_warm_ms",
        "edit_one_of_10k_ms",
        "rename_read_by_1k_ms",
    ];
    if own.iter().any(|name| report.wants(name)) {
        let engine = Engine::open();
        let files = generated::mixed(FILES, YAML_PERCENT);
        parse(report, &files, &engine);
        rename(report, &engine);
    }
    if report.wants("parse_10k_rss_mb") {
        let own = std::env::current_exe().expect("this program");
        let sample = |_| {
            let said = Command::new(&own).arg(CHILD).output().expect("it starts").stdout;
            String::from_utf8_lossy(&said).trim().parse().expect("a number")
        };
        report.print("parse_10k_rss_mb", Unit::Megabytes, (0..3).map(sample).collect());
    }
}

/// Compiles once and prints what that took of memory.
pub(crate) fn child() {
    let files = generated::mixed(FILES, YAML_PERCENT);
    let engine = Engine::open();
    let before = resident_mb();
    let (project, _) = compiled(&files, &engine, None);
    println!("{}", resident_mb() - before);
    drop(project);
}

/// The memory that this process has now.
fn resident_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<f64>().ok());
    kilobytes.unwrap_or_default() / 1024.0
}

fn parse(report: &Report, files: &[(String, String)], engine: &Engine) {
    if report.wants("parse_10k_cold_s") {
        let samples = (0..SAMPLES).map(|_| compiled(files, engine, None).1).collect();
        report.print("parse_10k_cold_s", Unit::Seconds, samples);
    }
    let (mut project, _) = compiled(files, engine, None);
    if report.wants("parse_10k_warm_ms") {
        let learned = project.export_cache().expect("something was learned");
        let asked = engine.asked.get();
        let warm = |_| compiled(files, engine, Some(&learned)).1 * 1e3;
        let samples = (0..SAMPLES).map(warm).collect();
        assert_eq!(engine.asked.get(), asked, "the engine is not asked again");
        report.print("parse_10k_warm_ms", Unit::Milliseconds, samples);
    }
    if report.wants("edit_one_of_10k_ms") {
        let models: Vec<_> = files.iter().filter(|(path, _)| path.ends_with(".sql")).collect();
        let edited = |sample: usize| {
            let (path, content) = models[models.len() / 2 + sample];
            let event = written(
                path,
                &content.replace(")::BIGINT", &format!(" + {sample})::BIGINT")),
            );
            let (took, changes) = time(|| project.apply([event], engine));
            assert_eq!(changes.changed.len(), 1);
            took.as_secs_f64() * 1e3
        };
        let samples = (1..=SAMPLES).map(edited).collect();
        report.print("edit_one_of_10k_ms", Unit::Milliseconds, samples);
    }
}

/// A model that 1,000 others read, and as many that read nothing.
fn rename(report: &Report, engine: &Engine) {
    if !report.wants("rename_read_by_1k_ms") {
        return;
    }
    let mut files = generated::models(READERS);
    files.push(("models/base.sql".to_owned(), "SELECT 1 AS id\n".to_owned()));
    let readers = (0..READERS).map(|at| {
        let sql = format!("SELECT id + {at} AS id FROM base\n");
        (format!("models/reader_{at}.sql"), sql)
    });
    files.extend(readers);
    let (mut project, _) = compiled(&files, engine, None);
    let mut path = "models/base.sql".to_owned();
    let renamed = |sample: usize| {
        // There and back, so that all are bound anew each time.
        let to = match sample % 2 {
            1 => "models/based.sql",
            _ => "models/base.sql",
        };
        let events = [
            FileEvent::Removed { path: path.clone() },
            written(to, "SELECT 1 AS id\n"),
        ];
        let (took, changes) = time(|| project.apply(events, engine));
        assert_eq!((changes.added.len(), changes.removed.len()), (1, 1));
        assert_eq!(changes.changed.len(), READERS);
        to.clone_into(&mut path);
        took.as_secs_f64() * 1e3
    };
    let samples = (1..=SAMPLES).map(renamed).collect();
    report.print("rename_read_by_1k_ms", Unit::Milliseconds, samples);
}

fn written(path: &str, content: &str) -> FileEvent {
    FileEvent::Written {
        path: path.to_owned(),
        content: Arc::from(content.as_bytes()),
    }
}

/// The project of these files, and the seconds that it took.
fn compiled(files: &[(String, String)], engine: &Engine, learned: Option<&[u8]>) -> (Project, f64) {
    let events: Vec<FileEvent> = files
        .iter()
        .map(|(path, content)| written(path, content))
        .collect();
    let mut project = Project::new(Options::default());
    let (took, ()) = time(|| {
        if let Some(learned) = learned {
            project.import_cache(learned);
        }
        project.apply(events, engine);
    });
    assert_eq!(project.trust(), Trust::Whole);
    assert!(
        project.diagnostics().is_empty(),
        "{:?}",
        project.diagnostics().first()
    );
    assert_eq!(project.resources().count() + 1, files.len());
    (project, took.as_secs_f64())
}
