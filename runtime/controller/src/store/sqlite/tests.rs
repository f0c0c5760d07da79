//! Tests of damaged and unusual files, and of behaviour that the conformance test of all stores can't see.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::ConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use tempfile::TempDir;
use uuid::Uuid;
use watershed_core::{CommitId, Epoch, NewResource, Revision, Write};

use super::*;

/// A row as the core would make it.
fn row(number: u128, name: &str) -> watershed_core::Row {
    let new = NewResource::new(Uid(Uuid::from_u128(number)), "thing", name, b"spec".to_vec());
    watershed_core::Row {
        refs: vec![watershed_core::Ref::completed("thing", "other")].into(),
        paths: new.paths,
        labels: new.labels,
        revision: Revision(1),
        spec_version: watershed_core::SpecVersion(1),
        created_at: watershed_core::Timestamp(1),
        updated_at: watershed_core::Timestamp(1),
        spec_format: 1,
        spec: new.spec,
        ..watershed_core::Row::new(new.uid, new.kind, new.name)
    }
}

/// One with a policy of its own for retries.
fn stubborn() -> watershed_core::Row {
    let policy = watershed_core::RetryPolicy::Backoff {
        base: Duration::from_secs(1),
        cap: Duration::from_secs(60),
        attempts: 5,
        reset_after: Duration::ZERO,
    };
    watershed_core::Row {
        retry: Some(Arc::new(policy)),
        unready: Some("it starts".into()),
        attempts: 3,
        ..row(2, "two")
    }
}

fn put(epoch: Epoch, rows: Vec<watershed_core::Row>) -> Commit {
    Commit {
        id: CommitId(1),
        epoch,
        revision: Revision(1),
        writes: rows.into_iter().map(|row| Write::Put(Arc::new(row))).collect(),
        history: Arc::from([]),
    }
}

/// Makes a catalog with two resources at `path`, closed in order.
async fn make(path: &Path) {
    let store = SqliteStore::open(path).await.unwrap();
    let Opened { stored, catalog } = Store::open(&store, "flights").await.unwrap();
    catalog
        .commit(&put(stored.epoch, vec![row(1, "one"), stubborn()]))
        .await
        .unwrap();
    catalog.close().await;
    store.close().await;
}

fn catalog_in(folder: &TempDir) -> PathBuf {
    folder.path().join("catalog.db")
}

