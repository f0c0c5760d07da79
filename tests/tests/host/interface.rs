//! The public interface: edits, requests, waits, reads, watching.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use watershed_controller::clock::TokioClock;
use watershed_controller::request::Settlement;
use watershed_controller::resource::{Revision, Row, SpecVersion, Target};
use watershed_controller::shutdown::StopReason;
use watershed_controller::store::MemoryStore;
use watershed_controller::watch::Changes;
use watershed_controller::{
    Batch, Controller, Edit, EditError, Event, Expect, Handle, KindOptions, Refresh, Refusal, RequestError,
    Resource, RunOutcome, Select, Timestamp, Uid, Update, WaitError,
};

use crate::task::{Ending, SOON, Task, Tasks, builder, key, reading, start, state_of, task};

fn refusal<T: std::fmt::Debug>(result: Result<T, EditError>) -> Refusal {
    match result.unwrap_err() {
        EditError::Refused(refusal) => refusal,
        other => panic!("{other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_edit_with_a_stale_expectation_is_refused_and_names_both_versions() {
    let controller = start(MemoryStore::new()).await;
    let uid = controller.create(task("a", &Task::Rest)).await.unwrap();
    let expect = |version| Expect {
        uid: Some(uid),
        spec_version: Some(SpecVersion(version)),
    };
    controller
        .update_spec(key("a"), &Task::Build("x".into()))
        .expecting(expect(1))
        .await
        .unwrap();
    let stale = controller
        .update_spec(key("a"), &Task::Rest)
        .expecting(expect(1))
        .await;
    assert_eq!(
        refusal(stale),
        Refusal::StaleSpec {
            key: key("a"),
            expected: SpecVersion(1),
            found: SpecVersion(2)
        }
    );
    let other = Expect {
        uid: Some(Resource::fresh_uid()),
        spec_version: None,
    };
    let other = controller.delete(key("a")).expecting(other).await;
    assert!(matches!(refusal(other), Refusal::OtherUid { found, .. } if found == uid));
    assert_eq!(
        controller.get(key("a")).unwrap().spec::<Task>().unwrap(),
        Task::Build("x".into())
    );
}

#[tokio::test(start_paused = true)]
async fn unknown_names_ambiguous_names_and_shutdown_are_distinct_errors() {
    let controller = builder(MemoryStore::new())
        .kind(KindOptions::new("other"), Tasks)
        .start()
        .await
        .unwrap();
    let mut twin = task("twin", &Task::Rest);
    controller.create(twin.clone()).await.unwrap();
    (twin.kind, twin.uid) = ("other".into(), Resource::fresh_uid());
    controller.create(twin).await.unwrap();
    let name = |name: &str| Target::Name(name.into());
    let Err(RequestError::Refused(unknown)) = controller.reconcile(name("nobody")).await else {
        panic!()
    };
    assert_eq!(unknown, Refusal::Unknown("nobody".into()));
    let Err(RequestError::Refused(ambiguous)) = controller.reconcile(name("TWIN")).await else {
        panic!()
    };
    assert!(matches!(&ambiguous, Refusal::Ambiguous { candidates, .. } if candidates.len() == 2));
    let Err(RequestError::Refused(same)) = controller.get(name("TWIN")) else {
        panic!()
    };
    assert_eq!(same, ambiguous, "reads and requests find by the same rules");
    controller.shutdown(SOON).await.unwrap();
    let Err(RequestError::Refused(shut)) = controller.reconcile(key("twin")).await else {
        panic!()
    };
    assert_eq!(shut, Refusal::ShuttingDown);
    assert_eq!(controller.stopped(), Some(StopReason::Shutdown));
    assert!(controller.get(key("twin")).is_ok(), "reads go on");
}

#[tokio::test(start_paused = true)]
async fn a_rename_keeps_the_uid_and_frees_the_old_name() {
    let controller = start(MemoryStore::new()).await;
    let uid = controller
        .create(task("before", &Task::Build("x".into())))
        .await
        .unwrap();
    controller.wait_until_idle(SOON).await.unwrap();
    controller.rename(key("before"), "After").await.unwrap();
    controller.wait_until_idle(SOON).await.unwrap();
    assert!(controller.get(key("before")).is_err());
    let after = controller.get(key("AFTER")).unwrap();
    assert_eq!((after.row.uid, after.row.name.as_str()), (uid, "After"));
    assert!(after.row.intents.former_names.is_empty());
}

#[tokio::test(start_paused = true)]
async fn swapped_names_show_whole_to_readers() {
    let controller = start(MemoryStore::new()).await;
    let a = controller.create(task("a", &Task::Rest)).await.unwrap();
    let b = controller.create(task("b", &Task::Rest)).await.unwrap();
    let edits = vec![Edit::rename(key("a"), "b"), Edit::rename(key("b"), "a")];
    controller.edit(Batch { edits }).await.unwrap();
    assert_eq!(controller.get(key("a")).unwrap().row.uid, b);
    assert_eq!(controller.get(key("b")).unwrap().row.uid, a);
}

#[tokio::test(start_paused = true)]
async fn hidden_resources_are_listed_only_when_asked_for_and_waits_count_them() {
    let controller = start(MemoryStore::new()).await;
    let mut hidden = task("hidden", &Task::Sleep(5_000, "x".into()));
    hidden.hidden = true;
    controller.create(hidden).await.unwrap();
    controller.create(task("shown", &Task::Rest)).await.unwrap();
    assert_eq!(controller.list(Select::new().with_deleted()).resources.len(), 1);
    assert_eq!(controller.list(Select::all()).resources.len(), 2);
    controller.wait_until_idle(SOON).await.unwrap();
    assert_eq!(state_of(&controller, "hidden").as_deref(), Some("x"));
    let show = Update {
        hidden: Some(false),
        ..Update::default()
    };
    controller.update(key("hidden"), show).await.unwrap();
    assert_eq!(controller.list(Select::new().with_deleted()).resources.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn waits_end_at_their_deadlines_and_can_be_taken_up_again() {
    let controller = start(MemoryStore::new()).await;
    controller
        .create(task("slow", &Task::Sleep(5_000, "x".into())))
        .await
        .unwrap();
    let moment = Duration::from_secs(1);
    assert_eq!(
        controller.wait_until_idle(moment).await,
        Err(WaitError::Deadline(moment))
    );
    let mut request = controller.reconcile(key("slow")).await.unwrap();
    assert_eq!(request.outcome(moment).await, Err(WaitError::Deadline(moment)));
    assert!(matches!(request.outcome(SOON).await, Ok(RunOutcome::Done { .. })));
    assert!(
        matches!(request.outcome(moment).await, Ok(RunOutcome::Done { .. })),
        "an outcome stays"
    );
    assert_eq!(request.settled(SOON).await, Ok(Settlement::Settled));
    let never = controller
        .wait_until(key("nobody"), |found| found.is_some(), moment)
        .await;
    assert_eq!(never.unwrap_err(), WaitError::Deadline(moment));
}

#[tokio::test(start_paused = true)]
async fn a_refresh_raises_its_counter_and_runs_again() {
    let controller = start(MemoryStore::new()).await;
    controller
        .create(task("a", &Task::Build("x".into())))
        .await
        .unwrap();
    for how in [Refresh::Plain, Refresh::Full] {
        let mut request = controller.refresh(key("a"), how).await.unwrap();
        assert!(matches!(request.outcome(SOON).await, Ok(RunOutcome::Done { .. })));
    }
    let refreshes = controller.get(key("a")).unwrap().row.refreshes;
    assert_eq!((refreshes.plain, refreshes.full), (1, 1));
}

/// The rows that a listing and what came after it add up to.
async fn follow(handle: Handle, stop_at: Revision) -> BTreeMap<Uid, Arc<Row>> {
    loop {
        let listing = handle.list(Select::all());
        let mut rows: BTreeMap<_, _> = listing
            .resources
            .into_iter()
            .map(|resource| (resource.row.uid, resource.row))
            .collect();
        let mut watch = handle.watch(listing.revision);
        let mut reached = listing.revision;
        while reached < stop_at {
            match watch.next().await {
                Some(Event::Changed(Changes {
                    revision,
                    rows: changed,
                    removed,
                })) => {
                    rows.extend(changed.into_iter().map(|row| (row.uid, row)));
                    removed.iter().for_each(|removed| drop(rows.remove(&removed.uid)));
                    reached = revision;
                }
                Some(Event::Status(_)) => {}
                Some(Event::Lagged) | None => break,
            }
        }
        if reached >= stop_at {
            return rows;
        }
    }
}

async fn now(controller: &Controller) -> BTreeMap<Uid, Arc<Row>> {
    let listing = controller.list(Select::all());
    listing
        .resources
        .into_iter()
        .map(|resource| (resource.row.uid, resource.row))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_listing_converges() {
    let controller = start(MemoryStore::new()).await;
    let early = tokio::spawn(follow(controller.handle(), Revision(60)));
    for number in 0..40 {
        let name = format!("t{}", number % 10);
        let spec = Task::Build(number.to_string());
        if number < 10 {
            controller.create(task(&name, &spec)).await.unwrap();
        } else if number % 7 == 0 {
            controller.delete(key(&name)).await.unwrap();
            controller.create(task(&name, &spec)).await.unwrap();
        } else {
            controller
                .update(key(&name), Resource::new_spec(&spec).unwrap())
                .await
                .unwrap();
        }
    }
    controller.wait_until_idle(SOON).await.unwrap();
    let last = controller.list(Select::all()).revision;
    assert!(last >= Revision(60));
    early.await.unwrap();
    assert_eq!(follow(controller.handle(), last).await, now(&controller).await);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_falls_too_far_behind_is_told_so_and_lists_again() {
    let controller = start(MemoryStore::new()).await;
    let mut watch = controller.watch(Revision(0));
    controller.create(task("large", &Task::Rest)).await.unwrap();
    for number in 0..48 {
        let text = format!("{number}{}", "x".repeat(1 << 20));
        let spec = Resource::new_spec(&Task::Fail(text)).unwrap();
        controller.update(key("large"), spec).await.unwrap();
    }
    assert_eq!(watch.next().await, Some(Event::Lagged));
    assert_eq!(watch.next().await, None);
    let mut late = controller.watch(Revision(0));
    let Some(Event::Changed(changes)) = late.next().await else {
        panic!("nothing was removed, so the rows say what changed");
    };
    assert_eq!(changes.rows.len(), 1);
    let mut stranger = controller.watch(Revision(1_000_000));
    assert_eq!(
        stranger.next().await,
        Some(Event::Lagged),
        "that is a revision of another catalog"
    );
    let last = controller.list(Select::all()).revision;
    assert_eq!(follow(controller.handle(), last).await, now(&controller).await);
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_when_the_controller_does() {
    let controller = start(MemoryStore::new()).await;
    controller
        .create(task("hangs", &Task::Hang(Ending::Write("x".into()))))
        .await
        .unwrap();
    let handle = controller.handle();
    let mut watch = handle.watch(handle.list(Select::all()).revision);
    drop(controller);
    while let Some(event) = watch.next().await {
        assert_ne!(event, Event::Lagged);
    }
    assert_eq!(handle.stopped(), Some(StopReason::Shutdown));
}

#[tokio::test(start_paused = true)]
async fn stats_say_what_runs_waits_and_failed() {
    let clock = TokioClock::starting_at(Timestamp(1_700_000_000_000));
    let controller = builder(MemoryStore::new()).clock(clock).start().await.unwrap();
    let created = [
        task("hangs", &Task::Hang(Ending::Write("done".into()))),
        reading("below", &Task::Rest, &["hangs"]),
        task("fails", &Task::Fail("on purpose".into())),
        task("rests", &Task::Rest),
    ];
    for new in created {
        controller.create(new).await.unwrap();
    }
    controller
        .wait_until(
            key("fails"),
            |found| found.is_some_and(|it| it.row.error.is_some()),
            SOON,
        )
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let stats = controller.stats();
    assert_eq!((stats.resources, stats.running, stats.failed), (4, 1, 1));
    assert_eq!(stats.pending.values().sum::<u64>(), 1);
    assert!(stats.oldest_pending_ms >= 3_000 && stats.longest_running_ms >= 3_000);
    assert_eq!(stats.settled.get("failed"), Some(&1));
    assert_eq!((stats.invocations.started, stats.invocations.failed), (3, 1));
    assert!(stats.commits.tried > 0 && stats.last_convergence.is_none());
    controller.cancel(key("hangs")).await.unwrap();
    controller.wait_until_idle(SOON).await.unwrap();
    let stats = controller.stats();
    assert_eq!(
        (stats.running, stats.pending.len(), stats.oldest_pending_ms),
        (0, 0, 0)
    );
    let took = stats.last_convergence.as_ref().map(|last| last.took_ms);
    assert!(took.is_some_and(|ms| ms >= 3_000));
    let json = serde_json::to_value(&stats).unwrap();
    assert_eq!(json["settled"]["failed"], 1);
}
