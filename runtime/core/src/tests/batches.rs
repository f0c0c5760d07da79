//! Tests of batches: their edits, and refusals that change nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::testing::{Bench, refs_edit, target};
use crate::{
    Answer, Call, CallId, Edit, Expect, Key, NewResource, Ref, Refusal, RetryPolicy, SpecVersion, Uid, Update,
};

fn refusal(bench: &Bench, call: CallId) -> Option<Refusal> {
    match bench.answer_to(call) {
        Some(Answer::Refused(refusal)) => Some(refusal),
        _ => None,
    }
}

/// Applies edits that must be refused, checks that nothing has changed, and returns the refusal.
fn refused(bench: &mut Bench, edits: Vec<Edit>) -> Refusal {
    let before = bench.core.revision();
    let call = bench.apply(edits);
    assert_eq!((bench.core.revision(), bench.is_idle()), (before, true));
    refusal(bench, call).expect("it is refused")
}

fn settled() -> Bench {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &[])]);
    bench
}

fn spec(name: &str, text: &str) -> Edit {
    let spec = Some((text.as_bytes().into(), 1));
    Edit::update(
        target(name),
        Update {
            spec,
            ..Update::default()
        },
    )
}

fn contradiction() -> Refusal {
    Refusal::Contradiction(Key::new("k", "a"))
}

#[test]
fn an_edit_is_refused_unless_it_finds_what_it_expects() {
    let mut bench = settled();
    let (key, a, b) = (Key::new("k", "a"), bench.row("a").uid, bench.row("b").uid);
    let expecting = |uid, spec_version| spec("a", "new").expecting(Expect { uid, spec_version });
    let (expected, found) = (SpecVersion(2), SpecVersion(1));
    let stale = Refusal::StaleSpec {
        key: key.clone(),
        expected,
        found,
    };
    assert_eq!(refused(&mut bench, vec![expecting(None, Some(expected))]), stale);
    let other = Refusal::OtherUid {
        key,
        expected: b,
        found: a,
    };
    assert_eq!(refused(&mut bench, vec![expecting(Some(b), Some(found))]), other);
    let call = bench.apply(vec![expecting(Some(a), Some(found))]);
    assert_eq!(refusal(&bench, call), None);
}

#[test]
fn edits_of_one_resource_may_say_the_same_and_nothing_else() {
    let mut bench = settled();
    let rename = |to: &str| Edit::rename(target("a"), to);
    let delete = || Edit::delete(target("a"));
    for edits in [
        vec![spec("a", "one"), spec("a", "other")],
        vec![rename("c"), rename("C")],
        vec![spec("a", "one"), delete()],
        vec![rename("c"), delete()],
        vec![delete(), spec("a", "one")],
        vec![delete(), rename("c")],
        vec![delete(), Edit::force_delete(target("a"))],
    ] {
        assert_eq!(refused(&mut bench, edits.clone()), contradiction(), "{edits:?}");
    }
    let call = bench.apply(vec![rename("c"), spec("a", "one"), spec("a", "one"), rename("c")]);
    assert_eq!(refusal(&bench, call), None);
}

#[test]
fn updates_of_one_resource_contradict_each_other_in_any_column() {
    let mut bench = settled();
    let uid = |number| Some(Uid(uuid::Uuid::from_u128(number)));
    let labels = |text: &str| Arc::new(BTreeMap::from([(Arc::from("label"), Arc::from(text))]));
    let one = Update {
        spec: Some((b"one".as_slice().into(), 1)),
        refs: Some([Ref::completed("k", "b")].into()),
        paths: Some(["one.sql".into()].into()),
        labels: Some(labels("one")),
        owner: Some(uid(1)),
        hidden: Some(true),
        retry: Some(Some(RetryPolicy::Never)),
    };
    let others = [
        Update {
            spec: Some((b"one".as_slice().into(), 2)),
            ..one.clone()
        },
        Update {
            refs: Some([].into()),
            ..one.clone()
        },
        Update {
            paths: Some(["other.sql".into()].into()),
            ..one.clone()
        },
        Update {
            labels: Some(labels("other")),
            ..one.clone()
        },
        Update {
            owner: Some(None),
            ..one.clone()
        },
        Update {
            hidden: Some(false),
            ..one.clone()
        },
        Update {
            retry: Some(None),
            ..one.clone()
        },
    ];
    for other in others {
        let edits = [one.clone(), other.clone()].map(|update| Edit::update(target("a"), update));
        assert_eq!(refused(&mut bench, edits.into()), contradiction(), "{other:?}");
    }
    // What they say together is done: the rest of the columns is the other's.
    let halves = [
        Update {
            spec: None,
            paths: None,
            owner: None,
            ..one.clone()
        },
        Update {
            refs: None,
            labels: None,
            hidden: None,
            retry: None,
            ..one.clone()
        },
    ];
    bench.apply(halves.map(|update| Edit::update(target("a"), update)).into());
    let row = bench.row("a");
    let whole = Update {
        spec: Some((row.spec.clone(), row.spec_format)),
        refs: Some(row.refs.clone()),
        paths: Some(row.paths.clone()),
        labels: Some(row.labels.clone()),
        owner: Some(row.owner),
        hidden: Some(row.hidden),
        retry: Some(row.retry.as_deref().copied()),
    };
    assert_eq!(whole, one);
}

