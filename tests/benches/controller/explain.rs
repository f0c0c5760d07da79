//! Explanations while the loop is busy: of a hundred thousand resources, in the shapes that cost most to explain.

use std::time::{Duration, Instant};

use watershed_controller::reconciler::{ErrorKind, RefView};
use watershed_controller::resource::Stage;
use watershed_controller::store::MemoryStore;
use watershed_controller::{
    Context, Controller, Error, Handle, Key, KindOptions, Limits, Outcome, Reconciler,
};
use watershed_tests::measure::{Report, Unit};

use crate::world::{CHAIN, LAYERS, Shape, batch, finish, idle, name};

const COUNT: usize = 100_000;
const SAMPLES: usize = 3;
/// The time for which it is asked while the loop is kept busy.
const BUSY: Duration = Duration::from_secs(3);

/// One root, half of all read it, one reads all of these, and the rest read that one.
const BOW: Shape = |number| match number {
    0 => Vec::new(),
    _ if number <= COUNT / 2 => vec![0],
    _ if number == COUNT / 2 + 1 => (1..=COUNT / 2).collect(),
    _ => vec![COUNT / 2 + 1],
};

/// Fails where nothing is read, and everywhere below that.
struct Failing;

impl Reconciler for Failing {
    type Spec = ();
    type State = ();

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        match context.refs().iter().find(|view: &&RefView| view.failed) {
            Some(view) => {
                let kind = ErrorKind::Dependency(view.reference.clone());
                Err(Error::new(kind, "blocked", "a ref has failed"))
            }
            None if context.refs().is_empty() => Err(Error::permanent("broken", "it does not work")),
            None => Ok(Outcome::default()),
        }
    }
}

pub(crate) async fn measure(report: &Report) {
    if !report.wants("explain_100k_ms") {
        return;
    }
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        let mut longest = Duration::ZERO;
        for shape in [LAYERS, CHAIN, BOW] {
            longest = longest.max(longest_explanation(shape).await);
        }
        samples.push(longest.as_secs_f64() * 1e3);
    }
    report.print("explain_100k_ms", Unit::Milliseconds, samples);
}

/// The longest wait for an explanation of the last resources, asked one after the other while the roots are asked for
/// again and again, and then of what has failed.
async fn longest_explanation(shape: Shape) -> Duration {
    let limits = Limits::default().concurrency(1_024);
    let builder = Controller::builder()
        .store(MemoryStore::new())
        .limits(limits)
        .kind(KindOptions::new("thing"), Failing);
    let controller = builder.start().await.expect("the controller starts");
    controller
        .edit(batch(0..COUNT, shape))
        .await
        .expect("the batch is taken");
    let began = Instant::now();
    let mut longest = Duration::ZERO;
    let mut number = COUNT;
    while began.elapsed() < BUSY {
        number = if number <= COUNT - 1_000 { COUNT } else { number } - 1;
        longest = longest.max(explanation(controller.as_ref(), number).await);
        if is_settled(controller.as_ref()) {
            controller.reconcile(key(0)).await.expect("it is asked for");
        }
    }
    idle(&controller).await;
    for number in COUNT - 100..COUNT {
        longest = longest.max(explanation(controller.as_ref(), number).await);
    }
    finish(controller).await;
    longest
}

fn key(number: usize) -> Key {
    Key::new("thing", name(number).as_str())
}

fn is_settled(handle: &Handle) -> bool {
    let last = handle.get(key(COUNT - 1)).expect("it is there");
    matches!(last.status.stage, Stage::Settled(_))
}

async fn explanation(handle: &Handle, number: usize) -> Duration {
    let asked = Instant::now();
    handle.explain(key(number)).await.expect("it is explained");
    asked.elapsed()
}
