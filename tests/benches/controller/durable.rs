//! Acknowledged durable writes on SQLite, beside raw inserts of the same rows with the same pragmas.
//!
//! The raw side is as fast as it gets through the same driver: it inserts many rows with a statement, because each
//! statement is a way to the connection's thread and back, and writes as text what is the same in every row.

use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, SqliteConnection};
use tempfile::TempDir;
use watershed_controller::store::SqliteStore;
use watershed_controller::{Controller, NewResource, Resource};
use watershed_tests::measure::{Report, Unit};

use crate::world::{DEADLINE, name};

/// Rows of each measurement: whole transactions of either size.
const ROWS: usize = 20_480;
/// Rows of one statement of the raw side; transactions are cut into these.
const STATEMENT: usize = 64;
const SAMPLES: usize = 3;
/// The approximate growth of the journal with a commit of 64 rows.
const JOURNAL: usize = 32 << 10;
const FLUSHES: usize = 200;
/// A small spec.
const SPEC: [u8; 100] = [7; 100];

pub(crate) async fn measure(report: &Report) {
    for (figure, callers) in [("durable_writes_ratio", 64), ("durable_writes_4096_ratio", 4_096)] {
        if report.wants(figure) {
            let mut samples = Vec::new();
            for _ in 0..SAMPLES {
                samples.push(acknowledged(callers).await / raw(callers).await);
            }
            report.print(figure, Unit::Ratio, samples);
        }
    }
    if report.wants("disk_flush_us") {
        report.print("disk_flush_us", Unit::Microseconds, flushes());
    }
}

/// Microseconds that the disk takes to keep as much as a commit of 64 rows adds to the journal: what no commit that
/// survives a power cut can go below.
fn flushes() -> Vec<f64> {
    let mut file = tempfile::tempfile().expect("a file");
    let journal = [7; JOURNAL];
    let flush = |_| {
        let started = Instant::now();
        file.write_all(&journal).expect("it is written");
        file.sync_data().expect("it is kept");
        started.elapsed().as_secs_f64() * 1e6
    };
    (0..FLUSHES).map(flush).collect()
}

/// Creates a second, each awaited by one of so many callers.
async fn acknowledged(callers: usize) -> f64 {
    let folder = TempDir::new().expect("a folder");
    let store = SqliteStore::open(folder.path().join("catalog.db"))
        .await
        .expect("the catalog opens");
    // No kind is registered: nothing runs, so that writes alone are measured.
    let controller = Controller::builder()
        .store(store)
        .start()
        .await
        .expect("the controller starts");
    let next = Arc::new(AtomicUsize::new(0));
    let started = Instant::now();
    let calls: Vec<_> = (0..callers)
        .map(|_| {
            let (handle, next) = (controller.handle(), Arc::clone(&next));
            tokio::spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= ROWS {
                        return;
                    }
                    let new = NewResource::new(
                        Resource::fresh_uid(),
                        "thing",
                        name(number).as_str(),
                        SPEC.to_vec(),
                    );
                    handle.create(new).await.expect("it is created");
                }
            })
        })
        .collect();
    for call in calls {
        call.await.expect("the caller ends");
    }
    let rate = ROWS as f64 / started.elapsed().as_secs_f64();
    controller
        .shutdown(DEADLINE)
        .await
        .expect("the controller stops in order");
    rate
}

/// Inserts a second into the same table, in transactions of so many.
async fn raw(transaction: usize) -> f64 {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("catalog.db");
    // Makes the tables.
    SqliteStore::open(&path)
        .await
        .expect("the catalog opens")
        .close()
        .await;
    let mut connection = connect(&path).await;
    let sql = insert(STATEMENT);
    let started = Instant::now();
    for first in (0..ROWS).step_by(transaction) {
        let mut transaction_of = connection.begin().await.expect("a transaction");
        for first in (first..first + transaction).step_by(STATEMENT) {
            insert_rows(&mut transaction_of, &sql, first..first + STATEMENT)
                .await
                .expect("the rows are inserted");
        }
        transaction_of.commit().await.expect("it is committed");
    }
    let rate = ROWS as f64 / started.elapsed().as_secs_f64();
    connection.close().await.expect("it closes");
    rate
}

async fn connect(path: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full);
    options.connect().await.expect("it connects")
}

/// The statement that inserts so many rows.
fn insert(rows: usize) -> Arc<str> {
    let row = "('default', 1, ?, 'thing', ?, '[]', NULL, '[]', '{}', '{\"deletion\":null,\"former_names\":[]}', ?, 1, 0,
                NULL, NULL, 0, 0, 0, 0, 0, 1700000000000, 1700000000000, 1, 0, 0, NULL, NULL, ?, NULL)";
    let values = vec![row; rows].join(", ");
    Arc::from(format!(
        "INSERT OR REPLACE INTO watershed_resources
         (instance, epoch, uid, kind, name, refs, owner_uid, paths, labels, marks, revision, spec_version,
          state_version, error, next_reconcile, attempts, paused, hidden, refresh_plain, refresh_full, created_at,
          updated_at, spec_format, state_format, runs_total, last_run, last_success, spec, state)
         VALUES {values}"
    ))
}

async fn insert_rows(
    connection: &mut SqliteConnection,
    sql: &Arc<str>,
    numbers: Range<usize>,
) -> Result<(), sqlx::Error> {
    let mut rows = sqlx::query(AssertSqlSafe(Arc::clone(sql)));
    for number in numbers {
        rows = rows
            .bind(Resource::fresh_uid().0.as_bytes().to_vec())
            .bind(name(number))
            .bind(number as i64)
            .bind(&SPEC[..]);
    }
    rows.execute(connection).await.map(drop)
}
