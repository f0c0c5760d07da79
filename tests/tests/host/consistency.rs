//! The check of a running controller: its rules, and the stored catalog against the loaded one.

use sqlx::{Connection, SqliteConnection};
use watershed_controller::Refusal;
use watershed_controller::consistency::{CheckError, Compared, Finding, Rule};
use watershed_controller::store::{MemoryStore, SqliteStore, Store};

use crate::faults::{Fault, FaultyStore};
use crate::task::{SOON, Task, key, reading, start, task};

/// A catalog in which something of everything has happened is sound, and stored as it is loaded.
async fn is_sound(store: impl Store) {
    let controller = start(store).await;
    controller
        .create(task("a", &Task::Build("x".into())))
        .await
        .unwrap();
    controller
        .create(reading("b", &Task::Fail("no".into()), &["a"]))
        .await
        .unwrap();
    controller
        .create(reading("c", &Task::Rest, &["b"]))
        .await
        .unwrap();
    controller
        .create(reading("round", &Task::Rest, &["trip"]))
        .await
        .unwrap();
    controller
        .create(reading("trip", &Task::Rest, &["round"]))
        .await
        .unwrap();
    controller.wait_until_idle(SOON).await.unwrap();
    controller
        .rename(key("a"), "z")
        .expecting(watershed_controller::Expect::default())
        .await
        .unwrap();
    controller.pause(key("c")).await.unwrap();
    controller.wait_until_idle(SOON).await.unwrap();

    let checked = controller.check_consistency().await.unwrap();
    assert_eq!(checked.findings, []);
    assert_eq!((checked.compared, checked.resources), (Compared::Whole, 5));
    assert!(checked.rules.contains(&Rule::ConcurrencyLimits) && checked.rules.contains(&Rule::StoreAgrees));
    controller.shutdown(SOON).await.unwrap();
    let stopped = controller.check_consistency().await;
    assert!(matches!(
        stopped,
        Err(CheckError::Refused(Refusal::ShuttingDown) | CheckError::Store(_))
    ));
}

#[tokio::test]
async fn what_is_kept_in_memory_is_what_is_loaded() {
    is_sound(MemoryStore::new()).await;
}

#[tokio::test]
async fn what_sqlite_keeps_is_what_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    is_sound(SqliteStore::open(folder.path().join("catalog.db")).await.unwrap()).await;
}

#[tokio::test]
async fn what_postgres_keeps_is_what_is_loaded() {
    let Some(server) = watershed_tests::postgres::Server::start() else {
        return;
    };
    is_sound(crate::postgres::store(&server, SOON).await).await;
}

#[tokio::test]
async fn a_row_that_somebody_changed_in_the_file_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.db");
    let controller = start(SqliteStore::open(&path).await.unwrap()).await;
    for name in ["changed", "removed", "left"] {
        controller.create(task(name, &Task::Rest)).await.unwrap();
    }
    controller.wait_until_idle(SOON).await.unwrap();
    let mut intruder = SqliteConnection::connect(&format!("sqlite://{}", path.display()))
        .await
        .unwrap();
    for sql in [
        "UPDATE watershed_resources SET spec = x'00' WHERE name = 'changed'",
        "DELETE FROM watershed_resources WHERE name = 'removed'",
    ] {
        let changed = sqlx::query(sql).execute(&mut intruder).await.unwrap();
        assert_eq!(changed.rows_affected(), 1);
    }
    intruder.close().await.unwrap();

    let checked = controller.check_consistency().await.unwrap();
    let told = |finding: &Finding| {
        let name = finding
            .subject
            .as_ref()
            .map(|subject| subject.key.name.to_string());
        (finding.rule, name.unwrap_or_default(), finding.detail.clone())
    };
    let mut found: Vec<_> = checked.findings.iter().map(told).collect();
    found.sort();
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!((found[0].0, &*found[0].1), (Rule::StoreAgrees, "changed"));
    assert!(found[0].2.starts_with("is stored otherwise"), "{found:?}");
    assert_eq!(
        found[1],
        (Rule::StoreAgrees, "removed".into(), "is not stored".into())
    );
}

#[tokio::test(start_paused = true)]
async fn a_catalog_that_moves_on_meanwhile_is_compared_as_far_as_it_stands_still() {
    let store = FaultyStore::new();
    let controller = start(store.clone()).await;
    controller.create(task("still", &Task::Rest)).await.unwrap();
    controller.wait_until_idle(SOON).await.unwrap();
    let before = store.commits();
    store.set(Fault::Before);
    let handle = controller.handle();
    let edit = tokio::spawn(async move { handle.create(task("moving", &Task::Rest)).await });
    while store.commits() == before {
        tokio::task::yield_now().await;
    }
    let checked = controller.check_consistency().await.unwrap();
    assert_eq!((checked.compared, checked.findings), (Compared::Partly, vec![]));
    store.set(Fault::None);
    edit.await.unwrap().unwrap();
}
