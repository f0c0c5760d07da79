//! Tests of starts from a stored catalog.

use std::sync::Arc;
use std::time::Duration;

use crate::testing::{Bench, target};
use crate::{
    AtStart, Call, Core, Edit, Epoch, Error, KindOptions, Limits, Now, OpenError, Revision, Row, Stored,
};

fn requests_if_unsettled() -> KindOptions {
    KindOptions {
        at_start: AtStart::AskIfUnsettled,
        ..KindOptions::new("k")
    }
}

#[test]
fn a_time_that_was_to_come_is_still_to_come() {
    let mut bench = Bench::with(vec![requests_if_unsettled()], Limits::default());
    bench.create(&[("a", &[])]);
    let at = bench.now.wall.after(Duration::from_secs(10));
    bench.finish_at("a", Some(at.0));
    bench.restart();
    assert!(bench.starts().is_empty());
    bench.pass(Duration::from_secs(10));
    assert_eq!(bench.starts(), ["a"]);
}

#[test]
fn what_was_cancelled_is_asked_for() {
    let mut bench = Bench::with(vec![requests_if_unsettled()], Limits::default());
    bench.settled(&[("a", &[])]);
    bench.reconcile("a");
    bench.call(Call::Cancel(target("a")));
    bench.finish("a");
    bench.restart();
    assert_eq!(bench.starts(), ["a"]);
}

#[test]
fn deletes_keep_their_order() {
    let mut bench = Bench::new();
    bench.settled(&[("parent", &[]), ("child", &["parent"])]);
    bench.apply(vec![
        Edit::delete(target("parent")),
        Edit::delete(target("child")),
    ]);
    assert_eq!(bench.starts(), ["delete child"]);
    bench.restart();
    assert_eq!(bench.starts(), ["delete child"]);
    bench.finish("child");
    assert_eq!(bench.starts(), ["delete parent"]);
}

#[test]
fn an_error_that_speaks_of_a_cycle_goes_with_the_cycle() {
    let mut bench = Bench::with(vec![requests_if_unsettled()], Limits::default());
    bench.settled(&[("a", &["b"]), ("b", &["a"]), ("c", &[])]);
    bench.reconcile("c");
    bench.fail("c");
    // Somebody else has changed the stored catalog.
    let uid = bench.row("a").uid;
    let row = bench.rows.get_mut(&uid).expect("it is stored");
    Arc::make_mut(row).refs = [].into();
    bench.restart();
    assert_eq!((&bench.row("a").error, &bench.row("b").error), (&None, &None));
    assert!(
        bench.row("c").error.is_some(),
        "that one speaks of something else"
    );
}

fn opened(kinds: &[&str], revision: u64, rows: Vec<Arc<Row>>) -> Option<OpenError> {
    let stored = Stored {
        revision: Revision(revision),
        epoch: Epoch(9),
        rows: rows.into_iter().map(Into::into).collect(),
    };
    let kinds = kinds.iter().map(|kind| KindOptions::new(*kind)).collect();
    Core::open(Now::default(), Limits::default(), kinds, stored).err()
}

#[test]
fn a_catalog_that_contradicts_itself_is_refused() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &[])]);
    let (a, b, now) = (bench.row("a"), bench.row("b"), bench.core.revision().0);
    assert_eq!(opened(&["k"], now, vec![a.clone(), b.clone()]), None);
    let twice = OpenError::DuplicateKind("k".into());
    assert_eq!(opened(&["k", "k"], now, vec![]), Some(twice));
    let uid = a.uid;
    assert_eq!(
        opened(&["k"], now, vec![a.clone(), a.clone()]),
        Some(OpenError::DuplicateUid(uid))
    );
    let future = Some(OpenError::RowFromTheFuture(b.uid));
    assert_eq!(opened(&["k"], b.revision.0 - 1, vec![b.clone()]), future);
    let mut namesake = b.clone();
    Arc::make_mut(&mut namesake).name = "A".into();
    assert!(matches!(
        opened(&["k"], now, vec![a.clone(), namesake.clone()]),
        Some(OpenError::DuplicateName { .. })
    ));
    // One that is being deleted has given its name up.
    Arc::make_mut(&mut namesake).intents.deletion = Some(crate::Deletion {
        at: bench.now.wall,
        revision: b.revision,
    });
    assert_eq!(opened(&["k"], now, vec![a, namesake]), None);
}

#[test]
fn names_that_nobody_has_or_refers_to_are_forgotten() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    let known = |bench: &Bench| bench.core.graph().names().count();
    assert_eq!(known(&bench), 1);
    bench.create(&[("b", &["a", "c"])]);
    assert_eq!(known(&bench), 3);
    bench.finish_all();
    bench.rename("b", "d");
    assert_eq!(known(&bench), 4, "it is still to be renamed from there");
    bench.finish_all();
    assert_eq!(known(&bench), 3);
    bench.edit_refs("d", &["a"]);
    assert_eq!(known(&bench), 2);
    bench.finish_all();
    bench.delete("d");
    bench.finish_all();
    bench.apply(vec![Edit::force_delete(target("a"))]);
    assert_eq!(known(&bench), 0);
}

#[test]
fn what_could_not_be_read_has_no_time_to_come() {
    let mut bench = Bench::with(vec![requests_if_unsettled()], Limits::default());
    bench.create(&[("a", &[]), ("b", &["a"])]);
    let at = bench.now.wall.after(Duration::from_secs(10));
    bench.finish_at("a", Some(at.0));
    bench.finish("b");
    bench.restart_with(|row| (row.name.as_str() == "a").then(|| Error::permanent("format", "unknown")));
    bench.finish_all();
    bench.pass(Duration::from_secs(10));
    assert!(bench.starts().is_empty() && bench.is_idle());
}

#[test]
fn of_the_first_kinds_those_hold_back_that_a_start_asks_for_be_it_by_a_parent() {
    let first = |options| KindOptions {
        first: true,
        ..options
    };
    let unsettled = KindOptions {
        kind: "f".into(),
        ..requests_if_unsettled()
    };
    let kinds = vec![
        first(KindOptions::new("k")),
        first(unsettled),
        KindOptions::new("z"),
    ];
    let mut bench = Bench::with(kinds, Limits::default());
    let resources: [(&str, &str, &[&str]); 4] = [
        ("k", "p", &[]),
        ("f", "below", &["p"]),
        ("f", "beside", &[]),
        ("z", "other", &[]),
    ];
    let edits = resources.map(|(kind, name, parents)| Edit::create(bench.new_of(kind, name, parents)));
    bench.apply(edits.into());
    bench.finish_all();
    bench.restart();
    assert_eq!(bench.starts(), ["p"]);
    bench.finish("p");
    assert_eq!(bench.starts(), ["below"]);
    bench.finish("below");
    assert_eq!(bench.starts(), ["other"]);
}

#[test]
fn what_has_renamed_itself_is_still_to_be_renamed() {
    let mut bench = Bench::with(vec![requests_if_unsettled()], Limits::default());
    bench.settled(&[("a", &[])]);
    bench.reconcile("a");
    let by = bench.running("a").invocation;
    bench.call_by(Some(by), Call::Apply(Edit::rename(target("a"), "b").into()));
    bench.finish("a");
    bench.restart();
    assert_eq!(bench.starts(), ["rename b"], "though it saw its present spec");
}
