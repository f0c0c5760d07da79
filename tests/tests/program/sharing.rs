//! The engine's file between the program and others: a notebook here is this test's own process, which opens the file as
//! any program with the engine inside does.

use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use watershed_drivers::duckdb::{ByHand, Engine, Options};
use watershed_drivers::olap::Access;

use crate::going::Going;
use crate::sandbox::Sandbox;
use crate::world::ProjectModel;

/// Far longer than anything here takes.
const LONG: Duration = Duration::from_secs(120);
/// Visits of a notebook unless `WATERSHED_VISITS` says otherwise; each waits until `start` has been at rest.
const VISITS: u64 = 4;
/// The seed unless `WATERSHED_SEED` says otherwise.
const SEED: u64 = 23;

const PROJECT: &[(&str, &str)] = &[
    ("watershed.yaml", ""),
    ("models/a.sql", "-- @materialize: true\nSELECT 1 AS x"),
    ("models/b.sql", "SELECT x FROM a"),
    ("models/c.sql", "SELECT 3 AS x"),
    ("models/d.sql", "-- @materialize: true\nSELECT 4 AS x"),
];

/// Opens the file as soon as the program lets go of it.
fn notebook(sandbox: &Sandbox) -> ByHand {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be made");
    loop {
        // Waits, without holding others up.
        let looking = Engine::new(Options {
            access: Access::ReadOnly,
            patience: LONG,
            ..Options::new(sandbox.engine_file(), sandbox.path())
        });
        runtime.block_on(async {
            let opened = looking.open(&Default::default()).await;
            opened.expect("the file is given up");
            looking.close().await.expect("the file can be closed");
        });
        if let Some(opened) = ByHand::try_open(&sandbox.engine_file()) {
            return opened;
        }
    }
}

#[test]
fn a_start_at_rest_lets_others_open_the_tables_and_waits_for_them_when_there_is_work() {
    let sandbox = Sandbox::with(PROJECT);
    let mut start = Going::settled(&sandbox);
    let notebook = notebook(&sandbox);
    assert_eq!(notebook.lines("SELECT x FROM b"), ["1"]);
    sandbox.write("models/a.sql", "-- @materialize: true\nSELECT 2 AS x");
    start.until(&[("resource_started", "a")]);
    // Readers wait a while and say whom for; the work goes on waiting.
    let said = sandbox.call(&["query", "SELECT x FROM b"]);
    assert_eq!(said.code, Some(3), "{}", said.stdout);
    let process = format!("process {} (", std::process::id());
    assert!(said.stderr.contains(&process), "{}", said.stderr);
    drop(notebook);
    let round = start.round();
    assert_eq!(round.exit_code(), Some(0), "nothing has failed meanwhile");
    assert!(!round.done().contains("failed"), "{}", round.done());
    assert_eq!(sandbox.query("SELECT x FROM b")["rows"][0][0], 2);
    start.stop();
    assert_eq!(sandbox.done(0), "", "nothing is left to do");
}

#[test]
fn a_reader_through_a_start_at_rest_leaves_the_file_free_again() {
    let sandbox = Sandbox::with(PROJECT);
    let start = Going::settled(&sandbox);
    for _ in 0..2 {
        drop(notebook(&sandbox));
        assert_eq!(sandbox.query("SELECT x FROM d")["rows"][0][0], 4);
    }
    start.stop();
    assert_eq!(sandbox.done(0), "");
}

#[test]
fn tables_that_a_notebook_dropped_are_back_after_the_next_work_under_start() {
    let sandbox = Sandbox::with(PROJECT);
    let mut start = Going::settled(&sandbox);
    let notebook = notebook(&sandbox);
    notebook.run("DROP TABLE d; DROP VIEW c; CREATE TABLE mine AS SELECT 7 AS x");
    drop(notebook);
    sandbox.write("models/e.sql", "SELECT 5 AS x");
    start.until_done(&["c:built", "d:built", "e:built"]);
    assert_eq!(
        sandbox.query("SELECT d.x + c.x + mine.x FROM c, d, mine")["rows"][0][0],
        14
    );
    start.stop();
    assert_eq!(sandbox.done(0), "");
}

#[test]
fn a_run_beside_a_notebook_fails_what_was_edited_alone_and_the_next_one_builds_it() {
    let sandbox = Sandbox::with(PROJECT);
    sandbox.run(0);
    let notebook = sandbox.engine();
    assert_eq!(sandbox.done(0), "", "a run with nothing to do needs no table");
    sandbox.edit("models/d.sql", "4", "44");
    let said = sandbox.call(&["run", "--json", "--wait", "100ms"]);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    let document = said.json();
    let outcomes = &document["summary"]["outcomes"];
    assert_eq!(
        (&outcomes["failed"], &outcomes["skipped"]),
        (&1.into(), &0.into())
    );
    let all = document["resources"].as_array().expect("resources are listed");
    let failed = all
        .iter()
        .find(|one| one["health"] == "failed")
        .expect("one failed");
    assert_eq!(
        (&failed["name"], &failed["error"]["code"]),
        (&"d".into(), &"engine-locked".into())
    );
    let process = format!("process {} (", std::process::id());
    let message = failed["error"]["message"].as_str().unwrap_or_default();
    assert!(message.starts_with(&process), "{message}");
    drop(notebook);
    assert_eq!(sandbox.done(0), "d:built");
}

