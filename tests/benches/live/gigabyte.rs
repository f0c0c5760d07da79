//! The time of a rename of a table of a gigabyte, with a table beside it whose text is edited along.
//!
//! ```
//! cargo bench -p watershed-tests --bench live -- --gigabyte
//! ```
//!
//! `rename_1gb_ms` is the rename alone, as history tells it, `rename_1gb_seen_ms` from the last save until the table is
//! read by its new name. The table beside it is not built again, or the measurement ends.

use std::fs;
use std::time::Instant;

use watershed_tests::measure::{Report, Unit};

use crate::start::{Start, ask};

/// Columns of eight bytes that nothing can be made of.
const COLUMNS: usize = 4;
/// Rows of a gigabyte of them.
const ROWS: usize = 33_600_000;
const RENAMES: usize = 5;

pub(crate) fn gigabyte(report: &Report) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("project");
    fs::create_dir_all(root.join("models")).unwrap();
    fs::write(root.join("watershed.yaml"), "").unwrap();
    let columns: Vec<String> = (0..COLUMNS)
        .map(|n| format!("hash(range + {n} * {ROWS}) AS c{n}"))
        .collect();
    let big = format!(
        "-- @materialize: true\nSELECT {} FROM range({ROWS})\n",
        columns.join(", ")
    );
    let file = |n: usize| root.join(format!("models/big_{n}.sql"));
    let reader = |n: usize| {
        format!("-- @materialize: true\nSELECT count(*) AS n, uuid()::VARCHAR AS build FROM big_{n}\n")
    };
    fs::write(file(0), big).unwrap();
    fs::write(root.join("models/reader.sql"), reader(0)).unwrap();
    let mut start = Start::new(&root);
    start.settle();
    let bytes = fs::metadata(root.join(".watershed/dev/main.duckdb"))
        .unwrap()
        .len();
    report.print("rename_1gb_file", Unit::Bytes, vec![bytes as f64]);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let build = || {
        runtime
            .block_on(ask(&start.address, "SELECT build FROM reader"))
            .unwrap()
    };
    let built = build();
    let mut seen = Vec::new();
    for n in 1..=RENAMES {
        fs::rename(file(n - 1), file(n)).unwrap();
        fs::write(root.join("models/reader.sql"), reader(n)).unwrap();
        let saved = Instant::now();
        let sql = format!("SELECT c0 FROM big_{n} LIMIT 1");
        while runtime.block_on(ask(&start.address, &sql)).is_err() {
            assert!(
                saved.elapsed().as_secs() < 60,
                "the table is not there by its new name"
            );
        }
        seen.push(saved.elapsed().as_secs_f64() * 1_000.0);
        assert_eq!(build(), built, "a table whose text was edited along is not built");
    }
    let name = format!("big_{RENAMES}");
    let took = start.runs_of(&name, "renamed");
    assert_eq!(took.len(), RENAMES, "each was a rename");
    report.print("rename_1gb_ms", Unit::Milliseconds, took);
    report.print("rename_1gb_seen_ms", Unit::Milliseconds, seen);
}