/// Runs one statement behind the store's back, closed without a trace.
async fn tamper(path: &Path, sql: &'static str) {
    let mut connection = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .connect()
        .await
        .unwrap();
    sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

async fn refused(path: &Path) -> StoreError {
    let before = fs::read(path).unwrap();
    let error = SqliteStore::open(path).await.unwrap_err();
    assert!(fs::read(path).unwrap() == before, "the file was touched: {error}");
    error
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_as_it_is() {
    let folder = TempDir::new().unwrap();
    let path = catalog_in(&folder);
    for contents in [
        "",
        "x",
        "a page of notes, longer than any header of a database would be",
    ] {
        fs::write(&path, contents).unwrap();
        if contents.is_empty() {
            SqliteStore::open(&path).await.unwrap().close().await;
        } else {
            assert!(matches!(refused(&path).await, StoreError::Damaged { .. }));
        }
    }
}

#[tokio::test]
async fn a_damaged_database_is_refused_and_left_as_it_is() {
    let folder = TempDir::new().unwrap();
    let path = catalog_in(&folder);
    make(&path).await;
    let sound = fs::read(&path).unwrap();
    for page in 1..sound.len() / 4096 {
        let mut damaged = sound.clone();
        damaged[page * 4096..(page + 1) * 4096].fill(0xA5);
        fs::write(&path, damaged).unwrap();
        assert!(
            matches!(refused(&path).await, StoreError::Damaged { .. }),
            "page {page}"
        );
    }
    fs::write(&path, &sound[..sound.len() / 2]).unwrap();
    assert!(
        matches!(refused(&path).await, StoreError::Damaged { .. }),
        "cut in half"
    );
}

#[tokio::test]
async fn a_database_of_something_else_is_refused_and_left_as_it_is() {
    let folder = TempDir::new().unwrap();
    let path = catalog_in(&folder);
    tamper(&path, "CREATE TABLE notes (text TEXT)").await;
    let error = refused(&path).await;
    assert!(error.to_string().contains("something else"), "{error}");
}

#[tokio::test]
async fn a_newer_catalog_is_refused_and_left_as_it_is() {
    let folder = TempDir::new().unwrap();
    let path = catalog_in(&folder);
    make(&path).await;
    tamper(
        &path,
        "INSERT INTO watershed_migrations VALUES (99, 'from the future', 0)",
    )
    .await;
    assert!(matches!(
        refused(&path).await,
        StoreError::Newer { found: 99, .. }
    ));
}

#[tokio::test]
async fn an_older_catalog_is_copied_and_then_migrated() {
    const NEXT: Migration = Migration {
        version: 99,
        name: "next",
        sql: "CREATE TABLE {p}more (x INTEGER)",
    };
    let folder = TempDir::new().unwrap();
    let path = catalog_in(&folder);
    make(&path).await;
    let newest = MIGRATIONS.last().unwrap().version;
    let steps: Vec<Migration> = MIGRATIONS.iter().copied().chain([NEXT]).collect();

    let store = SqliteStore::open_with(&path, &steps).await.unwrap();
    assert_eq!(Store::open(&store, "flights").await.unwrap().stored.rows.len(), 2);
    store.close().await;

    let copy = folder.path().join(format!("catalog.db.v{newest}.bak"));
    let prefix = TablePrefix::default();
    assert_eq!(
        open::inspect(&copy, &prefix).await.unwrap(),
        CatalogFile::Version(newest)
    );
    assert_eq!(
        open::inspect(&path, &prefix).await.unwrap(),
        CatalogFile::Version(99)
    );
    assert!(matches!(
        refused(&path).await,
        StoreError::Newer { found: 99, .. }
    ));
}

#[tokio::test]
async fn a_second_opening_is_refused_until_the_first_is_closed() {
    let folder = TempDir::new().unwrap();
    let path = catalog_in(&folder);
    let first = SqliteStore::open(&path).await.unwrap();
    let opened = Store::open(&first, "flights").await.unwrap();
    assert!(matches!(
        SqliteStore::open(&path).await,
        Err(StoreError::InUseHere { .. })
    ));
    first.close().await;
    assert!(matches!(
        SqliteStore::open(&path).await,
        Err(StoreError::InUseHere { .. })
    ));
    opened.catalog.close().await;
    SqliteStore::open(&path).await.unwrap();
}

#[tokio::test]
async fn every_link_to_a_catalog_opens_the_same_catalog() {
    use std::os::unix::fs::symlink;
    let folder = TempDir::new().unwrap();
    let path = catalog_in(&folder);
    let other = folder.path().join("other");
    fs::create_dir(&other).unwrap();
    let link = other.join("link.db");
    symlink(&path, &link).unwrap();
    let relative = other.join("relative.db");
    symlink("link.db", &relative).unwrap();
    symlink(&other, folder.path().join("folder")).unwrap();
    let through = folder.path().join("folder/relative.db");
    // The first one leads to a file that is not there yet.
    for first in [&link, &path, &through] {
        let store = SqliteStore::open(first).await.unwrap();
        let opened = Store::open(&store, "flights").await.unwrap();
        let rows = vec![row(1, "one")];
        opened
            .catalog
            .commit(&put(opened.stored.epoch, rows))
            .await
            .unwrap();
        for second in [&link, &path, &relative, &through] {
            let refused = SqliteStore::open(second).await;
            assert!(
                matches!(refused, Err(StoreError::InUseHere { .. })),
                "{} beside {}",
                second.display(),
                first.display()
            );
            // Whoever only looks sees what is in the journal still.
            let seen = SqliteReader::new(second).read("flights").await.unwrap();
            assert_eq!(names(&seen), ["one"]);
        }
        opened.catalog.close().await;
        store.close().await;
    }
    assert_eq!(
        fs::read_dir(&other).unwrap().count(),
        2,
        "nothing lies beside the links"
    );
}

#[test]
fn a_handle_that_outlives_its_runtime_leaves_the_catalog_to_the_next_controller() {
    let folder = TempDir::new().unwrap();
    let path = catalog_in(&folder);
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap()
    };
    let start = async || {
        let store = SqliteStore::open(&path).await?;
        let builder = crate::Controller::builder().store(store);
        let builder = builder.kind(crate::KindOptions::new("thing"), crate::tests::support::Nothing);
        Ok::<_, StoreError>(builder.start().await.unwrap())
    };
    let first = runtime();
    let controller = first.block_on(start()).unwrap();
    let handle = controller.handle();
    first
        .block_on(handle.create(crate::tests::support::thing("kept")).into_future())
        .unwrap();
    // No shutdown: the runtime goes with the loop in it.
    drop(first);
    drop(controller);
    let second = runtime();
    let controller = second.block_on(start()).unwrap();
    assert!(controller.get("kept").is_ok());
    assert!(handle.get("kept").is_ok(), "reads go on");
    let history = second.block_on(handle.history("kept", 1));
    assert!(matches!(
        history,
        Err(crate::history::HistoryError::Store(StoreError::Closed))
    ));
}

#[tokio::test]
async fn columns_that_cannot_be_read_are_reported_and_kept() {
    let folder = TempDir::new().unwrap();
    let path = catalog_in(&folder);
    make(&path).await;
    tamper(
        &path,
        "UPDATE watershed_resources SET last_run = x'ff' WHERE name = 'one'",
    )
    .await;
    let store = SqliteStore::open(&path).await.unwrap();
    let stored = Store::open(&store, "flights").await.unwrap().stored;
    let by_name = |name: &str| {
        stored
            .rows
            .iter()
            .find(|entry| entry.row.name.as_str() == name)
            .unwrap()
    };
    let message = &by_name("one").unreadable.as_ref().unwrap().message;
    assert!(message.contains("`last_run`"), "{message}");
    assert_eq!(*by_name("two").row, stubborn());
}

#[tokio::test]
async fn a_guest_in_a_pool_keeps_to_its_prefix() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("host.db");
    tamper(
        &path,
        "CREATE TABLE migrations (mine INTEGER); CREATE TABLE resources (mine INTEGER)",
    )
    .await;
    let options = SqliteConnectOptions::new().filename(&path);
    let pool = SqlitePoolOptions::new()
        .max_connections(2)
        .connect_with(options)
        .await
        .unwrap();
    let prefix = TablePrefix::new("ws_").unwrap();
    for epoch in [Epoch(1), Epoch(2)] {
        let store = SqliteStore::with_pool(pool.clone(), prefix.clone())
            .await
            .unwrap();
        let Opened { stored, catalog } = Store::open(&store, "flights").await.unwrap();
        assert_eq!(stored.epoch, epoch);
        catalog.commit(&put(epoch, vec![row(1, "one")])).await.unwrap();
        catalog.close().await;
        store.close().await;
    }
    let others =
        "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'ws~_%' ESCAPE '~'";
    assert_eq!(
        sqlx::query_scalar::<_, i64>(others)
            .fetch_one(&pool)
            .await
            .unwrap(),
        2
    );
    assert!(matches!(
        TablePrefix::new("a; drop table b"),
        Err(StoreError::Prefix { .. })
    ));
}

