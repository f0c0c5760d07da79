//! Tests of graphs stored during a call, and of the state after a crash.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;
use watershed_stategraph::{
    Context, Dependency, Executor, Extent, Graph, Handler, HandlerError, Item, ItemType, Observed,
    PersistError, PersistFuture, Persister, Ref, Report, State,
};

use crate::worlds::r;

/// Outside world of the handlers, and the graph stored last.
#[derive(Default)]
struct Outside {
    things: Vec<Ref>,
    stored: Option<Graph<Json>>,
    writes: usize,
    under_way: usize,
    /// Operations that began although the stored graph did not announce them.
    unannounced: Vec<String>,
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Outside>>);

impl Shared {
    /// Records an operation as unannounced, unless the stored graph has the item in this state.
    fn begin(&self, item: &Ref, state: State) {
        let mut outside = self.0.lock().unwrap();
        let stored = outside.stored.as_ref().and_then(|graph| graph.get(item));
        let stored = stored.map(Item::state);
        if stored != Some(state) {
            outside.unannounced.push(format!("{item}: {stored:?}"));
        }
    }

    fn things(&self) -> Vec<Ref> {
        self.0.lock().unwrap().things.clone()
    }
}

impl Handler<Json> for Shared {
    async fn create(&self, _: &Context, item: &Ref, _: &Json) -> Result<(), HandlerError> {
        self.begin(item, State::Creating);
        tokio::task::yield_now().await;
        let mut outside = self.0.lock().unwrap();
        if !outside.things.contains(item) {
            outside.things.push(item.clone());
        }
        Ok(())
    }

    async fn modify(&self, _: &Context, item: &Ref, _: &Json, _: &Json) -> Result<(), HandlerError> {
        self.begin(item, State::Modifying);
        Ok(())
    }

    async fn delete(&self, _: &Context, item: &Ref, _: &Json) -> Result<(), HandlerError> {
        self.begin(item, State::Deleting);
        self.0.lock().unwrap().things.retain(|one| one != item);
        Ok(())
    }

    async fn observe(&self, item: &Ref, known: &Json) -> Observed<Json> {
        if self.things().contains(item) {
            Observed::Present(known.clone())
        } else {
            Observed::Absent
        }
    }
}

impl Persister<Json> for Shared {
    fn persist(&mut self, current: &Graph<Json>) -> PersistFuture {
        let (outside, graph) = (Arc::clone(&self.0), current.clone());
        Box::pin(async move {
            outside.lock().unwrap().under_way += 1;
            // Others go on meanwhile.
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
            let mut outside = outside.lock().unwrap();
            outside.under_way -= 1;
            assert_eq!(outside.under_way, 0, "one write at a time");
            outside.writes += 1;
            outside.stored = Some(graph);
            Ok(())
        })
    }
}

fn executor(shared: &Shared) -> Executor<Json> {
    Executor::new()
        .handle("t", ItemType::new(), shared.clone())
        .handle("o", ItemType::new().observes(), shared.clone())
}

async fn converge(
    executor: &Executor<Json>,
    current: &mut Graph<Json>,
    intended: Option<&Graph<Json>>,
    persister: &mut dyn Persister<Json>,
) -> Result<Report, PersistError> {
    let never = CancellationToken::new();
    executor
        .converge_persisted(current, intended, &Extent::Everything, persister, &never)
        .await
}

fn wide(kind: &str, size: usize) -> Graph<Json> {
    let mut graph = Graph::new("g");
    let base = r(&format!("{kind}/base"));
    graph.insert(Item::new(base.clone(), json!(1))).unwrap();
    for at in 0..size {
        let item = Item::new(r(&format!("{kind}/{at}")), json!(1));
        graph.insert(item.needs(Dependency::on(base.clone()))).unwrap();
    }
    graph
}

#[tokio::test]
async fn s7_nothing_starts_before_the_stored_graph_says_so_where_no_handler_observes() {
    let shared = Shared::default();
    let executor = executor(&shared);
    let mut current = Graph::new("g");
    let (first, mut second) = (wide("t", 40), wide("t", 20));
    second.put(Item::new(r("t/base"), json!(2))).unwrap();
    for intended in [Some(&first), Some(&second), None] {
        let report = converge(&executor, &mut current, intended, &mut shared.clone()).await;
        assert!(report.unwrap().status.is_converged());
        let outside = shared.0.lock().unwrap();
        assert_eq!(outside.unannounced, [""; 0]);
        assert_eq!(outside.stored.as_ref(), Some(&current), "the end is stored");
    }
}

