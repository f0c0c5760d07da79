//! Tests of causal chains: the reasons that led to a request, from the first link.

use std::sync::Arc;

use crate::{CHAIN_MAX, CallId, Cause, Key, Link, Reason, Trigger, Uid};

fn key(name: &str) -> Key {
    Key::new("thing", name)
}

fn parent(name: &str) -> Reason {
    let (uid, key) = (Uid(uuid::Uuid::nil()), key(name));
    Reason::because(Trigger::Parent, Cause::Resource { uid, key })
}

/// Returns the last key and reason in a chain of `length` resources whose first was edited.
fn after(length: usize) -> (Key, Arc<Reason>) {
    let mut reason = Reason::bare(Trigger::Edited);
    reason.origin = Some(Arc::from("a file"));
    let mut reason = Arc::new(reason.after(Some(Arc::new(Reason::bare(Trigger::Nudge)))));
    for index in 1..length {
        reason = Arc::new(parent(&format!("n{}", index - 1)).after(Some(reason)));
    }
    (key(&format!("n{}", length - 1)), reason)
}

fn names<'a>(chain: &[Link<'a>]) -> Vec<&'a str> {
    chain.iter().map(|link| link.key.name.as_str()).collect()
}

#[test]
fn a_chain_is_told_from_its_first_link() {
    let (key, reason) = after(3);
    let chain = reason.chain(&key);
    assert_eq!(names(&chain), ["n0", "n0", "n1", "n2"]);
    let whys: Vec<Trigger> = chain.iter().map(|link| link.reason.trigger).collect();
    assert_eq!(
        whys,
        [Trigger::Nudge, Trigger::Edited, Trigger::Parent, Trigger::Parent]
    );
    assert_eq!(chain[1].reason.origin.as_deref(), Some("a file"));
}

#[test]
fn a_long_chain_keeps_its_ends_and_says_what_it_left_out() {
    for length in 1..200 {
        let (key, reason) = after(length);
        let chain = reason.chain(&key);
        assert!(chain.len() <= CHAIN_MAX, "{length}: {chain:?}");
        let omitted: u32 = chain.iter().map(|link| link.omitted).sum();
        assert_eq!(chain.len() + omitted as usize, length + 1, "{chain:?}");
        assert_eq!(chain[0].reason.trigger, Trigger::Nudge);
        assert_eq!(
            (chain[1].reason.trigger, chain[1].key.name.as_str()),
            (Trigger::Edited, "n0")
        );
        // The name of every link is that of its place in the whole chain.
        let mut place = chain.len() + omitted as usize;
        for link in chain.iter().rev() {
            place -= 1;
            assert_eq!(link.key.name.as_str(), format!("n{}", place.saturating_sub(1)));
            place -= link.omitted as usize;
        }
    }
}

#[test]
fn children_share_what_led_to_their_parent() {
    let (_, before) = after(2);
    let (one, other) = (
        parent("n1").after(Some(before.clone())),
        parent("n1").after(Some(before)),
    );
    assert!(Arc::ptr_eq(&one.before.unwrap(), &other.before.unwrap()));
}

#[test]
fn further_attempts_add_no_link() {
    let (key, reason) = after(2);
    let once = Arc::new(Reason::retried(&reason));
    let twice = Reason::retried(&once);
    assert_eq!(*once, twice);
    assert_eq!(names(&twice.chain(&key)), ["n0", "n0", "n1", "n1"]);
}

#[test]
fn a_chain_that_just_fits_is_kept_whole_and_a_longer_one_by_both_of_its_ends() {
    let omitted = |length| {
        let (key, reason) = after(length);
        let chain = reason.chain(&key);
        let omitted: Vec<u32> = chain.iter().map(|link| link.omitted).collect();
        (chain.len(), omitted)
    };
    // There is one more link, that before the edit.
    assert_eq!(omitted(CHAIN_MAX - 2), (CHAIN_MAX - 1, vec![0; CHAIN_MAX - 1]));
    assert_eq!(omitted(CHAIN_MAX - 1), (5, vec![0, 0, 3, 0, 0]));
}

#[test]
fn every_word_is_its_own() {
    let words: Vec<&str> = Trigger::ALL.iter().map(|why| why.as_str()).collect();
    let priorities: Vec<&str> = Trigger::ALL.iter().map(|why| why.priority().as_str()).collect();
    assert_eq!(
        words.iter().collect::<std::collections::BTreeSet<_>>().len(),
        Trigger::ALL.len()
    );
    let (requested, normal, background) = ("requested", "normal", "background");
    let expected = [
        background, requested, requested, requested, requested, requested, normal, requested, requested,
        normal, background, background, normal, normal,
    ];
    assert_eq!(priorities, expected);
    let by_hand = Reason::because(Trigger::Retry, Cause::Call(CallId(1)));
    assert_eq!(by_hand.priority().as_str(), requested);
}