/// Every schema version that was ever released has a catalog in `testdata`, and no other file lies there;
/// `WATERSHED_BLESS` makes the newest one.
#[tokio::test]
async fn a_stored_catalog_of_every_schema_version_opens() {
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/catalogs");
    let newest = stored.join(format!("v{}.db", MIGRATIONS.last().unwrap().version));
    if std::env::var_os("WATERSHED_BLESS").is_some() && !newest.exists() {
        let folder = TempDir::new().unwrap();
        make(&catalog_in(&folder)).await;
        fs::create_dir_all(&stored).unwrap();
        fs::copy(catalog_in(&folder), &newest).unwrap();
    }
    let versions: Vec<u32> = MIGRATIONS.iter().map(|step| step.version).collect();
    let files = fs::read_dir(&stored).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
    files.sort();
    let expected = versions.iter().map(|version| format!("v{version}.db").into());
    assert_eq!(files, expected.collect::<Vec<std::ffi::OsString>>());
    for version in versions {
        let folder = TempDir::new().unwrap();
        let path = catalog_in(&folder);
        fs::copy(stored.join(format!("v{version}.db")), &path).unwrap();
        let read = SqliteReader::new(&path).read("flights").await.unwrap();
        assert_eq!((rows(&read), read.revision), (made_by(version), Revision(1)));
        let store = SqliteStore::open(&path).await.unwrap();
        let Opened { stored, catalog } = Store::open(&store, "flights").await.unwrap();
        assert_eq!((rows(&stored), stored.epoch), (made_by(version), Epoch(2)));
        assert!(stored.rows.iter().all(|entry| entry.unreadable.is_none()));
        let three = watershed_core::Row {
            uid: Uid(Uuid::from_u128(3)),
            name: "three".into(),
            ..stubborn()
        };
        catalog
            .commit(&put(stored.epoch, vec![three.clone()]))
            .await
            .unwrap();
        catalog.close().await;
        store.close().await;
        let read = SqliteReader::new(&path).read("flights").await.unwrap();
        let all = [made_by(version), vec![three]].concat();
        assert_eq!(
            rows(&read),
            all,
            "columns of today beside those of version {version}"
        );
    }
}

