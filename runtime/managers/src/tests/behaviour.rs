//! The rules of the loop, one after the other, under the real controller in simulated time.

use std::time::Duration;

use tokio::time::Instant;
use watershed_controller::clock::TokioClock;
use watershed_controller::{Key, Select, Timestamp};

use super::stand::{BEGIN, Stand};
use super::world::{ATTEMPTS, Answer, Child, Node, World};
use crate::{Desired, Observation, OnPartFailure, Reason, SetError, Stage, Timed, set_desired, tree};

pub(super) fn active() -> Desired {
    Desired::stage("active")
}

/// Minutes after the beginning, as a local time in UTC.
fn local(minutes: i64) -> String {
    let time = watershed_schedule::jiff::Timestamp::from_millisecond(BEGIN.0 + minutes * 60_000).unwrap();
    time.strftime("%Y-%m-%dT%H:%M").to_string()
}

pub(super) fn window(start: i64, end: i64) -> Timed {
    Timed::once(local(start), local(end))
}

pub(super) fn owner(children: Vec<Child>) -> Node {
    Node {
        parts: children,
        ..Node::default()
    }
}

/// M1, and no polling delay: three levels with nine steps are there in simulated time 0.
#[tokio::test(start_paused = true)]
async fn a_session_of_three_levels_and_nine_steps_is_active_before_any_time_has_passed() {
    let stand = Stand::new(World::default()).await;
    let leaf = Node {
        pipeline: true,
        ..Node::default()
    };
    let middle = Node {
        parts: vec![Child::new("leaf", 1, leaf)],
        pipeline: true,
        ..Node::default()
    };
    let begin = Instant::now();
    let root = Node {
        parts: vec![Child::new("middle", 1, middle)],
        ..Node::default()
    };
    stand.apply("root", active(), root).await;
    stand.idle().await;
    assert_eq!(begin.elapsed(), Duration::ZERO);
    for name in ["root", "middle", "leaf"] {
        assert_eq!(stand.stage(name), "active", "{name}");
    }
    assert_eq!(stand.world.acts().len(), 2 + 4 + 4);
    stand.check();
}

/// M2.
#[tokio::test(start_paused = true)]
async fn what_is_converged_writes_nothing_and_notifies_nobody() {
    let stand = Stand::new(World::default()).await;
    stand
        .apply(
            "root",
            active().within(window(0, 600)),
            owner(vec![Child::new("a", 1, Node::default())]),
        )
        .await;
    stand.idle().await;
    let revision = stand.controller.list(Select::all()).revision;
    for name in ["root", "a"] {
        stand.controller.reconcile(Key::new("thing", name)).await.unwrap();
    }
    stand.idle().await;
    stand.pass(1200).await;
    assert_eq!(stand.controller.list(Select::all()).revision, revision);
    assert_eq!(stand.world.acts().len(), 4);
}

/// M3.
#[tokio::test(start_paused = true)]
async fn what_is_observed_wins_over_what_is_stored_and_absence_is_confirmed_first() {
    let stand = Stand::new(World::default()).await;
    let uid = stand.apply("a", active(), Node::default()).await;
    stand.idle().await;
    stand.world.set(uid, Some("prepared"));
    stand.controller.reconcile(uid).await.unwrap();
    stand.idle().await;
    assert_eq!(stand.world.actions("a"), ["prepared", "active", "active"]);
    // Gone once, there again: nothing is made anew.
    stand.world.show("a", &[Observation::Absent]);
    stand.controller.reconcile(uid).await.unwrap();
    stand.idle().await;
    assert!(stand.record("a").absent_since.is_some());
    stand.pass(6).await;
    assert!(stand.record("a").absent_since.is_none());
    assert_eq!(stand.world.actions("a").len(), 3);
    // Gone for good: found out after 5 s.
    stand.world.set(uid, None);
    stand.controller.reconcile(uid).await.unwrap();
    stand.pass(4).await;
    assert_eq!(stand.world.actions("a").len(), 3);
    stand.pass(2).await;
    assert_eq!(stand.world.actions("a").len(), 5);
    assert_eq!(stand.stage("a"), "active");
    let reasons: Vec<Reason> = stand
        .record("a")
        .transitions
        .iter()
        .map(|one| one.reason)
        .collect();
    assert_eq!(
        reasons,
        [
            Reason::Step,
            Reason::Step,
            Reason::Observed,
            Reason::Step,
            Reason::Vanished,
            Reason::Step,
            Reason::Step
        ]
    );
    stand.check();
}

