//! Tests of background operations in the executor: ends, cancels, deadlines, and other executors.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value as Json, json};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};
use watershed_stategraph::{
    CallError, Context, Executor, Extent, Graph, Handler, HandlerError, Item, ItemType, Operation, Ref,
    Report, Retry, State, Timestamp,
};

use crate::worlds::r;

/// Handler whose creates go on in the background until they get a permit or are cancelled.
#[derive(Clone)]
struct Slow {
    permits: Arc<Semaphore>,
    /// Names of items whose create fails at the end.
    failing: Arc<Mutex<Vec<String>>>,
    is_stubborn: bool,
}

impl Slow {
    fn new() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(0)),
            failing: Arc::default(),
            is_stubborn: false,
        }
    }
}

impl Handler<Json> for Slow {
    async fn create(&self, context: &Context, item: &Ref, _: &Json) -> Result<(), HandlerError> {
        context.go_on_in_background();
        tokio::select! {
            permit = self.permits.acquire() => permit.map_err(|_| HandlerError::new("closed"))?.forget(),
            () = context.cancelled().cancelled(), if !self.is_stubborn => return Err(HandlerError::new("was cancelled")),
        }
        if self
            .failing
            .lock()
            .unwrap()
            .iter()
            .any(|name| name == item.name())
        {
            return Err(HandlerError::new("no luck"));
        }
        Ok(())
    }

    async fn modify(&self, _: &Context, _: &Ref, _: &Json, _: &Json) -> Result<(), HandlerError> {
        Ok(())
    }

    async fn delete(&self, _: &Context, _: &Ref, _: &Json) -> Result<(), HandlerError> {
        Ok(())
    }
}

fn executor(slow: &Slow) -> Executor<Json> {
    let retry = Retry::Backoff {
        base_ms: 1_000,
        cap_ms: 10_000,
        attempts: None,
    };
    let start = Instant::now();
    Executor::new()
        .handle("t", ItemType::new().retry(retry), slow.clone())
        .clock(move || Timestamp(1_000 + u64::try_from(start.elapsed().as_millis()).unwrap()))
}

fn graph(names: &[&str]) -> Graph<Json> {
    let mut graph = Graph::new("g");
    for name in names {
        graph.insert(Item::new(r(name), json!({"v": 1}))).unwrap();
    }
    graph
}

async fn converge(executor: &Executor<Json>, current: &mut Graph<Json>, intended: &Graph<Json>) -> Report {
    let report = executor
        .converge(current, Some(intended), &Extent::Everything)
        .await;
    report.unwrap()
}

/// Returns true if no operation ends now or within a minute.
async fn is_silent(executor: &Executor<Json>) -> bool {
    timeout(Duration::from_secs(60), executor.ended()).await.is_err()
}

#[test]
fn s7_cancels_are_heard_from_outside_of_a_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    let slow = Slow::new();
    let (mut current, intended) = (Graph::new("g"), graph(&["t/a", "t/b"]));
    let executor = runtime.block_on(async {
        let executor = executor(&slow);
        converge(&executor, &mut current, &intended).await;
        executor
    });
    assert_eq!(executor.cancel("g", |_, _| true), 2);
    assert_eq!(executor.cancel("g", |_, _| true), 0, "each is cancelled once");
    runtime.block_on(async {
        assert_eq!(executor.ended().await.as_deref(), Some("g"));
        let report = converge(&executor, &mut current, &intended).await;
        assert_eq!(report.status.failed.len(), 2);
    });
}

#[tokio::test(start_paused = true)]
async fn s7_a_graph_is_named_once_however_much_has_ended() {
    let slow = Slow::new();
    let executor = executor(&slow);
    let (mut current, intended) = (Graph::new("g"), graph(&["t/a", "t/b", "t/c"]));
    converge(&executor, &mut current, &intended).await;
    slow.permits.add_permits(3);
    executor.wait("g").await;
    assert_eq!(executor.ended().await.as_deref(), Some("g"));
    assert!(is_silent(&executor).await);
    // What a call has taken up is no news any more.
    let (mut current, intended) = (Graph::new("h"), {
        let mut other = Graph::new("h");
        other.insert(Item::new(r("t/a"), json!(1))).unwrap();
        other
    });
    converge(&executor, &mut current, &intended).await;
    slow.permits.add_permits(1);
    executor.wait("h").await;
    assert!(
        converge(&executor, &mut current, &intended)
            .await
            .status
            .is_converged()
    );
    assert!(is_silent(&executor).await);
}