/// The rows of the stored catalog of a version: each was made by [`make`] of its time.
fn made_by(version: u32) -> Vec<watershed_core::Row> {
    let two = match version {
        ..3 => row(2, "two"),
        3 => watershed_core::Row {
            unready: None,
            ..stubborn()
        },
        4.. => stubborn(),
    };
    vec![row(1, "one"), two]
}

fn rows(stored: &Stored) -> Vec<watershed_core::Row> {
    let mut rows: Vec<_> = stored.rows.iter().map(|entry| (*entry.row).clone()).collect();
    rows.sort_by_key(|row| row.uid);
    rows
}

/// Returns the contents of a folder: names and bytes.
fn contents_of(folder: &TempDir) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}

fn names(stored: &Stored) -> Vec<String> {
    let mut names: Vec<String> = stored
        .rows
        .iter()
        .map(|entry| entry.row.name.to_string())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_look_needs_no_owner_and_leaves_everything_as_it_is() {
    let folder = TempDir::new().unwrap();
    let path = catalog_in(&folder);
    let reader = SqliteReader::new(&path);
    assert!(reader.read("flights").await.unwrap().rows.is_empty());
    assert!(!path.exists(), "a look makes no catalog");
    make(&path).await;
    let before = contents_of(&folder);
    for _ in 0..2 {
        let stored = reader.read("flights").await.unwrap();
        assert_eq!(
            (names(&stored), stored.epoch),
            (vec!["one".into(), "two".into()], Epoch(1))
        );
        assert!(reader.recent("flights", 10).await.unwrap().is_empty());
    }
    assert!(reader.read("elsewhere").await.unwrap().rows.is_empty());
    assert!(contents_of(&folder) == before, "something was written");
}

#[tokio::test]
async fn a_look_beside_an_owner_sees_what_is_committed() {
    let folder = TempDir::new().unwrap();
    let path = catalog_in(&folder);
    let store = SqliteStore::open(&path).await.unwrap();
    let reader = SqliteReader::new(&path);
    let opened = Store::open(&store, "flights").await.unwrap();
    let epoch = opened.stored.epoch;
    for (number, name) in [(1, "one"), (2, "two"), (3, "three")] {
        opened
            .catalog
            .commit(&put(epoch, vec![row(number, name)]))
            .await
            .unwrap();
        let stored = reader.read("flights").await.unwrap();
        assert_eq!(stored.rows.len(), number as usize);
        assert_eq!(stored.epoch, epoch, "a look takes no lease");
    }
    opened
        .catalog
        .commit(&put(epoch, vec![row(4, "four")]))
        .await
        .unwrap();
    opened.catalog.close().await;
    store.close().await;
    assert_eq!(reader.read("flights").await.unwrap().rows.len(), 4);
}

#[tokio::test]
async fn a_look_into_what_is_no_catalog_of_this_version_says_so() {
    let folder = TempDir::new().unwrap();
    let path = catalog_in(&folder);
    fs::write(&path, "notes").unwrap();
    let reader = SqliteReader::new(&path);
    let damaged = reader.read("flights").await.unwrap_err();
    assert!(matches!(damaged, StoreError::Damaged { .. }), "{damaged}");
    fs::remove_file(&path).unwrap();
    make(&path).await;
    tamper(
        &path,
        "INSERT INTO watershed_migrations VALUES (99, 'from the future', 0)",
    )
    .await;
    let newer = reader.read("flights").await.unwrap_err();
    assert!(matches!(newer, StoreError::Newer { found: 99, .. }), "{newer}");
    tamper(&path, "DELETE FROM watershed_migrations").await;
    let older = reader.read("flights").await.unwrap_err();
    assert!(matches!(older, StoreError::Older { found: 0, .. }), "{older}");
}