/// M3: `Unclear` changes nothing and is retried.
#[tokio::test(start_paused = true)]
async fn an_unclear_look_changes_nothing_and_is_repeated() {
    let stand = Stand::new(World::default()).await;
    stand.world.show(
        "a",
        &[
            Observation::Unclear("fog".into()),
            Observation::Unclear("fog".into()),
        ],
    );
    stand.apply("a", active(), Node::default()).await;
    stand.idle().await;
    assert_eq!(stand.error("a"), "observe-unclear: fog");
    assert!(stand.get("a").row.state.is_none());
    stand.pass(4).await;
    assert_eq!(stand.stage("a"), "active");
}

/// M5.
#[tokio::test(start_paused = true)]
async fn a_step_has_so_many_attempts_with_growing_waits_and_a_nudge_changes_neither() {
    let stand = Stand::new(World::default()).await;
    stand.world.answer(
        "a",
        "prepared",
        &[Answer::Fail, Answer::Fail, Answer::Hang, Answer::Fail],
    );
    let uid = stand.apply("a", active(), Node::default()).await;
    for _ in 0..400 {
        tokio::time::sleep(Duration::from_millis(250)).await;
        stand.controller.nudge(uid).await.unwrap();
    }
    stand.idle().await;
    let at: Vec<i64> = stand
        .world
        .acts()
        .iter()
        .map(|act| Stand::seconds(act.at))
        .collect();
    // 1 s, 2 s, the timeout of 20 s, 4 s.
    assert_eq!(at, [0, 1, 3, 27]);
    assert_eq!(stand.world.acts().last().unwrap().attempt, ATTEMPTS);
    assert_eq!(stand.error("a"), "step-failed: prepared: no capacity");
    stand.pass(10_000).await;
    assert_eq!(stand.world.acts().len(), 4, "no further attempt");
    stand.controller.retry(uid).await.unwrap();
    stand.idle().await;
    assert_eq!(stand.stage("a"), "active");
    stand.check();
}

/// M5: a wait is never longer than it was to be.
#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_makes_no_wait_longer() {
    let mut stand = Stand::new(World::default()).await;
    stand.world.answer("a", "prepared", &[Answer::Fail, Answer::Fail]);
    stand.apply("a", active(), Node::default()).await;
    // The first wait is over, and the second of 2 s has begun.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    stand.clock = TokioClock::starting_at(Timestamp(BEGIN.0 - 3_600_000));
    stand.restart().await;
    stand.pass(3).await;
    assert_eq!(stand.stage("a"), "active");
    stand.check();
}

/// M5: the waits that a step asked for, too.
#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_makes_no_requeue_and_no_deadline_later() {
    let minute = Duration::from_secs(60);
    for answer in [Answer::Requeue(minute), Answer::Await(minute)] {
        let mut stand = Stand::new(World::default()).await;
        stand.world.answer("a", "prepared", &[answer]);
        stand.apply("a", active(), Node::default()).await;
        stand.pass(30).await;
        assert_eq!(stand.stage("a"), "absent");
        stand.clock = TokioClock::starting_at(Timestamp(BEGIN.0 - 3_600_000));
        stand.restart().await;
        stand.pass(70).await;
        assert_eq!(stand.stage("a"), "active");
        stand.check();
    }
}

/// M5: another goal starts anew.
#[tokio::test(start_paused = true)]
async fn another_goal_forgets_the_attempts_and_a_permanent_error_uses_them_up() {
    let stand = Stand::new(World::default()).await;
    stand.world.answer("a", "active", &[Answer::Permanent]);
    stand.apply("a", active(), Node::default()).await;
    stand.idle().await;
    assert_eq!(stand.error("a"), "step-failed: active: it is broken");
    stand.wish("a", |desired| desired.stage = "gone".into()).await;
    stand.idle().await;
    assert_eq!(
        (stand.stage("a"), stand.error("a")),
        ("gone".into(), String::new())
    );
    stand.wish("a", |desired| desired.stage = "active".into()).await;
    stand.idle().await;
    assert_eq!(stand.stage("a"), "active");
    assert_eq!(stand.world.left(), ["a active"]);
    stand.check();
}

