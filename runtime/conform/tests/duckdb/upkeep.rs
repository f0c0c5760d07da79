//! Upkeep of a lake: snapshots, files and rows, and the fence while somebody expires snapshots.

use std::cell::{Cell, OnceCell};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use watershed_conform::Scratch as _;
use watershed_drivers::duckdb::ByHand;
use watershed_drivers::olap::{Build, BuildError, Failure, Olap, OutputKind, Query, Tag, TrashLimits};

use super::lake::{Catalog, LakeFolder};
use super::postgres::Server;

const DAY_S: u64 = 24 * 60 * 60;

fn build(uid: u128, build: u128, sql: &str) -> Build {
    let tag = Tag {
        uid: Uuid::from_u128(uid),
        build: Uuid::from_u128(build),
    };
    Build::of_statement(tag, vec![1], OutputKind::Table, format!("t{uid}"), sql)
}

/// A lake with an engine that builds in it.
struct Bench {
    lake: LakeFolder,
    engine: Arc<dyn Olap>,
    cancel: CancellationToken,
    builds: Cell<u128>,
    /// Somebody's own program, which has the lake as well.
    hand: OnceCell<ByHand>,
}

impl Bench {
    fn new(catalog: &Catalog, keep: Duration) -> Self {
        let lake = LakeFolder::new(catalog);
        let engine = lake.open();
        engine.trash().unwrap().limit(TrashLimits { bytes: 0, keep });
        Self {
            lake,
            engine,
            cancel: CancellationToken::new(),
            builds: Cell::new(1_000),
            hand: OnceCell::new(),
        }
    }

    async fn build(&self, uid: u128, sql: &str) {
        self.builds.set(self.builds.get() + 1);
        let build = build(uid, self.builds.get(), sql);
        self.engine.build(&build, &self.cancel).await.unwrap();
    }

    fn hand(&self) -> &ByHand {
        self.hand.get_or_init(|| self.lake.address.by_hand())
    }

    async fn compact(&self) {
        let upkeep = self.engine.upkeep().unwrap();
        upkeep.compact(&self.cancel).await.unwrap();
    }

    async fn rows(&self, table: &str) -> u64 {
        let outputs = self.engine.outputs(&self.cancel).await.unwrap();
        let output = outputs.into_iter().find(|output| output.location.name == table);
        output.and_then(|output| output.rows).unwrap()
    }

    async fn count(&self, uid: u128) -> usize {
        let query = Query::new(format!("select x from t{uid}"));
        let mut rows = self.engine.query(query, &self.cancel).await.unwrap();
        rows.collect().await.unwrap().len()
    }

    /// The lake's catalog as somebody else has it: all that it says of times is some days older.
    fn age(&self, days: u64) {
        let hand = self.hand();
        let meta = self.lake.address.metadata();
        let by = format!("INTERVAL {days} DAY");
        hand.run(&format!(
            "UPDATE {meta}.ducklake_snapshot SET snapshot_time = snapshot_time::TIMESTAMPTZ - {by}"
        ));
        hand.run(&format!(
            "UPDATE {meta}.ducklake_files_scheduled_for_deletion \
             SET schedule_start = schedule_start::TIMESTAMPTZ - {by}"
        ));
        hand.run(&format!(
            "UPDATE _watershed.trash_sightings SET at_ms = at_ms - {}",
            days * DAY_S * 1_000
        ));
        for file in self.files() {
            age_file(&file, days);
        }
    }

    /// Lets a number of days pass, each with a look.
    async fn days_pass(&self, days: u64) {
        for _ in 0..days {
            self.age(1);
            self.compact().await;
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        files(&self.lake.address.files())
    }

    fn snapshots(&self) -> usize {
        self.snapshots_since("1000 YEAR").len()
    }

    fn snapshots_since(&self, ago: &str) -> Vec<String> {
        let hand = self.hand();
        hand.lines(&format!(
            "SELECT snapshot_id FROM ducklake_snapshots('theirs') WHERE snapshot_time > now() - INTERVAL {ago}"
        ))
    }
}

fn age_file(file: &Path, days: u64) {
    let opened = std::fs::File::options().append(true).open(file).unwrap();
    let then = opened.metadata().unwrap().modified().unwrap() - Duration::from_secs(days * DAY_S);
    opened.set_modified(then).unwrap();
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else {
        return found;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false if path.extension().is_some_and(|end| end == "parquet") => found.push(path),
            false => {}
        }
    }
    found
}

