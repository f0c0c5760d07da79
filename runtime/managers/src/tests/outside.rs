//! Events, operators, deletes and orphans, under the real controller in simulated time.

use std::time::Duration;

use watershed_controller::{Key, Refresh, Select, Timestamp};

use super::behaviour::{active, owner};
use super::stand::Stand;
use super::world::{Answer, Child, Node, World};
use crate::{CloudEvent, Desired, EventDoor, EventMatch, Reason, Rule, SetError, set_desired, teardown_kind};

/// M12.
#[tokio::test(start_paused = true)]
async fn an_event_sets_what_is_desired_once_and_until_an_edit() {
    let stand = Stand::new(World::default()).await;
    let door = EventDoor::new(stand.controller.handle(), ["thing"]);
    let rule = Rule::sets(EventMatch::of("lab.*"), "done");
    stand.apply("a", active().on_event(rule), Node::default()).await;
    stand.idle().await;
    let event = CloudEvent::new("1", "/lab", "lab.submitted").about("a");
    assert_eq!(
        door.deliver(&CloudEvent::new("0", "/lab", "other").about("a"))
            .await
            .unwrap(),
        0
    );
    assert_eq!(door.deliver(&event).await.unwrap(), 1);
    stand.idle().await;
    assert_eq!(stand.stage("a"), "done");
    stand.wish("a", |desired| desired.stage = "prepared".into()).await;
    stand.idle().await;
    assert_eq!(stand.stage("a"), "prepared", "an edit ends it");
    stand.wish("a", |desired| desired.stage = "active".into()).await;
    assert_eq!(door.deliver(&event).await.unwrap(), 1, "it is known");
    stand.idle().await;
    assert_eq!(stand.stage("a"), "active", "and counts once");
    for n in 0..100 {
        door.deliver(&CloudEvent::new(n.to_string(), "/many", "lab.x").about("a"))
            .await
            .unwrap();
    }
    stand.pass(1).await;
    stand.controller.reconcile(Key::new("thing", "a")).await.unwrap();
    stand.pass(1).await;
    let kept = stand
        .controller
        .list(Select::kind("event").with_hidden())
        .resources
        .len();
    assert_eq!(kept, crate::EVENTS_KEPT);
    assert!(stand.record("a").handled.len() <= crate::EVENTS_KEPT);
    stand.check();
}

/// M12.
#[tokio::test(start_paused = true)]
async fn what_an_event_set_is_over_when_the_stage_of_before_is_set_by_hand() {
    let stand = Stand::new(World::default()).await;
    let door = EventDoor::new(stand.controller.handle(), ["thing"]);
    let rule = Rule::sets(EventMatch::of("lab.submitted"), "done");
    stand.apply("a", active().on_event(rule), Node::default()).await;
    stand.idle().await;
    let event = CloudEvent::new("1", "/lab", "lab.submitted").about("a");
    let set = async |stage: &str| {
        let key = Key::new("thing", "a");
        set_desired(stand.controller.as_ref(), key, stage.into()).await
    };
    assert_eq!(door.deliver(&event).await.unwrap(), 1);
    stand.idle().await;
    assert_eq!(stand.stage("a"), "done");
    let before = set("active").await.expect("it is nobody's part");
    assert_eq!(before.as_str(), "done", "the event's");
    stand.idle().await;
    assert_eq!(
        stand.stage("a"),
        "active",
        "although the spec said so all the time"
    );
    // An edit of something else is none of what is desired.
    assert_eq!(
        door.deliver(&CloudEvent {
            id: "2".into(),
            ..event
        })
        .await
        .unwrap(),
        1
    );
    // A nudge that follows another one so soon waits a little.
    stand.pass(5).await;
    stand.wish("a", |desired| desired.on_events.clear()).await;
    stand.idle().await;
    assert_eq!(stand.stage("a"), "done");
    // Two edits before the next look, the second of which takes the first one back.
    stand
        .controller
        .pause(Key::new("thing", "a"))
        .await
        .expect("it is there");
    set("prepared").await.expect("it is nobody's part");
    set("active").await.expect("it is nobody's part");
    stand
        .controller
        .resume(Key::new("thing", "a"))
        .await
        .expect("it is there");
    stand.idle().await;
    assert_eq!(stand.stage("a"), "active");
    let refused = set("elsewhere").await.expect_err("no such stage");
    assert!(matches!(refused, SetError::NoStage { .. }), "{refused}");
    stand.check();
}

