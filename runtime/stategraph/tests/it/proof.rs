//! Length and first seed of the random suites, as set by `WATERSHED_PROOF`.
//!
//! Unset, each suite takes a few seconds; with `ci`, twenty of one core; both use the same seeds every time. A number
//! is the number of rounds, from a fresh seed, and `all` stands for a full proof. The seeds of `seeds.txt` are replayed
//! first. `WATERSHED_SEED` runs one seed alone, or, with `WATERSHED_PROOF`, the rounds from that seed on.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Number of rounds of a full proof.
const ALL: u64 = 100_000;

/// Number of failures after which a suite ends; enough to see what they have in common.
const MOST_FAILURES: usize = 20;

/// Seeds that once failed, one per line: name of the suite, and the seed.
const KEPT: &str = include_str!("seeds.txt");

/// Length of a suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// As many rounds as fit in this time, on one core.
    Time(Duration),
    /// This many rounds, on two cores.
    Rounds(u64),
    /// A full proof, on two cores.
    All,
}

pub(crate) fn share() -> Share {
    match std::env::var("WATERSHED_PROOF").as_deref() {
        Err(_) => Share::Time(Duration::from_secs(2)),
        Ok("ci") => Share::Time(Duration::from_secs(10)),
        Ok("all") => Share::All,
        Ok(number) => Share::Rounds(number.parse().expect("WATERSHED_PROOF: ci, all or a number")),
    }
}

/// Returns the first seed of a suite. It is random only in a proof run by hand, so that a failure of a fresh seed does
/// not block an unrelated change.
pub(crate) fn first_seed() -> u64 {
    match share() {
        Share::Time(_) => given_seed().unwrap_or_default(),
        Share::Rounds(_) | Share::All => {
            given_seed().unwrap_or_else(|| RandomState::new().hash_one("seed") >> 16)
        }
    }
}

fn given_seed() -> Option<u64> {
    let seed = std::env::var("WATERSHED_SEED").ok()?;
    Some(seed.parse().expect("WATERSHED_SEED: a number"))
}

fn kept(suite: &str) -> impl Iterator<Item = u64> {
    let lines = KEPT.lines().filter_map(|line| line.split_once(' '));
    let of_suite = lines.filter(move |(name, _)| *name == suite);
    of_suite.map(|(_, seed)| seed.trim().parse().expect("a seed is a number"))
}

/// Runs the first `count` seeds if the share is a time, and otherwise as [`for_seeds`]. Fresh seeds are run by hand
/// only, so that their failures do not block an unrelated change.
pub(crate) fn for_first_seeds(suite: &str, count: u64, round: impl Fn(u64) + Sync) {
    let is_by_hand = std::env::var_os("WATERSHED_SEED").is_some() || !matches!(share(), Share::Time(_));
    if is_by_hand {
        return for_seeds(suite, round);
    }
    kept(suite).chain(0..count).for_each(round);
}

/// Runs a round for each seed of the suite's share. A failure names the seeds and their errors.
#[allow(clippy::print_stdout)] // how far a suite came is part of what it says
pub(crate) fn for_seeds(suite: &str, round: impl Fn(u64) + Sync) {
    if let Some(seed) = given_seed().filter(|_| std::env::var_os("WATERSHED_PROOF").is_none()) {
        return round(seed);
    }
    let (start, first) = (Instant::now(), first_seed());
    let (until, rounds, cores) = match share() {
        Share::Time(time) => (Some(start + time), u64::MAX, 1),
        Share::Rounds(rounds) => (None, rounds, 2),
        Share::All => (None, ALL, 2),
    };
    let (failed, next) = (Mutex::new(BTreeMap::new()), AtomicU64::new(0));
    let run = |seed: u64| {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| round(seed))) {
            let text = payload.downcast_ref::<String>().cloned().unwrap_or_default();
            failed.lock().unwrap().insert(seed, text);
        }
        failed.lock().unwrap().len() < MOST_FAILURES
    };
    let walk = || {
        while until.is_none_or(|until| Instant::now() < until) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= rounds || !run(first.wrapping_add(at)) {
                break;
            }
        }
    };
    for seed in kept(suite) {
        run(seed);
    }
    std::thread::scope(|scope| {
        (1..cores).for_each(|_| drop(scope.spawn(walk)));
        walk();
    });
    println!(
        "{suite}: {} rounds from seed {first}",
        next.load(Ordering::Relaxed)
    );
    let failed = failed.into_inner().unwrap();
    let lines = failed.iter().map(|(seed, text)| {
        format!(
            "WATERSHED_SEED={seed} {}",
            text.lines().next().unwrap_or_default()
        )
    });
    let lines: Vec<String> = lines.collect();
    assert!(
        lines.is_empty(),
        "{suite}: {} seeds failed\n{}",
        lines.len(),
        lines.join("\n")
    );
}
