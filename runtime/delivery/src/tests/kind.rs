//! Tests of the notification kind in a real controller, with receivers whose answers are scripted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;
use watershed_controller::clock::TokioClock;
use watershed_controller::shutdown::ShutdownError;
use watershed_controller::store::MemoryStore;
use watershed_controller::{Controller, Handle, Key, Refresh, Resource, Select, Timestamp, Uid};
use watershed_locks::Unpoisoned;

use super::message;
use crate::message::Message;
use crate::notification::{Connect, KIND, Notification, Notifications, Receiver};
use crate::notify::{Attempt, BoxFuture, DeliveryError, Notifier, Receipt};
use crate::policy;
use crate::{Record, Standing};

/// Time limit in simulated time, far above any delay.
const LONG: Duration = Duration::from_secs(90 * 24 * 3_600);

/// Initial time of the simulated clock.
const START: Timestamp = Timestamp(1_800_000_000_000);

/// A receiver that records messages and gives scripted answers; without any left, it accepts.
#[derive(Clone, Default)]
struct Post {
    told: Arc<Mutex<Vec<(String, u32)>>>,
    answers: Arc<Mutex<VecDeque<Answer>>>,
    at_once: Arc<Mutex<(usize, usize)>>,
}

enum Answer {
    Fails(DeliveryError),
    Hangs,
    /// Accepts the message once the channel is signalled.
    Takes(oneshot::Receiver<()>),
}

impl Notifier for Post {
    fn deliver<'a>(
        &'a self,
        message: &'a Message,
        attempt: Attempt<'a>,
    ) -> BoxFuture<'a, Result<Receipt, DeliveryError>> {
        Box::pin(async move {
            let told = (message.title.clone(), attempt.number);
            self.told.lock().unpoisoned().push(told);
            let answer = self.answers.lock().unpoisoned().pop_front();
            match answer {
                Some(Answer::Hangs) => std::future::pending().await,
                Some(Answer::Fails(error)) => Err(error),
                Some(Answer::Takes(when)) => {
                    when.await.expect("it is told");
                    Ok(Receipt {
                        said: "too late".to_owned(),
                    })
                }
                None => {
                    self.enter();
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    self.at_once.lock().unpoisoned().0 -= 1;
                    Ok(Receipt::default())
                }
            }
        })
    }
}

impl Post {
    fn enter(&self) {
        let mut at_once = self.at_once.lock().unpoisoned();
        at_once.0 += 1;
        at_once.1 = at_once.1.max(at_once.0);
    }

    fn told(&self) -> Vec<(String, u32)> {
        self.told.lock().unpoisoned().clone()
    }

    fn answer(&self, answers: impl IntoIterator<Item = Answer>) {
        self.answers.lock().unpoisoned().extend(answers);
    }
}

impl Connect for Post {
    fn connect(&self, _: &Handle, receiver: &Receiver) -> Result<(Arc<dyn Notifier>, String), DeliveryError> {
        Ok((Arc::new(self.clone()), receiver.to.clone()))
    }

    fn redact(&self, text: String) -> String {
        text.replace("hidden", "[TOKEN]")
    }
}

struct World {
    controller: Controller,
    store: MemoryStore,
    post: Post,
}

impl World {
    async fn start(store: MemoryStore, post: Post) -> Self {
        let builder = Controller::builder()
            .clock(TokioClock::starting_at(START))
            .store(store.clone());
        let kind = Notifications::new(post.clone()).without_jitter();
        let controller = kind.register(builder).start().await.expect("it starts");
        Self {
            controller,
            store,
            post,
        }
    }

    async fn new() -> Self {
        Self::start(MemoryStore::new(), Post::default()).await
    }

    async fn create(&self, sender: Uid, order: u64, title: &str, to: &str) -> Uid {
        let mut message = message(title);
        message.title = title.to_owned();
        let spec = Notification {
            message,
            receiver: Receiver {
                connector: "post".to_owned(),
                to: to.to_owned(),
                variables: Default::default(),
            },
            sender,
            order,
        };
        let new = spec.declare().expect("it can be encoded");
        let uid = new.uid;
        self.controller.create(new).await.expect("it is new");
        uid
    }

    fn record(&self, uid: Uid) -> Option<Record> {
        let found = self.controller.get(uid).ok()?;
        found.state().expect("it can be read")
    }