#[test]
fn a_run_waits_for_a_notebook_and_says_whom_for() {
    let sandbox = Sandbox::with(PROJECT);
    sandbox.run(0);
    let notebook = sandbox.engine();
    sandbox.edit("models/d.sql", "4", "44");
    let mut run = Going::with_arguments(&sandbox, &["run", "--format", "jsonl", "--wait", "120s"]);
    run.until(&[("resource_started", "d")]);
    drop(notebook);
    assert_eq!(run.document()["exit_code"], 0);
    assert_eq!(sandbox.query("SELECT x FROM d")["rows"][0][0], 44);
}

#[test]
fn a_run_that_must_look_into_tables_which_others_have_open_touches_nothing() {
    let sandbox = Sandbox::with(PROJECT);
    sandbox.run(0);
    // Another program wrote to it, and has it open.
    let notebook = sandbox.engine();
    notebook.run("CREATE TABLE mine AS SELECT 7 AS x; CHECKPOINT");
    let said = sandbox.call(&["run", "--wait", "100ms"]);
    assert_eq!(said.code, Some(3), "{}", said.stdout);
    assert!(said.stderr.contains("--wait"), "{}", said.stderr);
    let said = sandbox.call(&["query", "--wait", "100ms", "SELECT 1"]);
    assert_eq!(said.code, Some(3), "{}", said.stdout);
    let process = format!("process {} (", std::process::id());
    let waiting = said
        .stderr
        .lines()
        .find(|line| line.starts_with("waiting until "));
    assert!(
        waiting.is_some_and(|line| line.contains(&process)),
        "{}",
        said.stderr
    );
    drop(notebook);
    assert_eq!(sandbox.done(0), "");
}

/// Edits, visits of a notebook that drops tables, and kills, in random order: in the end every row is that of a fresh
/// build, nothing is left over, and what the notebook made is there.
#[test]
fn after_visits_of_a_notebook_and_kills_all_rows_are_those_of_a_fresh_build() {
    let number = |variable| {
        std::env::var(variable)
            .ok()
            .and_then(|text: String| text.parse().ok())
    };
    let seed = number("WATERSHED_SEED").unwrap_or(SEED);
    let visits = number("WATERSHED_VISITS").unwrap_or(VISITS);
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut world = ProjectModel::new(seed);
    let sandbox = Sandbox::with(&[]);
    world.write(&sandbox);
    let mut start = Some(Going::settled(&sandbox));
    let mut story = format!("seed {seed}");
    let settle = |world: &ProjectModel, story: &str| {
        let said = sandbox.call(&["run", "--json", "--wait", "120s"]);
        let code = i32::from(world.is_broken());
        assert_eq!(said.code, Some(code), "{story}: {}\n{}", said.stderr, said.stdout);
    };
    let kill = |start: &mut Option<Going>, story: &mut String| {
        story.push_str(", KILL");
        if let Some(start) = start.take() {
            start.kill();
        }
        *start = Some(Going::start(&sandbox));
    };
    for _ in 0..visits {
        for _ in 0..rng.random_range(0..3) {
            story = format!("{story}, {}", world.change_files());
            world.write(&sandbox);
        }
        match rng.random_range(0..3) {
            0 => kill(&mut start, &mut story),
            1 => settle(&world, &story),
            _ => {}
        }
        let notebook = notebook(&sandbox);
        story.push_str(", VISIT");
        let outputs = "SELECT table_type || ' ' || table_name FROM information_schema.tables \
                       WHERE table_schema = 'main' AND table_name <> 'mine' \
                       AND NOT starts_with(table_name, '_watershed_trash_') ORDER BY 1";
        for output in notebook.lines(outputs) {
            if rng.random_range(0..4) == 0 {
                let (kind, name) = match output.rsplit_once(' ') {
                    Some(("VIEW", name)) => ("VIEW", name),
                    Some((_, name)) => ("TABLE", name),
                    None => continue,
                };
                story = format!("{story}, drop {name}");
                notebook.run(&format!("DROP {kind} \"{name}\""));
            }
        }
        notebook.run("CREATE OR REPLACE TABLE mine AS SELECT 7 AS x");
        if rng.random_range(0..2) == 0 {
            story = format!("{story}, {} meanwhile", world.change_files());
            world.write(&sandbox);
        }
        if rng.random_range(0..3) == 0 {
            kill(&mut start, &mut story);
        }
        drop(notebook);
        if rng.random_range(0..2) == 0 {
            settle(&world, &story);
        }
    }
    world.mend();
    world.write(&sandbox);
    settle(&world, &story);
    if let Some(start) = start.take() {
        start.stop();
    }
    let notebook = sandbox.engine();
    assert_eq!(notebook.lines("SELECT x FROM mine"), ["7"], "{story}");
    notebook.run("DROP TABLE mine");
    drop(notebook);
    let done = sandbox.expect_run(0, &story);
    assert!(done.is_empty(), "a run did {done:?} after {story}");
    world.assert_built(&sandbox, &story);
}
