//! Steps that a boundary of the window cuts off.

use std::time::Duration;

use super::behaviour::{active, window};
use super::stand::Stand;
use super::world::{Answer, Node, World};

/// M3, M9: what a step that was cut off has left is looked at before anybody says that nothing is there.
#[tokio::test(start_paused = true)]
async fn the_first_step_that_the_end_of_a_window_cuts_off_is_looked_at_before_it_counts_as_gone() {
    for (answer, actions, gone_at) in [
        // It had its effect, and is seen at once.
        (Answer::Silent, &["prepared", "gone"][..], 600),
        // It had none, which is believed when it was seen twice.
        (Answer::Hang, &["prepared"], 605),
    ] {
        let stand = Stand::new(World::default()).await;
        tokio::time::sleep(Duration::from_secs(595)).await;
        stand.world.answer("a", "prepared", std::slice::from_ref(&answer));
        let uid = stand
            .apply("a", active().within(window(0, 10)), Node::default())
            .await;
        for _ in 0..100 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let is_gone = stand.record("a").own.as_str() == "gone";
            assert!(!is_gone || stand.world.stage(uid).is_none(), "{answer:?}");
        }
        stand.idle().await;
        assert_eq!(stand.world.actions("a"), actions, "{answer:?}");
        let last = stand.record("a").transitions.last().cloned().unwrap();
        assert_eq!(
            (last.to.as_str(), Stand::seconds(last.at)),
            ("gone", gone_at),
            "{answer:?}"
        );
        stand.check();
    }
}