/// M13.
#[tokio::test(start_paused = true)]
async fn a_step_waits_for_its_event_and_fails_without_it() {
    let stand = Stand::new(World::default()).await;
    let door = EventDoor::new(stand.controller.handle(), ["thing"]);
    let wait = Answer::Await(Duration::from_secs(60));
    stand.world.answer("a", "active", &[wait.clone(), wait.clone()]);
    stand.apply("a", active(), Node::default()).await;
    stand.idle().await;
    assert_eq!(stand.stage("a"), "prepared");
    stand.pass(65).await;
    assert_eq!(
        stand.world.actions("a").len(),
        3,
        "the deadline failed it, and it was tried again"
    );
    let result = |id: &str, subject: &str| CloudEvent::new(id, "/engine", "world.result").about(subject);
    assert_eq!(door.deliver(&result("1", "b")).await.unwrap(), 0);
    stand.world.set(stand.get("a").row.uid, Some("active"));
    assert_eq!(door.deliver(&result("1", "a")).await.unwrap(), 1);
    stand.pass(1).await;
    assert_eq!(stand.stage("a"), "active");
    // The answer may be there before the step says what it waits for.
    stand
        .world
        .answer("b", "active", &[Answer::Slow(Duration::from_secs(5))]);
    stand
        .world
        .answer("b", "done", &[Answer::Slow(Duration::from_secs(5)), wait]);
    stand.apply("b", Desired::stage("done"), Node::default()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(door.deliver(&result("2", "b")).await.unwrap(), 1);
    stand.pass(20).await;
    assert_eq!(stand.stage("b"), "done");
    stand.check();
}

/// M11: `refresh` repeats the last step.
#[tokio::test(start_paused = true)]
async fn a_refresh_repeats_the_last_step_once() {
    let stand = Stand::new(World::default()).await;
    let uid = stand.apply("a", active(), Node::default()).await;
    stand.idle().await;
    stand.controller.refresh(uid, Refresh::Plain).await.unwrap();
    stand.idle().await;
    stand.pass(1000).await;
    assert_eq!(stand.world.actions("a"), ["prepared", "active", "active"]);
    stand.check();
}

/// M16.
#[tokio::test(start_paused = true)]
async fn a_deleted_resource_is_torn_down_as_regular_work_and_a_new_one_of_its_name_waits() {
    let mut stand = Stand::new(World::default()).await;
    stand
        .world
        .answer("root", "gone", &[Answer::Slow(Duration::from_secs(15))]);
    let node = owner(vec![Child::new("x", 1, Node::default())]);
    let first = stand.apply("root", active(), node.clone()).await;
    stand.idle().await;
    stand.controller.delete(first).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    // Other work goes on meanwhile.
    stand.apply("other", active(), Node::default()).await;
    stand.apply("root", active(), node).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(stand.stage("other"), "active");
    let why = stand.get("root").row.unready.clone().unwrap();
    assert_eq!(&*why, "an earlier one of its name is being torn down");
    assert_eq!(stand.world.stage(first), Some("active"));
    stand.restart().await;
    stand.pass(60).await;
    assert_eq!(stand.stage("root"), "active");
    assert_eq!(stand.world.left().len(), 3);
    let kinds = Select::kind(teardown_kind("thing")).with_hidden();
    assert_eq!(stand.controller.list(kinds).resources.len(), 0);
    stand.check();
}

/// M17.
#[tokio::test(start_paused = true)]
async fn things_that_belong_to_nobody_are_reported_and_left_alone() {
    let stand = Stand::new(World::default()).await;
    stand.apply("a", active(), Node::default()).await;
    stand.idle().await;
    let stray = watershed_controller::Resource::fresh_uid();
    stand.world.set(stray, Some("active"));
    let discovery = crate::Managed::new(super::world::Thing(stand.world.clone())).discovery();
    let found = discovery.orphans(stand.controller.as_ref()).await.unwrap();
    assert_eq!(found.iter().map(|one| one.uid).collect::<Vec<_>>(), [Some(stray)]);
    stand.pass(1000).await;
    assert_eq!(stand.world.stage(stray), Some("active"));
}

/// A step asks to go on later, or finds nothing to do.
#[tokio::test(start_paused = true)]
async fn a_step_may_go_on_later_or_be_left_out() {
    let stand = Stand::new(World::default()).await;
    stand
        .world
        .answer("a", "prepared", &[Answer::Requeue(Duration::from_secs(30))]);
    stand.world.answer("a", "active", &[Answer::Skip]);
    stand.apply("a", active(), Node::default()).await;
    stand.idle().await;
    stand.controller.nudge(Key::new("thing", "a")).await.unwrap();
    stand.pass(29).await;
    assert_eq!(stand.world.acts().len(), 1);
    stand.pass(2).await;
    assert_eq!(stand.stage("a"), "active");
    let last = stand.record("a").transitions.last().unwrap().clone();
    assert_eq!(
        (last.reason, last.detail.as_str()),
        (Reason::Skipped, "active left out: it was there")
    );
    let attempts: Vec<u32> = stand.world.acts().iter().map(|act| act.attempt).collect();
    assert_eq!(attempts, [1, 1, 1], "coming back is no failure");
    let _: Timestamp = last.at;
    stand.check();
}
