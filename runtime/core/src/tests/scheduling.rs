//! Tests of one run per path, and of requests that cancel and requests that don't.

use std::time::Duration;

use crate::testing::{Bench, target};
use crate::{Call, KindOptions, Limits, OnTimedAncestor, Outcome, Parents, Returned, Settled, Stage, Work};

#[test]
fn c3_a_resource_starts_when_all_of_its_parents_have_finished() {
    let mut bench = Bench::new();
    bench.create(&[("c", &["a", "b"]), ("a", &[]), ("b", &[])]);
    assert_eq!(bench.starts(), ["a", "b"]);
    bench.finish("a");
    assert!(bench.starts().is_empty());
    bench.fail("b");
    assert_eq!(bench.starts(), ["c"]);
    let start = bench.running("c");
    assert!(!start.refs[0].failed && start.refs[1].failed);
    bench.finish("c");
    assert!(bench.is_idle());
}

#[test]
fn c4_an_edit_cancels_every_running_descendant_and_its_own_invocation() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"]), ("c", &["b"])]);
    bench.reconcile("c");
    bench.edit_spec("a", "2");
    assert!(bench.is_cancelled("c"));
    // C3: the ancestor waits until the descendant's cancelled invocation has returned.
    assert_eq!(bench.starts(), ["c"]);
    bench.finish("c");
    assert_eq!(bench.starts(), ["a"]);
    bench.edit_spec("a", "3");
    assert!(bench.is_cancelled("a"));
    bench.finish("a");
    assert_eq!(bench.finish_all(), ["a", "b", "c"]);
}

#[test]
fn c3_an_ancestor_far_above_waits_for_a_cancelled_descendant() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"]), ("c", &["b"])]);
    bench.reconcile("c");
    bench.reconcile("b");
    bench.reconcile("a");
    assert_eq!(bench.starts(), ["c"]);
    bench.finish("c");
    assert_eq!(bench.finish_all(), ["a", "b", "c"]);
}

#[test]
fn c4_a_timed_request_waits_for_what_runs_below_unless_its_kind_lets_it_cancel() {
    let mut short = KindOptions::new("s");
    short.on_timed_ancestor = OnTimedAncestor::Cancel;
    let mut bench = Bench::with(vec![KindOptions::new("k"), short], Limits::default());
    bench.settled(&[("a", &[]), ("b", &["a"])]);
    let preview = bench.new_of("s", "preview", &["a"]);
    bench.apply(vec![crate::Edit::create(preview)]);
    bench.reconcile("b");
    bench.call(Call::Nudge(target("a")));
    assert!(!bench.is_cancelled("b") && bench.is_cancelled("preview"));
    bench.finish("preview");
    bench.starts();
    bench.pass(Duration::from_secs(3600));
    assert!(!bench.is_running("a") && !bench.is_cancelled("b"));
    bench.finish("b");
    assert_eq!(bench.finish_all(), ["a", "b", "preview"]);
}

#[test]
fn c4_what_a_timed_request_waited_for_counts_and_runs_again() {
    let mut bench = Bench::with_one_below();
    let before = bench.row("b").runs_total;
    bench.finish("b");
    assert_eq!(bench.row("b").runs_total, before + 1);
    bench.starts();
    assert_eq!(bench.finish_all(), ["b"]);
}

#[test]
fn c4_a_deadline_bounds_what_a_timed_request_waits_for() {
    let kind = KindOptions {
        deadline: Some(Duration::from_secs(60)),
        ..KindOptions::new("k")
    };
    let mut bench = Bench::with(vec![kind], Limits::default());
    bench.settled(&[("a", &[]), ("b", &["a"])]);
    bench.reconcile("b");
    bench.call(Call::Nudge(target("a")));
    bench.starts();
    bench.pass(Duration::from_secs(60));
    assert!(bench.is_cancelled("b"));
    bench.finish("b");
    assert_eq!(bench.finish_all(), ["a", "b"]);
}

#[test]
fn c4_an_explicit_request_cancels_what_a_timed_one_waits_for() {
    for requests in [vec!["a"], vec!["b", "a"], vec!["a", "b"]] {
        let mut bench = Bench::new();
        bench.settled(&[("a", &[]), ("b", &["a"]), ("c", &["b"]), ("d", &["c"])]);
        bench.reconcile("d");
        for name in &requests {
            bench.call(Call::Nudge(target(name)));
        }
        assert!(!bench.is_cancelled("d"));
        bench.reconcile("a");
        assert!(bench.is_cancelled("d"), "{requests:?}");
    }
}

