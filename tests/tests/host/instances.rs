//! Named instances of projects whose catalogs are in one store of the embedder's.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use watershed::api::request::{BackupRequest, PlanRequest, QueryRequest};
use watershed::instance::OpenError;
use watershed::{Code, Instance, Options, Runtime, Selection};
use watershed_controller::store::{SqliteStore, Store};
use watershed_tests::postgres::Server;

use crate::postgres::store;
use crate::task::SOON;

/// The connector's statements are known from the catalog alone before anything runs.
const CONNECTOR: &str =
    "type: connector\ndriver: duckdb\ninit_sql: CREATE OR REPLACE TEMP MACRO twice(x) AS x * 2\n";

fn project(root: &Path, number: u32) -> PathBuf {
    for (file, text) in [
        ("watershed.yaml", "olap_connector: duckdb\n".to_owned()),
        ("connectors/duckdb.yaml", CONNECTOR.to_owned()),
        ("models/answer.sql", format!("SELECT twice({number}) AS answer")),
    ] {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root.to_path_buf()
}

fn named(root: &Path, name: &str) -> Options {
    Options {
        name: name.to_owned(),
        ..Options::new(root)
    }
}

async fn opened(runtime: &Runtime, root: &Path, name: &str) -> Instance {
    let instance = runtime.open(named(root, name)).await.unwrap();
    instance.controller().wait_until_idle(SOON).await.unwrap();
    instance
}

async fn asked(instance: &Instance, sql: &str) -> serde_json::Value {
    let question = QueryRequest::new(sql);
    let answer = instance.query(question).await.unwrap();
    serde_json::to_value(&answer.rows).unwrap()
}

async fn instances_share(store: impl Store) {
    let store: Arc<dyn Store> = Arc::new(store);
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (
        project(&folder.path().join("a"), 21),
        project(&folder.path().join("b"), 2),
    );
    let runtime = Runtime::new().with_store(Arc::clone(&store));
    let (first, second) = (
        opened(&runtime, &a, "first").await,
        opened(&runtime, &b, "second").await,
    );
    assert_eq!(
        asked(&first, "SELECT answer FROM answer").await,
        serde_json::json!([[42]])
    );
    assert_eq!(
        asked(&second, "SELECT answer FROM answer").await,
        serde_json::json!([[4]])
    );

    let other = project(&folder.path().join("c"), 1);
    let refused = runtime.open(named(&other, "first")).await.err().unwrap();
    assert!(
        matches!(&refused, OpenError::NameInUse(name) if name == "first"),
        "{refused}"
    );

    // The catalog is the embedder's, and so is a copy of that.
    assert!(!a.join(".watershed/dev/catalog.db").exists());
    let file = folder.path().join("backup");
    let backup = first
        .backup(BackupRequest { file, force: false })
        .await
        .unwrap_err();
    assert_eq!(backup.code, Code::Unavailable, "{}", backup.message);
    assert_eq!(first.check().await.unwrap().findings, []);
    let plan = PlanRequest {
        exit_code: false,
        selection: Selection::default(),
    };
    assert_eq!(first.plan(plan).await.unwrap().steps, []);

    // Whoever takes over finds all of it, and the engine's settings before anything is read from files.
    first.close(SOON).await.unwrap();
    let again = Runtime::new().with_store(store);
    fs::remove_file(a.join("watershed.yaml")).unwrap();
    let first = again.open(named(&a, "first")).await.unwrap();
    assert_eq!(
        asked(&first, "SELECT twice(answer) FROM answer").await,
        serde_json::json!([[84]])
    );
    for instance in [first, second] {
        instance.close(SOON).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn named_instances_share_a_catalog_file() {
    let folder = tempfile::tempdir().unwrap();
    instances_share(SqliteStore::open(folder.path().join("all.db")).await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn named_instances_share_a_server_of_postgres() {
    let Some(server) = Server::start() else { return };
    instances_share(store(&server, SOON).await).await;
}
