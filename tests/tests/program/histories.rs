//! Random histories of edits: after each run all rows are those of a fresh build, and a further run does nothing.

use crate::connected::has_extension;
use crate::sandbox::Sandbox;
use crate::world::ProjectModel;

/// The number of changes in a history.
const CHANGES: usize = 8;
/// The number of histories unless `WATERSHED_HISTORIES` sets another; each costs some twenty runs.
const HISTORIES: u64 = 4;
/// The seed of the first history unless `WATERSHED_SEED` says otherwise.
const SEED: u64 = 1;

#[test]
fn after_any_history_of_edits_all_rows_are_those_of_a_fresh_build() {
    let first = number("WATERSHED_SEED").unwrap_or(SEED);
    for seed in first..first + number("WATERSHED_HISTORIES").unwrap_or(HISTORIES) {
        play(seed, ProjectModel::new(seed), &Sandbox::with(&[]));
    }
}

/// A run in a lake takes several times as long: a tenth of the histories.
#[test]
fn after_any_history_of_edits_in_a_lake_all_rows_are_those_of_a_fresh_build() {
    if !(has_extension("ducklake") && has_extension("sqlite_scanner")) {
        return;
    }
    let first = number("WATERSHED_SEED").unwrap_or(SEED);
    let histories = number("WATERSHED_HISTORIES").unwrap_or(HISTORIES).div_ceil(10);
    for seed in first..first + histories {
        let sandbox = Sandbox::with(&[]).in_lake_of_files();
        play(seed, ProjectModel::new(seed).in_lake(), &sandbox);
    }
}

fn play(seed: u64, mut world: ProjectModel, sandbox: &Sandbox) {
    let mut story = format!("seed {seed}");
    settle(&mut world, sandbox, &story);
    for _ in 0..CHANGES {
        story = format!("{story}, {}", world.change(sandbox));
        settle(&mut world, sandbox, &story);
    }
    world.mend();
    settle(&mut world, sandbox, &format!("{story}, mend all"));
}

/// Runs the program twice and looks at what it left.
fn settle(world: &mut ProjectModel, sandbox: &Sandbox, story: &str) {
    world.write(sandbox);
    let code = i32::from(world.is_broken());
    sandbox.expect_run(code, story);
    world.assert_built(sandbox, story);
    let again = sandbox.expect_run(code, story);
    assert!(again.is_empty(), "a second run did {again:?} after {story}");
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}
