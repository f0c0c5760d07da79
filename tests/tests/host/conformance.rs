//! Our own stores pass the suite that the crate offers for stores.

use std::time::Duration;

use watershed_controller::store::{MemoryStore, SqliteStore};
use watershed_testkit::store::conforms;

#[tokio::test]
async fn the_memory_store_conforms() {
    let store = MemoryStore::new();
    conforms(async || store.clone()).await;
}

#[tokio::test]
async fn the_sqlite_store_conforms() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.db");
    conforms(async || SqliteStore::open(&path).await.unwrap()).await;
}

#[tokio::test]
async fn the_postgres_store_conforms() {
    let Some(server) = watershed_tests::postgres::Server::start() else {
        return;
    };
    // What is not closed is free again when its lease has run out, which a busy machine reaches later than the next statement.
    let term = Duration::from_secs(2);
    conforms(async || crate::postgres::store(&server, term).await).await;
}
