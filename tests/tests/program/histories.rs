//! Random histories of edits: after each run all rows are those of a fresh build, and a further run does nothing.

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
        play(seed);
    }
}

fn play(seed: u64) {
    let mut world = ProjectModel::new(seed);
    let sandbox = Sandbox::with(&[]);
    let mut story = format!("seed {seed}");
    settle(&mut world, &sandbox, &story);
    for _ in 0..CHANGES {
        story = format!("{story}, {}", world.change(&sandbox));
        settle(&mut world, &sandbox, &story);
    }
    world.mend();
    settle(&mut world, &sandbox, &format!("{story}, mend all"));
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
