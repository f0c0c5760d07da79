//! Conformance tests of stores: a store of your own must pass them too.
//!
//! ```
//! use watershed_controller::store::MemoryStore;
//! use watershed_testkit::store::conforms;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let store = MemoryStore::new();
//! conforms(async || store.clone()).await;
//! # }
//! ```

#![allow(clippy::unwrap_used, reason = "a store that fails has not passed")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use uuid::Uuid;
use watershed_core::{
    Cause, Commit, CommitError, CommitId, Deletion, Epoch, Error, HistoryRow, Intents, InvocationId, Key,
    LastRun, Name, ObservedInputs, ObservedRef, OmittedLinks, Phase, Reason, Ref, Refreshes, Repeats,
    Required, RetryPolicy, Revision, Row, RunResult, SourcePosition, SpecVersion, StateVersion, Timestamp,
    Trigger, Uid, Work, Write,
};

use watershed_controller::store::{
    Catalog, HISTORY_AGE_MS, HISTORY_PER_RESOURCE, HISTORY_SIGHTING_MS, Opened, Store,
};

/// Generates a retry policy, with times that milliseconds can't represent.
fn policy(random: &mut SmallRng) -> RetryPolicy {
    let mut wait = || Duration::from_nanos(random.random_range(0..1 << 60));
    match wait().subsec_nanos() % 4 {
        0 => RetryPolicy::Never,
        _ => RetryPolicy::Backoff {
            base: wait(),
            cap: wait(),
            attempts: wait().subsec_millis(),
            reset_after: wait(),
        },
    }
}

/// A function that opens the same data again each time.
trait Reopen: AsyncFn() -> Box<dyn Store> {}
impl<F: AsyncFn() -> Box<dyn Store>> Reopen for F {}

/// Checks the whole contract of [`Store`] and [`Catalog`] on an empty store. Each part has an instance of its own.
///
/// `open` opens the same data anew each time, as the next process would. A catalog that was dropped without being closed
/// must be free for it, at the latest when its lease has run out.
///
/// # Panics
/// If the store does not conform; the message says where.
pub async fn conforms<S: Store>(open: impl AsyncFn() -> S) {
    let open = async || Box::new(open().await) as Box<dyn Store>;
    an_instance_that_is_not_there_is_empty(&open).await;
    what_was_committed_is_read_again_equal(&open).await;
    later_commits_win_and_removed_rows_stay_away(&open).await;
    a_commit_of_another_epoch_is_refused_and_changes_nothing(&open).await;
    an_epoch_is_above_one_that_was_seen_elsewhere(&open).await;
    a_commit_written_twice_counts_once(&open).await;
    history_is_bounded_by_resource_and_by_age(&open).await;
    failures_push_no_work_out_of_the_history(&open).await;
    an_entry_takes_the_place_of_the_one_that_it_replaces(&open).await;
    recent_history_is_of_all_resources_also_of_those_that_are_gone(&open).await;
    instances_do_not_see_each_other(&open).await;
    a_catalog_that_was_not_closed_has_all_that_was_committed(&open).await;
}

async fn an_instance_that_is_not_there_is_empty(open: &impl Reopen) {
    let Opened { stored, catalog } = open().await.open("empty").await.unwrap();
    assert_eq!(
        (stored.epoch, stored.revision, stored.rows.len()),
        (Epoch(1), Revision(0), 0)
    );
    assert_eq!(catalog.history(uid(1), 10).await.unwrap(), []);
    catalog.close().await;
}

async fn what_was_committed_is_read_again_equal(open: &impl Reopen) {
    let random = &mut SmallRng::seed_from_u64(7);
    let rows: Vec<Row> = (0..300).map(|number| row(number, random)).collect();
    let (catalog, epoch) = opened(open, "equal").await;
    let history = vec![
        entry(epoch, 1, 1, 10),
        entry(epoch, 1, 2, 20),
        entry(epoch, 2, 3, 30),
    ];
    catalog
        .commit(&commit(epoch, 9, puts(&rows), history.clone()))
        .await
        .unwrap();
    assert_eq!(
        catalog.history(uid(1), 10).await.unwrap(),
        [history[1].clone(), history[0].clone()]
    );
    assert_eq!(catalog.history(uid(1), 1).await.unwrap(), [history[1].clone()]);
    let read = catalog.read().await.unwrap();
    let read_rows: Vec<Row> = read.rows.iter().map(|stored| Row::clone(&stored.row)).collect();
    assert_eq!((read.epoch, read.revision), (epoch, Revision(9)));
    assert_eq!(by_uid(&read_rows), by_uid(&rows));
    catalog.close().await;
    let (revision, found) = contents(open, "equal").await;
    assert_eq!(revision, Revision(9));
    assert_eq!(found, by_uid(&rows));
}