/// M4.
#[tokio::test(start_paused = true)]
async fn a_step_that_a_crash_cut_off_is_repeated_with_its_key() {
    let mut stand = Stand::new(World::default()).await;
    stand
        .world
        .answer("a", "prepared", &[Answer::Fail, Answer::Silent]);
    stand.apply("a", active(), Node::default()).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    stand.restart().await;
    stand.idle().await;
    assert_eq!(stand.stage("a"), "active");
    // The effect was there: it was seen, and not made once more.
    assert_eq!(stand.world.effects("a prepared"), 1);
    assert_eq!(stand.record("a").transitions[0].reason, Reason::Observed);
    stand.check();
}

/// M14.
#[tokio::test(start_paused = true)]
async fn a_pipeline_goes_on_at_its_first_unfinished_action_after_a_crash() {
    let mut stand = Stand::new(World::default()).await;
    stand.world.answer("a", "greet", &[Answer::Fail, Answer::Hang]);
    stand.world.answer("a", "log", &[Answer::Permanent]);
    stand
        .apply(
            "a",
            active(),
            Node {
                pipeline: true,
                ..Node::default()
            },
        )
        .await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    stand.restart().await;
    stand.idle().await;
    assert_eq!(
        stand.world.actions("a"),
        ["prepared", "boot", "greet", "greet", "greet", "log"]
    );
    let attempts: Vec<u32> = stand.world.acts().iter().map(|act| act.attempt).collect();
    assert_eq!(
        attempts,
        [1, 1, 1, 2, 2, 1],
        "the same number as before the crash"
    );
    assert_eq!(
        stand.record("a").transitions.last().unwrap().detail,
        "log given up: it is broken"
    );
    assert_eq!(stand.stage("a"), "active");
    stand.check();
}

/// M6: abort.
#[tokio::test(start_paused = true)]
async fn a_failed_part_takes_all_parts_with_it_and_fails_its_owners() {
    let stand = Stand::new(World::default()).await;
    let middle = owner(vec![
        Child::new("x", 1, Node::default()),
        Child::new("y", 2, Node::default()),
    ]);
    stand.world.answer("y", "active", &[Answer::Permanent]);
    stand
        .apply("root", active(), owner(vec![Child::new("middle", 1, middle)]))
        .await;
    stand.idle().await;
    let because =
        "part-failed: its part \"middle\" has failed: its part \"y\" has failed: active: it is broken";
    assert_eq!(stand.error("root"), because);
    assert_eq!(stand.world.left(), ["root active"], "all parts are gone");
    let listing = stand.controller.list(Select::all()).resources;
    let root = tree(&listing, stand.get("root").row.uid).unwrap();
    assert_eq!(
        (
            root.worst().key.name.as_str(),
            root.counts()[&Stage::from("gone")]
        ),
        ("root", 3)
    );
    // Tried again, it goes up again.
    stand.controller.retry(Key::new("thing", "root")).await.unwrap();
    stand.idle().await;
    assert_eq!(
        (stand.stage("root"), stand.world.left().len()),
        ("active".into(), 4)
    );
    stand.check();
}

/// M6: continue.
#[tokio::test(start_paused = true)]
async fn others_go_on_beside_a_failed_part_until_all_have_failed() {
    let stand = Stand::new(World::default()).await;
    let meaning = OnPartFailure::Continue;
    stand.world.answer("x", "prepared", &[Answer::Permanent]);
    stand.world.answer("y", "active", &[Answer::Permanent]);
    let children = |gates: bool| {
        let mut children =
            [("x", 1), ("y", 1), ("z", 1)].map(|(name, order)| Child::new(name, order, Node::default()));
        children[0].gates_next = gates.then(|| "active".into());
        children.to_vec()
    };
    stand
        .apply("root", active().on_part_failure(meaning), owner(children(false)))
        .await;
    stand.idle().await;
    assert_eq!(
        (stand.stage("z"), stand.error("root")),
        ("active".into(), String::new())
    );
    stand.world.answer("z", "active", &[Answer::Permanent]);
    let z = stand.get("z").row.uid;
    stand.world.set(z, Some("prepared"));
    stand.controller.nudge(z).await.unwrap();
    stand.pass(1).await;
    assert_eq!(
        stand.error("root"),
        "part-failed: its part \"x\" has failed: prepared: it is broken"
    );
    stand.check();
}