#[test]
fn c4_a_nudge_cancels_what_consents_also_below_what_is_pending_for_another_reason() {
    let short = KindOptions {
        on_timed_ancestor: OnTimedAncestor::Cancel,
        resync: None,
        ..KindOptions::new("k")
    };
    let mut bench = Bench::with(vec![short], Limits::default());
    bench.settled(&[("a", &[]), ("b", &["a"]), ("c", &["b"])]);
    bench.reconcile("a");
    bench.call(Call::Pause(target("a")));
    bench.call(Call::Nudge(target("a")));
    bench.finish("a");
    bench.finish_all();
    bench.reconcile("c");
    // To resume is no timed request, and cancels nothing.
    bench.call(Call::Resume(target("a")));
    assert!(!bench.is_cancelled("c"));
    bench.call(Call::Nudge(target("b")));
    assert!(bench.is_cancelled("c"));
}

#[test]
fn c4_a_timed_request_does_not_cancel_its_own_invocation() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    bench.reconcile("a");
    bench.starts();
    bench.call(Call::Nudge(target("a")));
    assert!(!bench.is_cancelled("a"));
    bench.finish("a");
    assert_eq!(bench.finish_all(), ["a"]);
}

#[test]
fn request_3_parents_changed_releases_without_an_invocation_when_nothing_changed() {
    let mut kind = KindOptions::new("k");
    kind.parents = Parents::Changed;
    let mut bench = Bench::with(vec![kind], Limits::default());
    bench.settled(&[("a", &[]), ("b", &["a"]), ("c", &["b"])]);
    bench.reconcile("a");
    assert_eq!(bench.finish_all(), ["a"]);
    assert!(matches!(bench.stage("c"), Stage::Settled(Settled::Idle)));
    // A state written by the parent is a change; the grandchild's parent then wrote none.
    bench.reconcile("a");
    let by = bench.running("a").invocation;
    bench.write_state(by, "x");
    assert_eq!(bench.finish_all(), ["a", "b"]);
    // So is a parent that has failed.
    bench.reconcile("a");
    bench.fail("a");
    assert_eq!(bench.finish_all(), ["a", "b"]);
}

#[test]
fn request_3_parents_changed_runs_again_after_a_cancel_or_an_error() {
    let mut kind = KindOptions::new("k");
    kind.parents = Parents::Changed;
    let mut bench = Bench::with(vec![kind], Limits::default());
    bench.settled(&[("a", &[]), ("b", &["a"])]);
    bench.reconcile("b");
    bench.fail("b");
    bench.starts();
    bench.reconcile("a");
    assert_eq!(bench.finish_all(), ["a", "b"]);
    bench.reconcile("b");
    bench.reconcile("a");
    bench.finish("b");
    bench.starts();
    assert_eq!(bench.finish_all(), ["b"]);
}

#[test]
fn c5_own_writes_cancel_nothing_and_count_as_seen() {
    let mut kind = KindOptions::new("k");
    kind.at_start = crate::AtStart::AskIfUnsettled;
    let mut bench = Bench::with(vec![kind], Limits::default());
    bench.create(&[("a", &[])]);
    let by = bench.running("a").invocation;
    let update = crate::Update {
        spec: Some((b"own".as_slice().into(), 1)),
        ..crate::Update::default()
    };
    let edit = crate::Edit::update(crate::Key::new("k", "a"), update);
    bench.call_by(Some(by), Call::Apply(edit.into()));
    assert!(!bench.is_cancelled("a"));
    bench.finish("a");
    assert!(bench.is_idle());
    bench.restart();
    assert!(bench.starts().is_empty(), "its own write was seen");
}

#[test]
fn c5_own_refs_that_add_an_unsettled_parent_act_like_anothers_edit() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[]), ("b", &[])]);
    let by = bench.running("b").invocation;
    bench.call_by(
        Some(by),
        Call::Apply(crate::testing::refs_edit("b", &["a"]).into()),
    );
    assert!(bench.is_cancelled("b"));
}

