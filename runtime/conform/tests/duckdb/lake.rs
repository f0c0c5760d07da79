//! Factory for lakes, with their catalogs in a file of DuckDB, a file of SQLite, or Postgres, and their files in a folder or a store.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use watershed_conform::{Factory, Image, Images, NotTried, Person, Rival, Scratch};
use watershed_dialect::{DuckDb, Quoting};
use watershed_drivers::CRASH_POINTS;
use watershed_drivers::duckdb::{ByHand, Engine, LAKE_GUARANTEES, Options};
use watershed_drivers::olap::{Attached, Guarantees, Home, Lake, LakeHome, Olap, Rights, Session, System};

use super::factory::{DuckDbFactory, Kept, Program, REFUSED, close_all, run_rival};
use super::line::Line;
use super::postgres::Server;
use super::s3::Store;
use super::server::extensions;

/// Environment variable that makes this program the rival process of a lake.
const RIVAL: &str = "WATERSHED_CONFORM_LAKE_RIVAL";
/// Counter that makes the schemas of catalogs in Postgres unique.
static SCHEMAS: AtomicU32 = AtomicU32::new(0);

/// Returns true if the engine has the extensions of lakes; says so otherwise.
pub(crate) fn are_there() -> bool {
    let there = extensions().is_dir();
    if !there {
        println!("skipped: the engine's extensions are missing (scripts/fetch-extensions)");
    }
    there
}

/// The place of a lake's catalog.
#[derive(Clone)]
pub(crate) enum Catalog {
    DuckDb,
    Sqlite,
    Postgres(Arc<Server>),
    /// Postgres, and a store with the bucket `lakes` for the files.
    WithStore(Arc<Server>, Arc<Store>),
}

/// Factory of engines on lakes.
pub(crate) struct LakeFactory(pub(crate) Catalog);

impl Factory for LakeFactory {
    fn guarantees(&self) -> Guarantees {
        LAKE_GUARANTEES
    }

    fn scratch(&self) -> BoxFuture<'_, Result<Box<dyn Scratch>, String>> {
        async { Ok(Box::new(LakeFolder::new(&self.0)) as Box<dyn Scratch>) }.boxed()
    }

    fn quoting(&self) -> &dyn Quoting {
        &DuckDb
    }

    fn numbers(&self, rows: u64) -> String {
        DuckDbFactory.numbers(rows)
    }

    fn endless(&self) -> String {
        DuckDbFactory.endless()
    }
}

/// The address of a lake.
#[derive(Clone)]
pub(crate) struct Address {
    catalog: System,
    target: String,
    schema: Option<String>,
    files: String,
    /// Host and port of the store that has the files; none for a folder.
    store: Option<String>,
    folder: PathBuf,
}

impl Address {
    pub(crate) fn to_text(&self) -> String {
        let catalog = match self.catalog {
            System::Postgres => "postgres",
            System::Sqlite => "sqlite",
            _ => "duckdb",
        };
        let schema = self.schema.as_deref().unwrap_or_default();
        let store = self.store.as_deref().unwrap_or_default();
        let (files, folder) = (&self.files, self.folder.display());
        format!("{catalog}\t{}\t{schema}\t{files}\t{store}\t{folder}", self.target)
    }

