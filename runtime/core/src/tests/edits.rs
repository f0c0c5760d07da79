//! Tests of edits: no-op edits, edits by the resource's own invocation, and the requests that follow.

use crate::testing::{Bench, refs_edit, target};
use crate::{
    Answer, Applied, Call, Edit, Key, KindOptions, Limits, NewResource, Ref, Refusal, SpecVersion, Trigger,
    Uid, Update,
};

fn update(bench: &mut Bench, update: Update) -> (u64, SpecVersion) {
    let before = bench.core.revision();
    let call = bench.apply(vec![Edit::update(target("b"), update)]);
    let Some(Answer::Applied(Applied { revision, uids })) = bench.answer_to(call) else {
        panic!("refused");
    };
    assert_eq!(uids, [bench.row("b").uid]);
    (revision.0 - before.0, bench.row("b").spec_version)
}

#[test]
fn an_update_to_what_is_there_changes_nothing_and_any_other_does() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"])]);
    let row = bench.row("b");
    let same = [
        Update {
            spec: Some((row.spec.clone(), row.spec_format)),
            ..Update::default()
        },
        Update {
            refs: Some(row.refs.clone()),
            ..Update::default()
        },
        Update {
            paths: Some(row.paths.clone()),
            ..Update::default()
        },
        Update {
            labels: Some(row.labels.clone()),
            ..Update::default()
        },
        Update {
            owner: Some(row.owner),
            ..Update::default()
        },
        Update {
            hidden: Some(row.hidden),
            ..Update::default()
        },
        Update::default(),
    ];
    for nothing in same {
        assert_eq!(update(&mut bench, nothing), (0, SpecVersion(1)));
        assert!(bench.is_idle());
    }
    let other = [
        (
            Update {
                paths: Some(["b.sql".into()].into()),
                ..Update::default()
            },
            1,
        ),
        (
            Update {
                labels: Some(
                    [("x".into(), "y".into())]
                        .into_iter()
                        .collect::<std::collections::BTreeMap<_, _>>()
                        .into(),
                ),
                ..Update::default()
            },
            1,
        ),
        (
            Update {
                owner: Some(Some(Uid(uuid::Uuid::from_u128(1)))),
                ..Update::default()
            },
            1,
        ),
        (
            Update {
                hidden: Some(true),
                ..Update::default()
            },
            1,
        ),
        (
            Update {
                spec: Some((row.spec.clone(), row.spec_format + 1)),
                ..Update::default()
            },
            2,
        ),
        (
            Update {
                spec: Some((b"other".as_slice().into(), row.spec_format + 1)),
                ..Update::default()
            },
            3,
        ),
        (
            Update {
                refs: Some([].into()),
                ..Update::default()
            },
            4,
        ),
    ];
    for (something, version) in other {
        assert_eq!(update(&mut bench, something), (1, SpecVersion(version)));
        bench.finish_all();
    }
}

#[test]
fn a_rename_to_the_name_that_it_has_changes_nothing_and_one_of_its_case_does() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    let before = bench.core.revision();
    bench.rename("a", "a");
    assert_eq!((bench.core.revision(), bench.is_idle()), (before, true));
    bench.rename("a", "A");
    assert_eq!(bench.starts(), ["rename A"]);
    assert!(bench.core.revision() > before && !bench.is_idle());
}

#[test]
fn request_2_asks_those_who_refer_to_a_name_that_somebody_gets() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("child", &["b"])]);
    bench.rename("a", "b");
    let told = bench.core.explain(&target("child")).expect("it is known");
    assert_eq!(
        told.reason.map(|reason| reason.trigger),
        Some(Trigger::RefChanged)
    );
}

#[test]
fn what_is_deleted_already_asks_nobody_when_it_is_given_up_on() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("child", &["a"])]);
    let uid = bench.row("a").uid;
    bench.delete("a");
    bench.fail("a");
    bench.finish_all();
    bench.apply(vec![Edit::force_delete(uid)]);
    assert!(bench.starts().is_empty());
    assert_eq!(bench.rows.len(), 1);
}