#[tokio::test(start_paused = true)]
async fn s7_a_cancel_that_was_heard_is_told_once() {
    let executor = executor(&Slow::new());
    let (mut current, intended) = (Graph::new("g"), graph(&["t/a", "t/b"]));
    converge(&executor, &mut current, &intended).await;
    executor.cancel("g", |item, _| item.name() == "a");
    executor.cancel("g", |item, _| item.name() == "b");
    executor.wait("g").await;
    assert_eq!(executor.ended().await.as_deref(), Some("g"));
    assert!(is_silent(&executor).await, "no deadline is left");
}

#[tokio::test(start_paused = true)]
async fn s7_one_that_does_not_react_is_told_when_its_time_is_up_and_listed_until_it_returns() {
    let slow = Slow {
        is_stubborn: true,
        ..Slow::new()
    };
    let executor = executor(&slow);
    let (mut current, intended) = (Graph::new("g"), graph(&["t/a"]));
    converge(&executor, &mut current, &intended).await;
    let before = Instant::now();
    executor.cancel("g", |_, _| true);
    assert_eq!(executor.ended().await.as_deref(), Some("g"));
    assert_eq!(before.elapsed(), Duration::from_secs(10));
    let report = converge(&executor, &mut current, &intended).await;
    assert_eq!(
        current.get(&r("t/a")).map(Item::state),
        Some(State::Failed(Operation::Create))
    );
    assert_eq!(report.status.running, [(r("t/a"), Operation::Create)]);
    let entry = &report.log.entries[0];
    assert_eq!(
        (entry.cancelled, entry.end),
        (Some(Timestamp(1_000)), Some(Timestamp(11_000)))
    );
    slow.permits.add_permits(1);
    executor.wait("g").await;
    let report = converge(&executor, &mut current, &intended).await;
    assert_eq!(report.status.running, []);
}