#[test]
fn c5_paths_and_labels_ask_for_nothing() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    let update = crate::Update {
        paths: Some(["a.sql".into()].into()),
        hidden: Some(true),
        ..Default::default()
    };
    bench.apply(vec![crate::Edit::update(crate::Key::new("k", "a"), update)]);
    assert!(bench.starts().is_empty());
    assert_eq!(bench.row("a").spec_version, crate::SpecVersion(1));
    assert!(bench.row("a").hidden);
}

#[test]
fn c8_a_cancelled_invocation_may_write_only_its_own_state() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[]), ("b", &[])]);
    let by = bench.running("a").invocation;
    bench.edit_spec("a", "2");
    let state = bench.write_state(by, "s");
    assert_eq!(
        bench.answer_to(state),
        Some(crate::Answer::StateWritten(crate::StateVersion(1)))
    );
    let edit = crate::Edit::delete(crate::Key::new("k", "b"));
    let other = bench.call_by(Some(by), Call::Apply(edit.into()));
    assert_eq!(
        bench.answer_to(other),
        Some(crate::Answer::Refused(crate::Refusal::InvocationCancelled))
    );
    let retrigger = Some(crate::Timestamp(0));
    bench.returns(
        "a",
        Returned::Done(Outcome {
            work: Work::Built,
            retrigger,
            ..Outcome::default()
        }),
    );
    assert_eq!(
        bench.row("a").next_reconcile,
        None,
        "the outcome of a cancelled invocation is dropped"
    );
    bench.finish("a");
    let late = bench.write_state(by, "t");
    assert_eq!(
        bench.answer_to(late),
        Some(crate::Answer::Refused(crate::Refusal::InvocationCancelled))
    );
}

#[test]
fn c8_waiting_from_inside_is_refused() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[])]);
    let by = bench.running("a").invocation;
    let call = bench.call_by(Some(by), Call::WaitUntilIdle);
    assert_eq!(
        bench.answer_to(call),
        Some(crate::Answer::Refused(crate::Refusal::FromInside))
    );
}

#[test]
fn c9_a_panic_is_that_invocations_error() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[])]);
    bench.returns("a", Returned::Panicked("index out of bounds".into()));
    let error = bench.row("a").error.clone().expect("an error");
    assert_eq!((&*error.code, &*error.message), ("panic", "index out of bounds"));
    bench.reconcile("a");
    bench.finish("a");
    assert_eq!(bench.row("a").error, None);
}

#[test]
fn c12_limits_hold_and_the_order_is_by_kind_and_name() {
    let mut few = KindOptions::new("few");
    few.concurrency = Some(1);
    let kinds = vec![KindOptions::new("k"), few];
    let mut bench = Bench::with(
        kinds,
        Limits {
            concurrency: 2,
            ..Limits::default()
        },
    );
    let news: Vec<_> = [("k", "b"), ("few", "z"), ("k", "A"), ("few", "y")]
        .map(|(kind, name)| crate::Edit::create(bench.new_of(kind, name, &[])))
        .into();
    bench.apply(news);
    assert_eq!(bench.starts(), ["y", "A"]);
    bench.finish("A");
    assert_eq!(bench.starts(), ["b"]);
    bench.finish("y");
    assert_eq!(bench.starts(), ["z"]);
}

#[test]
fn c3_what_waited_for_something_below_starts_when_that_is_below_no_more() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"])]);
    bench.reconcile("b");
    bench.reconcile("a");
    bench.starts();
    bench.edit_refs("b", &[]);
    assert!(bench.is_cancelled("b"));
    assert_eq!(bench.starts(), ["a"]);
}

#[test]
fn c3_what_waits_is_told_of_what_runs_below_that_comes_below_it() {
    let mut bench = Bench::with_concurrency(2);
    bench.settled(&[("busy", &[]), ("p", &[]), ("m", &[]), ("r", &["m"])]);
    for name in ["busy", "r", "p"] {
        bench.reconcile(name);
    }
    bench.edit_refs("m", &["p"]);
    bench.starts();
    bench.finish("busy");
    assert!(bench.starts().is_empty(), "\"r\" has not returned");
    bench.finish("r");
    assert_eq!(bench.starts(), ["p"]);
}
