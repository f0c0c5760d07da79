//! Tests of cost: work grows with what is touched, and no faster.

use crate::testing::{Bench, target};
use crate::{Batch, Call, Edit, Key, KindOptions, Limits};

fn counted(bench: &mut Bench, work: impl FnOnce(&mut Bench)) -> u64 {
    let before = bench.core.counters();
    work(bench);
    let after = bench.core.counters();
    (after.nodes - before.nodes) + (after.edges - before.edges)
}

fn ratio(size: usize, build: impl Fn(usize) -> Bench, work: impl Fn(&mut Bench)) -> f64 {
    let cost = |size: usize| counted(&mut build(size), &work) as f64;
    cost(2 * size) / cost(size)
}

fn graph(size: usize, parent: impl Fn(usize) -> Option<usize>) -> Bench {
    let mut bench = Bench::with(
        vec![KindOptions::new("k")],
        Limits {
            concurrency: 4,
            ..Limits::default()
        },
    );
    bench.unchecked = true;
    let name = |index: usize| format!("n{index:05}");
    let edits = (0..size).map(|index| {
        let parents: Vec<String> = parent(index).map(name).into_iter().collect();
        let parents: Vec<&str> = parents.iter().map(String::as_str).collect();
        Edit::create(bench.new_resource(&name(index), &parents))
    });
    let edits: Vec<Edit> = edits.collect();
    bench.call(Call::Apply(Batch { edits }));
    bench.finish_all();
    bench
}

fn chain(size: usize) -> Bench {
    graph(size, |index| index.checked_sub(1))
}

fn fan(size: usize) -> Bench {
    graph(size, |index| (index > 0).then_some(0))
}

#[test]
fn asking_for_the_root_of_a_chain_or_a_fan_is_linear() {
    let ask = |bench: &mut Bench| {
        bench.reconcile("n00000");
        bench.finish_all();
    };
    assert!(ratio(300, chain, ask) <= 2.2);
    assert!(ratio(300, fan, ask) <= 2.2);
}

#[test]
fn starting_up_is_linear() {
    let restart = |bench: &mut Bench| {
        bench.restart();
        bench.finish_all();
    };
    let cost = |size| {
        let mut bench = chain(size);
        restart(&mut bench);
        let counters = bench.core.counters();
        (counters.nodes + counters.edges) as f64
    };
    assert!(cost(600) / cost(300) <= 2.2);
}

#[test]
fn renaming_everything_in_one_batch_is_linear() {
    let rename = |bench: &mut Bench| {
        let keys: Vec<Key> = bench.rows.values().map(|row| row.key()).collect();
        let edits = keys.into_iter().map(|key| {
            let name = format!("m{}", key.name);
            Edit::rename(key, name.as_str())
        });
        let edits = edits.collect();
        bench.apply(edits);
        bench.finish_all();
    };
    assert!(ratio(200, chain, rename) <= 2.2);
}

#[test]
fn asking_for_what_is_pending_costs_the_same_at_any_size() {
    let again = |size| {
        let mut bench = fan(size);
        bench.reconcile("n00000");
        counted(&mut bench, |bench| {
            bench.call(Call::Nudge(target("n00001")));
            bench.reconcile("n00002");
        })
    };
    assert_eq!(again(50), again(100));
}
