//! Exhaustive tests of small worlds with readiness and owners, where a resource affects another that is not its child,
//! or that another process judged.

use crate::testing::{Bench, target};
use crate::{
    AtStart, Call, Edit, Error, KindOptions, Limits, Outcome, Ref, Required, Returned, Settled, Stage,
    StoredRow,
};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Pairs of a resource and an earlier one that it may read or belong to.
const PAIRS: [(usize, usize); 3] = [(1, 0), (2, 0), (2, 1)];

/// Lists all ways to choose one of `choices` for each of three resources.
fn choices_of(choices: usize) -> impl Iterator<Item = [usize; 3]> {
    let all = choices * choices * choices;
    (0..all).map(move |number| {
        [
            number % choices,
            number / choices % choices,
            number / choices / choices,
        ]
    })
}

/// Lets every running invocation return, until none is left.
fn return_all(bench: &mut Bench, result: impl Fn(usize) -> Returned) {
    while let Some(start) = bench.running.first() {
        let name = start.resource.name.to_string();
        let index = NAMES.iter().position(|known| *known == name);
        bench.returns(&name, result(index.expect("one of the three")));
    }
}

fn outcome(choice: usize) -> Returned {
    match choice {
        0 => Returned::Done(Outcome::changed()),
        1 => Returned::Done(Outcome::unchanged().unready("it starts")),
        _ => Returned::Failed(Error::permanent("broken", "it does not work")),
    }
}

fn reading(edges: [usize; 3], at_start: AtStart) -> Bench {
    let options = KindOptions {
        at_start,
        ..KindOptions::new("k")
    };
    let mut bench = Bench::with(vec![options], Limits::default());
    for (index, name) in NAMES.iter().enumerate() {
        let refs = PAIRS.iter().zip(edges).filter(|((from, _), _)| *from == index);
        let refs = refs.filter_map(|((_, to), edge)| {
            let required = match edge {
                0 => return None,
                1 => Required::Completed,
                _ => Required::Ready,
            };
            Some(Ref {
                required,
                ..Ref::completed("k", NAMES[*to])
            })
        });
        let refs: Vec<Ref> = refs.collect();
        let new = bench.new_resource(name, &[]).with_refs(refs);
        bench.apply(vec![Edit::create(new)]);
    }
    bench
}

#[test]
fn whatever_a_process_left_unready_or_failed_is_well_once_the_next_one_finds_it_well() {
    for edges in choices_of(3) {
        for left in choices_of(3) {
            for (at_start, may_rest) in [
                (AtStart::AskAlways, false),
                (AtStart::AskIfUnsettled, false),
                (AtStart::AskAlways, true),
            ] {
                let world = || format!("edges {edges:?}, left as {left:?}, {at_start:?}, {may_rest}");
                let mut bench = reading(edges, at_start);
                return_all(&mut bench, |index| outcome(left[index]));
                bench.starts();
                bench.restart_from(|stored| StoredRow { may_rest, ..stored });
                return_all(&mut bench, |_| outcome(0));
                for (index, name) in NAMES.iter().enumerate() {
                    assert_eq!(bench.stage(name), Stage::Settled(Settled::Idle), "{}", world());
                    let row = bench.row(name);
                    assert!(row.last_run.is_some() && row.unready.is_none(), "{}", world());
                    let asked = row.last_run.as_ref().is_some_and(|last| last.epoch.0 > 1);
                    let rests = at_start == AtStart::AskIfUnsettled || may_rest;
                    let was_well = left == [0; 3];
                    assert!(
                        asked || (rests && left[index] == 0),
                        "{}: {name} never ran",
                        world()
                    );
                    assert!(
                        !(asked && rests && was_well),
                        "{}: {name} ran for nothing",
                        world()
                    );
                }
            }
        }
    }
}

/// Builds three settled resources, each with an earlier one as its owner or with none; none if an owner isn't earlier.
fn owned(owners: [usize; 3]) -> Option<Bench> {
    let mut bench = Bench::new();
    for (index, name) in NAMES.iter().enumerate() {
        let mut new = bench.new_resource(name, &[]);
        match owners[index] {
            0 => {}
            owner if owner <= index => new.owner = Some(bench.row(NAMES[owner - 1]).uid),
            _ => return None,
        }
        bench.apply(vec![Edit::create(new)]);
    }
    bench.finish_all();
    Some(bench)
}

#[test]
fn what_goes_with_its_owner_is_deleted_by_its_reconciler_first_whoever_asks() {
    for owners in choices_of(3) {
        let owner_of = |index: usize| owners[index].checked_sub(1);
        let goes_with = |index: usize, gone: usize| {
            let mut at = Some(index);
            while let Some(here) = at.filter(|here| *here != gone) {
                at = owner_of(here);
            }
            at.is_some()
        };
        for (by, gone) in (0..9).map(|number| (number / 3, number % 3)) {
            let Some(mut bench) = owned(owners) else { continue };
            let world = format!("owners {owners:?}, {} deletes {}", NAMES[by], NAMES[gone]);
            bench.reconcile(NAMES[by]);
            let running = bench.running(NAMES[by]).invocation;
            bench.starts();
            let edit = Edit::delete(target(NAMES[gone]));
            bench.call_by(Some(running), Call::Apply(edit.into()));
            let mut deleted = bench.finish_all();
            deleted.retain(|start| start.starts_with("delete "));
            let place = |index: usize| {
                deleted
                    .iter()
                    .position(|it| *it == format!("delete {}", NAMES[index]))
            };
            for (index, name) in NAMES.iter().enumerate() {
                let goes = goes_with(index, gone);
                let by_itself = index == by && by == gone;
                assert_eq!(place(index).is_some(), goes && !by_itself, "{world}: {deleted:?}");
                if let (Some(here), Some(owner)) = (place(index), owner_of(index).and_then(place)) {
                    assert!(here < owner, "{world}: {deleted:?}");
                }
                let is_there = bench.rows.values().any(|row| row.name.as_str() == *name);
                assert_eq!(is_there, !goes, "{world}");
            }
        }
    }
}
