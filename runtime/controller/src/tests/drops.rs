//! Tests that a runtime dropped around a controller ends it without a panic.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use watershed_core::{Batch, Edit, Error, KindOptions, Outcome};

use crate::{Context, Controller, Reconciler, Resource};

/// Number of rows in a batch: more than the loop writes itself, so that each commit ends in a task of its own.
const ROWS: usize = 200;
const ROUNDS: usize = 40;

#[derive(serde::Serialize, serde::Deserialize)]
struct Text(String);
crate::json_message!(Text, format = 1);

struct Nothing;

impl Reconciler for Nothing {
    type Spec = Text;
    type State = Text;

    async fn reconcile(&self, _: Context<Self>) -> Result<Outcome, Error> {
        Ok(Outcome::default())
    }
}

/// Leaves batches unfinished when the controller is dropped, before the runtime is.
async fn leave_in_the_middle() {
    let builder = Controller::builder().kind(KindOptions::new("text"), Nothing);
    let controller = builder.start().await.expect("it starts");
    let batch = |round: usize| {
        let name = |index: usize| format!("{round}-{index}");
        let edit =
            |index| Resource::declare("text", name(index).as_str(), &Text("x".into())).expect("it has bytes");
        let edits = (0..ROWS).map(|index| Edit::create(edit(index))).collect();
        Batch { edits }
    };
    for round in 0..8 {
        let (handle, batch) = (controller.handle(), batch(round));
        tokio::spawn(async move { drop(handle.edit(batch).await) });
    }
    controller.edit(batch(8)).await.expect("it is carried out");
}

#[test]
fn nothing_panics_when_the_runtime_goes_first() {
    let panics = Arc::new(AtomicUsize::new(0));
    let (counted, before) = (Arc::clone(&panics), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| {
        let of_the_loop = panic.location().is_some_and(|it| it.file().ends_with("host.rs"));
        counted.fetch_add(usize::from(of_the_loop), Ordering::SeqCst);
        before(panic);
    }));
    for _ in 0..ROUNDS {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build();
        let runtime = runtime.expect("a runtime");
        runtime.block_on(leave_in_the_middle());
    }
    assert_eq!(panics.load(Ordering::SeqCst), 0);
}