#[tokio::test]
async fn writes_are_shared_by_all_that_ended_meanwhile() {
    let shared = Shared::default();
    let (mut current, intended) = (Graph::new("g"), wide("t", 160));
    converge(
        &executor(&shared),
        &mut current,
        Some(&intended),
        &mut shared.clone(),
    )
    .await
    .unwrap();
    let writes = shared.0.lock().unwrap().writes;
    assert!(writes < 100, "{writes} writes for 161 items");
}

#[tokio::test]
async fn a_call_that_changes_nothing_writes_nothing() {
    let shared = Shared::default();
    let executor = executor(&shared);
    let (mut current, intended) = (Graph::new("g"), wide("t", 5));
    let mut writes = Vec::new();
    for _ in 0..2 {
        converge(&executor, &mut current, Some(&intended), &mut shared.clone())
            .await
            .unwrap();
        writes.push(shared.0.lock().unwrap().writes);
    }
    assert_eq!(writes[0], writes[1]);
}

/// Polls a future once; returns true if it is ready.
async fn is_ready<F: Future>(mut future: Pin<&mut F>) -> bool {
    std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready())).await
}

/// Runs a future in a runtime of its own, which stands for a process: tasks still running end with it.
fn process<T>(life: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(life)
}

#[test]
fn after_a_crash_at_any_moment_everything_is_found_again() {
    for kind in ["o", "t"] {
        for polls in 1..40 {
            let shared = Shared::default();
            process(async {
                let (mut current, intended) = (Graph::new("g"), wide(kind, 3));
                let (first, mut persister) = (executor(&shared), shared.clone());
                let mut call =
                    std::pin::pin!(converge(&first, &mut current, Some(&intended), &mut persister));
                for _ in 0..polls {
                    if is_ready(call.as_mut()).await {
                        break;
                    }
                    tokio::task::yield_now().await;
                }
            });
            // Another process has what was stored. It wants none of it any more.
            let stored = shared.0.lock().unwrap().stored.clone();
            let mut stored = stored.unwrap_or_else(|| Graph::new("g"));
            let later = Shared::default();
            later.0.lock().unwrap().things = shared.things();
            process(async {
                let second = executor(&later);
                second.recheck(&mut stored);
                converge(&second, &mut stored, None, &mut later.clone())
                    .await
                    .unwrap();
            });
            assert!(stored.is_empty(), "{kind}, {polls} polls");
            assert_eq!(later.things(), [], "{kind}, {polls} polls");
        }
    }
}

#[tokio::test]
async fn a_graph_that_cannot_be_stored_stops_the_call_before_anything_is_made() {
    struct Broken;
    impl Persister<Json> for Broken {
        fn persist(&mut self, _: &Graph<Json>) -> PersistFuture {
            Box::pin(std::future::ready(Err("the disk is full".to_owned())))
        }
    }
    let shared = Shared::default();
    let (mut current, intended) = (Graph::new("g"), wide("t", 3));
    let result = converge(&executor(&shared), &mut current, Some(&intended), &mut Broken).await;
    assert_eq!(
        result,
        Err(PersistError::NotStored("the disk is full".to_owned()))
    );
    assert_eq!(shared.things(), []);
}

#[tokio::test]
async fn a_call_that_is_halted_starts_nothing_more() {
    let shared = Shared::default();
    let (mut current, intended) = (Graph::new("g"), wide("t", 3));
    let (mut persister, halt) = (shared.clone(), CancellationToken::new());
    halt.cancel();
    let executor = executor(&shared);
    executor
        .converge_persisted(
            &mut current,
            Some(&intended),
            &Extent::Everything,
            &mut persister,
            &halt,
        )
        .await
        .unwrap();
    assert_eq!(shared.things(), []);
    // What was not started did not fail: the next call has no reason to wait.
    let report = converge(&executor, &mut current, Some(&intended), &mut persister).await;
    assert!(report.unwrap().status.is_converged());
}