    pub(crate) fn parse(text: &str) -> Self {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let [catalog, target, schema, files, store, folder] = text.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{text}")
        };
        Self {
            catalog: System::from_driver(catalog).unwrap(),
            target: target.to_owned(),
            schema: some(schema),
            files: files.to_owned(),
            store: some(store),
            folder: folder.into(),
        }
    }

    /// Returns the address of the catalog's database.
    pub(crate) fn target(&self) -> &str {
        &self.target
    }

    /// Returns the folder of the lake's files.
    pub(crate) fn files(&self) -> PathBuf {
        PathBuf::from(&self.files)
    }

    /// Returns the lake's own catalog, as somebody's own program has it.
    pub(crate) fn metadata(&self) -> String {
        let usual = match self.catalog {
            System::Postgres => "public",
            _ => "main",
        };
        format!(
            "__ducklake_metadata_theirs.{}",
            self.schema.as_deref().unwrap_or(usual)
        )
    }

    /// Returns the address of the same lake by way of lines to the servers of its catalog and its files.
    pub(crate) fn through(&self, catalog: &Line, files: &Line) -> Self {
        let port = catalog.port();
        Self {
            target: format!("host=127.0.0.1 port={port} user=postgres dbname=postgres"),
            store: Some(format!("127.0.0.1:{}", files.port())),
            ..self.clone()
        }
    }

    /// Returns an engine that builds in the lake.
    pub(crate) fn engine(&self) -> Engine {
        let mut options = Options::new(self.folder.join("none.duckdb"), &self.folder);
        options.threads = std::num::NonZeroUsize::new(2);
        options.memory_limit = Some(1 << 30);
        options.extensions = vec![extensions()];
        options.home = Home::Lake(Box::new(LakeHome {
            database: Attached {
                name: "watershed".to_owned(),
                system: System::DuckLake,
                connector: "lake".to_owned(),
                target: self.target.clone(),
                login: Vec::new(),
                rights: Rights::Write,
                lake: Some(Lake {
                    catalog: self.catalog,
                    data_path: Some(self.files.clone()),
                    schema: self.schema.clone(),
                    snapshot: None,
                }),
            },
            project: "conform".to_owned(),
        }));
        let engine = Engine::new(options);
        let session = |sql| Session {
            connector: "bucket".to_owned(),
            sql,
            ..Session::default()
        };
        engine.begin_with(self.login().map(session).into_iter().collect());
        engine
    }

    /// Returns the statement with the login of the store; none for a folder.
    fn login(&self) -> Option<String> {
        let store = self.store.as_ref()?;
        Some(format!(
            "CREATE OR REPLACE SECRET files (TYPE s3, KEY_ID 'key-of-a-test', SECRET 'secret', REGION 'us-east-1', \
             ENDPOINT '{store}', URL_STYLE 'path', USE_SSL false)"
        ))
    }

    /// Returns the lake as somebody's own program attaches it.
    pub(crate) fn by_hand(&self) -> ByHand {
        self.by_hand_with("")
    }

    /// Returns the lake as somebody's own program attaches it with further options.
    pub(crate) fn by_hand_with(&self, further: &str) -> ByHand {
        let hand = ByHand::in_memory();
        let folder = extensions();
        hand.run(&format!("SET extension_directories = ['{}']", folder.display()));
        if let Some(login) = self.login() {
            hand.run(&login);
        }
        let (address, mut options) = match self.catalog {
            System::Postgres => (format!("postgres:{}", self.target), String::new()),
            System::Sqlite => (
                format!("sqlite:{}", self.target),
                ", META_JOURNAL_MODE 'WAL'".to_owned(),
            ),
            _ => (self.target.clone(), String::new()),
        };
        if let Some(schema) = &self.schema {
            options.push_str(&format!(", METADATA_SCHEMA '{schema}'"));
        }
        let files = &self.files;
        hand.run(&format!(
            "ATTACH 'ducklake:{address}' AS theirs (DATA_PATH '{files}'{options}{further})"
        ));
        hand.run("USE theirs");
        hand
    }
}

/// A folder with a lake's files and, unless a server has it, its catalog; and the engines opened on it.
pub(crate) struct LakeFolder {
    folder: Arc<TempDir>,
    /// Folder of the lake that this one is an image of, whose files it reads.
    _origin: Option<Arc<TempDir>>,
    pub(crate) address: Address,
    opened: Mutex<Vec<Engine>>,
}

impl LakeFolder {
    pub(crate) fn new(catalog: &Catalog) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let path = folder.path().to_owned();
        let file = |name: &str| path.join(name).display().to_string();
        let (system, target, schema) = match catalog {
            Catalog::DuckDb => (System::DuckDb, file("catalog.duckdb"), None),
            Catalog::Sqlite => (System::Sqlite, file("catalog.sqlite"), None),
            Catalog::Postgres(server) | Catalog::WithStore(server, _) => {
                let host = server.socket_folder().display();
                let number = SCHEMAS.fetch_add(1, Ordering::Relaxed);
                let target = format!("host={host} user=postgres dbname=postgres");
                (System::Postgres, target, Some(format!("lake_{number}")))
            }
        };
        let (files, store) = match catalog {
            Catalog::WithStore(_, store) => {
                let files = format!("s3://lakes/{}/", schema.as_deref().unwrap_or_default());
                (files, Some(store.address().to_owned()))
            }
            _ => (file("files"), None),
        };
        let address = Address {
            catalog: system,
            target,
            schema,
            files,
            store,
            folder: path,
        };
        Self {
            folder,
            _origin: None,
            address,
            opened: Mutex::default(),
        }
    }

    /// Copies the catalog, as a kill would leave it. The files of a lake are never written over.
    fn image(&self) -> Self {
        if let Some(schema) = &self.address.schema {
            return self.image_in_postgres(schema);
        }
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let name = Path::new(&self.address.target).file_name().unwrap().to_owned();
        let target = folder.path().join(name).display().to_string();
        for extra in ["", ".wal", "-wal"] {
            let from = PathBuf::from(format!("{}{extra}", self.address.target));
            if from.exists() {
                std::fs::copy(from, format!("{target}{extra}")).unwrap();
            }
        }
        Self {
            address: Address {
                target,
                folder: folder.path().to_owned(),
                ..self.address.clone()
            },
            folder,
            _origin: Some(Arc::clone(&self.folder)),
            opened: Mutex::default(),
        }
    }
}