#[test]
fn two_creates_of_one_name_must_be_the_same() {
    let mut bench = settled();
    let new = bench.new_resource("c", &[]);
    let other = NewResource {
        hidden: true,
        ..new.clone()
    };
    let both =
        |one: &NewResource, other: &NewResource| vec![Edit::create(one.clone()), Edit::create(other.clone())];
    let refusal_of_c = Refusal::Contradiction(Key::new("k", "c"));
    assert_eq!(refused(&mut bench, both(&new, &other)), refusal_of_c);
    let call = bench.apply(both(&new, &new));
    assert_eq!(refusal(&bench, call), None);
    bench.finish_all();
    // The same where a create means a full update.
    let replace =
        |one: &NewResource, other: &NewResource| [vec![Edit::delete(target("c"))], both(one, other)].concat();
    assert_eq!(refused(&mut bench, replace(&new, &other)), refusal_of_c);
    let call = bench.apply(replace(&other, &other));
    assert_eq!((refusal(&bench, call), bench.row("c").hidden), (None, true));
}

#[test]
fn delete_and_create_are_one_full_update() {
    let mut bench = settled();
    let (uid, mut new) = (bench.row("a").uid, bench.new_resource("a", &["b"]));
    new.spec = b"other".as_slice().into();
    bench.apply(vec![Edit::create(new), Edit::delete(target("a"))]);
    let row = bench.row("a");
    assert_eq!(
        (row.uid, &*row.spec, row.refs.len()),
        (uid, b"other".as_slice(), 1)
    );
    assert_eq!(bench.finish_all(), ["a"]);
}

#[test]
fn a_create_beside_a_forced_delete_takes_up_nothing() {
    let mut bench = settled();
    let old = bench.row("a").uid;
    bench.delete("a");
    let new = bench.new_resource("a", &[]);
    let uid = new.uid;
    bench.apply(vec![Edit::force_delete(old), Edit::create(new)]);
    assert_eq!(bench.row("a").uid, uid);
    bench.finish_all();
    assert_eq!(bench.rows.len(), 2);
}

#[test]
fn a_name_that_stays_taken_is_refused() {
    let mut bench = settled();
    let (a, b) = (bench.row("a").uid, bench.row("b").uid);
    let taken = |refusal: Refusal| match refusal {
        Refusal::NameTaken { key, first, second } => (key, [first, second]),
        other => panic!("{other:?}"),
    };
    let rename = || Edit::rename(target("b"), "a");
    assert_eq!(
        taken(refused(&mut bench, vec![rename()])),
        (Key::new("k", "a"), [a, b])
    );
    let beside_an_update = vec![spec("a", "new"), rename()];
    assert_eq!(taken(refused(&mut bench, beside_an_update)).1, [a, b]);
    let new = bench.new_resource("a", &[]);
    let beside_a_replacement = vec![Edit::delete(target("a")), Edit::create(new), rename()];
    let (_, mut both) = taken(refused(&mut bench, beside_a_replacement));
    both.sort();
    assert_eq!(both, [a, b]);
}

