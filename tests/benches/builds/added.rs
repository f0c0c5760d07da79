//! Rows that are added to what is there: by an incremental model, and by partitions.

use std::fs;
use std::path::Path;

use watershed_drivers::duckdb::ByHand;
use watershed_tests::measure::{Report, Unit, time};

use crate::{mix::write, program};

/// Rows of the table that rows are added to.
const ROWS: u64 = 10_000_000;
/// Files that are partitions at first, and new ones in each round.
const PARTITIONS: usize = 10_000;
const NEW: usize = 100;

const INCREMENTAL: &str = "type: model\nincremental: true\n\
    sql: SELECT * FROM read_parquet('data/*.parquet') {{ if incremental }} WHERE id > {{ .state.last }} {{ end }}\n\
    state: {sql: SELECT max(id) AS last FROM events}\n\
    output: {incremental_strategy: append}\n";

const PARTITIONED: &str = "type: model\nincremental: true\n\
    partitions: {glob: data/*.parquet}\n\
    sql: SELECT * FROM read_parquet('{{ .partition.uri }}')\n";

pub(crate) fn append(report: &Report, samples: usize) {
    const NAME: &str = "append_1pct_over_raw";
    if !report.wants(NAME) {
        return;
    }
    let temp = tempfile::tempdir().expect("a folder");
    let project = temp.path().join("project");
    write(&project, "rill.yaml", "olap_connector: duckdb\n");
    write(&project, "models/events.yaml", INCREMENTAL);
    let maker = ByHand::in_memory();
    rows(&maker, &project, 0, ROWS);
    program::call(&project, &["run"]);
    let raw = temp.path().join("raw.duckdb");
    let select = format!(
        "SELECT * FROM read_parquet('{}/data/*.parquet')",
        project.display()
    );
    ByHand::open(&raw).run(&format!("CREATE TABLE events AS {select}"));
    let once = |round: usize| {
        let from = ROWS + round as u64 * (ROWS / 100);
        rows(&maker, &project, from, from + ROWS / 100);
        let (alone, ()) = time(|| {
            let engine = ByHand::open(&raw);
            engine.run(&format!("INSERT INTO events {select} WHERE id > {}", from - 1));
        });
        let (took, built) = program::run(&project);
        assert_eq!(built, 1);
        took.as_secs_f64() / alone.as_secs_f64()
    };
    report.print(NAME, Unit::Ratio, (0..samples).map(once).collect());
}

/// Writes rows into a file of their own.
fn rows(maker: &ByHand, project: &Path, from: u64, to: u64) {
    let folder = project.join("data");
    fs::create_dir_all(&folder).expect("a folder is made");
    maker.run(&format!(
        "COPY (SELECT range AS id, hash(range) % 1000 AS bucket, range * 7 % 1000003 AS amount, 'name ' || range % 97 AS name \
         FROM range({from}, {to})) TO '{}/{from:012}.parquet'",
        folder.display()
    ));
}

pub(crate) fn partitions(report: &Report, samples: usize) {
    const NAME: &str = "partition_overhead_ms";
    if !report.wants(NAME) {
        return;
    }
    let temp = tempfile::tempdir().expect("a folder");
    let project = temp.path().join("project");
    write(&project, "rill.yaml", "olap_connector: duckdb\n");
    write(&project, "models/events.yaml", PARTITIONED);
    let maker = ByHand::in_memory();
    let make = |from: usize, to: usize| {
        (from..to).for_each(|nth| rows(&maker, &project, nth as u64 * 10, nth as u64 * 10 + 10))
    };
    make(0, PARTITIONS);
    program::call(&project, &["run"]);
    let raw = temp.path().join("raw.duckdb");
    let select = |file: &str| {
        format!(
            "SELECT * FROM read_parquet('{}/data/{file}.parquet')",
            project.display()
        )
    };
    ByHand::open(&raw).run(&format!("CREATE TABLE events AS {}", select("*")));
    let once = |round: usize| {
        let from = PARTITIONS + round * NEW;
        make(from, from + NEW);
        let (alone, ()) = time(|| {
            let engine = ByHand::open(&raw);
            for nth in from..from + NEW {
                engine.run(&format!(
                    "INSERT INTO events {}",
                    select(&format!("{:012}", nth * 10))
                ));
            }
        });
        let (took, built) = program::run(&project);
        assert_eq!(built, 1);
        (took.as_secs_f64() - alone.as_secs_f64()) * 1e3 / NEW as f64
    };
    report.print(NAME, Unit::Milliseconds, (0..samples).map(once).collect());
}
