//! Code of embedders that panics outside of an invocation: one resource's trouble, never everybody's.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use watershed_controller::message::{DecodeError, EncodeError, Message, from_json, to_json};
use watershed_controller::resource::{Settled, Stage};
use watershed_controller::shutdown::{ShutdownError, StopReason};
use watershed_controller::store::MemoryStore;
use watershed_controller::{
    Context, Controller, Delete, EditError, Error, Outcome, Reconciler, Refusal, RequestError, Resource,
    Select, Uid, json_message,
};

use crate::task::{Ending, SOON, Task, builder, key, task};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Plain(String);
json_message!(Plain, format = 1);

/// The same bytes; what names a bomb blows up.
#[derive(Debug, Clone, PartialEq)]
struct Touchy(String);

impl Message for Touchy {
    const FORMAT: u32 = 1;

    fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        assert!(!self.0.contains("wet"), "a wet one can't be packed");
        to_json(&self.0)
    }

    fn decode(_: u32, bytes: &[u8]) -> Result<Self, DecodeError> {
        let text: String = from_json(bytes)?;
        assert!(!text.contains("bomb"), "{text} blew up");
        Ok(Self(text))
    }
}

/// Keeps what its spec says as its state.
struct Copying;

impl Reconciler for Copying {
    type Spec = Plain;
    type State = Plain;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        context.set_state(context.spec()).await?;
        Ok(Outcome::changed())
    }
}

/// Reads states that blow up, and judges in a panic what may rest.
struct Nervous;

impl Reconciler for Nervous {
    type Spec = Plain;
    type State = Touchy;

    async fn reconcile(&self, _: Context<Self>) -> Result<Outcome, Error> {
        Ok(Outcome::unchanged())
    }

    fn may_rest(&self, _: Uid, spec: &Plain, _: Option<&Touchy>) -> bool {
        assert!(spec.0 != "panics", "nobody knows");
        true
    }
}

async fn filled(texts: &[&str]) -> MemoryStore {
    let store = MemoryStore::new();
    let controller = Controller::builder().store(store.clone()).kind("note", Copying);
    let controller = controller.start().await.unwrap();
    for text in texts {
        let new = Resource::declare("note", text, &Plain((*text).into())).unwrap();
        controller.create(new).await.unwrap();
    }
    controller.wait_until_idle(SOON).await.unwrap();
    controller.shutdown(SOON).await.unwrap();
    store
}

async fn nervous(store: MemoryStore) -> Controller {
    let controller = Controller::builder().store(store).kind("note", Nervous);
    let controller = controller.start().await.unwrap();
    controller.wait_until_idle(SOON).await.unwrap();
    controller
}