/// M7.
#[tokio::test(start_paused = true)]
async fn parts_go_up_through_gates_and_down_in_reverse_with_the_owner_last() {
    let stand = Stand::new(World::default()).await;
    stand
        .world
        .answer("x", "active", &[Answer::Slow(Duration::from_secs(10))]);
    stand
        .world
        .answer("y", "gone", &[Answer::Slow(Duration::from_secs(10))]);
    let children = vec![
        Child::new("x", 1, Node::default()),
        Child::new("y", 2, Node::default()),
    ];
    stand.apply("root", active(), owner(children)).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(stand.stage("y"), "prepared", "the gate is closed");
    stand.idle().await;
    assert_eq!(stand.stage("root"), "active");
    stand.wish("root", |desired| desired.stage = "gone".into()).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(
        (stand.stage("x"), stand.stage("y")),
        ("active".into(), "active".into())
    );
    stand.idle().await;
    assert_eq!(stand.stage("root"), "gone");
    let order: Vec<String> = stand
        .world
        .acts()
        .iter()
        .map(|act| format!("{} {}", act.name, act.action))
        .collect();
    assert_eq!(order[order.len() - 3..], ["y gone", "x gone", "root gone"]);
    assert_eq!(stand.world.left(), Vec::<String>::new());
    let refused = set_desired(stand.controller.as_ref(), Key::new("thing", "x"), "active".into()).await;
    assert!(matches!(refused, Err(SetError::Owned { owner, .. }) if owner.name.as_str() == "root"));
    stand.check();
}