#[test]
fn a_uid_is_used_once() {
    let mut bench = settled();
    let mut new = bench.new_resource("c", &[]);
    let second = NewResource {
        name: "d".into(),
        ..new.clone()
    };
    let twice = vec![Edit::create(new.clone()), Edit::create(second)];
    assert_eq!(refused(&mut bench, twice), Refusal::UidTaken(new.uid));
    new.uid = bench.row("a").uid;
    assert_eq!(
        refused(&mut bench, vec![Edit::create(new.clone())]),
        Refusal::UidTaken(new.uid)
    );
}

#[test]
fn deleting_what_is_deleted_changes_nothing() {
    let mut bench = settled();
    let uid = bench.row("a").uid;
    bench.delete("a");
    bench.starts();
    let before = bench.core.revision();
    bench.apply(vec![Edit::delete(uid)]);
    assert_eq!(bench.core.revision(), before);
    assert!(!bench.running.is_empty() && bench.cancelled.is_empty());
}

#[test]
fn a_refresh_raises_the_counter_that_it_is_for() {
    let mut bench = settled();
    for (full, plain_and_full) in [(false, (1, 0)), (false, (2, 0)), (true, (2, 1)), (true, (2, 2))] {
        bench.call(Call::Refresh {
            target: target("a"),
            full,
        });
        assert_eq!(bench.finish_all(), ["a"]);
        let refreshes = bench.row("a").refreshes;
        assert_eq!((refreshes.plain, refreshes.full), plain_and_full);
    }
}

#[test]
fn what_could_not_be_read_is_neither_edited_nor_paused() {
    let mut bench = settled();
    bench
        .restart_with(|row| (row.name.as_str() == "a").then(|| crate::Error::permanent("format", "unknown")));
    bench.finish_all();
    let unreadable = Some(Refusal::Unreadable(Key::new("k", "a")));
    for call in [
        Call::Pause(target("a")),
        Call::Resume(target("a")),
        Call::Refresh {
            target: target("a"),
            full: false,
        },
        Call::Apply(refs_edit("a", &["b"]).into()),
    ] {
        let call = bench.call(call);
        assert_eq!(refusal(&bench, call), unreadable);
    }
}

#[test]
fn a_state_is_written_where_it_was_expected_and_only_if_it_is_another() {
    use crate::StateVersion;
    let mut bench = Bench::new();
    bench.create(&[("a", &[])]);
    let by = Some(bench.running("a").invocation);
    let write = |bench: &mut Bench, text: &str, expected| {
        let (state, expected) = (text.as_bytes().into(), Some(StateVersion(expected)));
        let call = bench.call_by(by, Call::WriteState { state, expected });
        bench.answer_to(call)
    };
    let written = |version| Some(Answer::StateWritten(StateVersion(version)));
    assert_eq!(write(&mut bench, "one", 0), written(1));
    let revision = bench.core.revision();
    assert_eq!(write(&mut bench, "one", 1), written(1));
    assert_eq!(bench.core.revision(), revision);
    assert_eq!(write(&mut bench, "two", 1), written(2));
    let (expected, found) = (StateVersion(1), StateVersion(2));
    let stale = Refusal::StaleState {
        key: Key::new("k", "a"),
        expected,
        found,
    };
    assert_eq!(write(&mut bench, "three", 1), Some(Answer::Refused(stale)));
    assert_eq!(bench.row("a").state.as_deref(), Some(b"two".as_slice()));
}

#[test]
fn what_is_being_deleted_is_found_by_its_uid_and_its_name() {
    let mut bench = settled();
    let uid = bench.row("a").uid;
    bench.delete("a");
    for by in [uid.into(), target("a"), crate::Target::Name("a".into())] {
        assert_eq!(
            bench.core.explain(&by).map(|told| told.subject.uid),
            Ok(uid),
            "{by:?}"
        );
    }
    bench.finish_all();
    let unknown = bench.core.explain(&uid.into()).map(|told| told.subject.uid);
    assert_eq!(unknown, Err(Refusal::Unknown(uid.to_string())));
}

#[test]
fn who_keeps_a_name_is_told_first_also_if_it_says_so_itself() {
    let mut bench = settled();
    let (a, b) = (bench.row("a").uid, bench.row("b").uid);
    let edits = vec![Edit::rename(target("a"), "b"), Edit::rename(target("b"), "b")];
    match refused(&mut bench, edits) {
        Refusal::NameTaken { first, second, .. } => assert_eq!((first, second), (b, a)),
        other => panic!("{other:?}"),
    }
}