#[test]
fn c6_a_delete_waits_for_no_delete_that_nobody_can_carry_out() {
    let (old, kind) = (KindOptions::new("old"), KindOptions::new("k"));
    let mut bench = Bench::with(vec![old, kind.clone()], Limits::default());
    bench.create(&[("parent", &[])]);
    let child = bench.new_of("old", "child", &["parent"]);
    bench.apply(vec![Edit::create(child)]);
    bench.finish("parent");
    let by = bench.running("child").invocation;
    bench.write_state(by, "made");
    bench.finish("child");
    bench.register(vec![kind]);
    bench.restart();
    bench.finish_all();
    bench.apply(vec![
        Edit::delete(Key::new("old", "child")),
        Edit::delete(target("parent")),
    ]);
    assert_eq!(bench.starts(), ["delete parent"]);
}

#[test]
fn c5_own_refs_to_what_is_settled_cancel_nothing() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &[])]);
    bench.reconcile("b");
    let by = bench.running("b").invocation;
    bench.call_by(Some(by), Call::Apply(refs_edit("b", &["a"]).into()));
    assert!(!bench.is_cancelled("b"));
    bench.finish("b");
    assert!(bench.is_idle());
    let seen = bench.row("b").last_run.clone().and_then(|run| run.seen.clone());
    assert_eq!(
        seen.map(|seen| seen.refs.len()),
        Some(1),
        "its own refs count as seen"
    );
}

#[test]
fn c5_an_own_spec_cancels_nothing_though_something_above_is_asked_for() {
    let mut bench = Bench::with_one_below();
    let by = bench.running("b").invocation;
    let spec = Some((b"own".as_slice().into(), 1));
    let edit = Edit::update(
        target("b"),
        Update {
            spec,
            ..Update::default()
        },
    );
    bench.call_by(Some(by), Call::Apply(edit.into()));
    assert!(!bench.is_cancelled("b"));
    assert_eq!(bench.row("b").refs[..], [Ref::completed("k", "a")]);
}

#[test]
fn kinds_and_names_that_can_not_be_ones_are_refused_at_the_door() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    let long = "n".repeat(crate::NAME_MAX + 1);
    let bad = ["", "a/b", "a\nb", "\u{7f}", long.as_str()];
    let mut refused = |edit: Edit| {
        let call = bench.apply(vec![edit]);
        bench.answer_to(call)
    };
    for text in bad {
        let uid = crate::Uid(uuid::Uuid::from_u128(77));
        let name = NewResource::new(uid, "k", text, *b"");
        let kind = NewResource::new(uid, text, "n", *b"");
        let edits = [
            Edit::create(name.clone()),
            Edit::apply(name),
            Edit::create(kind),
            Edit::rename(target("a"), text),
        ];
        for edit in edits {
            let answer = refused(edit);
            let is_refused = matches!(answer, Some(Answer::Refused(Refusal::InvalidName { .. })));
            assert!(is_refused, "{text:?}: {answer:?}");
        }
    }
    let fits = Edit::rename(target("a"), &*"n".repeat(crate::NAME_MAX));
    assert!(matches!(refused(fits), Some(Answer::Applied(_))));
}

#[test]
fn a_kind_that_nobody_registered_is_refused_unless_it_is_allowed() {
    let uid = crate::Uid(uuid::Uuid::from_u128(77));
    let new = NewResource::new(uid, "foreign", "f", *b"");
    let mut bench = Bench::new();
    let call = bench.apply(vec![Edit::create(new.clone())]);
    let refusal = Refusal::UnregisteredKind("foreign".into());
    assert_eq!(bench.answer_to(call), Some(Answer::Refused(refusal)));
    let limits = Limits::default().unregistered_kinds();
    let mut bench = Bench::with(vec![KindOptions::new("k")], limits);
    let call = bench.apply(vec![Edit::create(new)]);
    assert!(matches!(bench.answer_to(call), Some(Answer::Applied(_))));
}

#[test]
fn a_passive_kind_is_taken_and_never_run() {
    let passive = |kind: &str| {
        let mut options = KindOptions::new(kind);
        options.passive = true;
        options
    };
    // Also in front of others, and registered twice.
    let kinds = vec![passive("note"), KindOptions::new("k"), passive("note")];
    let mut bench = Bench::with(kinds, Limits::default());
    let note = bench.new_of("note", "n", &[]);
    let call = bench.apply(vec![Edit::create(note)]);
    assert!(matches!(bench.answer_to(call), Some(Answer::Applied(_))));
    bench.create(&[("a", &[])]);
    assert_eq!(bench.finish_all(), ["a"]);
}
