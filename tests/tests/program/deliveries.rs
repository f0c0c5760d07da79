//! Messages that are due, while the program dies between any two commits: before and after an evaluation is stored, its
//! messages are created, an attempt is stored, made, answered and marked.
//!
//! Each round turns the verdict of an alert, lets some runs die, and lets one come to its end. A receiver keeps what it was
//! sent, and tells repetitions by their keys, as receivers are to do.

use std::env;

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

use crate::alerts::{Receiver, archived, late, project};

/// The rounds unless `WATERSHED_KILLS` sets another number.
const ROUNDS: u64 = 30;

/// Commits of a run before one of which it dies: a run that tells of a verdict makes a few more.
const VISITS: u32 = 8;

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok()?.parse().ok()
}

/// N4, N6, N7.
#[test]
fn every_due_message_arrives_once_by_its_key_and_in_order_wherever_the_program_dies() {
    let seed = number("WATERSHED_SEED").unwrap_or(24);
    println!("WATERSHED_SEED={seed}");
    let mut rng = SmallRng::seed_from_u64(seed);
    let receiver = Receiver::start();
    let project = project(&receiver);
    let points = watershed_controller::store::CRASH_POINTS;
    let (mut story, mut deaths) = (Vec::new(), 0_usize);
    for round in 0..number("WATERSHED_KILLS").unwrap_or(ROUNDS) {
        let (rows, title): (&[(&str, u32)], _) = match round % 2 {
            0 => (&[("UA1", 70)], "Late departures: 1 row"),
            _ => (&[], "Late departures: has recovered"),
        };
        late(&project, rows);
        story.push(title.to_owned());
        for _ in 0..rng.random_range(1..=3) {
            let point = points[rng.random_range(0..points.len())];
            let visits = rng.random_range(0..VISITS);
            deaths += usize::from(project.dies_at(point, visits));
        }
        project.expect_run(0, &format!("round {round}, seed {seed}"));
        assert_eq!(receiver.distinct(), story, "round {round}, seed {seed}");
        assert_eq!(archived(&project), story, "round {round}, seed {seed}");
    }
    println!(
        "{deaths} deaths, {} repetitions",
        receiver.titles().len() - story.len()
    );
    assert!(
        deaths * 2 >= story.len(),
        "{deaths} deaths in {} rounds",
        story.len()
    );
}