async fn later_commits_win_and_removed_rows_stay_away(open: &impl Reopen) {
    let random = &mut SmallRng::seed_from_u64(8);
    let (catalog, epoch) = opened(open, "order").await;
    let mut expected = BTreeMap::new();
    for revision in 1..=40 {
        let rows: Vec<Row> = (0..7).map(|_| row(random.random_range(0..20), random)).collect();
        let rows = by_uid(&rows);
        let removed = uid(random.random_range(0..20));
        let mut writes = puts(&rows.values().cloned().collect::<Vec<_>>());
        expected.extend(rows.clone());
        if !rows.contains_key(&removed) {
            writes.push(Write::Remove(removed));
            expected.remove(&removed);
        }
        catalog
            .commit(&commit(epoch, revision, writes, Vec::new()))
            .await
            .unwrap();
    }
    catalog.close().await;
    assert_eq!(contents(open, "order").await, (Revision(40), expected));
}

async fn a_commit_of_another_epoch_is_refused_and_changes_nothing(open: &impl Reopen) {
    let random = &mut SmallRng::seed_from_u64(9);
    let rows: Vec<Row> = (0..3).map(|number| row(number, random)).collect();
    let store = open().await;
    let first = store.open("lease").await.unwrap();
    let held = first.stored.epoch;
    first
        .catalog
        .commit(&commit(held, 1, puts(&rows), Vec::new()))
        .await
        .unwrap();
    let second = store.open("lease").await.unwrap();
    assert_eq!(second.stored.epoch, held.next());
    let late = commit(held, 2, vec![Write::Remove(uid(0))], vec![entry(held, 0, 1, 1)]);
    assert_eq!(first.catalog.commit(&late).await, Err(CommitError::LeaseLost));
    assert_eq!(second.catalog.history(uid(0), 10).await.unwrap(), []);
    first.catalog.close().await;
    second.catalog.close().await;
    drop(store);
    assert_eq!(contents(open, "lease").await, (Revision(1), by_uid(&rows)));
}

async fn an_epoch_is_above_one_that_was_seen_elsewhere(open: &impl Reopen) {
    let store = open().await;
    let first = store.open_above("seen", Epoch(40)).await.unwrap();
    assert_eq!(first.stored.epoch, Epoch(41));
    let second = store.open_above("seen", Epoch(7)).await.unwrap();
    assert_eq!(second.stored.epoch, Epoch(42), "it never falls");
    let late = commit(Epoch(41), 1, vec![], vec![]);
    assert_eq!(first.catalog.commit(&late).await, Err(CommitError::LeaseLost));
    second.catalog.close().await;
}

async fn a_commit_written_twice_counts_once(open: &impl Reopen) {
    let random = &mut SmallRng::seed_from_u64(10);
    let rows = vec![row(1, random)];
    let (catalog, epoch) = opened(open, "twice").await;
    let twice = commit(
        epoch,
        1,
        puts(&rows),
        vec![entry(epoch, 1, 1, 1), entry(epoch, 2, 2, 2)],
    );
    catalog.commit(&twice).await.unwrap();
    catalog.commit(&twice).await.unwrap();
    assert_eq!(catalog.history(uid(1), 10).await.unwrap().len(), 1);
    catalog.close().await;
    assert_eq!(contents(open, "twice").await, (Revision(1), by_uid(&rows)));
}

