//! Leases that run out, takeovers, and what processes see of each other, on a real server.

use std::sync::mpsc;
use std::time::Duration;

use sqlx::postgres::{PgPool, PgPoolOptions};
use watershed_controller::resource::Revision;
use watershed_controller::shutdown::ShutdownError;
use watershed_controller::store::postgres::{PostgresStore, WhenHeld};
use watershed_controller::store::{Store, StoreError, TablePrefix};
use watershed_controller::{Controller, EditError, Refusal, StartError};
use watershed_tests::postgres::Server;

use crate::durability::restarts_where_it_was;
use crate::task::{Ending, SOON, Task, builder, key, reading, start, state_of, task};

/// Short, for these tests wait for it to run out.
const TERM: Duration = Duration::from_millis(1_500);
/// So long that nothing here waits for it.
const NEVER: Duration = Duration::from_secs(3_600);

pub(crate) async fn pool(server: &Server, connections: u32) -> PgPool {
    let options = PgPoolOptions::new().max_connections(connections);
    options
        .connect(&server.url())
        .await
        .expect("the server takes connections")
}

/// Opens the store as one process would.
pub(crate) async fn store(server: &Server, term: Duration) -> PostgresStore {
    let store = PostgresStore::new(pool(server, 4).await, TablePrefix::default()).await;
    store.expect("the store opens").term(term)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_restarts_on_postgres_where_it_was() {
    let Some(server) = Server::start() else { return };
    restarts_where_it_was(async || Box::new(store(&server, TERM).await) as Box<dyn Store>).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_is_held_is_handed_over_by_a_shutdown() {
    let Some(server) = Server::start() else { return };
    let first = start(store(&server, NEVER).await).await;
    first.create(task("a", &Task::Build("x".into()))).await.unwrap();
    first.wait_until_idle(SOON).await.unwrap();
    let refused = builder(store(&server, NEVER).await.when_held(WhenHeld::Refuse))
        .start()
        .await;
    assert!(
        matches!(
            refused,
            Err(StartError::Store {
                source: StoreError::Held { .. },
                ..
            })
        ),
        "{refused:?}"
    );
    let second = builder(store(&server, NEVER).await).start();
    let (second, ()) = tokio::join!(second, async {
        first.shutdown(SOON).await.unwrap();
    });
    let second = second.unwrap();
    second.wait_until_idle(SOON).await.unwrap();
    assert_eq!(state_of(&second, "a").as_deref(), Some("x"));
    second.shutdown(SOON).await.unwrap();
}

/// A controller that cannot reach its database any more gives up by itself, before anybody else takes over.
#[tokio::test(flavor = "multi_thread")]
async fn a_holder_that_is_cut_off_stops_and_another_takes_over() {
    let Some(server) = Server::start() else { return };
    let cut = pool(&server, 4).await;
    let store_of_first = PostgresStore::new(cut.clone(), TablePrefix::default())
        .await
        .unwrap()
        .term(TERM);
    let first = start(store_of_first).await;
    first
        .create(task("hangs", &Task::Hang(Ending::Write("cancelled".into()))))
        .await
        .unwrap();
    let second = tokio::spawn(builder(store(&server, TERM).await).start());
    cut.close().await;
    assert!(matches!(first.run().await, Err(ShutdownError::LeaseLost)));
    assert!(!second.is_finished(), "the lease has not run out yet");
    let late = first.create(task("late", &Task::Rest)).await;
    assert!(
        matches!(late, Err(EditError::Refused(Refusal::LeaseLost))),
        "{late:?}"
    );
    let second = second.await.unwrap().unwrap();
    assert!(second.get(key("late")).is_err());
    assert!(second.get(key("hangs")).is_ok());
    second.shutdown(SOON).await.unwrap();
}

/// As after SIGSTOP: the first controller's only thread stands still until another one has taken over.
#[tokio::test(flavor = "multi_thread")]
async fn a_holder_that_stood_still_starts_and_writes_nothing_when_it_goes_on() {
    let Some(server) = Server::start() else { return };
    let url_store = store(&server, TERM).await;
    let (stand_still, stands_still) = mpsc::channel::<()>();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async move {
            let first = start(url_store).await;
            first
                .create(task("a", &Task::Build("first".into())))
                .await
                .unwrap();
            first.wait_until_idle(SOON).await.unwrap();
            stand_still.send(()).unwrap();
            goes_on.recv().unwrap();
            let write = first.update_spec(key("a"), &Task::Build("late".into())).await;
            (write.map(drop), first.run().await)
        })
    });
    tokio::task::spawn_blocking(move || stands_still.recv().unwrap())
        .await
        .unwrap();
    let second = start(store(&server, TERM).await).await;
    second.wait_until_idle(SOON).await.unwrap();
    go_on.send(()).unwrap();
    let (write, end) = tokio::task::spawn_blocking(move || thread.join().unwrap())
        .await
        .unwrap();
    assert!(
        matches!(write, Err(EditError::Refused(Refusal::LeaseLost))),
        "{write:?}"
    );
    assert!(matches!(end, Err(ShutdownError::LeaseLost)), "{end:?}");
    let built = second.get(key("a")).unwrap().spec::<Task>().unwrap();
    assert_eq!(built, Task::Build("first".into()));
    second.shutdown(SOON).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn many_instances_share_few_connections() {
    let Some(server) = Server::start() else { return };
    let shared = PostgresStore::new(pool(&server, 3).await, TablePrefix::new("many_").unwrap()).await;
    let shared = shared.unwrap().term(Duration::from_secs(30));
    let mut controllers: Vec<Controller> = Vec::new();
    for number in 0..100 {
        let controller = builder(shared.clone()).instance(format!("instance {number}"));
        controllers.push(controller.start().await.unwrap());
    }
    for controller in &controllers {
        controller
            .create(task("a", &Task::Build("x".into())))
            .await
            .unwrap();
        controller
            .create(reading("b", &Task::Build("y".into()), &["a"]))
            .await
            .unwrap();
    }
    for controller in &controllers {
        controller.wait_until_idle(SOON).await.unwrap();
        assert_eq!(state_of(controller, "b").as_deref(), Some("y"));
    }
    for controller in controllers {
        controller.shutdown(SOON).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_elsewhere_hear_of_commits() {
    let Some(server) = Server::start() else { return };
    let controller = start(store(&server, NEVER).await).await;
    let reader = store(&server, NEVER).await.reader();
    let mut revisions = reader.revisions("default", Revision(0));
    let uid = controller
        .create(task("a", &Task::Build("x".into())))
        .await
        .unwrap();
    controller.wait_until_idle(SOON).await.unwrap();
    let idle = controller.list(watershed_controller::Select::all()).revision;
    loop {
        let seen = tokio::time::timeout(SOON, revisions.next())
            .await
            .expect("it is announced")
            .unwrap();
        let stored = reader.read("default").await.unwrap();
        assert!(stored.revision >= seen);
        if seen >= idle {
            break;
        }
    }
    let stored = reader.read("default").await.unwrap();
    assert_eq!(stored.rows[0].row, controller.get(key("a")).unwrap().row);
    assert_eq!(reader.history("default", uid, 10).await.unwrap().len(), 1);
    assert_eq!(reader.recent("default", 10).await.unwrap().len(), 1);
    controller.shutdown(SOON).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_catalog_of_each_earlier_version_is_migrated_and_keeps_its_rows() {
    let Some(server) = Server::start() else { return };
    let first = start(store(&server, TERM).await).await;
    first.create(task("a", &Task::Build("x".into()))).await.unwrap();
    first.wait_until_idle(SOON).await.unwrap();
    first.shutdown(SOON).await.unwrap();
    let pool = pool(&server, 1).await;
    for (version, columns) in [(4, vec!["unready"]), (3, vec!["unready", "retry"])] {
        // As a process of the version before would have left it.
        let forget = format!("DELETE FROM watershed_migrations WHERE version >= {version}");
        let drop = |column| format!("ALTER TABLE watershed_resources DROP COLUMN {column}");
        for sql in columns.into_iter().map(drop).chain([forget]) {
            sqlx::query(sqlx::AssertSqlSafe(sql))
                .execute(&pool)
                .await
                .unwrap();
        }
        let next = start(store(&server, TERM).await).await;
        next.wait_until_idle(SOON).await.unwrap();
        let found = next.get(key("a")).unwrap();
        assert_eq!(state_of(&next, "a").as_deref(), Some("x"));
        assert_eq!(
            (
                found.row.retry.clone(),
                found.row.attempts,
                found.row.unready.clone()
            ),
            (None, 0, None)
        );
        next.shutdown(SOON).await.unwrap();
    }
}
