//! Runs that find nothing to do are counted and not stored.

use crate::testing::Bench;
use crate::{Outcome, Returned, Work};

fn look(bench: &mut Bench, name: &str) {
    bench.returns(
        name,
        Returned::Done(Outcome {
            work: Work::Checked,
            retrigger: None,
        }),
    );
}

#[test]
fn a_run_that_sees_what_the_last_one_saw_and_finds_nothing_to_do_writes_nothing() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    let before = bench.row("a");
    bench.commits.clear();
    for _ in 0..3 {
        bench.reconcile("a");
        look(&mut bench, "a");
    }
    assert!(bench.commits.is_empty(), "{:?}", bench.commits);
    assert_eq!(bench.row("a").revision, before.revision);
    bench.reconcile("a");
    bench.fail("a");
    let after = bench.row("a");
    assert_eq!(
        after.runs_total,
        before.runs_total + 4,
        "what was counted is stored with the next write"
    );
    assert!(after.last_success.is_some());
}

#[test]
fn a_run_that_sees_something_new_is_stored_whatever_it_finds() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    bench.edit_spec("a", "other");
    look(&mut bench, "a");
    let row = bench.row("a");
    let seen = row.last_run.as_ref().and_then(|run| run.seen.as_ref());
    assert_eq!(seen.map(|seen| seen.spec_version), Some(row.spec_version));
}
