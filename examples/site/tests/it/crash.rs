//! The program is killed at every named point, and at random ones; the next run finds all that was done.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::Value;

use crate::bench::{Bench, first_site, second_site};

/// Runs, and lets the process end at a point; false if it came to its own end before.
fn run_until(bench: &Bench, point: u32) -> bool {
    let output = bench
        .command()
        .env("SITE_ABORT_AT", point.to_string())
        .output()
        .unwrap();
    !output.status.success()
}

/// Goes from one declaration towards another, dies at each point in turn, and then wants a third.
fn die_everywhere(from: Option<&Value>, towards: Option<&Value>, then: &[Option<&Value>]) {
    let bench = Bench::new();
    for point in 1.. {
        assert!(point < 200, "the points do not end");
        bench.apply(from);
        bench.declare(towards);
        if !run_until(&bench, point) {
            assert!(point > 10, "there are only {point} points");
            return bench.check(towards);
        }
        let then = then[point as usize % then.len()];
        bench.apply(then);
        bench.check(then);
        assert_eq!(bench.run(), [""; 0], "point {point}");
    }
}

#[test]
fn dying_anywhere_while_a_site_is_made_leaves_nothing_that_is_not_found() {
    let (first, second) = (first_site(), second_site());
    die_everywhere(None, Some(&first), &[None, Some(&first), Some(&second)]);
}

#[test]
fn dying_anywhere_while_a_site_is_changed_leaves_nothing_that_is_not_found() {
    let (first, second) = (first_site(), second_site());
    die_everywhere(Some(&first), Some(&second), &[Some(&second), Some(&first), None]);
}

#[test]
fn dying_anywhere_while_a_site_is_removed_leaves_nothing_that_is_not_found() {
    let (first, second) = (first_site(), second_site());
    die_everywhere(Some(&first), None, &[None, Some(&first), Some(&second)]);
}

/// At a point while other operations and commits go on: what the seed says is the number of lines after which
/// the process is killed from outside.
#[test]
fn a_kill_from_outside_at_a_random_moment_leaves_nothing_that_is_not_found() {
    let sites = [None, Some(first_site()), Some(second_site())];
    for seed in 0..6 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let bench = Bench::new();
        for round in 0..6 {
            bench.declare(sites[rng.random_range(0..sites.len())].as_ref());
            let mut child = bench
                .command()
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let most = rng.random_range(1..30);
            lines.take(most).for_each(|line| drop(line.unwrap()));
            child.kill().unwrap();
            child.wait().unwrap();
            if rng.random_bool(0.5) {
                let site = sites[rng.random_range(0..sites.len())].as_ref();
                bench.apply(site);
                assert_eq!(
                    bench.tree().is_empty(),
                    site.is_none(),
                    "seed {seed}, round {round}"
                );
                bench.check(site);
            }
        }
        bench.apply(None);
        bench.check(None);
    }
}