async fn history_is_bounded_by_resource_and_by_age(open: &impl Reopen) {
    let (catalog, epoch) = opened(open, "history").await;
    let bound = u64::from(HISTORY_PER_RESOURCE);
    for number in 0..3 * bound {
        let entries = vec![entry(epoch, 1, number, number as i64)];
        catalog
            .commit(&commit(epoch, number, Vec::new(), entries))
            .await
            .unwrap();
    }
    let kept = catalog.history(uid(1), u32::MAX).await.unwrap();
    assert_eq!(kept.len(), HISTORY_PER_RESOURCE as usize);
    assert_eq!(
        kept[0].invocation,
        Some(InvocationId(3 * bound - 1)),
        "the newest come first"
    );
    let mut at = 3 * HISTORY_AGE_MS;
    for (round, left) in [(0, HISTORY_PER_RESOURCE as usize), (2, 2)] {
        let number = 4 * bound + round;
        let much_later = vec![entry(epoch, 2, number, at), entry(epoch, 1, number + 1, at)];
        catalog
            .commit(&commit(epoch, number, Vec::new(), much_later))
            .await
            .unwrap();
        at += HISTORY_SIGHTING_MS;
        let kept = catalog.history(uid(1), u32::MAX).await.unwrap().len();
        assert_eq!(kept, left, "old entries go at the second sight of a later date");
    }
    catalog.close().await;
}