impl LakeFolder {
    fn image_in_postgres(&self, schema: &str) -> Self {
        let number = SCHEMAS.fetch_add(1, Ordering::Relaxed);
        let copy = format!("lake_{number}");
        let hand = ByHand::in_memory();
        hand.run(&format!(
            "SET extension_directories = ['{}']",
            extensions().display()
        ));
        hand.run(&format!("ATTACH '{}' AS pg (TYPE postgres)", self.address.target));
        let tables = format!("SELECT tablename FROM pg_tables WHERE schemaname = ''{schema}''");
        let all = format!(
            "DO $$ DECLARE one text; BEGIN CREATE SCHEMA {copy}; FOR one IN {tables} LOOP \
             EXECUTE format(''CREATE TABLE {copy}.%I (LIKE {schema}.%I INCLUDING ALL)'', one, one); \
             EXECUTE format(''INSERT INTO {copy}.%I SELECT * FROM {schema}.%I'', one, one); END LOOP; END $$"
        );
        hand.run(&format!("CALL postgres_execute('pg', '{all}')"));
        let folder = Arc::new(tempfile::tempdir().unwrap());
        Self {
            address: Address {
                schema: Some(copy),
                folder: folder.path().to_owned(),
                ..self.address.clone()
            },
            folder,
            _origin: Some(Arc::clone(&self.folder)),
            opened: Mutex::default(),
        }
    }
}

impl Scratch for LakeFolder {
    fn open(&self) -> Arc<dyn Olap> {
        let engine = self.address.engine();
        self.opened.lock().unwrap().push(engine.clone());
        Arc::new(engine)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        close_all(&self.opened).boxed()
    }

    fn person(&self) -> Result<Box<dyn Person>, NotTried> {
        Ok(Box::new(Program(self.address.by_hand())))
    }

    fn rival<'a>(&'a self, epoch: u64, table: &'a str) -> BoxFuture<'a, Result<Rival, NotTried>> {
        let said = format!("{epoch}\n{table}\n{}", self.address.to_text());
        run_rival("another_process_tries_to_build_in_the_lake", RIVAL, said)
            .map(Ok)
            .boxed()
    }

    fn images(&self) -> Option<Box<dyn Images>> {
        let kept = Arc::new(Mutex::new(Vec::new()));
        for point in CRASH_POINTS.iter().filter(|point| point.ends_with("_commit")) {
            let lake = Self {
                folder: Arc::clone(&self.folder),
                _origin: None,
                address: self.address.clone(),
                opened: Mutex::default(),
            };
            let kept = Arc::clone(&kept);
            let keep = move || {
                kept.lock().unwrap().push(Image {
                    point: (*point).to_owned(),
                    is_after: point.contains("::after"),
                    scratch: Box::new(lake.image()),
                });
            };
            fail::cfg_callback(*point, keep).unwrap();
        }
        Some(Box::new(Kept(kept)))
    }
}

/// Acts as the rival process if this program was started as one.
pub(crate) async fn be_another_process() {
    let Ok(said) = std::env::var(RIVAL) else { return };
    let [epoch, table, address] = said.splitn(3, '\n').collect::<Vec<_>>()[..] else {
        panic!("{said}")
    };
    let (engine, cancel) = (Address::parse(address).engine(), CancellationToken::new());
    let olap: &dyn Olap = &engine;
    let is_ours = olap.take(epoch.parse().unwrap(), &cancel).await.is_ok();
    let build = super::builds::table(77, table, "select 77 as x");
    if !is_ours || olap.build(&build, &cancel).await.is_err() {
        println!("{REFUSED}");
    }
    engine.close().await.unwrap();
}