#[tokio::test(start_paused = true)]
async fn what_panics_when_it_is_judged_at_a_start_is_looked_at() {
    let controller = nervous(filled(&["good", "panics"]).await).await;
    let runs = |name: &str| controller.get(name).unwrap().row.runs_total;
    assert_eq!((runs("good"), runs("panics")), (1, 2));
    controller.delete("panics").settled(SOON).await.unwrap();
    controller.shutdown(SOON).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_state_whose_decoder_panics_is_unreadable_and_kept() {
    let store = filled(&["good", "bomb"]).await;
    let controller = nervous(store.clone()).await;
    assert_eq!(controller.list(Select::new()).resources.len(), 2);
    let bomb = controller.get("bomb").unwrap();
    let Stage::Settled(Settled::Unreadable(error)) = &bomb.status.stage else {
        panic!("{:?}", bomb.status.stage);
    };
    assert!(error.message.contains("bomb blew up"), "{error:?}");
    assert!(
        bomb.state::<Touchy>().is_err(),
        "nor does it panic in whoever reads it"
    );
    controller.delete_with("bomb", Delete::Forced).await.unwrap();
    assert!(controller.get("good").is_ok());
    controller.shutdown(SOON).await.unwrap();
}

/// Reads specs that blow up.
struct Bombs;

impl Reconciler for Bombs {
    type Spec = Touchy;
    type State = ();

    async fn reconcile(&self, _: Context<Self>) -> Result<Outcome, Error> {
        Ok(Outcome::unchanged())
    }
}

#[tokio::test(start_paused = true)]
async fn a_spec_whose_decoder_or_encoder_panics_is_refused() {
    let controller = Controller::builder().kind("bomb", Bombs).start().await.unwrap();
    let new = Resource::declare("bomb", "a", &Touchy("a bomb".into())).unwrap();
    let refused = controller.create(new).await.unwrap_err();
    let EditError::Refused(Refusal::UnreadableSpec { message, .. }) = &refused else {
        panic!("{refused:?}");
    };
    assert!(message.contains("a bomb blew up"), "{message}");
    let wet = Resource::declare("bomb", "a", &Touchy("wet".into())).unwrap_err();
    assert!(wet.to_string().contains("a wet one can't be packed"), "{wet}");
    let dry = Resource::declare("bomb", "a", &Touchy("dry".into())).unwrap();
    controller.create(dry).await.unwrap();
    let update = controller.update_spec("a", &Touchy("another bomb".into()));
    assert!(matches!(
        update.await,
        Err(EditError::Refused(Refusal::UnreadableSpec { .. }))
    ));
    controller.shutdown(SOON).await.unwrap();
}

/// Panics when it is dropped.
struct Sticky;

impl Reconciler for Sticky {
    type Spec = ();
    type State = ();

    async fn reconcile(&self, _: Context<Self>) -> Result<Outcome, Error> {
        Ok(Outcome::unchanged())
    }
}

impl Drop for Sticky {
    fn drop(&mut self) {
        panic!("it sticks");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reconciler_that_panics_when_it_is_dropped_does_not_spoil_the_shutdown() {
    let controller = Controller::builder()
        .kind("sticky", Sticky)
        .start()
        .await
        .unwrap();
    controller.shutdown(SOON).await.unwrap();
    assert_eq!(controller.stopped(), Some(StopReason::Shutdown));
}

/// Everything that waits for a controller hears of its end, also where its runtime goes first.
#[test]
fn whatever_waits_for_a_controller_ends_with_its_runtime() {
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
    };
    let (of_controller, of_watcher) = (runtime().unwrap(), runtime().unwrap());
    let controller = of_controller.block_on(async {
        let controller = builder(MemoryStore::new()).start().await.unwrap();
        let hangs = task("hangs", &Task::Hang(Ending::Stay));
        controller.create(hangs).await.unwrap();
        let runs = |found: Option<&Resource>| {
            found.is_some_and(|found| matches!(found.status.stage, Stage::Running { .. }))
        };
        controller.wait_until(key("hangs"), runs, SOON).await.unwrap();
        controller
    });
    let handle = controller.handle();
    let listing = handle.list(Select::all());
    let mut watch = handle.watch(listing.revision);
    let (_, mut selected) = handle.watch_selected(Select::new());
    let waiting = handle.clone();
    let waiting = of_watcher.spawn(async move {
        while watch.next().await.is_some() {}
        while selected.next().await.is_some() {}
        let idle = waiting.wait_until_idle(SOON).await.is_err();
        let found = waiting
            .wait_until(key("never"), |found| found.is_some(), SOON)
            .await;
        idle && found.is_err()
    });
    of_controller.shutdown_timeout(Duration::from_secs(10));
    let is_refused = of_watcher.block_on(async { tokio::time::timeout(SOON, waiting).await });
    assert!(is_refused.expect("it hears of the end").unwrap());
    assert_eq!(handle.stopped(), Some(StopReason::RuntimeEnded));
    assert!(!handle.holds_instance());
    let hangs = handle.get(key("hangs")).unwrap();
    assert_eq!(
        hangs.status.stage,
        Stage::Settled(Settled::Idle),
        "nothing runs any more"
    );
    let asked = of_watcher.block_on(handle.reconcile(key("hangs")));
    assert!(matches!(asked, Err(RequestError::Refused(Refusal::ShuttingDown))));
    let stopped = of_watcher.block_on(controller.shutdown(SOON));
    assert!(matches!(stopped, Err(ShutdownError::RuntimeEnded)), "{stopped:?}");
}
