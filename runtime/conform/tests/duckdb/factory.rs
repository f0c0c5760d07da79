//! Factory for DuckDB files, with access by a person, another process and a kill.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use watershed_conform::{Factory, Image, Images, NotTried, Person, Rival, Scratch};
use watershed_dialect::{DuckDb, Quoting};
use watershed_drivers::CRASH_POINTS;
use watershed_drivers::duckdb::{ByHand, Engine, Options, endless, numbers};
use watershed_drivers::olap::{Guarantees, Olap, OutputKind, is_in_trash};

/// Name of the database file in its folder.
const FILE: &str = "main.duckdb";
/// Environment variable that makes this program the rival process: folder, epoch and table.
const RIVAL: &str = "WATERSHED_CONFORM_RIVAL";
/// Output of a rival that was refused.
pub(crate) const REFUSED: &str = "the rival was refused";

/// Factory of engines on DuckDB files.
pub(crate) struct DuckDbFactory;

impl Factory for DuckDbFactory {
    fn guarantees(&self) -> Guarantees {
        watershed_drivers::duckdb::GUARANTEES
    }

    fn scratch(&self) -> BoxFuture<'_, Result<Box<dyn Scratch>, String>> {
        async { Ok(Box::new(Folder::new()) as Box<dyn Scratch>) }.boxed()
    }

    fn quoting(&self) -> &dyn Quoting {
        &DuckDb
    }

    fn numbers(&self, rows: u64) -> String {
        numbers(rows)
    }

    fn endless(&self) -> String {
        endless()
    }
}

/// A folder with a database file, and the engines opened on it.
struct Folder {
    folder: TempDir,
    opened: Mutex<Vec<Engine>>,
}

impl Folder {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            opened: Mutex::default(),
        }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join(FILE)
    }
}

fn engine(folder: &Path) -> Engine {
    let mut options = Options::new(folder.join(FILE), folder);
    options.threads = std::num::NonZeroUsize::new(2);
    options.memory_limit = Some(1 << 30);
    Engine::new(options)
}

/// Closes engines that were opened.
pub(crate) async fn close_all(opened: &Mutex<Vec<Engine>>) {
    let opened = std::mem::take(&mut *opened.lock().unwrap());
    for engine in opened {
        engine.close().await.unwrap();
    }
}

/// Starts this program as a rival process, which acts in a test and reads from a variable what it is to do.
pub(crate) async fn run_rival(test: &'static str, variable: &'static str, said: String) -> Rival {
    let run = move || {
        let program = std::env::current_exe().unwrap();
        let mut command = Command::new(program);
        command.args(["--exact", test, "--nocapture"]);
        command.env(variable, said).output().unwrap()
    };
    let done = tokio::task::spawn_blocking(run).await.unwrap();
    assert!(done.status.success(), "{done:?}");
    match String::from_utf8_lossy(&done.stdout).contains(REFUSED) {
        true => Rival::Refused,
        false => Rival::Built,
    }
}

impl Scratch for Folder {
    fn open(&self) -> Arc<dyn Olap> {
        let engine = engine(self.folder.path());
        self.opened.lock().unwrap().push(engine.clone());
        Arc::new(engine)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        close_all(&self.opened).boxed()
    }

    fn person(&self) -> Result<Box<dyn Person>, NotTried> {
        Ok(Box::new(Program(ByHand::open(&self.file()))))
    }

    fn rival<'a>(&'a self, epoch: u64, table: &'a str) -> BoxFuture<'a, Result<Rival, NotTried>> {
        let folder = self.folder.path().display();
        let said = format!("{epoch}\n{table}\n{folder}");
        run_rival("another_process_tries_to_build", RIVAL, said)
            .map(Ok)
            .boxed()
    }

    fn images(&self) -> Option<Box<dyn Images>> {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let points = CRASH_POINTS.iter().filter(|point| point.ends_with("_commit"));
        for point in points.clone() {
            let (file, kept) = (self.file(), Arc::clone(&kept));
            let keep = move || {
                let image = Folder::new();
                for extra in ["", ".wal"] {
                    let from = PathBuf::from(format!("{}{extra}", file.display()));
                    let to = PathBuf::from(format!("{}{extra}", image.file().display()));
                    if from.exists() {
                        std::fs::copy(from, to).unwrap();
                    }
                }
                kept.lock().unwrap().push(Image {
                    point: (*point).to_owned(),
                    is_after: point.contains("::after"),
                    scratch: Box::new(image),
                });
            };
            fail::cfg_callback(*point, keep).unwrap();
        }
        Some(Box::new(Kept(kept)))
    }
}

pub(crate) struct Kept(pub(crate) Arc<Mutex<Vec<Image>>>);

impl Images for Kept {
    fn take(self: Box<Self>) -> Vec<Image> {
        for point in CRASH_POINTS {
            fail::remove(*point);
        }
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// A person with DuckDB's own program.
pub(crate) struct Program(pub(crate) ByHand);

impl Person for Program {
    fn make(&self, name: &str, kind: OutputKind, sql: &str, comment: Option<&str>) -> Result<(), String> {
        let name = DuckDb.name(name);
        self.0.try_run(&format!("create {kind} {name} as {sql}"))?;
        if let Some(comment) = comment {
            let comment = DuckDb.text(comment);
            self.0
                .try_run(&format!("comment on {kind} {name} is {comment}"))?;
        }
        Ok(())
    }

    fn objects(&self) -> Result<Vec<String>, String> {
        let sql = "select table_name from information_schema.tables where table_catalog = current_database() \
                   and table_schema = 'main' order by 1";
        let rows = self.0.try_run(sql)?.into_iter().flatten();
        Ok(rows
            .map(|name| name.to_string())
            .filter(|name| !is_in_trash(name))
            .collect())
    }
}

/// Acts as the rival process if this program was started as one.
pub(crate) async fn be_another_process() {
    let Ok(said) = std::env::var(RIVAL) else { return };
    let [epoch, table, folder] = said.splitn(3, '\n').collect::<Vec<_>>()[..] else {
        panic!("{said}")
    };
    let (engine, cancel) = (engine(Path::new(folder)), CancellationToken::new());
    let olap: &dyn Olap = &engine;
    let is_ours = olap.take(epoch.parse().unwrap(), &cancel).await.is_ok();
    let build = super::builds::table(77, table, "select 77 as x");
    if !is_ours || olap.build(&build, &cancel).await.is_err() {
        println!("{REFUSED}");
    }
    engine.close().await.unwrap();
}
