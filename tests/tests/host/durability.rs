//! Failing commits, lost leases, restarts, shutdown.

use std::time::Duration;

use watershed_controller::history::Trigger;
use watershed_controller::resource::{Revision, Stage};
use watershed_controller::shutdown::{ShutdownError, StopReason};
use watershed_controller::store::Epoch;
use watershed_controller::store::{MemoryStore, SqliteStore, Store};
use watershed_controller::{Controller, EditError, Event, Limits, Refusal, Select, WaitError};

use crate::faults::{Fault, FaultyStore};
use crate::task::{Ending, SOON, Task, key, reading, start, state_of, task};

#[tokio::test(start_paused = true)]
async fn a_commit_that_fails_is_tried_again_until_it_is_through() {
    for fault in [Fault::Before, Fault::After, Fault::Panic] {
        let store = FaultyStore::new();
        let controller = start(store.clone()).await;
        store.set(fault);
        let handle = controller.handle();
        let create = tokio::spawn(async move { handle.create(task("a", &Task::Build("x".into()))).await });
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(
            !create.is_finished(),
            "nothing is acknowledged before it is committed"
        );
        assert!(controller.get(key("a")).is_err(), "nor shown");
        assert!(store.commits() > 3);
        store.set(Fault::None);
        create.await.unwrap().unwrap();
        controller.wait_until_idle(SOON).await.unwrap();
        assert_eq!(state_of(&controller, "a").as_deref(), Some("x"));
        assert_eq!(
            controller.history(key("a"), 10).await.unwrap().len(),
            1,
            "written once"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_for_too_long_stops_the_controller_and_reads_go_on() {
    let store = FaultyStore::new();
    let controller = start(store.clone()).await;
    controller
        .create(task("a", &Task::Build("x".into())))
        .await
        .unwrap();
    controller
        .create(task("hangs", &Task::Hang(Ending::Stay)))
        .await
        .unwrap();
    store.set(Fault::Before);
    let edit = controller.update_spec(key("a"), &Task::Rest).await;
    assert!(
        matches!(edit, Err(EditError::Refused(Refusal::OutcomeUnknown))),
        "{edit:?}"
    );
    assert!(matches!(controller.stopped(), Some(StopReason::StoreFailed(_))));
    assert_eq!(
        controller.get(key("a")).unwrap().spec::<Task>().unwrap(),
        Task::Build("x".into())
    );
    let late = controller.create(task("late", &Task::Rest)).await;
    assert!(
        matches!(late, Err(EditError::Refused(Refusal::ShuttingDown))),
        "nothing has changed"
    );
    assert!(matches!(
        controller.shutdown(SOON).await,
        Err(ShutdownError::StoreFailed { .. })
    ));
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_hangs_does_not_hold_a_shutdown_up_for_ever() {
    let store = FaultyStore::new();
    let controller = start(store.clone()).await;
    store.set(Fault::Hang);
    let handle = controller.handle();
    let create = tokio::spawn(async move { handle.create(task("a", &Task::Rest)).await });
    while store.commits() == 0 {
        tokio::task::yield_now().await;
    }
    let asked = tokio::time::Instant::now();
    let grace = Duration::from_secs(5);
    let ended = controller.shutdown(grace).await;
    assert!(
        matches!(ended, Err(ShutdownError::StoreFailed { .. })),
        "{ended:?}"
    );
    assert!(asked.elapsed() <= grace + Limits::default().commit_patience + Duration::from_secs(1));
    let unknown = create.await.unwrap();
    assert!(
        matches!(unknown, Err(EditError::Refused(Refusal::OutcomeUnknown))),
        "{unknown:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_lost_its_lease_cannot_write_and_stops() {
    let store = MemoryStore::new();
    let first = start(store.clone()).await;
    first
        .create(task("a", &Task::Build("first".into())))
        .await
        .unwrap();
    first.wait_until_idle(SOON).await.unwrap();
    let second = start(store).await;
    let lost = first.update_spec(key("a"), &Task::Build("lost".into())).await;
    assert!(
        matches!(lost, Err(EditError::Refused(Refusal::LeaseLost))),
        "{lost:?}"
    );
    assert_eq!(
        first.wait_until_idle(SOON).await,
        Err(WaitError::Refused(Refusal::LeaseLost))
    );
    assert!(matches!(
        first.shutdown(SOON).await,
        Err(ShutdownError::LeaseLost)
    ));
    second.wait_until_idle(SOON).await.unwrap();
    assert_eq!(
        second.get(key("a")).unwrap().spec::<Task>().unwrap(),
        Task::Build("first".into())
    );
}

pub(crate) async fn restarts_where_it_was(open: impl AsyncFn() -> Box<dyn Store>) {
    let controller = start(open().await).await;
    controller
        .create(task("a", &Task::Build("x".into())))
        .await
        .unwrap();
    controller
        .create(reading("b", &Task::Fail("on purpose".into()), &["a"]))
        .await
        .unwrap();
    controller
        .create(reading("c", &Task::Rest, &["b", "missing"]))
        .await
        .unwrap();
    controller.wait_until_idle(SOON).await.unwrap();
    let before = controller.list(Select::all());
    controller.shutdown(SOON).await.unwrap();
    drop(controller);

    let store = open().await;
    let opened = store.open("default").await.unwrap();
    assert_eq!(
        (opened.stored.revision, opened.stored.epoch),
        (before.revision, Epoch(2))
    );
    let mut rows: Vec<_> = opened.stored.rows.iter().map(|entry| entry.row.clone()).collect();
    rows.sort_by_key(|row| (row.kind.clone(), row.name.clone()));
    assert!(
        rows.iter()
            .eq(before.resources.iter().map(|resource| &resource.row))
    );
    drop(opened);

    let controller = start(store).await;
    controller.wait_until_idle(SOON).await.unwrap();
    assert_eq!(state_of(&controller, "a").as_deref(), Some("x"));
    let history = controller.history(key("b"), 10).await.unwrap();
    assert_eq!(
        history.iter().map(|run| run.reason.trigger).collect::<Vec<_>>(),
        [Trigger::Start],
        "it failed again as before"
    );
    assert_eq!(history[0].repeats.map(|repeats| repeats.runs), Some(2));
    assert!(
        controller.history(key("a"), 10).await.unwrap().len() == 1,
        "a run without work leaves no entry"
    );
    assert_eq!(controller.get(key("a")).unwrap().row.runs_total, 2);
    controller.shutdown(SOON).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_restart_finds_everything_in_memory() {
    let store = MemoryStore::new();
    restarts_where_it_was(async || Box::new(store.clone()) as Box<dyn Store>).await;
}

#[tokio::test]
async fn a_restart_finds_everything_in_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.db");
    restarts_where_it_was(async || Box::new(SqliteStore::open(&path).await.unwrap()) as Box<dyn Store>).await;
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_names_what_did_not_return_and_a_second_one_ends_at_once() {
    let store = MemoryStore::new();
    let controller = start(store.clone()).await;
    controller
        .create(task("polite", &Task::Hang(Ending::Write("saved".into()))))
        .await
        .unwrap();
    controller
        .create(task("stubborn", &Task::Hang(Ending::Stay)))
        .await
        .unwrap();
    let running = |found: Option<&watershed_controller::Resource>| {
        found.is_some_and(|found| matches!(found.status.stage, Stage::Running { .. }))
    };
    for name in ["polite", "stubborn"] {
        controller.wait_until(key(name), running, SOON).await.unwrap();
    }
    let started = tokio::time::Instant::now();
    let (first, ()) = tokio::join!(controller.shutdown(Duration::from_secs(3600)), async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let _ = controller.shutdown(Duration::ZERO).await;
    });
    let error = first.unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("\"task/stubborn\" had not returned when the controller stopped"),
        "{error}"
    );
    assert!(started.elapsed() < Duration::from_secs(10));
    assert_eq!(state_of(&controller, "polite").as_deref(), Some("saved"));
}

#[tokio::test(start_paused = true)]
async fn callers_are_pushed_back_while_the_store_is_busy_and_nothing_is_lost() {
    let store = FaultyStore::new();
    let controller = start(store.clone()).await;
    store.set(Fault::Before);
    let creates: Vec<_> = (0..20_000)
        .map(|number| {
            let handle = controller.handle();
            tokio::spawn(async move { handle.create(task(&format!("t{number}"), &Task::Rest)).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(5)).await;
    store.set(Fault::None);
    for create in creates {
        create.await.unwrap().unwrap();
    }
    controller.wait_until_idle(SOON).await.unwrap();
    assert_eq!(controller.list(Select::all()).resources.len(), 20_000);
}

/// Returns the first event of a watcher, which then goes.
async fn first_shown(controller: &Controller, from: Revision) -> Event {
    let mut watch = controller.watch(from);
    tokio::time::timeout(SOON, watch.next()).await.unwrap().unwrap()
}

async fn watches_go_on_after_a_restart(open: impl AsyncFn() -> Box<dyn Store>) {
    let controller = start(open().await).await;
    for name in ["a", "b"] {
        controller
            .create(task(name, &Task::Build("x".into())))
            .await
            .unwrap();
    }
    controller.wait_until_idle(SOON).await.unwrap();
    let seen = controller.list(Select::all()).revision;
    let build = Task::Build("later".into());
    controller.update_spec(key("a"), &build).await.unwrap();
    controller.wait_until_idle(SOON).await.unwrap();
    controller.shutdown(SOON).await.unwrap();
    drop(controller);

    let controller = start(open().await).await;
    controller.wait_until_idle(SOON).await.unwrap();
    let Event::Changed(changes) = first_shown(&controller, seen).await else {
        panic!("nothing was removed, so nothing is missing");
    };
    let a = changes.rows.iter().find(|row| row.name.as_str() == "a").unwrap();
    assert_eq!(watershed_controller::Resource::spec_of::<Task>(a).unwrap(), build);
    assert_eq!(changes.revision, controller.list(Select::all()).revision);
    let before = controller.list(Select::all()).revision;
    controller.delete(key("b")).await.unwrap();
    controller.wait_until_idle(SOON).await.unwrap();
    let after = controller.list(Select::all()).revision;
    assert!(matches!(
        first_shown(&controller, before).await,
        Event::Changed(_)
    ));
    controller.shutdown(SOON).await.unwrap();
    drop(controller);

    let controller = start(open().await).await;
    controller.wait_until_idle(SOON).await.unwrap();
    assert_eq!(
        first_shown(&controller, before).await,
        Event::Lagged,
        "nobody knows what was removed"
    );
    let build = Task::Build("later still".into());
    controller.update_spec(key("a"), &build).await.unwrap();
    assert!(matches!(first_shown(&controller, after).await, Event::Changed(_)));
    let unknown = Revision(after.0 + 1_000);
    assert_eq!(first_shown(&controller, unknown).await, Event::Lagged);
    controller.shutdown(SOON).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn watches_over_memory_go_on_after_a_restart() {
    let store = MemoryStore::new();
    watches_go_on_after_a_restart(async || Box::new(store.clone()) as Box<dyn Store>).await;
}

#[tokio::test]
async fn watches_over_sqlite_go_on_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.db");
    let open = async || Box::new(SqliteStore::open(&path).await.unwrap()) as Box<dyn Store>;
    watches_go_on_after_a_restart(open).await;
}
