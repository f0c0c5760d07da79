//! Readers of a lake in processes of their own, while its outputs are built again, renamed and expired.

use std::process::{Child, Command, Stdio};

use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use watershed_drivers::duckdb::ByHand;
use watershed_drivers::olap::{Build, Olap, OutputKind, Rename, Tag};

use super::lake::{Address, Catalog, LakeFolder};

/// Environment variable that makes this program a reader: number of questions, and the address of the lake.
const READER: &str = "WATERSHED_CONFORM_LAKE_READER";
/// Number of processes that read.
const READERS: u32 = 3;
/// Output of a reader that saw whole builds alone.
const WHOLE: &str = "each read was whole";
/// Rebuilds between two expiries of old snapshots.
const EXPIRES_EACH: u64 = 10;

/// Questions to which `true` is the only answer, whichever build is read.
const QUESTIONS: [&str; 6] = [
    "SELECT count(*) = 1000 AND count(DISTINCT build) = 1 FROM emptied",
    "SELECT count(*) = 1000 AND count(DISTINCT build) = 1 FROM replaced",
    "SELECT count(*) = 1000 AND count(DISTINCT (build, number)) = 1 FROM seen",
    "SELECT count(*) = 1000 FROM emptied AS a JOIN seen AS b USING (x, build)",
    "SELECT count(*) = 1000 AND count(DISTINCT build) = 1 FROM all_rows()",
    "SELECT newest() = (SELECT min(build) FROM seen)",
];

/// Returns the number of questions of all readers, and of rebuilds.
fn share() -> (u32, u64) {
    match std::env::var("WATERSHED_PROOF").as_deref() {
        Ok("all") => (10_000, 1_000),
        _ => (100, 15),
    }
}

/// Builds outputs again and again until enough is read.
pub(crate) async fn read_while_it_is_built(catalog: &Catalog) {
    let lake = LakeFolder::new(catalog);
    let engine: &dyn Olap = &lake.address.engine();
    let cancel = CancellationToken::new();
    let (reads, rebuilds) = share();
    build_all(engine, 1).await;
    let moving = Build::of_statement(tag(4, 1), vec![], OutputKind::Table, "here", "select 7 as x");
    engine.build(&moving, &cancel).await.unwrap();
    let hand = lake.address.by_hand();
    hand.run("CREATE MACRO newest() AS (SELECT max(build) FROM emptied)");
    hand.run("CREATE MACRO all_rows() AS TABLE SELECT * FROM emptied");
    let mut readers: Vec<Child> = (0..READERS)
        .map(|_| start(reads.div_ceil(READERS), &lake.address))
        .collect();
    let mut number = 1;
    while number <= rebuilds
        || readers
            .iter_mut()
            .any(|reader| reader.try_wait().unwrap().is_none())
    {
        number += 1;
        build_all(engine, number).await;
        let to = match number % 2 {
            0 => "there",
            _ => "here",
        };
        let rename = Rename {
            uid: moving.tag.uid,
            to: to.to_owned(),
            record: None,
        };
        engine.rename(&rename, &cancel).await.unwrap();
        if number % EXPIRES_EACH == 0 {
            expire(&hand);
        }
    }
    for reader in readers {
        let done = reader.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && said.contains(WHOLE), "{done:?}");
    }
    println!("{reads} reads by {READERS} processes during {number} rebuilds");
    engine.close().await.unwrap();
}

/// Builds two tables, of which one is emptied and filled and one made anew, and then a view.
async fn build_all(engine: &dyn Olap, number: u64) {
    let build = |n, kind, name: &str, sql: String| {
        Build::of_statement(tag(n, number), number.to_string().into_bytes(), kind, name, sql)
    };
    let rows = format!("select {number} as build, range as x from range(1000)");
    let other = format!(
        "select {number} as build, range as x{} from range(1000)",
        number % 2
    );
    let seen = format!("select build, x, {number} as number from emptied");
    let tables = [
        build(1, OutputKind::Table, "emptied", rows),
        build(2, OutputKind::Table, "replaced", other),
    ];
    let cancel = CancellationToken::new();
    for built in engine.build_set(&tables, &cancel).await {
        built.unwrap();
    }
    let seen = build(3, OutputKind::View, "seen", seen);
    engine.build(&seen, &cancel).await.unwrap();
}

fn tag(n: u128, number: u64) -> Tag {
    Tag {
        uid: Uuid::from_u128(n),
        build: Uuid::from_u128(n << 64 | u128::from(number)),
    }
}

/// Removes snapshots and files that are older than any query of these readers.
fn expire(hand: &ByHand) {
    for function in ["ducklake_expire_snapshots", "ducklake_cleanup_old_files"] {
        hand.run(&format!(
            "CALL {function}('theirs', older_than => now() - INTERVAL 1 MINUTE)"
        ));
    }
}

fn start(reads: u32, address: &Address) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "another_process_reads_the_lake", "--nocapture"]);
    command.env(READER, format!("{reads}\n{}", address.to_text()));
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Acts as a reader if this program was started as one.
pub(crate) fn be_another_process() {
    let Ok(said) = std::env::var(READER) else { return };
    let (reads, address) = said.split_once('\n').unwrap();
    let hand = Address::parse(address).by_hand_with(", READ_ONLY");
    let mut newest = 0;
    for read in 0..reads.parse::<usize>().unwrap().div_ceil(QUESTIONS.len()) {
        for question in QUESTIONS {
            assert_eq!(hand.lines(question), ["true"], "read {read}: {question}");
        }
        let seen: u64 = hand.lines("SELECT newest()")[0].parse().unwrap();
        assert!(seen >= newest, "read {read}: build {seen} after {newest}");
        newest = seen;
        // A transaction keeps the name that it has found.
        hand.run("BEGIN");
        let names = "SELECT table_name FROM information_schema.tables \
                     WHERE table_catalog = current_database() AND table_name IN ('here', 'there')";
        let names = hand.lines(names);
        assert_eq!(names.len(), 1, "read {read}: {names:?}");
        assert_eq!(hand.lines(&format!("SELECT x FROM {}", names[0])), ["7"]);
        hand.run("COMMIT");
    }
    println!("{WHOLE}");
}