#[tokio::test(start_paused = true)]
async fn s5_the_wait_for_a_retry_begins_when_the_operation_ended() {
    let slow = Slow::new();
    slow.failing.lock().unwrap().push("a".to_owned());
    let executor = executor(&slow);
    let (mut current, intended) = (Graph::new("g"), graph(&["t/a"]));
    converge(&executor, &mut current, &intended).await;
    sleep(Duration::from_millis(50)).await;
    slow.permits.add_permits(1);
    executor.wait("g").await;
    // Nobody looks for a while, but less than the retry's wait.
    sleep(Duration::from_millis(900)).await;
    let report = converge(&executor, &mut current, &intended).await;
    let failure = current.get(&r("t/a")).and_then(Item::failure).unwrap();
    assert_eq!(failure.last, Timestamp(1_050));
    assert_eq!(report.status.next, Some(Timestamp(2_050)));
    // Once it is over, the call that looks tries again at once.
    sleep(Duration::from_millis(200)).await;
    let report = converge(&executor, &mut current, &intended).await;
    assert_eq!(report.status.running.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn s12_the_log_says_how_an_operation_of_an_earlier_call_ended() {
    let slow = Slow::new();
    slow.failing.lock().unwrap().push("b".to_owned());
    let executor = executor(&slow);
    let (mut current, mut intended) = (Graph::new("g"), graph(&["t/a", "t/b", "t/c"]));
    let report = converge(&executor, &mut current, &intended).await;
    assert!(report.log.entries.iter().all(|entry| entry.end.is_none()));
    sleep(Duration::from_millis(100)).await;
    executor.cancel_and_wait("g", |item, _| item.name() == "c").await;
    sleep(Duration::from_millis(100)).await;
    slow.permits.add_permits(2);
    executor.wait("g").await;
    intended.insert(Item::new(r("t/d"), json!(1))).unwrap();
    sleep(Duration::from_millis(100)).await;
    let report = converge(&executor, &mut current, &intended).await;
    let lines: Vec<String> = report.log.to_string().lines().map(str::to_owned).collect();
    assert_eq!(
        lines,
        [
            "create t/a: is intended, 200 ms",
            "create t/b: is intended, failed: no luck",
            "create t/c: is intended, cancelled after 100 ms, failed: was cancelled",
            "create t/d: is intended, goes on",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn s7_all_of_a_graphs_background_work_can_be_waited_for_and_ended() {
    let slow = Slow::new();
    let executor = executor(&slow);
    let (mut current, intended) = (Graph::new("g"), graph(&["t/a", "t/b"]));
    executor.wait("g").await; // nothing is under way
    converge(&executor, &mut current, &intended).await;
    assert!(
        timeout(Duration::from_secs(60), executor.wait("g"))
            .await
            .is_err()
    );
    slow.permits.add_permits(1);
    assert!(
        timeout(Duration::from_secs(60), executor.wait("g"))
            .await
            .is_err(),
        "one goes on"
    );
    assert_eq!(executor.cancel_and_wait("g", |_, _| true).await, 1);
    executor.wait("g").await;
    let status = converge(&executor, &mut current, &intended).await.status;
    assert_eq!((status.running.len(), status.failed.len()), (0, 1));
    // One that does not react is waited for until its time is up.
    let stubborn = Slow {
        is_stubborn: true,
        ..Slow::new()
    };
    let executor = self::executor(&stubborn);
    let mut current = Graph::new("g");
    converge(&executor, &mut current, &intended).await;
    let before = Instant::now();
    assert_eq!(executor.cancel_and_wait("g", |_, _| true).await, 2);
    assert_eq!(before.elapsed(), Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn s7_what_one_executor_has_under_way_another_does_not_take_for_a_crash() {
    let slow = Slow::new();
    let first = executor(&slow);
    let (mut current, intended) = (Graph::new("g"), graph(&["t/a"]));
    converge(&first, &mut current, &intended).await;
    let second = executor(&slow);
    let stored = serde_json::to_string(&current).unwrap();
    let mut read: Graph<Json> = serde_json::from_str(&stored).unwrap();
    for graph in [&mut current, &mut read] {
        let refused = second.converge(graph, Some(&intended), &Extent::Everything).await;
        assert_eq!(refused, Err(CallError::HeldElsewhere("g".to_owned())));
        let refused = second.plan(graph, Some(&intended), &Extent::Everything).await;
        assert_eq!(refused, Err(CallError::HeldElsewhere("g".to_owned())));
    }
    // An executor that is dropped leaves its operations behind; only then they count as interrupted.
    drop(first);
    assert!(
        second
            .converge(&mut read, Some(&intended), &Extent::Everything)
            .await
            .is_err()
    );
    slow.permits.add_permits(1);
    while second
        .converge(&mut read, Some(&intended), &Extent::Everything)
        .await
        .is_err()
    {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        read.get(&r("t/a")).map(Item::state),
        Some(State::Failed(Operation::Create))
    );
    // A graph on which nothing is under way belongs to nobody.
    let third = executor(&slow);
    slow.permits.add_permits(1);
    let mut settled = Graph::new("h");
    let empty = Graph::new("h");
    second
        .converge(&mut settled, Some(&empty), &Extent::Everything)
        .await
        .unwrap();
    third
        .converge(&mut settled, Some(&empty), &Extent::Everything)
        .await
        .unwrap();
}

#[tokio::test]
async fn s10_a_type_that_is_registered_twice_is_an_error_before_anything_runs() {
    let slow = Slow::new();
    let executor = executor(&slow).handle("t", ItemType::new(), slow.clone());
    let mut current = Graph::new("g");
    let intended = graph(&["t/a"]);
    let refused = executor
        .converge(&mut current, Some(&intended), &Extent::Everything)
        .await;
    assert_eq!(refused, Err(CallError::TypeTwice("t".to_owned())));
    assert!(current.is_empty());
}
