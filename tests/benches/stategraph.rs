//! The speed of state graphs. `--json` prints one line for each figure, with its target; `--items N` takes another size
//! than 100,000.
#![allow(clippy::print_stdout, clippy::unwrap_used)] // a program for people and scripts to read

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use watershed_stategraph::{
    Context, Dependency, Executor, Extent, Graph, Handler, HandlerError, Item, ItemType, Operations, Ref,
    Timestamp, Types, Value, plan,
};

/// Counts the bytes that are held, for `bytes_per_item`.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);

#[allow(unsafe_code)]
// SAFETY: every call is handed on unchanged to the system's allocator; only a number is kept beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
struct Number(u64);

impl Value for Number {}

struct Nothing;

impl Handler<Number> for Nothing {
    async fn create(&self, _: &Context, _: &Ref, _: &Number) -> Result<(), HandlerError> {
        Ok(())
    }

    async fn modify(&self, _: &Context, _: &Ref, _: &Number, _: &Number) -> Result<(), HandlerError> {
        Ok(())
    }

    async fn delete(&self, _: &Context, _: &Ref, _: &Number) -> Result<(), HandlerError> {
        Ok(())
    }
}

const NEEDS: usize = 10;
const ROUNDS: usize = 5;

fn refs(size: usize) -> Vec<Ref> {
    (0..size)
        .map(|at| Ref::new("item", &format!("{at:06}")).unwrap())
        .collect()
}

/// Each item needs the ten before it. Nothing is shared with another rendering but the refs.
fn render(refs: &[Ref]) -> Graph<Number> {
    let mut graph = Graph::new("bench");
    for (at, reference) in refs.iter().enumerate() {
        let needs = refs[at.saturating_sub(NEEDS)..at]
            .iter()
            .cloned()
            .map(Dependency::on)
            .collect();
        graph
            .insert(Item::new(reference.clone(), Number(0)).with_dependencies(needs))
            .unwrap();
    }
    graph
}

struct Figures {
    create_s: f64,
    noop_ms: f64,
    one_change_us: f64,
    plan_s: f64,
    bytes_per_item: f64,
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

async fn measure(size: usize) -> Figures {
    let executor = Executor::new().handle("item", ItemType::new(), Nothing);
    let mut types = Types::new();
    types.register("item", ItemType::new());
    let refs = refs(size);
    let (mut create, mut noop, mut one, mut planned) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let mut intended = render(&refs);
        let mut current = Graph::new("bench");
        let start = Instant::now();
        let found = plan(
            &types,
            &current,
            &Operations::default(),
            Some(&intended),
            &Extent::Everything,
            Timestamp(0),
            &mut |_, _, _| Ok(false),
        );
        planned.push(start.elapsed().as_secs_f64());
        assert_eq!(found.unwrap().operations.len(), size);

        let start = Instant::now();
        let report = executor
            .converge(&mut current, Some(&intended), &Extent::Everything)
            .await
            .unwrap();
        create.push(start.elapsed().as_secs_f64());
        assert!(report.status.is_converged());

        // Rendered anew, as a reconciler would.
        let again = render(&refs);
        let start = Instant::now();
        let report = executor
            .converge(&mut current, Some(&again), &Extent::Everything)
            .await
            .unwrap();
        noop.push(start.elapsed().as_secs_f64() * 1e3);
        assert_eq!(report.log.entries.len(), 0);

        // The item in the middle: half of all items depend on it through others.
        let middle = &refs[size / 2];
        let changed = Extent::Changed(BTreeSet::from([middle.clone()]));
        for value in 1..=20 {
            let item = intended.get(middle).unwrap().clone();
            intended.put(item.with_value(Number(value))).unwrap();
            let start = Instant::now();
            let report = executor
                .converge(&mut current, Some(&intended), &changed)
                .await
                .unwrap();
            // The first call finds the order of the graph, which stays for as long as edges do.
            if value > 1 {
                one.push(start.elapsed().as_secs_f64() * 1e6);
            }
            assert_eq!(report.log.entries.len(), 1);
        }
    }
    let before = HELD.load(Ordering::Relaxed);
    let graph = render(&refs);
    let held = HELD.load(Ordering::Relaxed) - before;
    drop(graph);
    // Not counted: the value, and the refs that edges hold.
    let of_embedder = size_of::<Number>() + NEEDS * size_of::<Ref>();
    Figures {
        create_s: median(create),
        noop_ms: median(noop),
        one_change_us: median(one),
        plan_s: median(planned),
        bytes_per_item: held as f64 / size as f64 - of_embedder as f64,
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let json = arguments.iter().any(|one| one == "--json");
    let items = arguments
        .iter()
        .position(|one| one == "--items")
        .and_then(|at| arguments.get(at + 1));
    let size: usize = items.and_then(|text| text.parse().ok()).unwrap_or(100_000);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (small, large) = runtime.block_on(async { (measure(size / 10).await, measure(size).await) });
    let lines = [
        ("create_100k_s", large.create_s, 1.0),
        ("noop_100k_ms", large.noop_ms, 50.0),
        ("one_change_100k_us", large.one_change_us, 100.0),
        ("growth_100k_over_10k", large.create_s / small.create_s, 12.0),
        ("plan_100k_s", large.plan_s, 0.7),
        ("bytes_per_item", large.bytes_per_item, 512.0),
    ];
    for (name, value, target) in lines {
        if json {
            println!(
                "{}",
                serde_json::json!({"name": name, "value": value, "target": target, "items": size})
            );
        } else {
            println!("{name:24} {value:10.3} (at most {target})");
        }
    }
}
