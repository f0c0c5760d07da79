//! Small graphs, and random generation of them.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value as Json, json};
use watershed_stategraph::{
    Dependency, Graph, Item, ItemType, Operator, Predicate, Ref, ReplaceOrder, Retry, Types,
};

pub(crate) fn r(text: &str) -> Ref {
    Ref::parse(text).unwrap()
}

/// Registers the types: `t` deletes first, `n` creates first, `o` observes, `y` is never tried again. Type `e`, for
/// external items, has no handler. A change of `k` in a value needs a recreate.
pub(crate) fn types() -> Types<Json> {
    let mut types = Types::new();
    let item_type = |name| ItemType::new().retry(retry_of(name));
    types.register("t", item_type("t"));
    types.register("n", item_type("n").replace(ReplaceOrder::CreateFirst));
    types.register("o", item_type("o").observes());
    types.register("y", item_type("y"));
    types
}

/// Returns the retry policy of a type.
pub(crate) fn retry_of(type_name: &str) -> Retry {
    match type_name {
        "y" => Retry::Never,
        _ => Retry::Backoff {
            base_ms: 1_000,
            cap_ms: 10_000,
            attempts: None,
        },
    }
}

pub(crate) fn needs_recreate(old: &Json, new: &Json) -> bool {
    old["k"] != new["k"]
}

pub(crate) struct Drawing {
    pub(crate) items: usize,
    pub(crate) features: bool,
}

pub(crate) fn rng(seed: u64) -> SmallRng {
    SmallRng::seed_from_u64(seed)
}

/// Draws the refs that all graphs of one seed use, of several types.
pub(crate) fn refs(rng: &mut SmallRng, drawing: &Drawing) -> Vec<Ref> {
    (0..drawing.items)
        .map(|at| {
            let kind = match rng.random_range(0..10) {
                0..=6 => "t",
                7..=8 if drawing.features => "n",
                9 if drawing.features => "e",
                _ => "t",
            };
            r(&format!("{kind}/{at:02}"))
        })
        .collect()
}

pub(crate) fn draw(rng: &mut SmallRng, refs: &[Ref], drawing: &Drawing) -> Graph<Json> {
    let mut graph = Graph::new("g");
    // Mostly acyclic: a hidden order, another one in each graph.
    let mut order: Vec<usize> = (0..refs.len()).collect();
    if rng.random_bool(0.5) {
        for at in (1..order.len()).rev() {
            order.swap(at, rng.random_range(0..=at));
        }
    }
    for (at, &which) in order.iter().enumerate() {
        if refs[which].type_name() == "e" || rng.random_bool(0.25) {
            continue;
        }
        let mut needs = Vec::new();
        for _ in 0..rng.random_range(0..3) {
            let back = drawing.features && rng.random_bool(0.01);
            let pool = if back { refs.len() } else { at };
            if pool > 0 {
                let pick = |rng: &mut SmallRng| refs[order[rng.random_range(0..pool)]].clone();
                let first = pick(rng);
                let second = pick(rng);
                if let Some(need) = draw_need(rng, first, second, drawing) {
                    needs.push(need);
                }
            }
        }
        needs.retain(|need: &Dependency| !need.targets().any(|target| *target == refs[which]));
        graph
            .insert(Item::new(refs[which].clone(), draw_value(rng)).with_dependencies(needs))
            .unwrap();
    }
    graph
}

fn draw_need(rng: &mut SmallRng, first: Ref, second: Ref, drawing: &Drawing) -> Option<Dependency> {
    if !drawing.features {
        return Some(Dependency::on(first));
    }
    let need = match rng.random_range(0..10) {
        0..=6 => Dependency::on(first),
        7..=8 if first != second => Dependency::any_of(first, [second]),
        9 => return Some(Dependency::on(first).order_only()),
        _ => return None,
    };
    let need = if rng.random_bool(0.25) {
        let least = rng.random_range(0..3);
        need.when(Predicate::field("v", Operator::Ge, json!(least)))
    } else {
        need
    };
    Some(if rng.random_bool(0.15) {
        need.recreate_when_modified()
    } else {
        need
    })
}

pub(crate) fn draw_value(rng: &mut SmallRng) -> Json {
    json!({"v": rng.random_range(0..4), "k": i32::from(rng.random_bool(0.15))})
}

/// Removes all external items, and puts some of them back with random values.
pub(crate) fn draw_externals(rng: &mut SmallRng, refs: &[Ref], current: &mut Graph<Json>) {
    for reference in refs.iter().filter(|reference| reference.type_name() == "e") {
        current.remove(reference);
        if rng.random_bool(0.6) {
            current
                .put(Item::external(
                    reference.clone(),
                    json!({"v": rng.random_range(0..4), "k": 0}),
                ))
                .unwrap();
        }
    }
}
