//! Random graphs and intents against the reference.

use rand::Rng;
use watershed_stategraph::{Extent, Graph, Operations, Timestamp, plan};

use serde_json::Value as Json;

use crate::naive::{show, things};
use crate::proof::for_first_seeds;
use crate::rehearsal::{Manners, Outcome, call};
use crate::worlds::{Drawing, draw, draw_externals, needs_recreate, refs, rng, types};

fn compare(before: &Graph<Json>, intended: Option<&Graph<Json>>, after: &Graph<Json>, outcome: &Outcome) {
    let (found, end) = (things(after), outcome.world.end());
    // Items that are left alone may lean on others, which then stay as well.
    let left_alone = outcome.world.stuck().iter().any(|one| {
        [one.clone(), one.alias()]
            .iter()
            .any(|one| outcome.world.before.contains_key(one))
    });
    if let Some(undone) = outcome.world.left_undone().filter(|_| left_alone) {
        panic!("{undone}\n{}", tell(before, intended, after, outcome));
    }
    if !left_alone && found != end {
        panic!(
            "S2: the end is not the reference's\n{}expected\n{}",
            tell(before, intended, after, outcome),
            show(&end),
        );
    }
}

fn tell(
    before: &Graph<Json>,
    intended: Option<&Graph<Json>>,
    after: &Graph<Json>,
    outcome: &Outcome,
) -> String {
    format!(
        "before\n{}intended\n{}after\n{}done\n{}{:?}\n",
        show(&things(before)),
        intended.map_or_else(String::new, |graph| show(&things(graph))),
        show(&things(after)),
        outcome.log,
        outcome.status,
    )
}

fn succeeding_round(seed: u64) {
    let mut rng = rng(seed);
    let size = match rng.random_range(0..10) {
        0 => 30,
        1..=3 => 12,
        _ => 6,
    };
    let drawing = Drawing {
        items: rng.random_range(1..=size),
        features: true,
    };
    let refs = refs(&mut rng, &drawing);
    let types = types();
    let mut current = Graph::new("g");
    let mut now = Timestamp(1_000);
    for _ in 0..3 {
        draw_externals(&mut rng, &refs, &mut current);
        let intended = draw(&mut rng, &refs, &drawing);
        let intended = (!rng.random_bool(0.05)).then_some(&intended);
        let before = current.clone();
        let manners = Manners {
            fails: 0,
            with_failures: false,
            limit: rng.random_range(1..6),
        };
        let plan = plan(
            &types,
            &current,
            &Operations::default(),
            intended,
            &Extent::Everything,
            now,
            &mut |_, old, new| Ok(needs_recreate(old, new)),
        )
        .unwrap();
        let outcome = call(&mut rng, &types, &mut current, intended, manners, now);
        compare(&before, intended, &current, &outcome);
        let mut planned: Vec<_> = plan
            .operations
            .iter()
            .map(|one| (one.operation, one.reference.clone()))
            .collect();
        let mut done = outcome.done.clone();
        planned.sort();
        done.sort();
        if planned != done {
            let told = tell(&before, intended, &current, &outcome);
            panic!("S11: plan and execution differ\n{told}planned\n{plan}");
        }
        let after = current.clone();
        let again = call(&mut rng, &types, &mut current, intended, manners, now);
        if !again.done.is_empty() {
            let told = tell(&before, intended, &after, &outcome);
            panic!("S2: a second call does something\n{told}then\n{}", again.log);
        }
        now = now.after_ms(100_000);
    }
}

fn failing_round(seed: u64) {
    let mut rng = rng(seed);
    let drawing = Drawing {
        items: rng.random_range(1..=10),
        features: true,
    };
    let refs = refs(&mut rng, &drawing);
    let types = types();
    let mut current = Graph::new("g");
    let mut now = Timestamp(1_000);
    for _ in 0..4 {
        draw_externals(&mut rng, &refs, &mut current);
        let intended = draw(&mut rng, &refs, &drawing);
        let manners = Manners {
            fails: 4,
            with_failures: true,
            limit: rng.random_range(1..6),
        };
        call(&mut rng, &types, &mut current, Some(&intended), manners, now);
        now = now.after_ms(100_000);
    }
    // With handlers that work again, everything is mended.
    let intended = draw(&mut rng, &refs, &drawing);
    for _ in 0..4 {
        now = now.after_ms(100_000);
        let manners = Manners {
            fails: 0,
            with_failures: true,
            limit: 3,
        };
        call(&mut rng, &types, &mut current, Some(&intended), manners, now);
    }
    let before = current.clone();
    let outcome = call(
        &mut rng,
        &types,
        &mut current,
        Some(&intended),
        Manners::default(),
        now,
    );
    assert_eq!(outcome.done, [], "S5: it does not come to rest");
    compare(&before, Some(&intended), &current, &outcome);
}

#[test]
fn what_is_done_is_allowed_and_the_end_is_the_references() {
    for_first_seeds("succeeding", 200, succeeding_round);
}

#[test]
fn s5_failures_stop_only_what_depends_on_them_and_are_mended() {
    for_first_seeds("failing", 200, failing_round);
}
