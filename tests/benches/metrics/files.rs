//! Files of many rows.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use watershed_drivers::duckdb::{Engine, Options};
use watershed_drivers::olap::{Existing, Export, FileFormat, Layout, Olap as _, Query};
use watershed_tests::measure::{Report, Unit};

use super::held::rss_bytes;

/// Rows of a file, of ten columns each.
const CSV_ROWS: u64 = 2_000_000;
const XLSX_ROWS: u64 = 500_000;

pub(super) async fn measure(report: &Report) {
    let names = ["csv_cells_per_s_m", "xlsx_cells_per_s_m", "export_rss_mb"];
    if !names.iter().any(|name| report.wants(name)) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::new(Options::new(folder.path().join("main.duckdb"), folder.path()));
    engine.open(&CancellationToken::new()).await.unwrap();
    let (mut csv, mut xlsx, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..3 {
        let file = folder.path().join("rows.csv");
        csv.push(written(&engine, &file, FileFormat::Csv, CSV_ROWS).await.0);
        let file = folder.path().join("rows.xlsx");
        let (rate, added) = written(&engine, &file, FileFormat::Xlsx, XLSX_ROWS).await;
        xlsx.push(rate);
        memory.push(added);
    }
    report.print("csv_cells_per_s_m", Unit::MillionsPerSecond, csv);
    report.print("xlsx_cells_per_s_m", Unit::MillionsPerSecond, xlsx);
    report.print("export_rss_mb", Unit::Megabytes, memory);
    engine.close().await.unwrap();
}

/// Writes a file: million cells in a second, and the most memory that it took above what there was.
async fn written(engine: &Engine, file: &Path, format: FileFormat, rows: u64) -> (f64, f64) {
    let export = Export {
        query: Query::new(format!(
            "SELECT i AS a, i * 2 AS b, i / 7 AS c, 'row ' || i AS d, i % 2 = 0 AS e, TIMESTAMP '2024-01-01' + to_seconds(i) AS f,
                    i + 1 AS g, i * 0.25 AS h, 'x' AS k, CAST(i AS DECIMAL(18, 2)) AS l FROM range({rows}) t(i)"
        )),
        file: file.to_owned(),
        format,
        existing: Existing::Replace,
        layout: Layout::default(),
    };
    let before = rss_bytes();
    let stop = Arc::new(AtomicBool::new(false));
    let watched = Arc::clone(&stop);
    let watching = std::thread::spawn(move || {
        let mut most = 0;
        while !watched.load(Ordering::Acquire) {
            most = most.max(rss_bytes());
            std::thread::park_timeout(Duration::from_millis(5));
        }
        most
    });
    let begun = Instant::now();
    let exported = engine.export(&export, &CancellationToken::new()).await.unwrap();
    let took = begun.elapsed().as_secs_f64();
    stop.store(true, Ordering::Release);
    let most = watching.join().unwrap();
    assert!(exported.rows.is_none_or(|written| written == rows));
    let cells = rows as f64 * 10.0 / took / 1e6;
    (cells, most.saturating_sub(before) as f64 / f64::from(1 << 20))
}