async fn failures_push_no_work_out_of_the_history(open: &impl Reopen) {
    let (catalog, epoch) = opened(open, "apart").await;
    let bound = u64::from(HISTORY_PER_RESOURCE);
    for number in 0..4 * bound {
        let result = match number {
            3 => RunResult::Done(Work::Dropped),
            7 => RunResult::Done(Work::Built),
            _ if number % 3 == 0 => RunResult::Cancelled,
            _ if number % 3 == 1 => RunResult::Done(Work::Checked),
            _ => RunResult::Failed,
        };
        // It names what it isn't.
        let says = Error::transient("x", r#"{"result":{"done":"built"}}"#);
        let entry = HistoryRow {
            result,
            error: Some(Arc::new(says)),
            ..entry(epoch, 1, number, number as i64)
        };
        let one = commit(epoch, number, Vec::new(), vec![entry]);
        catalog.commit(&one).await.unwrap();
    }
    let kept = catalog.history(uid(1), u32::MAX).await.unwrap();
    let work = kept.iter().filter(|entry| entry.result.is_work());
    let work: Vec<_> = work.filter_map(|entry| entry.invocation).collect();
    assert_eq!(work, [InvocationId(7), InvocationId(3)], "the newest first");
    assert_eq!(kept.len(), HISTORY_PER_RESOURCE as usize + 2);
    assert_eq!(
        kept.last().and_then(|entry| entry.invocation),
        Some(InvocationId(3))
    );
    catalog.close().await;
}

async fn an_entry_takes_the_place_of_the_one_that_it_replaces(open: &impl Reopen) {
    let (catalog, epoch) = opened(open, "replaced").await;
    let again = |epoch, number: u64, replaces| HistoryRow {
        repeats: Some(Repeats {
            runs: 2,
            since: Timestamp(1),
        }),
        replaces: Some(replaces),
        ..entry(epoch, 1, number, number as i64)
    };
    let first = [
        entry(epoch, 1, 1, 1),
        entry(epoch, 2, 2, 2),
        entry(epoch, 1, 3, 3),
    ];
    catalog
        .commit(&commit(epoch, 1, Vec::new(), first.to_vec()))
        .await
        .unwrap();
    let (one, two) = (
        again(epoch, 4, (epoch, InvocationId(3))),
        again(epoch, 5, (epoch, InvocationId(4))),
    );
    let chain = commit(epoch, 2, Vec::new(), vec![one, two.clone()]);
    // Twice, as when it was not known whether it had gone through.
    catalog.commit(&chain).await.unwrap();
    catalog.commit(&chain).await.unwrap();
    let of_one = [two.clone(), first[0].clone()];
    assert_eq!(catalog.history(uid(1), 10).await.unwrap(), of_one);
    assert_eq!(catalog.history(uid(2), 10).await.unwrap(), first[1..2]);
    catalog.close().await;
    let (catalog, later) = opened(open, "replaced").await;
    let last = again(later, 1, (epoch, InvocationId(5)));
    catalog
        .commit(&commit(later, 3, Vec::new(), vec![last.clone()]))
        .await
        .unwrap();
    assert_eq!(
        catalog.history(uid(1), 10).await.unwrap(),
        [last, first[0].clone()]
    );
    catalog.close().await;
}

async fn recent_history_is_of_all_resources_also_of_those_that_are_gone(open: &impl Reopen) {
    let random = &mut SmallRng::seed_from_u64(13);
    let (catalog, epoch) = opened(open, "recent").await;
    let history = vec![entry(epoch, 1, 1, 10), entry(epoch, 2, 2, 20)];
    catalog
        .commit(&commit(
            epoch,
            1,
            puts(&[row(1, random), row(2, random)]),
            history.clone(),
        ))
        .await
        .unwrap();
    let removal = vec![Write::Remove(uid(1))];
    catalog
        .commit(&commit(epoch, 2, removal, Vec::new()))
        .await
        .unwrap();
    catalog.close().await;
    let (catalog, later) = opened(open, "recent").await;
    let last = entry(later, 2, 1, 20);
    catalog
        .commit(&commit(later, 3, Vec::new(), vec![last.clone()]))
        .await
        .unwrap();
    let newest_first = [last, history[1].clone(), history[0].clone()];
    assert_eq!(catalog.recent(10).await.unwrap(), newest_first);
    assert_eq!(catalog.recent(2).await.unwrap(), newest_first[..2]);
    catalog.close().await;
}

async fn instances_do_not_see_each_other(open: &impl Reopen) {
    let random = &mut SmallRng::seed_from_u64(11);
    let (ours, theirs) = (vec![row(1, random)], vec![row(1, random), row(2, random)]);
    for (instance, rows) in [("ours", &ours), ("theirs", &theirs)] {
        let (catalog, epoch) = opened(open, instance).await;
        catalog
            .commit(&commit(epoch, 1, puts(rows), vec![entry(epoch, 1, 1, 1)]))
            .await
            .unwrap();
        catalog.close().await;
    }
    let (catalog, epoch) = opened(open, "ours").await;
    catalog
        .commit(&commit(epoch, 2, vec![Write::Remove(uid(2))], Vec::new()))
        .await
        .unwrap();
    catalog.close().await;
    assert_eq!(contents(open, "ours").await, (Revision(2), by_uid(&ours)));
    assert_eq!(contents(open, "theirs").await, (Revision(1), by_uid(&theirs)));
}

async fn a_catalog_that_was_not_closed_has_all_that_was_committed(open: &impl Reopen) {
    let random = &mut SmallRng::seed_from_u64(12);
    let rows: Vec<Row> = (0..20).map(|number| row(number, random)).collect();
    let (catalog, epoch) = opened(open, "dropped").await;
    catalog
        .commit(&commit(epoch, 1, puts(&rows), Vec::new()))
        .await
        .unwrap();
    drop(catalog);
    assert_eq!(contents(open, "dropped").await, (Revision(1), by_uid(&rows)));
}

async fn opened(open: &impl Reopen, instance: &str) -> (Box<dyn Catalog>, Epoch) {
    let Opened { stored, catalog } = open().await.open(instance).await.unwrap();
    (catalog, stored.epoch)
}

async fn contents(open: &impl Reopen, instance: &str) -> (Revision, BTreeMap<Uid, Row>) {
    let Opened { stored, catalog } = open().await.open(instance).await.unwrap();
    catalog.close().await;
    assert!(stored.rows.iter().all(|entry| entry.unreadable.is_none()));
    (
        stored.revision,
        stored
            .rows
            .iter()
            .map(|entry| (entry.row.uid, Row::clone(&entry.row)))
            .collect(),
    )
}

fn by_uid(rows: &[Row]) -> BTreeMap<Uid, Row> {
    rows.iter().map(|row| (row.uid, row.clone())).collect()
}

fn puts(rows: &[Row]) -> Vec<Write> {
    rows.iter().map(|row| Write::Put(Arc::new(row.clone()))).collect()
}

fn commit(epoch: Epoch, revision: u64, writes: Vec<Write>, history: Vec<HistoryRow>) -> Commit {
    Commit {
        id: CommitId(revision),
        epoch,
        revision: Revision(revision),
        writes: writes.into(),
        history: history.into(),
    }
}

fn uid(number: u64) -> Uid {
    Uid(Uuid::from_u128(u128::from(number) << 64 | 1))
}

fn reason(number: u64) -> Arc<Reason> {
    let (uid, key) = (uid(number), Key::new("thing", "cause"));
    let mut edited = Reason::bare(Trigger::Edited);
    edited.origin = Some("models/a.sql".into());
    let mut reason = Reason::because(
        Trigger::Parent,
        Cause::Resource {
            uid,
            key: key.clone(),
        },
    );
    reason.before = Some(Arc::new(edited));
    reason.cut = Some(Box::new(OmittedLinks {
        links: 3,
        key: Some(key),
    }));
    Arc::new(reason)
}

fn entry(epoch: Epoch, resource: u64, invocation: u64, ended_at: i64) -> HistoryRow {
    HistoryRow {
        epoch,
        uid: uid(resource),
        key: Key::new("thing", format!("thing{resource}").as_str()),
        invocation: Some(InvocationId(invocation)),
        phase: Phase::Reconcile,
        reason: reason(resource),
        started_at: Timestamp(ended_at - 1),
        ended_at: Timestamp(ended_at),
        result: RunResult::Done(Work::Built),
        error: None,
        seen: None,
        repeats: None,
        replaces: None,
    }
}

/// Generates a row in which most columns have a value.
fn row(number: u64, random: &mut SmallRng) -> Row {
    let text = |random: &mut SmallRng| format!("Ω'\"{}", random.random::<u32>());
    let place = SourcePosition {
        path: "models/a.sql".into(),
        line: 3,
        column: 4,
    };
    let error = Error {
        hint: Some("try again".into()),
        place: Some(place),
        ..Error::transient("x", "broken")
    };
    let seen = ObservedRef {
        target: Some((uid(3), StateVersion(4))),
        failed: true,
    };
    let last_run = LastRun {
        id: InvocationId(random.random_range(0..1 << 40)),
        epoch: Epoch(3),
        phase: Phase::Reconcile,
        reason: reason(4),
        started_at: Timestamp(1),
        ended_at: Timestamp(2),
        result: RunResult::Failed,
        seen: Some(ObservedInputs {
            spec_version: SpecVersion(9),
            refreshes: Refreshes { plain: 1, full: 2 },
            formats: (1, 2),
            refs: Arc::from([seen]),
        }),
        state_version: StateVersion(7),
        failed: random.random(),
        requeue_after: random.random::<bool>().then_some(Duration::from_millis(1_500)),
        repeats: random.random::<bool>().then_some(Repeats {
            runs: 3,
            since: Timestamp(-4),
        }),
    };
    let mut a_ref = Ref::completed("thing", text(random).as_str());
    a_ref.required = Required::Ready;
    Row {
        uid: uid(number),
        kind: "thing".into(),
        name: Name::new(text(random)),
        refs: Arc::from([a_ref]),
        owner: random.random::<bool>().then(|| uid(77)),
        paths: Arc::from([Arc::from("a/b.sql"), Arc::from("ä ö.yaml")]),
        labels: Arc::new(BTreeMap::from([("key".into(), text(random).into())])),
        intents: Intents {
            deletion: random.random::<bool>().then_some(Deletion {
                at: Timestamp(5),
                revision: Revision(7),
            }),
            former_names: Arc::from([Name::from("before")]),
        },
        revision: Revision(1),
        spec_version: SpecVersion(random.random_range(0..1 << 50)),
        state_version: StateVersion(random.random_range(0..9)),
        error: random.random::<bool>().then(|| Arc::new(error)),
        unready: random.random::<bool>().then(|| "it \"starts\"".into()),
        next_reconcile: random.random::<bool>().then_some(Timestamp(-5)),
        attempts: random.random_range(0..9),
        retry: random.random::<bool>().then(|| Arc::new(policy(random))),
        paused: random.random(),
        hidden: random.random(),
        refreshes: Refreshes {
            plain: 3,
            full: random.random_range(0..9),
        },
        created_at: Timestamp(1_700_000_000_000),
        updated_at: Timestamp(random.random_range(0..1 << 50)),
        spec_format: 1,
        state_format: random.random_range(0..3),
        runs_total: random.random_range(0..1 << 50),
        last_run: random.random::<bool>().then(|| Arc::new(last_run)),
        last_success: random.random::<bool>().then_some(Timestamp(8)),
        spec: (0..random.random_range(0..200))
            .map(|_| random.random::<u8>())
            .collect(),
        state: random.random::<bool>().then(|| Arc::from([0_u8, 255, 1])),
    }
}
