//! Costs of a lake beside those of the engine's file: `cargo bench -p watershed-tests --bench scale -- [--json] [--only NAME]`.
//!
//! The same project is built in a file and in a lake, in turn, by whole processes of the program; the lake's files are on disk,
//! and its catalog is in Postgres. Figures are ratios. `WATERSHED_SCALE_MODELS` takes the place of 1,000 models.
//!
//! | figure | what is measured |
//! |---|---|
//! | `lake_cold_1k_over_file` | a build of 1,000 models from nothing |
//! | `lake_rebuild_over_file` | one small table among them, of the same columns, asked of a running `start` |
//! | `lake_rebuild_ddl_over_file` | the same of other columns |
//! | `lake_noop_1k_over_file` | nothing changed |
//! | `lake_2m_over_file` | one table of 2 million rows, written |

#![allow(clippy::expect_used, clippy::print_stderr, missing_docs)]

#[allow(dead_code, reason = "the benchmark of builds uses the rest of it")]
#[path = "../builds/mix.rs"]
mod mix;
#[allow(dead_code, reason = "the benchmark of builds uses the rest of it")]
#[path = "../builds/program.rs"]
mod program;

use std::path::{Path, PathBuf};
use std::time::Duration;

use mix::{Mix, write};
use tempfile::TempDir;
use watershed_tests::measure::{Report, Unit};
use watershed_tests::postgres::Server;

/// Rounds of each figure.
const SAMPLES: usize = 5;
/// Rows of the large table.
const ROWS: u64 = 2_000_000;

fn main() {
    let report = Report::from_args();
    let Some(server) = Server::start() else { return };
    let models = std::env::var("WATERSHED_SCALE_MODELS").ok();
    let models = models.and_then(|models| models.parse().ok()).unwrap_or(1_000);
    small(&report, &server, models);
    large(&report, &server);
}

/// The same project with its tables in a file, and in a lake.
struct Pair<'a> {
    folder: TempDir,
    server: &'a Server,
    /// Number of the lake.
    lake: usize,
}

impl<'a> Pair<'a> {
    fn new(server: &'a Server, write: impl Fn(&Path)) -> Self {
        let pair = Self {
            folder: tempfile::tempdir().expect("a folder"),
            server,
            lake: 0,
        };
        pair.both().iter().for_each(|project| write(project));
        pair
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("file")
    }

    fn lake(&self) -> PathBuf {
        self.folder.path().join("lake")
    }

    fn both(&self) -> [PathBuf; 2] {
        [self.file(), self.lake()]
    }

    /// Forgets everything: the next run makes another lake.
    fn begin_anew(&mut self) {
        self.lake += 1;
        for project in self.both() {
            program::set_state_aside(&project);
        }
        let (number, host) = (self.lake, self.server.socket_folder().display());
        let name = self.folder.path().file_name().expect("a name").to_string_lossy();
        let schema = format!("bench_{}_{number}", name.trim_start_matches('.').to_lowercase());
        let files = self.folder.path().join(format!("files_{number}"));
        let connector = format!(
            "type: connector\ndriver: ducklake\ncatalog: postgres\nhost: {host}\nuser: postgres\ndbname: postgres\n\
             metadata_schema: {schema}\ndata_path: {}\n",
            files.display()
        );
        write(&self.lake(), "connectors/duckdb.yaml", &connector);
    }

    /// Returns the ratio of what a command takes with the lake to what it takes with the file.
    fn ratio(&self, arguments: &[&str]) -> f64 {
        self.ratio_of(|project| program::call(project, arguments))
    }

    fn ratio_of(&self, once: impl Fn(&Path) -> Duration) -> f64 {
        let [file, lake] = self.both().map(|project| once(&project).as_secs_f64());
        eprintln!("# file {:.0} ms, lake {:.0} ms", file * 1e3, lake * 1e3);
        lake / file
    }
}

/// The figures of a project of many small models.
fn small(report: &Report, server: &Server, models: usize) {
    let names = [
        "lake_cold_1k_over_file",
        "lake_noop_1k_over_file",
        "lake_rebuild_over_file",
        "lake_rebuild_ddl_over_file",
    ];
    if !names.iter().any(|name| report.wants(name)) {
        return;
    }
    let [cold, noop, rebuild, ddl] = names;
    let mut mix = Mix::new(models);
    let mut pair = Pair::new(server, |project| mix.write(project));
    let rounds = if report.wants(cold) { SAMPLES } else { 1 };
    let ratios = (0..rounds).map(|_| {
        pair.begin_anew();
        pair.ratio(&["run"])
    });
    let ratios: Vec<f64> = ratios.collect();
    if report.wants(cold) {
        report.print(cold, Unit::Ratio, ratios);
    }
    if report.wants(noop) {
        let ratios = (0..SAMPLES).map(|_| pair.ratio(&["run"])).collect();
        report.print(noop, Unit::Ratio, ratios);
    }
    if !report.wants(rebuild) && !report.wants(ddl) {
        return;
    }
    let _started = pair.both().map(|project| program::Started::new(&project));
    let leaf = mix.leaf();
    if report.wants(rebuild) {
        let ratios = (0..SAMPLES).map(|_| {
            mix.0[leaf].edit();
            pair.ratio_of(|project| {
                mix.write_model(project, leaf);
                program::call(project, &["run"])
            })
        });
        let ratios = ratios.collect();
        report.print(rebuild, Unit::Ratio, ratios);
    }
    if report.wants(ddl) {
        let ratios = (0..SAMPLES).map(|round| {
            let model = &mix.0[leaf];
            let sql = format!(
                "-- @materialize: true\nSELECT *, 1 AS more_{round} FROM ({})\n",
                model.sql()
            );
            pair.ratio_of(|project| {
                write(project, &format!("models/{}.sql", model.name), &sql);
                program::call(project, &["run"])
            })
        });
        let ratios = ratios.collect();
        report.print(ddl, Unit::Ratio, ratios);
    }
}

/// One large table.
fn large(report: &Report, server: &Server) {
    const NAME: &str = "lake_2m_over_file";
    if !report.wants(NAME) {
        return;
    }
    let model = |round: usize| {
        format!(
            "-- @materialize: true\nSELECT range AS id, (hash(range + {round}) % 1000003)::BIGINT AS amount,\n\
             'customer ' || (range % 1000)::VARCHAR AS customer, DATE '2024-01-01' + (range % 366)::INTEGER AS day\n\
             FROM range({ROWS})\n"
        )
    };
    let mut pair = Pair::new(server, |project| {
        write(project, "rill.yaml", "olap_connector: duckdb\n");
        write(project, "models/large.sql", &model(0));
    });
    pair.begin_anew();
    pair.ratio(&["run"]);
    let ratios = (1..=SAMPLES).map(|round| {
        pair.ratio_of(|project| {
            write(project, "models/large.sql", &model(round));
            program::call(project, &["run"])
        })
    });
    let ratios = ratios.collect();
    report.print(NAME, Unit::Ratio, ratios);
}