/// M9.
#[tokio::test(start_paused = true)]
async fn a_window_prepares_in_its_lead_begins_at_its_start_and_leaves_nothing() {
    let stand = Stand::new(World::default()).await;
    let children = vec![Child::new("x", 1, Node::default())];
    stand
        .apply("root", active().within(window(60, 120)), owner(children))
        .await;
    let mut story = Vec::new();
    for minute in 0..140 {
        stand.idle().await;
        let found = (stand.record("root").own.to_string(), stand.world.left().len());
        if story.last().is_none_or(|(_, last)| *last != found) {
            story.push((minute, found));
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    let expected = [
        (0, ("absent", 0)),
        (45, ("prepared", 2)),
        (60, ("active", 2)),
        (120, ("gone", 0)),
    ];
    let expected: Vec<_> = expected
        .map(|(at, (stage, left))| (at, (stage.to_owned(), left)))
        .into();
    assert_eq!(story, expected);
    stand.check();
}

/// M9: nothing outlives its deadline silently.
#[tokio::test(start_paused = true)]
async fn after_the_deadline_steps_have_force_and_are_repeated_beyond_all_attempts() {
    let stand = Stand::new(World::default()).await;
    stand
        .world
        .answer("a", "gone", &[const { Answer::Permanent }; 12]);
    stand
        .apply("a", active().within(window(0, 10)), Node::default())
        .await;
    stand.pass(10 * 60 + 1).await;
    assert_eq!(stand.error("a"), "step-failed: gone: it is broken");
    stand.pass(10 * 60 + 25).await;
    assert!(stand.error("a").contains("overdue"), "{}", stand.error("a"));
    stand.pass(3600).await;
    assert_eq!((stand.stage("a"), stand.world.left().len()), ("gone".into(), 0));
    let forced: Vec<i64> = stand
        .world
        .acts()
        .iter()
        .filter(|act| act.force)
        .map(|act| Stand::seconds(act.at) - 1200)
        .collect();
    assert_eq!(forced[..6], [0, 10, 30, 70, 150, 310]);
    assert_eq!(forced[7] - forced[6], 300, "at most five minutes apart");
    stand.check();
}

/// M9: a boundary cancels a step that no longer leads to the goal.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_window_cuts_off_a_step_upwards() {
    let stand = Stand::new(World::default()).await;
    stand
        .world
        .answer("a", "active", &[Answer::Slow(Duration::from_secs(19))]);
    let begin = Instant::now();
    stand
        .apply("a", active().within(window(0, 10)), Node::default())
        .await;
    stand.idle().await;
    stand.wish("a", |desired| desired.stage = "prepared".into()).await;
    stand.idle().await;
    tokio::time::sleep(Duration::from_secs(595) - begin.elapsed()).await;
    stand
        .world
        .answer("a", "active", &[Answer::Slow(Duration::from_secs(19))]);
    stand.wish("a", |desired| desired.stage = "active".into()).await;
    stand.idle().await;
    let last = stand.world.acts().last().unwrap().clone();
    assert_eq!((last.action.as_str(), Stand::seconds(last.at)), ("gone", 600));
    assert_eq!(stand.stage("a"), "gone");
    stand.check();
}

/// M9: a late start inside the window starts; a window missed entirely is `missed`.
#[tokio::test(start_paused = true)]
async fn who_slept_through_a_boundary_does_what_is_due_now() {
    for (wakes_at, stage, reason) in [
        (5, "absent", None),
        (50, "prepared", Some(Reason::Step)),
        (90, "active", Some(Reason::Step)),
        (125, "gone", Some(Reason::Missed)),
        (500, "gone", Some(Reason::Missed)),
    ] {
        let mut stand = Stand::new(World::default()).await;
        stand
            .apply("a", active().within(window(60, 120)), Node::default())
            .await;
        stand.controller.pause(Key::new("thing", "a")).await.unwrap();
        stand.idle().await;
        tokio::time::sleep(Duration::from_secs(wakes_at * 60)).await;
        stand.restart().await;
        stand.controller.resume(Key::new("thing", "a")).await.unwrap();
        stand.idle().await;
        let record = stand.record("a");
        assert_eq!(record.own.as_str(), stage, "at {wakes_at} min");
        assert_eq!(
            record.transitions.last().map(|one| one.reason),
            reason,
            "at {wakes_at} min"
        );
        stand.check();
    }
}

/// M10.
#[tokio::test(start_paused = true)]
async fn an_end_that_moves_back_is_refused_and_the_accepted_one_holds() {
    let stand = Stand::new(World::default()).await;
    stand
        .apply("a", active().within(window(0, 60)), Node::default())
        .await;
    stand.idle().await;
    stand
        .wish("a", |desired| desired.window = Some(window(0, 30)))
        .await;
    stand.idle().await;
    assert!(stand.error("a").starts_with("bad-window"), "{}", stand.error("a"));
    stand.pass(45 * 60).await;
    assert_eq!(stand.stage("a"), "active");
    stand
        .wish("a", |desired| desired.window = Some(window(0, 90)))
        .await;
    stand.idle().await;
    assert_eq!(stand.error("a"), "");
    stand.pass(30 * 60).await;
    assert_eq!(stand.stage("a"), "active");
    stand
        .wish("a", |desired| desired.window = Some(Timed::once("never", "ever")))
        .await;
    stand.pass(20 * 60).await;
    assert!(stand.error("a").starts_with("bad-window"));
    assert_eq!(
        stand.world.left(),
        Vec::<String>::new(),
        "what was accepted ends in spite of it"
    );
    stand.check();
}

/// M10: with a cron expression the lifecycle starts over.
#[tokio::test(start_paused = true)]
async fn a_recurring_window_has_one_lifecycle_after_the_other() {
    let stand = Stand::new(World::default()).await;
    let daily = Timed::cron("0 9 * * *", Duration::from_secs(7200));
    stand.apply("a", active().within(daily), Node::default()).await;
    stand.pass(3 * 24 * 3600).await;
    let lifecycle = ["prepared", "active", "gone"];
    assert_eq!(
        stand.world.actions("a"),
        [lifecycle, lifecycle, lifecycle].concat()
    );
    let hours: Vec<i64> = stand
        .world
        .acts()
        .iter()
        .map(|act| Stand::seconds(act.at) / 900)
        .collect();
    assert_eq!(hours[..6], [35, 36, 44, 131, 132, 140], "quarters of an hour");
    stand.check();
}
