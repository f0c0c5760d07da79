//! Owners and their parts when something happens to one of them: failures and renames.

use std::time::Duration;

use watershed_controller::{Key, Uid};

use super::behaviour::{active, owner};
use super::stand::Stand;
use super::world::{Answer, Child, Node, World};
use crate::OnPartFailure;

/// The actions of all things, in the order in which attempts began.
fn story(stand: &Stand) -> Vec<String> {
    let acts = stand.world.acts();
    acts.iter()
        .map(|act| format!("{} {}", act.name, act.action))
        .collect()
}

/// M6 with M7: what stands on a part goes before it, also where a failure takes all of them down.
#[tokio::test(start_paused = true)]
async fn a_failed_part_takes_the_others_down_in_reverse_one_after_the_other() {
    for failing in ["a", "b", "c"] {
        let stand = Stand::new(World::default()).await;
        stand.world.answer(failing, "active", &[Answer::Permanent]);
        for name in ["a", "b", "c"] {
            let slow = Answer::Slow(Duration::from_secs(10));
            stand.world.answer(name, "gone", &[slow]);
        }
        let children =
            [("a", 1), ("b", 2), ("c", 3)].map(|(name, order)| Child::new(name, order, Node::default()));
        stand.apply("root", active(), owner(children.into())).await;
        stand.idle().await;
        let acts = stand.world.acts();
        let down: Vec<(&str, i64)> = acts
            .iter()
            .filter(|act| act.action == "gone")
            .map(|act| (act.name.as_str(), Stand::seconds(act.at)))
            .collect();
        assert_eq!(down, [("c", 0), ("b", 10), ("a", 20)], "{failing}");
        let because = format!("part-failed: its part \"{failing}\" has failed: active: it is broken");
        assert_eq!(stand.error("root"), because);
        stand.check();
    }
}

/// M6, M8: an owner that goes on without some of its parts says which, and why.
#[tokio::test(start_paused = true)]
async fn an_owner_whose_other_parts_go_on_is_degraded_and_names_the_cause() {
    let stand = Stand::new(World::default()).await;
    let names = ["a", "b", "c", "d", "e"];
    for name in &names[..4] {
        stand.world.answer(name, "active", &[Answer::Permanent]);
    }
    let children = names.map(|name| Child::new(name, 1, Node::default()));
    let desired = active().on_part_failure(OnPartFailure::Continue);
    stand.apply("root", desired, owner(children.into())).await;
    stand.idle().await;
    let unready = stand.get("root").row.unready.clone();
    let cause = |name: &str| format!("its part \"{name}\" has failed: active: it is broken");
    let expected = format!(
        "it is degraded: {}; {}; {}; and 1 more",
        cause("a"),
        cause("b"),
        cause("c")
    );
    assert_eq!(unready.as_deref(), Some(expected.as_str()));
    assert_eq!(
        (stand.error("root"), stand.stage("e")),
        (String::new(), "active".into())
    );
    for name in &names[..4] {
        stand.controller.retry(Key::new("thing", *name)).await.unwrap();
    }
    stand.idle().await;
    assert_eq!(stand.get("root").row.unready, None);
    stand.check();
}

/// An owner of two levels of parts that are named after it.
fn family() -> Node {
    owner(vec![
        Child::new(".a", 1, owner(vec![Child::new(".x", 1, Node::default())])),
        Child::new(".b", 2, Node::default()),
    ])
}

/// M7: the identity of a part is its own, and its name follows its owner's.
#[tokio::test(start_paused = true)]
async fn parts_are_renamed_with_their_owner_and_nothing_is_done_outside() {
    let mut stand = Stand::new(World::default()).await;
    stand.apply("o", active(), family()).await;
    stand.idle().await;
    let uids = |stand: &Stand, owner: &str| -> Vec<Uid> {
        let names = ["", ".a", ".a.x", ".b"].map(|end| format!("{owner}{end}"));
        names.iter().map(|name| stand.get(name).row.uid).collect()
    };
    let (before, acts) = (uids(&stand, "o"), story(&stand));
    for (from, to, is_restarted) in [("o", "p", false), ("p", "o", true), ("o", "O.long", false)] {
        let renamed = stand.controller.rename(Key::new("thing", from), to);
        renamed.await.unwrap();
        if is_restarted {
            stand.restart().await;
        }
        stand.idle().await;
        assert_eq!(uids(&stand, to), before, "{to}");
        assert_eq!(story(&stand), acts, "{to}");
        assert_eq!(stand.stage(to), "active");
    }
    stand.check();
}

/// M7, M16: a name that another one holds is waited for, and what is torn down under it is not taken for its own.
#[tokio::test(start_paused = true)]
async fn a_part_waits_for_a_name_that_is_taken_and_an_owner_may_take_that_of_one_that_is_torn_down() {
    let stand = Stand::new(World::default()).await;
    stand.apply("o", active(), family()).await;
    stand.apply("p.b", active(), Node::default()).await;
    stand.idle().await;
    let part = stand.get("o.b").row.uid;
    stand
        .controller
        .rename(Key::new("thing", "o"), "p")
        .await
        .unwrap();
    stand.idle().await;
    assert_eq!(
        (stand.get("o.b").row.uid, stand.stage("p")),
        (part, "active".into())
    );
    let slow = Answer::Slow(Duration::from_secs(10));
    stand.world.answer("p.b", "gone", &[slow]);
    stand.controller.delete(Key::new("thing", "p.b")).await.unwrap();
    stand.pass(5).await;
    assert_eq!(stand.get("p.b").row.uid, part);
    let acts = story(&stand);
    stand.pass(60).await;
    assert_eq!(story(&stand), acts, "the renamed one stays where it is");
    assert_eq!(stand.stage("p.b"), "active");
    assert_eq!(acts.iter().filter(|act| act.ends_with("gone")).count(), 1);
    stand.check();
}