/// Snapshots, files and rows go once they are old, and nothing else does.
pub(crate) async fn let_go_of_what_is_old(catalog: &Catalog) {
    let bench = Bench::new(catalog, Duration::from_secs(3 * DAY_S));
    for n in 1..=5 {
        bench
            .build(1, &format!("select range as x from range({n})"))
            .await;
    }
    bench.build(2, "select 1 as y").await;
    bench.compact().await;
    let (before, snapshots) = (bench.files().len(), bench.snapshots());
    assert!(before >= 6, "each build has written a file: {before}");
    bench.days_pass(2).await;
    assert_eq!(bench.files().len(), before, "they are kept as long as the trash");
    assert!(bench.snapshots() >= snapshots);
    // A day until the time is sure, one until they are let go of, one until their files are deleted.
    bench.days_pass(6).await;
    assert!(bench.snapshots() < snapshots + 3, "{}", bench.snapshots());
    assert_eq!(bench.files().len(), 2, "{:?}", bench.files());
    assert_eq!((bench.rows("t1").await, bench.rows("t2").await), (5, 1));
    let hand = bench.hand();
    assert_eq!(hand.lines("SELECT count(*) FROM t1"), ["5"]);
    assert_eq!(hand.lines("SELECT count(*) FROM _watershed.epochs"), ["1"]);
    let records = hand.lines("SELECT count(*) FROM _watershed.records WHERE record IS NOT NULL");
    assert_eq!(records, ["2"]);
    let dead = "SELECT count(*) FROM _watershed.records";
    let dead: u32 = hand.lines(dead)[0].parse().unwrap();
    assert!(dead <= 4, "rows without a record go as well: {dead}");
    bench.build(1, "select 7 as x").await;
    assert_eq!(bench.rows("t1").await, 1);
    bench.lake.close().await;
}

/// A clock that is a day ahead lets go of nothing that is younger than it should be.
pub(crate) async fn mistrust_a_clock_that_is_a_day_ahead(catalog: &Catalog) {
    let bench = Bench::new(catalog, Duration::ZERO);
    bench.build(1, "select 1 as x").await;
    // Looks at the times of all days before.
    bench.compact().await;
    bench.days_pass(3).await;
    bench.build(1, "select 2 as x").await;
    bench.build(1, "select 3 as x").await;
    let before = bench.files();
    let orphan = bench
        .lake
        .address
        .files()
        .join("main/t1/ducklake-under-way.parquet");
    std::fs::write(&orphan, "x").unwrap();
    let today = bench.snapshots_since("1 HOUR");
    bench.age(1);
    bench.compact().await;
    let left = bench.snapshots_since("2 DAY");
    assert!(
        today.len() >= 2 && today.iter().all(|id| left.contains(id)),
        "none of today has expired: {today:?}, {left:?}"
    );
    assert!(before.iter().all(|file| file.exists()) && orphan.exists());
    bench.lake.close().await;
}

/// Files that no snapshot names go once they are older than the longest build, and those of others never.
pub(crate) async fn remove_orphans_of_its_own_alone(catalog: &Catalog) {
    let bench = Bench::new(catalog, Duration::ZERO);
    bench.build(1, "select 1 as x").await;
    bench.compact().await;
    let folder = bench.lake.address.files().join("main/t1");
    let orphan = folder.join("ducklake-of-a-transaction-that-was-given-up.parquet");
    std::fs::write(&orphan, "x").unwrap();
    bench.days_pass(1).await;
    assert!(orphan.exists(), "a build may be under way for a day");
    bench.days_pass(2).await;
    assert!(!orphan.exists());
    let foreign = bench.lake.address.files().join("somebody.parquet");
    for file in [&orphan, &foreign] {
        std::fs::write(file, "x").unwrap();
    }
    bench.days_pass(4).await;
    assert!(
        foreign.exists() && orphan.exists(),
        "the place is somebody else's, too"
    );
    std::fs::remove_file(&foreign).unwrap();
    let claim = bench.lake.address.files().join("_watershed_lake_of-another.csv");
    std::fs::write(&claim, "").unwrap();
    bench.days_pass(1).await;
    assert!(orphan.exists(), "it may be another lake's");
    std::fs::remove_file(&claim).unwrap();
    bench.days_pass(1).await;
    assert!(!orphan.exists());
    assert_eq!(bench.rows("t1").await, 1);
    bench.lake.close().await;
}

