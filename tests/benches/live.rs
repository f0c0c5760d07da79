//! How long it takes from closing a saved file until its new rows are seen by a query, beside a running `start`.
//!
//! ```
//! cargo bench -p watershed-tests --bench live -- --json
//! ```
//!
//! Figures: `live_flights_*` edits a model of the flights project that nothing reads, `live_1k_*` one of 1,000 models;
//! median and 95th percentile of 50 edits. `idle_1k_*` is what `start` uses while nothing happens.
//! `WATERSHED_PROGRAM` names another program to measure.

#![allow(
    clippy::unwrap_used,
    reason = "a measurement that goes wrong should end at once"
)]

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use watershed::socket::{Address, Connection, Reply, Request};
use watershed::state_folder::StateFolder;
use watershed_tests::measure::{Report, Unit};

/// Edits of one figure.
const EDITS: usize = 50;
/// Models of the large project.
const MODELS: usize = 1_000;
/// How long the idle process is looked at.
const IDLE: Duration = Duration::from_secs(20);
/// Far longer than any edit takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() {
    let report = Report::from_args();
    if report.wants("live_flights_median_ms") || report.wants("live_flights_p95_ms") {
        let project = flights();
        edits(&report, "live_flights", &project);
    }
    if report.wants("live_1k_median_ms") || report.wants("live_1k_p95_ms") || report.wants("idle_1k_cpu") {
        let project = thousand();
        edits(&report, "live_1k", &project);
    }
}

/// A project with the model that is edited: `text(n)` is its file after the n-th edit.
struct Project {
    folder: tempfile::TempDir,
    model: &'static str,
    file: &'static str,
    text: fn(usize) -> String,
}

impl Project {
    fn path(&self) -> PathBuf {
        self.folder.path().join("project")
    }
}

fn flights() -> Project {
    let folder = tempfile::tempdir().unwrap();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/projects/flights");
    copy(&sample, &folder.path().join("project"));
    Project {
        folder,
        model: "edited",
        file: "models/4_summaries/edited.sql",
        text: |n| {
            format!("-- @materialize: true\nSELECT *, {n} AS edit FROM delays_by_carrier ORDER BY ALL\n")
        },
    }
}

/// Layers of a hundred models over one file; each reads one or two of the layer above, two of five are tables.
fn thousand() -> Project {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("project");
    fs::create_dir_all(root.join("models")).unwrap();
    fs::create_dir_all(root.join("data")).unwrap();
    fs::write(root.join("watershed.yaml"), "").unwrap();
    let mut rows = String::from("bucket,amount\n");
    for row in 0..1_000 {
        writeln!(rows, "{},{}", row % 20, row * 37 % 1_009).unwrap();
    }
    fs::write(root.join("data/raw.csv"), rows).unwrap();
    for model in 0..MODELS - 1 {
        let (layer, place) = (model / 100, model % 100);
        let (from, more) = match layer {
            0 => ("read_csv('data/raw.csv')".to_owned(), String::new()),
            _ => (
                name(layer - 1, place),
                format!(
                    " JOIN {} AS b USING (bucket)",
                    name(layer - 1, (place * 7 + 1) % 100)
                ),
            ),
        };
        let materialize = if (layer + place) % 5 < 2 {
            "-- @materialize: true\n"
        } else {
            ""
        };
        let text = format!(
            "{materialize}SELECT bucket, max(a.amount) AS amount FROM {from} AS a{more} GROUP BY bucket\n"
        );
        fs::write(root.join(format!("models/{}.sql", name(layer, place))), text).unwrap();
    }
    Project {
        folder,
        model: "edited",
        file: "models/edited.sql",
        text: |n| format!("-- @materialize: true\nSELECT *, {n} AS edit FROM m5_007\n"),
    }
}

fn name(layer: usize, place: usize) -> String {
    format!("m{layer}_{place:03}")
}

fn edits(report: &Report, figure: &str, project: &Project) {
    fs::write(project.path().join(project.file), (project.text)(0)).unwrap();
    let mut start = Start::new(&project.path());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut took = Vec::new();
    for n in 1..=EDITS {
        start.settle();
        let text = (project.text)(n);
        fs::write(project.path().join(project.file), text).unwrap();
        let closed = Instant::now();
        runtime.block_on(until_seen(&start.address, project.model, n));
        took.push(closed.elapsed().as_secs_f64() * 1_000.0);
    }
    start.settle();
    took.sort_by(f64::total_cmp);
    report.print(&format!("{figure}_median_ms"), Unit::Milliseconds, took.clone());
    let p95 = took[took.len() * 95 / 100];
    report.print(&format!("{figure}_p95_ms"), Unit::Milliseconds, vec![p95]);
    if figure == "live_1k" {
        let before = start.cpu_ms();
        runtime.block_on(async { tokio::time::sleep(IDLE).await });
        let used = start.cpu_ms() - before;
        report.print("idle_1k_cpu_ms_in_20_s", Unit::Milliseconds, vec![used]);
    }
}

/// Asks until the rows of the n-th edit are there, each time over a connection of its own, as the program does.
async fn until_seen(address: &Address, model: &str, n: usize) {
    let begun = Instant::now();
    let sql = format!("SELECT max(edit) FROM {model}");
    while begun.elapsed() < PATIENCE {
        let connection = Connection::open(address).await.unwrap();
        let request = Request::Query {
            sql: sql.clone(),
            limit: None,
            timeout_ms: None,
        };
        let mut replies = connection.ask(&request).await;
        while let Some(reply) = replies.recv().await {
            match reply {
                Reply::Rows(rows) if rows[0][0] == n => return,
                Reply::Refused(refusal) => panic!("a reader met an error: {}", refusal.message),
                _ => {}
            }
        }
    }
    panic!("the edit was never seen");
}

/// A running `start`, killed when dropped.
struct Start {
    child: Child,
    events: Lines<BufReader<ChildStdout>>,
    address: Address,
}

impl Start {
    fn new(root: &Path) -> Self {
        let program = std::env::var_os("WATERSHED_PROGRAM")
            .unwrap_or_else(|| env!("CARGO_BIN_EXE_watershed-under-test").into());
        let mut child = Command::new(program)
            .args(["start", "--format", "jsonl"])
            .current_dir(root)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let events = BufReader::new(child.stdout.take().unwrap()).lines();
        let state = StateFolder::new(root.join(".watershed"), "dev").unwrap();
        Self {
            child,
            events,
            address: Address::of(&state),
        }
    }

    fn settle(&mut self) {
        for line in self.events.by_ref() {
            if line.unwrap().starts_with(r#"{"event":"settled""#) {
                return;
            }
        }
        panic!("the program ended");
    }

    /// Milliseconds of processor time that it has used.
    fn cpu_ms(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        let after_name = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        let ticks = |at: usize| {
            fields
                .get(at)
                .and_then(|field| field.parse::<f64>().ok())
                .unwrap_or(0.0)
        };
        // Ticks are hundredths of a second wherever there is a `/proc`.
        (ticks(11) + ticks(12)) * 10.0
    }
}

impl Drop for Start {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.file_name() == ".watershed" {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}
