//! Tests that kill the process at every visit of every crash point and check the data afterwards.

use std::fs;
use std::io::Write as _;
use std::process::Command;

use watershed_dialect::{DuckDb, Quoting as _};

use super::*;
use crate::CRASH_POINTS;
use crate::duckdb::checkpoint::checkpoint;
use crate::olap::{
    Existing, Export, FileFormat, Migration, Migrations as _, Partitions as _, Query, TestedRows as _,
    Trash as _, TrashLimits,
};

/// Environment variable that makes this program the process to be killed, with its folder.
const FOLDER: &str = "WATERSHED_TEST_CRASH";

/// One step of the history that is interrupted.
enum Step {
    Build(Box<Build>),
    Rename(u128, &'static str),
    Drop(u128),
    Retag(u128),
    Migrate(u32),
    Stage(u128),
    Publish(Box<Build>),
    /// Keep this number of rows that failed a test.
    Keep(u128, usize),
    Checkpoint,
    /// Empty the trash.
    Tidy,
    /// Give a table in the trash to a person under a name.
    Retrieve(u128, &'static str),
    GiveUp,
    Export(Existing),
    /// Put a file in its place, replacing the previous one.
    Place(&'static str),
    Close,
}

/// Name of the file that is put in its place.
const PLACED: &str = "placed.txt";

/// Name of the exported file, whose content alternates.
const EXPORTED: &str = "b.csv";
const FIRST: &str = "x\n2\n";
const SECOND: &str = "x\n11\n";

fn history() -> Vec<Step> {
    let mut again = table(1, "a", "select 11 as x");
    again.tag.build = Uuid::from_u128(111);
    again.record = b"again".to_vec();
    // Another definition, which keeps the one before; that comes back, and both go.
    let mut edited = table(5, "d", "select 5 as x");
    (edited.tag.build, edited.replaced) = (Uuid::from_u128(500), Fate::Trash);
    let mut back = table(5, "d", "");
    (back.step, back.replaced) = (super::Step::TakeBack(back.tag.build), Fate::Trash);
    let mut once_more = back.clone();
    once_more.tag = edited.tag;
    once_more.step = super::Step::TakeBack(edited.tag.build);
    once_more.tag.uid = uid(6);
    vec![
        Step::Build(Box::new(table(1, "a", "select 1 as x"))),
        Step::Build(Box::new(view(2, "b", "select 2 as x"))),
        Step::GiveUp,
        Step::Export(Existing::Keep),
        Step::Build(Box::new(again)),
        Step::Keep(1, 2),
        Step::Keep(1, 3),
        Step::Rename(1, "b"),
        Step::Rename(2, "a"),
        Step::Export(Existing::Replace),
        Step::Checkpoint,
        Step::Build(Box::new(table(2, "a", "select 22 as x"))),
        Step::Build(Box::new(view(3, "b", "select 3 as x"))),
        Step::Retag(3),
        Step::Drop(1),
        Step::GiveUp,
        Step::Migrate(0),
        Step::Migrate(1),
        Step::Stage(4),
        Step::Publish(Box::new(super::partitions::published(4, "c"))),
        Step::Drop(4),
        Step::Build(Box::new(table(5, "d", "select 55 as x"))),
        Step::Build(Box::new(edited)),
        Step::Build(Box::new(back)),
        Step::Drop(5),
        Step::Build(Box::new(once_more)),
        Step::Retrieve(5 << 64 | 1, "mine"),
        Step::Tidy,
        Step::Place("first"),
        Step::Place("second"),
        Step::Close,
    ]
}

async fn take(step: &Step, engine: &Engine) {
    let cancel = CancellationToken::new();
    match step {
        Step::Build(build) => drop(engine.build(build, &cancel).await.unwrap()),
        Step::Rename(n, to) => {
            let rename = Rename {
                uid: uid(*n),
                to: (*to).to_owned(),
                record: Some(b"renamed".to_vec()),
            };
            engine.rename(&rename, &cancel).await.unwrap();
        }
        Step::Drop(n) => {
            let dropped = engine.drop_output(uid(*n), Guard::Free, &cancel).await;
            assert_eq!(dropped.unwrap(), Dropped::Done);
        }
        Step::Retrieve(build, name) => {
            engine
                .retrieve(Uuid::from_u128(*build), name, &cancel)
                .await
                .unwrap();
        }
        Step::Tidy => {
            let limits = TrashLimits {
                bytes: 0,
                ..TrashLimits::default()
            };
            engine.limit(limits);
            assert!(engine.give_up_file().await);
            engine.limit(TrashLimits::default());
        }
        Step::Retag(n) => {
            let from = table(*n, "", "").tag;
            let to = Tag {
                uid: uid(9),
                build: Uuid::from_u128(99),
            };
            assert!(engine.retag(from, to, b"adopted", &cancel).await.unwrap());
        }
        Step::Migrate(version) => {
            let migration = Migration {
                uid: uid(7),
                version: *version,
                run: Uuid::from_u128(u128::from(*version)),
                definitions: std::collections::BTreeMap::new(),
                mentions: std::collections::BTreeSet::new(),
                replaces: false,
                proof: "proof".to_owned(),
                sql: format!(
                    "create table side_{version} as select 1 as x; insert into side_{version} values (2)"
                ),
            };
            engine.run(&migration, &cancel).await.unwrap();
        }
        Step::Stage(n) => {
            let step = super::partitions::step(*n, "k", "select 4 as x", 0);
            drop(engine.stage(&[step], &cancel).await.unwrap());
        }
        Step::Keep(n, rows) => {
            let kept = crate::olap::KeptRows {
                test: "small".to_owned(),
                rows: vec!["{}".to_owned(); *rows],
            };
            let kept = engine.keep(uid(*n), "a", vec![kept], &cancel).await;
            kept.unwrap();
        }
        Step::Publish(build) => drop(engine.build(build, &cancel).await.unwrap()),
        Step::Checkpoint => checkpoint(engine, &cancel).await.unwrap(),
        Step::GiveUp => assert!(engine.give_up_file().await),
        Step::Export(existing) => {
            let export = Export {
                query: Query::new("select x from b"),
                file: engine.options().root.join(EXPORTED),
                format: FileFormat::Csv,
                layout: Default::default(),
                existing: *existing,
            };
            engine.export(&export, &cancel).await.unwrap();
        }
        Step::Place(text) => {
            let folder = &engine.options().root;
            let (part, placed) = (folder.join("part"), folder.join(PLACED));
            fs::write(&part, text).unwrap();
            match placed.exists() {
                true => crate::placing::swap(&part, &placed).unwrap(),
                false => crate::placing::put(&part, &placed).unwrap(),
            }
        }
        Step::Close => drop(engine.close().await.unwrap()),
    }
}

/// Returns the content of the engine's file, with rows and records.
async fn content(folder: &Path) -> Vec<String> {
    let bench = Bench {
        folder: tempfile::tempdir().unwrap(),
        engine: Engine::new(options(folder)),
        cancel: CancellationToken::new(),
    };
    let mut lines = Vec::new();
    for output in bench.outputs().await {
        let rows = bench
            .one(&format!("select x from {}", DuckDb.name(&output.location.name)))
            .await;
        lines.push(format!("{output:?} {rows}"));
    }
    for trashed in bench.engine.list(&bench.cancel).await.unwrap() {
        let table = crate::olap::trash_table(trashed.tag.build);
        let rows = bench.one(&format!("select x from {table}")).await;
        let trashed = crate::olap::Trashed { at_ms: 0, ..trashed };
        lines.push(format!("{trashed:?} {rows}"));
    }
    let kept = "select concat_ws(' ', count(*), max(table_name)) from _watershed.failures";
    lines.push(format!("kept {}", bench.one(kept).await));
    let mine = "select count(*) from duckdb_tables() where table_name = 'mine' and comment is null";
    lines.push(format!("mine {}", bench.one(mine).await));
    let notes = "select count(*) from _watershed.partitions";
    lines.push(format!("notes {}", bench.one(notes).await));
    for run in bench.engine.runs(uid(4), &bench.cancel).await.unwrap() {
        let rows = "select count(*) from duckdb_tables() where table_name like 'stage_%'";
        lines.push(format!(
            "{} {:?} {}",
            run.partition.key,
            run.phase,
            bench.one(rows).await
        ));
    }
    let migrated = bench.engine.last(uid(7), "proof", &bench.cancel).await.unwrap();
    let side = "select coalesce(string_agg(table_name || ' ' || estimated_size, ', ' order by table_name), '') \
                from duckdb_tables() where table_name like 'side%'";
    let side = bench.one(side).await;
    if migrated.is_some() || !side.is_empty() {
        lines.push(format!("{migrated:?} {side}"));
    }
    bench.engine.close().await.unwrap();
    lines
}

/// Returns the content of the file after each number of steps.
async fn expected() -> Vec<Vec<String>> {
    let mut states = Vec::new();
    for length in 0..=history().len() {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::new(options(folder.path()));
        for step in &history()[..length] {
            take(step, &engine).await;
        }
        engine.close().await.unwrap();
        states.push(content(folder.path()).await);
    }
    states
}

/// Runs the steps in the process that is killed, and writes a byte for each completed one.
async fn die(folder: &Path) {
    let scenario = fail::FailScenario::setup();
    let engine = Engine::new(options(folder));
    let mut done = fs::File::create(folder.join("done")).unwrap();
    for step in history() {
        take(&step, &engine).await;
        done.write_all(b".").unwrap();
    }
    scenario.teardown();
}

#[tokio::test]
async fn whatever_the_moment_of_death_each_step_is_whole_or_absent() {
    if let Ok(folder) = std::env::var(FOLDER) {
        return die(Path::new(&folder)).await;
    }
    let states = expected().await;
    for point in CRASH_POINTS {
        let mut visits = 0;
        loop {
            let folder = tempfile::tempdir().unwrap();
            let lived = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "--nocapture"])
                .arg("duckdb::tests::crashes::whatever_the_moment_of_death_each_step_is_whole_or_absent")
                .env(FOLDER, folder.path())
                .env("FAILPOINTS", format!("{point}={visits}*off->return"))
                .output()
                .unwrap()
                .status
                .success();
            let done = fs::read(folder.path().join("done")).unwrap().len();
            if lived {
                assert_eq!(done, history().len());
                break;
            }
            visits += 1;
            // A point behind a commit is met with the step done and not yet reported.
            let happened = done + usize::from(point.contains("after"));
            assert_eq!(
                content(folder.path()).await,
                states[happened],
                "{point}, visit {visits}"
            );
            let exported = fs::read_to_string(folder.path().join(EXPORTED)).unwrap_or_default();
            let steps = &history()[..happened];
            let exports = steps.iter().filter(|step| matches!(step, Step::Export(_)));
            let whole = ["", FIRST, SECOND][exports.count()];
            assert_eq!(exported, whole, "{point}, visit {visits}");
            let placed = fs::read_to_string(folder.path().join(PLACED)).unwrap_or_default();
            let places = steps.iter().filter(|step| matches!(step, Step::Place(_)));
            let whole = ["", "first", "second"][places.count()];
            assert_eq!(placed, whole, "{point}, visit {visits}");
        }
        assert!(visits > 0, "`{point}` was never visited");
    }
}