/// A reader of a snapshot goes on, however old that is, until it was replaced long ago.
pub(crate) async fn serve_who_reads_an_old_snapshot(catalog: &Catalog) {
    let bench = Bench::new(catalog, Duration::ZERO);
    bench.build(1, "select range as x from range(1000)").await;
    bench.compact().await;
    bench.days_pass(2).await;
    bench.age(2);
    let reader = bench.lake.address.by_hand();
    reader.run("BEGIN");
    assert_eq!(reader.lines("SELECT count(*) FROM t1"), ["1000"]);
    let id = reader.lines("SELECT id FROM ducklake_current_snapshot('theirs')");
    bench.build(1, "select 1 as x").await;
    bench.compact().await;
    let kept = |bench: &Bench| bench.snapshots_since("1000 YEAR").contains(&id[0]);
    assert!(kept(&bench), "it is two days old, and was the newest just now");
    assert_eq!(reader.lines("SELECT sum(x) FROM t1"), ["499500"]);
    reader.run("ROLLBACK");
    bench.days_pass(2).await;
    assert!(!kept(&bench));
    bench.lake.close().await;
}

/// A transaction of a former owner is refused, although all that it could be held against has expired meanwhile.
pub(crate) async fn refuse_a_former_owner_after_an_expiry(catalog: &Catalog) {
    let lake = Arc::new(LakeFolder::new(catalog));
    let (former, later) = (lake.open(), lake.open());
    let cancel = CancellationToken::new();
    former.take(1, &cancel).await.unwrap();
    former
        .build(&build(1, 1, "select 1 as x"), &cancel)
        .await
        .unwrap();
    let runtime = tokio::runtime::Handle::current();
    let between = {
        let (lake, later, cancel) = (Arc::clone(&lake), Arc::clone(&later), cancel.clone());
        move || {
            fail::remove("drivers::build::before_commit");
            runtime.block_on(async {
                later.take(2, &cancel).await.unwrap();
                later.build(&build(2, 2, "select 2 as x"), &cancel).await.unwrap();
            });
            let stranger = lake.address.by_hand();
            stranger.run("CALL ducklake_expire_snapshots('theirs', older_than => now())");
        }
    };
    fail::cfg_callback("drivers::build::before_commit", between).unwrap();
    let refused = former.build(&build(1, 3, "select 3 as x"), &cancel).await;
    assert!(
        matches!(refused, Err(BuildError::Failed(Failure::Fenced))),
        "{refused:?}"
    );
    let hand = lake.address.by_hand();
    assert_eq!(hand.lines("SELECT x FROM t1"), ["1"]);
    assert_eq!(
        hand.lines("SELECT arg_max(epoch, number) FROM _watershed.epochs"),
        ["2"]
    );
    drop(hand);
    lake.close().await;
}

/// No work waits for more connections than the engine has, and none leaves a transaction open at the server.
pub(crate) async fn hold_few_connections(server: Arc<Server>) {
    let catalog = Catalog::Postgres(Arc::clone(&server));
    let bench = Bench::new(&catalog, Duration::ZERO);
    let builds: Vec<Build> = (1..40)
        .map(|n| build(n, n, "select range as x from range(50)"))
        .collect();
    for end in bench.engine.build_set(&builds, &bench.cancel).await {
        end.unwrap();
    }
    let rows = join_all((1..40).map(|n| bench.count(n))).await;
    assert!(rows.iter().all(|rows| *rows == 50), "{rows:?}");
    let look = ByHand::in_memory();
    look.run(&format!(
        "SET extension_directories = ['{}']",
        super::server::extensions().display()
    ));
    look.run(&format!(
        "ATTACH '{}' AS pg (TYPE postgres)",
        bench.lake.address.target()
    ));
    let states = "SELECT state, count(*)::VARCHAR FROM postgres_query('pg', \
                  'SELECT state FROM pg_stat_activity WHERE backend_type = ''client backend'' \
                  AND pid <> pg_backend_pid()') GROUP BY state";
    let states = look.lines(states);
    assert!(
        !states.iter().any(|state| state.contains("transaction")),
        "{states:?}"
    );
    bench.lake.close().await;
}