    async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let mut changes = self
            .controller
            .watch(self.controller.list(Select::all()).revision);
        while !holds(self) {
            let changed = tokio::time::timeout(LONG, changes.next()).await;
            assert!(changed.is_ok(), "{what}");
        }
    }

    async fn settle(&self) {
        let idle = self.controller.wait_until_idle(LONG).await;
        idle.expect("it becomes idle");
    }

    fn is_delivered(&self, uid: Uid) -> bool {
        let record = self.record(uid);
        record.is_some_and(|record| matches!(record.standing, Standing::Delivered { .. }))
    }

    fn is_dead(&self, uid: Uid) -> bool {
        let record = self.record(uid);
        record.is_some_and(|record| matches!(record.standing, Standing::Dead { .. }))
    }
}

fn titles(told: &[(String, u32)]) -> Vec<&str> {
    told.iter().map(|(title, _)| title.as_str()).collect()
}

fn fails(times: usize) -> impl Iterator<Item = Answer> {
    (0..times).map(|_| Answer::Fails(DeliveryError::transient("no, hidden")))
}

/// Covers rules N7, N8.
#[tokio::test(start_paused = true)]
async fn a_message_is_tried_again_until_it_is_delivered_and_goes_after_a_week() {
    let world = World::new().await;
    world.post.answer(fails(3));
    let sender = Resource::fresh_uid();
    let uid = world.create(sender, 1, "late", "ops").await;
    world.settle().await;
    let record = world.record(uid).expect("it was tried");
    assert_eq!(
        (record.attempts, record.failure.as_deref()),
        (1, Some("no, [TOKEN]"))
    );
    world
        .until("it is delivered", |world| world.is_delivered(uid))
        .await;
    let expected: Vec<_> = (1..=4).map(|number| ("late".to_owned(), number)).collect();
    assert_eq!(world.post.told(), expected);
    world.settle().await;
    tokio::time::sleep(policy::KEEP_DELIVERED - Duration::from_secs(60)).await;
    assert!(world.is_delivered(uid), "it is kept");
    world
        .until("it goes", |world| world.controller.get(uid).is_err())
        .await;
    assert_eq!(world.post.told().len(), 4, "and was not sent again");
}

/// Covers rule N8.
#[tokio::test(start_paused = true)]
async fn a_dead_message_is_an_error_until_somebody_sends_it_again() {
    let world = World::new().await;
    world
        .post
        .answer([Answer::Fails(DeliveryError::permanent("gone"))]);
    let uid = world.create(Resource::fresh_uid(), 1, "late", "ops").await;
    world.until("it is dead", |world| world.is_dead(uid)).await;
    world.settle().await;
    let row = world.controller.get(uid).expect("it is kept").row;
    let error = row.error.as_ref().expect("it has failed");
    assert_eq!(&*error.code, crate::notification::DEAD);
    assert!(error.message.contains("gone"), "{}", error.message);
    world
        .controller
        .refresh(uid, Refresh::Plain)
        .await
        .expect("it is taken");
    world
        .until("it is delivered", |world| world.is_delivered(uid))
        .await;
    world.settle().await;
    let row = world.controller.get(uid).expect("it is kept").row;
    assert!(row.error.is_none());
}

/// Covers rule N7.
#[tokio::test(start_paused = true)]
async fn messages_of_a_sender_to_a_receiver_keep_their_order_and_others_overtake() {
    let world = World::new().await;
    world.post.answer(fails(2));
    let sender = Resource::fresh_uid();
    let late = world.create(sender, 1, "late", "ops").await;
    world.settle().await;
    let recovered = world.create(sender, 2, "recovered", "ops").await;
    world.settle().await;
    assert!(world.record(recovered).is_none(), "it waits");
    let elsewhere = world.create(sender, 2, "recovered elsewhere", "dev").await;
    world.settle().await;
    assert_eq!(world.record(elsewhere).map(|record| record.attempts), Some(1));
    world
        .until("all are delivered", |world| {
            world.is_delivered(late) && world.is_delivered(recovered) && world.is_delivered(elsewhere)
        })
        .await;
    let told = world.post.told();
    let of = titles(&told);
    let last_late = of.iter().rposition(|title| *title == "late");
    let first_recovered = of.iter().position(|title| *title == "recovered");
    assert!(last_late < first_recovered, "{of:?}");
}

