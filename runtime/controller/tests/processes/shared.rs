//! Tests of calls from any process, whichever holds the instance: same handles, same answers.

use std::time::Duration;

use watershed_controller::request::Settlement;
use watershed_controller::resource::SpecVersion;
use watershed_controller::store::TablePrefix;
use watershed_controller::store::postgres::PostgresStore;
use watershed_controller::{
    Batch, Controller, Edit, EditError, Event, Expect, Refresh, Refusal, RequestError, Resource, RunOutcome,
    Select, StartError, WaitError,
};

use crate::server::Server;
use crate::task::{Ending, SOON, Task, builder, key, reading, state_of, task};

/// Term so long that no test waits for its end.
const NEVER: Duration = Duration::from_secs(3_600);

/// Starts two controllers: one holds the catalog, the other only asks it.
async fn two(server: &Server) -> (Controller, Controller) {
    let holder = builder(crate::store(&server.url(), NEVER).await)
        .start()
        .await
        .unwrap();
    let asks = builder(crate::store(&server.url(), NEVER).await)
        .attach()
        .await
        .unwrap();
    (holder, asks)
}

fn refusal<T: std::fmt::Debug>(result: Result<T, EditError>) -> Refusal {
    match result.unwrap_err() {
        EditError::Refused(refusal) => refusal,
        other => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_without_the_lease_edits_reads_and_waits_like_its_holder() {
    let Some(server) = Server::start() else { return };
    let (holder, asks) = two(&server).await;
    assert!(holder.holds_instance() && !asks.holds_instance());
    let uid = asks.create(task("a", &Task::Build("x".into()))).await.unwrap();
    assert_eq!(
        asks.get(key("a")).unwrap().row.uid,
        uid,
        "it sees what was acknowledged"
    );
    asks.wait_until_idle(SOON).await.unwrap();
    // What is acknowledged stands in the store, from where the holder's own readers have it a moment later.
    assert_eq!(holder.get(key("a")).unwrap().row.uid, uid);
    assert_eq!(
        state_of(&asks, "a").as_deref(),
        Some("x"),
        "it waited for all of it"
    );

    let mut request = asks.reconcile(key("a")).await.unwrap();
    assert_eq!(request.uid(), uid);
    let outcome = request.outcome(SOON).await.unwrap();
    assert!(matches!(outcome, RunOutcome::Done { .. }), "{outcome:?}");
    assert_eq!(request.settled(SOON).await.unwrap(), Settlement::Settled);

    let mut refresh = asks.refresh(key("a"), Refresh::Full).await.unwrap();
    refresh.outcome(SOON).await.unwrap();
    assert_eq!(asks.get(key("a")).unwrap().row.refreshes.full, 1);
    asks.pause(key("a")).await.unwrap();
    assert!(asks.get(key("a")).unwrap().row.paused);
    asks.resume(key("a")).await.unwrap();
    asks.nudge(key("a")).await.unwrap();
    let explained = asks.explain(key("a")).await.unwrap();
    assert_eq!(explained.subject.uid, uid);
    assert!(!asks.history(key("a"), 10).await.unwrap().is_empty());
    assert!(!asks.recent_history(10).await.unwrap().is_empty());

    asks.delete(key("a")).await.unwrap();
    asks.wait_until_idle(SOON).await.unwrap();
    assert!(asks.list(Select::all()).resources.is_empty());
    asks.shutdown(SOON).await.unwrap();
    holder.shutdown(SOON).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_are_awaited_and_refused_from_any_process() {
    let Some(server) = Server::start() else { return };
    let (holder, asks) = two(&server).await;
    let outcome = asks
        .create(task("a", &Task::Build("x".into())))
        .outcome(SOON)
        .await;
    assert!(matches!(outcome, Ok(RunOutcome::Done { .. })), "{outcome:?}");
    let edits = vec![
        Edit::apply(task("a", &Task::Build("y".into()))),
        Edit::create(task("b", &Task::Fail("no".into()))),
    ];
    let outcomes = asks.edit(edits).outcomes(SOON).await.unwrap();
    assert!(
        matches!(
            &outcomes[..],
            [RunOutcome::Done { .. }, RunOutcome::Failed { .. }]
        ),
        "{outcomes:?}"
    );
    asks.delete(key("a")).settled(SOON).await.unwrap();
    assert!(asks.get(key("a")).is_err(), "it has removed");
    let foreign = Resource::declare("foreign", "a", &Task::Rest).unwrap();
    assert_eq!(
        refusal(asks.create(foreign).await),
        Refusal::UnregisteredKind("foreign".into())
    );
    let mut unreadable = task("c", &Task::Rest);
    unreadable.spec = std::sync::Arc::from(*b"{");
    let refused = refusal(asks.create(unreadable).settled(SOON).await);
    assert!(matches!(refused, Refusal::UnreadableSpec { .. }), "{refused}");
    asks.shutdown(SOON).await.unwrap();
    holder.shutdown(SOON).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_come_back_as_the_same_errors() {
    let Some(server) = Server::start() else { return };
    let (holder, asks) = two(&server).await;
    asks.create(task("a", &Task::Rest)).await.unwrap();
    let spec = Resource::new_spec(&Task::Build("x".into())).unwrap();
    let expect = Expect {
        uid: None,
        spec_version: Some(SpecVersion(7)),
    };
    let stale = asks.update(key("a"), spec).expecting(expect).await;
    assert!(matches!(
        refusal(stale),
        Refusal::StaleSpec {
            found: SpecVersion(1),
            ..
        }
    ));
    let twice = Batch {
        edits: vec![
            Edit::create(task("b", &Task::Rest)),
            Edit::create(task("a", &Task::Rest)),
        ],
    };
    assert!(matches!(
        refusal(asks.edit(twice).await),
        Refusal::NameTaken { .. }
    ));
    assert!(asks.get(key("b")).is_err(), "all or nothing");
    let unknown = asks.reconcile(key("missing")).await.map(drop);
    assert!(matches!(unknown, Err(RequestError::Refused(Refusal::Unknown(_)))));
    let never = asks
        .wait_until(key("a"), |found| found.is_none(), Duration::from_millis(1))
        .await;
    assert!(matches!(never, Err(WaitError::Deadline(_))));
    holder.shutdown(SOON).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn watchers_of_any_process_see_every_change() {
    let Some(server) = Server::start() else { return };
    let (holder, asks) = two(&server).await;
    let mut watch = asks.watch(asks.list(Select::all()).revision);
    holder.create(task("a", &Task::Build("x".into()))).await.unwrap();
    holder
        .create(reading("b", &Task::Build("y".into()), &["a"]))
        .await
        .unwrap();
    let built = asks.wait_until(
        key("b"),
        |found| found.is_some_and(|b| b.row.state.is_some()),
        SOON,
    );
    assert!(built.await.unwrap().is_some());
    holder.delete(key("a")).await.unwrap();
    asks.wait_until(key("a"), |found| found.is_none(), SOON)
        .await
        .unwrap();
    let (mut names, mut removed) = (Vec::new(), Vec::new());
    while removed.is_empty() {
        match tokio::time::timeout(SOON, watch.next()).await.unwrap() {
            Some(Event::Changed(changes)) => {
                names.extend(changes.rows.iter().map(|row| row.name.as_str().to_owned()));
                removed.extend(
                    changes
                        .removed
                        .iter()
                        .map(|removed| removed.key.name.as_str().to_owned()),
                );
            }
            Some(Event::Status(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(names.contains(&"a".to_owned()) && names.contains(&"b".to_owned()));
    assert_eq!(removed, ["a"]);
    holder.shutdown(SOON).await.unwrap();
}

/// Checks that a call that nobody takes in time is withdrawn, and is not carried out later.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_nobody_takes_is_taken_back() {
    let Some(server) = Server::start() else { return };
    let asks = builder(crate::store(&server.url(), NEVER).await).call_timeout(Duration::from_millis(50));
    let asks = asks.attach().await.unwrap();
    let nobody = asks.create(task("a", &Task::Rest)).await;
    assert_eq!(refusal(nobody), Refusal::Unattended);
    let holder = builder(crate::store(&server.url(), NEVER).await)
        .start()
        .await
        .unwrap();
    asks.create(task("b", &Task::Rest)).await.unwrap();
    assert!(holder.get(key("a")).is_err());
    holder.shutdown(SOON).await.unwrap();
}

/// Checks that calls still open when their holder stops are completed by the next holder, each once.
#[tokio::test(flavor = "multi_thread")]
async fn calls_outlive_the_holder_that_took_them() {
    let Some(server) = Server::start() else { return };
    let (holder, asks) = two(&server).await;
    asks.create(task("hangs", &Task::Hang(Ending::Write("cancelled".into()))))
        .await
        .unwrap();
    let mut request = asks.reconcile(key("hangs")).await.unwrap();
    let mut refresh = asks.refresh(key("hangs"), Refresh::Plain).await.unwrap();
    holder.shutdown(SOON).await.unwrap();
    let create = asks.create(task("a", &Task::Build("x".into())));
    let next = async {
        let next = builder(crate::store(&server.url(), NEVER).await)
            .start()
            .await
            .unwrap();
        let rest = Resource::new_spec(&Task::Rest).unwrap();
        next.update(key("hangs"), rest).await.unwrap();
        next
    };
    let (created, next) = tokio::join!(create, next);
    created.unwrap();
    let outcome = request.outcome(SOON).await.unwrap();
    assert!(matches!(outcome, RunOutcome::Done { .. }), "{outcome:?}");
    refresh.settled(SOON).await.unwrap();
    assert_eq!(
        next.get(key("hangs")).unwrap().row.refreshes.plain,
        1,
        "counted once"
    );
    next.shutdown(SOON).await.unwrap();
}

/// Checks that a standby process becomes the holder together with the calls that it asked for meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn who_stands_by_goes_on_with_the_same_handles_when_it_holds() {
    let Some(server) = Server::start() else { return };
    let first = builder(crate::store(&server.url(), NEVER).await)
        .join()
        .await
        .unwrap();
    first.create(task("a", &Task::Build("x".into()))).await.unwrap();
    let second = builder(crate::store(&server.url(), NEVER).await)
        .join()
        .await
        .unwrap();
    second.create(task("b", &Task::Build("y".into()))).await.unwrap();
    let mut watch = second.watch(second.list(Select::all()).revision);
    assert!(first.holds_instance() && !second.holds_instance());
    first.shutdown(SOON).await.unwrap();
    second.create(task("c", &Task::Build("z".into()))).await.unwrap();
    second.wait_until_idle(SOON).await.unwrap();
    assert!(second.holds_instance());
    for (name, text) in [("a", "x"), ("b", "y"), ("c", "z")] {
        assert_eq!(state_of(&second, name).as_deref(), Some(text));
    }
    loop {
        match tokio::time::timeout(SOON, watch.next()).await.unwrap() {
            Some(Event::Changed(changes)) if changes.rows.iter().any(|row| row.name.as_str() == "c") => break,
            Some(Event::Changed(_) | Event::Status(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    second.shutdown(SOON).await.unwrap();
}

#[tokio::test]
async fn a_store_of_one_process_can_not_be_joined() {
    let refused = builder(watershed_controller::store::MemoryStore::new())
        .join()
        .await;
    assert!(matches!(refused, Err(StartError::Store { .. })), "{refused:?}");
}

/// Serves hundreds of instances over one small pool: each is held here, and asked from another controller.
#[tokio::test(flavor = "multi_thread")]
async fn one_process_serves_two_hundred_instances_over_eight_connections() {
    let Some(server) = Server::start() else { return };
    let pool = || async {
        let pool = sqlx::postgres::PgPoolOptions::new().max_connections(8);
        let store = PostgresStore::new(pool.connect(&server.url()).await.unwrap(), TablePrefix::default());
        store.await.unwrap().term(Duration::from_secs(60))
    };
    let (holding, asking) = (pool().await, pool().await);
    let mut instances = Vec::new();
    for number in 0..200 {
        let instance = format!("instance {number}");
        let holder = builder(holding.clone())
            .instance(instance.as_str())
            .start()
            .await
            .unwrap();
        let asks = builder(asking.clone())
            .instance(instance.as_str())
            .attach()
            .await
            .unwrap();
        instances.push((holder, asks));
    }
    let text = || Task::Build("x".into());
    let created = instances.iter().map(|(_, asks)| {
        let handle = asks.handle();
        tokio::spawn(async move { handle.create(task("a", &text())).await })
    });
    for created in created.collect::<Vec<_>>() {
        created.await.unwrap().unwrap();
    }
    for (holder, asks) in &instances {
        holder.wait_until_idle(SOON).await.unwrap();
        let built = asks.wait_until(key("a"), |a| a.is_some_and(|a| a.row.state.is_some()), SOON);
        built.await.unwrap();
    }
    for (holder, _) in instances {
        holder.shutdown(SOON).await.unwrap();
    }
}
