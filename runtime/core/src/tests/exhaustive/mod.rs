//! Exhaustive search of small worlds: every graph up to isomorphism, every sequence of events up to a length, and every
//! order of returns. Each state is visited once.
//!
//! | | graphs | events in an ordinary run | events with `WATERSHED_PROOF=ci` | with `WATERSHED_PROOF=all` |
//! |---|---|---|---|---|
//! | 3 resources | 16 | 2 | 3 | 4 |
//! | 4 resources | 218 | 1 | 1 | 3 |
//!
//! Each graph begins with the batch that creates it, before anything has come back. An *event* is an edit of a spec, a
//! ref added or taken away, a rename to a free name or back, a swap of two names, a delete, a create of what is
//! deleted or gone, a cancel by name, or an invocation that fails; successes cost none, so all orders of them are
//! visited. What has failed to be deleted or renamed is tried again whenever everything else has settled. Two states
//! are the same if renaming the resources makes their shapes equal. Commits are prompt here and limits are high:
//! late commits, limits and time are the simulator's.
//!
//! After each input every rule of [`check_consistency`](crate::Core::check_consistency) is checked, and a naive
//! reference, which knows edits and effects alone, checks starts (C1 to C3, C6, C7), cancels (C4), the catalog (C13),
//! and at rest that nothing is left pending and nothing was forgotten (C11).

mod events;
mod graphs;
mod model;
mod rules;
mod search;
mod shape;
mod world;

use search::{Found, search};

/// Bound on visited states, which must not be reached: each search ends by itself.
const STATES_MAX: usize = 200_000_000;

/// Returns the maximum numbers of events for 3 and for 4 resources.
fn depth() -> (u8, u8) {
    match std::env::var("WATERSHED_PROOF").as_deref() {
        Ok("all") => (4, 3),
        Ok("ci") => (3, 1),
        _ => (2, 1),
    }
}

fn report(resources: usize, events: u8) {
    let began = std::time::Instant::now();
    let Found {
        graphs,
        states,
        transitions,
    } = search(resources, events);
    println!(
        "{resources} resources, {graphs} graphs, {events} events: {states} states, {transitions} transitions, {:.1?}",
        began.elapsed()
    );
    assert!(states < STATES_MAX);
}

#[test]
fn all_graphs_of_three_resources_keep_every_rule_in_every_order() {
    report(3, depth().0);
}

#[test]
fn all_graphs_of_four_resources_keep_every_rule_in_every_order() {
    report(4, depth().1);
}
