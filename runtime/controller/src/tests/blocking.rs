//! Tests that reconcilers which block their threads hold nothing else up while a thread of the runtime is free.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use watershed_core::{Error, Key, Outcome, RunOutcome};

use crate::sync::Unpoisoned;
use crate::tests::support::{Nothing, SOON, thing, things};
use crate::{Context, Controller, KindOptions, Reconciler, Resource, Select, Update};

const ROUNDS: usize = 60;

/// Reconciler that blocks its thread until it may go on, without telling the runtime.
struct Blocker {
    has_begun: UnboundedSender<()>,
    /// Permissions to go on. One invocation at a time waits for one; the others block on the lock.
    goes_on: Arc<Mutex<Receiver<()>>>,
    /// True if the invocation sleeps before it blocks, and so blocks as a task of its own.
    waits_first: bool,
}

impl Reconciler for Blocker {
    type Spec = ();
    type State = ();

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        if self.waits_first {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        context.progress("about to block");
        let _ = self.has_begun.send(());
        let goes_on = self.goes_on.lock().unpoisoned();
        match goes_on.recv_timeout(SOON) {
            Err(RecvTimeoutError::Timeout) => Err(Error::permanent("stuck", "nothing went on meanwhile")),
            Ok(()) | Err(RecvTimeoutError::Disconnected) => Ok(Outcome::default()),
        }
    }
}

/// Reconciler that sleeps for a millisecond.
struct Nap;

impl Reconciler for Nap {
    type Spec = ();
    type State = ();

    async fn reconcile(&self, _context: Context<Self>) -> Result<Outcome, Error> {
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok(Outcome::default())
    }
}

fn runtime(threads: usize) -> Runtime {
    let runtime = Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build();
    runtime.expect("a runtime")
}

struct Bench {
    controller: Controller,
    has_begun: UnboundedReceiver<()>,
    go_on: Sender<()>,
}

async fn start(options: KindOptions, waits_first: bool) -> Bench {
    let (begun, has_begun) = unbounded_channel();
    let (go_on, goes_on) = channel();
    let blocker = Blocker {
        has_begun: begun,
        goes_on: Arc::new(Mutex::new(goes_on)),
        waits_first,
    };
    let controller = Controller::builder()
        .kind(options, blocker)
        .kind(KindOptions::new("nap"), Nap)
        .kind(KindOptions::new("thing"), Nothing)
        .start();
    Bench {
        controller: controller.await.expect("it starts"),
        has_begun,
        go_on,
    }
}

impl Bench {
    /// Blocks one thread, and does all other work meanwhile.
    async fn round(&mut self, number: usize) {
        let name = format!("blocker{number}");
        let blocker = Resource::declare("blocker", &name, &()).expect("it has bytes");
        self.controller.create(blocker).await.expect("it is recorded");
        self.has_begun.recv().await.expect("it begins");
        self.work(number).await;
        self.go_on.send(()).expect("it waits");
        let waited = self.controller.wait_until_idle(SOON).await;
        waited.expect("it ends");
        let ended = self.controller.get(Key::new("blocker", name.as_str()));
        assert_eq!(ended.expect("it is there").row.error, None, "round {number}");
    }

    async fn work(&self, number: usize) {
        let controller = &self.controller;
        let name = format!("{number}");
        controller
            .create(thing(&format!("x{name}")))
            .await
            .expect("recorded");
        let nap = Resource::declare("nap", &name, &()).expect("it has bytes");
        controller.create(nap).await.expect("recorded");
        let key = Key::new("nap", name.as_str());
        let mut asked = controller.reconcile(key.clone()).await.expect("recorded");
        let outcome = asked.outcome(SOON).await.expect("it runs");
        assert!(matches!(outcome, RunOutcome::Done { .. }));
        let updated = controller.update(key, Update::default()).await;
        updated.expect("recorded");
        if number == 0 {
            // More rows than the loop writes itself: this commit ends in the committer's task.
            controller.edit(things(200)).await.expect("recorded");
        }
    }
}

fn play(threads: usize, waits_first: bool) {
    runtime(threads).block_on(async {
        let mut bench = start(KindOptions::new("blocker"), waits_first).await;
        for number in 0..ROUNDS {
            bench.round(number).await;
        }
        bench.controller.shutdown(SOON).await.expect("it stops in order");
    });
}

#[test]
fn a_reconciler_that_blocks_one_of_two_threads_holds_nothing_else_up() {
    play(2, false);
    play(2, true);
}

#[test]
fn a_reconciler_that_blocks_one_of_four_threads_holds_nothing_else_up() {
    play(4, false);
    play(4, true);
}

#[test]
fn a_kind_that_blocks_runs_on_threads_for_that_up_to_its_bound() {
    runtime(1).block_on(async {
        let mut options = KindOptions::new("blocker").blocking();
        options = options.concurrency(2);
        let mut bench = start(options, false).await;
        for number in 0..3 {
            let blocker =
                Resource::declare("blocker", &format!("blocker{number}"), &()).expect("it has bytes");
            bench.controller.create(blocker).await.expect("it is recorded");
        }
        // The only thread of the runtime is free.
        bench.has_begun.recv().await.expect("one begins");
        bench.work(0).await;
        let running = Select::kind("blocker").running();
        assert!(bench.controller.list(running).resources.len() <= 2);
        for _ in 0..3 {
            bench.go_on.send(()).expect("it waits");
        }
        bench.controller.wait_until_idle(SOON).await.expect("all end");
        assert_eq!(bench.controller.stats().failed, 0);
        bench.controller.shutdown(SOON).await.expect("it stops in order");
    });
}
