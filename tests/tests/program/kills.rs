//! Killed at any moment, the program goes on as if nothing had happened.

use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

use crate::sandbox::Sandbox;
use crate::world::ProjectModel;

/// The number of kills unless `WATERSHED_KILLS` sets another.
const KILLS: u64 = 6;

#[test]
fn killed_at_any_moment_the_next_run_ends_like_a_fresh_build() {
    let mut rng = SmallRng::seed_from_u64(7);
    let mut world = ProjectModel::new(7);
    let sandbox = Sandbox::with(&[]);
    world.write(&sandbox);
    let begun = Instant::now();
    sandbox.expect_run(0, "the first build");
    let whole = begun.elapsed();
    let kills = std::env::var("WATERSHED_KILLS")
        .ok()
        .and_then(|kills| kills.parse().ok());
    for kill in 0..kills.unwrap_or(KILLS) {
        // Every other time there is nothing left of the last life, so that first builds are killed too.
        if kill % 2 == 1 {
            sandbox.forget();
        }
        world.change_the_root();
        world.write(&sandbox);
        let after = whole.mul_f64(rng.random_range(0.0..1.0));
        let story = format!("kill {kill} after {after:?} of {whole:?}");
        kill_after(&sandbox, after);
        sandbox.expect_run(0, &story);
        world.assert_built(&sandbox, &story);
        let again = sandbox.expect_run(0, &story);
        assert!(again.is_empty(), "a second run did {again:?} after {story}");
    }
}

/// Starts a run and kills it after a while, as `kill -9` does.
#[expect(
    clippy::disallowed_methods,
    reason = "what is tested is the moment itself: no event tells when it has come"
)]
fn kill_after(sandbox: &Sandbox, after: Duration) {
    let mut run = sandbox.start(&["run"]);
    std::thread::sleep(after);
    run.kill().expect("a run can be killed");
    run.wait().expect("a killed run ends");
}