/// Covers rule N7.
#[tokio::test(start_paused = true)]
async fn a_dead_message_keeps_no_other_from_being_sent() {
    let world = World::new().await;
    world
        .post
        .answer([Answer::Fails(DeliveryError::permanent("gone"))]);
    let sender = Resource::fresh_uid();
    let late = world.create(sender, 1, "late", "ops").await;
    let recovered = world.create(sender, 2, "recovered", "ops").await;
    world
        .until("the later one is delivered", |world| {
            world.is_delivered(recovered)
        })
        .await;
    assert!(world.is_dead(late));
}

/// Covers rule N7.
#[tokio::test(start_paused = true)]
async fn an_attempt_that_a_crash_interrupts_is_made_again_under_the_same_key() {
    let world = World::new().await;
    world.post.answer([Answer::Hangs]);
    let uid = world.create(Resource::fresh_uid(), 1, "late", "ops").await;
    world
        .until("the attempt is stored", |world| {
            world.record(uid).is_some_and(|record| record.is_open)
        })
        .await;
    let World {
        controller,
        store,
        post,
    } = world;
    drop(controller);
    let world = World::start(store, post).await;
    world
        .until("it is delivered", |world| world.is_delivered(uid))
        .await;
    assert_eq!(titles(&world.post.told()), ["late", "late"]);
    let listing = world.controller.list(Select::kind(KIND).with_hidden());
    assert_eq!(listing.resources.len(), 1);
}

/// N7: whoever has the lease delivers; who had it marks nothing, whatever its receiver says in the end.
#[tokio::test(start_paused = true)]
async fn a_lease_lost_in_the_middle_of_a_delivery_leaves_the_message_to_its_new_holder() {
    let first = World::new().await;
    let (answer, answered) = oneshot::channel();
    first.post.answer([Answer::Takes(answered)]);
    let uid = first.create(Resource::fresh_uid(), 1, "late", "ops").await;
    first
        .until("the attempt is stored", |world| {
            world.record(uid).is_some_and(|record| record.is_open)
        })
        .await;
    let second = World::start(first.store.clone(), first.post.clone()).await;
    second
        .until("it is delivered", |world| world.is_delivered(uid))
        .await;
    answer.send(()).expect("the first still waits");
    let ended = tokio::time::timeout(LONG, first.controller.run()).await;
    let ended = ended.expect("it finds out that another one has the lease");
    assert!(matches!(ended, Err(ShutdownError::LeaseLost)), "{ended:?}");
    assert!(!first.is_delivered(uid), "it has marked nothing");
    second.settle().await;
    let third = World::start(first.store.clone(), first.post.clone()).await;
    let record = third.record(uid).expect("it is kept");
    assert_eq!(record.attempts, 2);
    let Standing::Delivered { receipt, .. } = &record.standing else {
        panic!("it was delivered: {record:?}");
    };
    assert_eq!(receipt.said, "", "the receipt of the second attempt");
    third.settle().await;
    let told = [("late".to_owned(), 1), ("late".to_owned(), 2)];
    assert_eq!(third.post.told(), told, "and nobody sends it once more");
}

/// Covers rule N6.
#[tokio::test(start_paused = true)]
async fn a_message_is_created_once_by_its_key() {
    let world = World::new().await;
    let uid = world.create(Resource::fresh_uid(), 1, "late", "ops").await;
    let found = world.controller.get(uid).expect("it is there");
    let spec: Notification = found.spec().expect("it can be read");
    let again = world
        .controller
        .create(spec.declare().expect("it can be encoded"))
        .await;
    assert!(again.is_err(), "its name is taken");
    assert!(
        world
            .controller
            .get(Key::new(KIND, spec.message.key.as_str()))
            .is_ok()
    );
    world.settle().await;
    assert_eq!(world.post.told().len(), 1);
}

/// Covers rule N8.
#[tokio::test(start_paused = true)]
async fn at_most_four_messages_go_over_a_connector_at_once() {
    let world = World::new().await;
    let mut all = Vec::new();
    for number in 0..60 {
        let title = format!("late {number}");
        all.push(world.create(Resource::fresh_uid(), 1, &title, "ops").await);
    }
    world
        .until("all are delivered", |world| {
            all.iter().all(|uid| world.is_delivered(*uid))
        })
        .await;
    let most = world.post.at_once.lock().unpoisoned().1;
    assert_eq!(most, crate::notification::CONNECTOR_AT_ONCE);
    assert_eq!(world.post.told().len(), all.len());
}
