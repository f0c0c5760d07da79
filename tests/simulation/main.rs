//! The simulator: random worlds, each decided by one number, every rule checked after every step.
//!
//! An ordinary run takes a few seconds, one with `WATERSHED_PROOF=ci` twenty of one core; `WATERSHED_SIM_STEPS` says
//! how many steps to make instead (`scripts/prove simulation` makes 60 million). Those begin at a fresh seed, which they
//! print; a run for a time takes the same worlds every time, so that what fresh ones find stops nobody whose change has
//! nothing to do with it. `WATERSHED_SIM_FROM` is the first seed, `WATERSHED_SIM_SEED` replays the one world of that
//! seed. A failure prints the seed and the end of the trace; seeds that once failed stand in `seeds.txt` and are
//! replayed every time.

mod awaited;
mod crate_mutations;
mod effects;
mod endings;
mod explaining;
mod model;
mod moves;
mod mutations;
mod operating;
mod owing;
mod owned;
mod priority;
mod quiescence;
mod returns;
mod rules;
mod script;
mod starvation;
mod store;
mod takeover;
mod world;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rand::Rng;
use world::Simulation;

/// The duration of an ordinary run, and of one in CI.
const ORDINARY: Duration = Duration::from_secs(5);
const CI: Duration = Duration::from_secs(10);

/// Steps of one world: enough to fill its catalog several times over.
const STEPS_PER_WORLD: u64 = 400;
/// The lines of the trace that a failure shows; a replay prints them all.
const TRACE_SHOWN: usize = 120;

/// Runs one world to its end; gives back the number of its steps.
fn run(seed: u64) -> Result<u64, (String, Vec<String>)> {
    let mut world = Simulation::new(seed).map_err(|error| (error, Vec::new()))?;
    let mut steps = || {
        for _ in 0..STEPS_PER_WORLD {
            world.advance()?;
            world.check_rules()?;
            world.check_explanations()?;
            if world.rng.random_bool(0.01) {
                world.settle()?;
            }
        }
        world.settle()
    };
    match steps() {
        Ok(()) => Ok(world.step),
        Err(error) => Err((error, world.trace)),
    }
}

fn replay(seed: u64) -> u64 {
    match std::panic::catch_unwind(|| run(seed)) {
        Ok(Ok(steps)) => steps,
        Ok(Err((error, trace))) => {
            let hidden = match number("WATERSHED_SIM_SEED") {
                Some(_) => 0,
                None => trace.len().saturating_sub(TRACE_SHOWN),
            };
            let said = format!("{error}\nreplay with WATERSHED_SIM_SEED={seed} (and keep it in seeds.txt)");
            // Before and behind the trace, for where only a part of it is shown.
            panic!("{said}\n{}\n{said}", trace[hidden..].join("\n"));
        }
        Err(_) => {
            panic!("the core panicked; replay with WATERSHED_SIM_SEED={seed} (and keep it in seeds.txt)")
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable)
        .ok()
        .map(|text| text.parse().expect("a whole number"))
}

/// The extent of a run: a number of steps, or a time.
#[derive(Clone, Copy)]
enum Budget {
    Steps(u64),
    Until(Instant),
}

impl Budget {
    fn of_this_run() -> Self {
        let time = match std::env::var("WATERSHED_PROOF").as_deref() {
            Ok("ci") => CI,
            _ => ORDINARY,
        };
        number("WATERSHED_SIM_STEPS").map_or_else(|| Self::Until(Instant::now() + time), Self::Steps)
    }

    fn allows_more(self, done: u64) -> bool {
        match self {
            Self::Steps(wanted) => done < wanted,
            Self::Until(end) => Instant::now() < end,
        }
    }

    /// One core for a time, every core for a number.
    fn threads(self) -> usize {
        match self {
            Self::Steps(_) => std::thread::available_parallelism().map_or(1, usize::from),
            Self::Until(_) => 1,
        }
    }
}

#[test]
fn seeds_that_once_failed_pass() {
    let seeds = include_str!("seeds.txt")
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    for seed in seeds {
        replay(seed.parse().expect("a seed"));
    }
}

#[test]
fn one_seed_decides_everything() {
    let trace = |seed| {
        let mut world = Simulation::new(seed).expect("a world");
        for _ in 0..200 {
            world.advance().expect("a step");
        }
        world.trace
    };
    assert_eq!(trace(11), trace(11));
}

/// Worlds that nobody has seen yet for a number of steps, else the same ones each time, unless told otherwise.
fn first_seed(budget: Budget) -> u64 {
    let fresh = || {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.map_or(0, |since| since.as_nanos() as u64)
    };
    number("WATERSHED_SIM_FROM").unwrap_or_else(|| match budget {
        Budget::Steps(_) => fresh(),
        Budget::Until(_) => 0,
    })
}

#[test]
fn every_rule_holds_in_every_step_of_random_worlds() {
    if let Some(seed) = number("WATERSHED_SIM_SEED") {
        replay(seed);
        return;
    }
    let budget = Budget::of_this_run();
    let first = first_seed(budget);
    println!("worlds from seed {first} on");
    let (next, done, failed) = (AtomicU64::new(first), AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..budget.threads() {
            scope.spawn(|| {
                while budget.allows_more(done.load(Ordering::Relaxed)) && !failed.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let steps = std::panic::catch_unwind(|| replay(seed));
                    match steps {
                        Ok(steps) => done.fetch_add(steps, Ordering::Relaxed),
                        Err(cause) => {
                            failed.store(true, Ordering::Relaxed);
                            std::panic::resume_unwind(cause)
                        }
                    };
                }
            });
        }
    });
    println!("{} steps", done.into_inner());
}
