//! Tests that a process killed at any moment comes back with every write that it acknowledged.
//!
//! Real processes write to a catalog. Each notes in a file, with fsync, the changes it is about to make and those
//! acknowledged. They are killed with SIGKILL after a random number of acknowledgements; then the catalog is compared
//! with the notes: every acknowledged change is there, and every other one is there whole or not at all.
//!
//! `WATERSHED_CRASH_ROUNDS` is the number of rounds (30 with `WATERSHED_PROOF=ci`), and `WATERSHED_CRASH_SEED` the
//! first seed; a failure prints its own.

use std::io::{BufRead, BufReader, Lines};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use watershed_controller::Controller;
use watershed_controller::store::{SqliteStore, Store};

use crate::server::Server;
use crate::task::{SOON, builder};

mod notes;
mod writer;

use self::notes::{Model, Notes};

/// Number of rounds in an ordinary run, outside CI.
const ROUNDS: u64 = 3;
/// Number of rounds in a run of CI.
const CI_ROUNDS: u64 = 30;
/// Maximum number of acknowledgements before a process is killed.
const ACKNOWLEDGED_MAX: usize = 150;
/// Term of a Postgres lease in these tests. After a holder is killed, its lease must expire before another process can
/// read the catalog.
const TERM: Duration = Duration::from_millis(300);
/// Term of the lease of the controller that inspects the catalog and is not killed.
const UNHURRIED: Duration = Duration::from_secs(60);

/// Environment variable that holds the path or URL of a writer's catalog.
const CATALOG: &str = "WATERSHED_CRASH_CATALOG";
/// Environment variable that holds the path of the folder of notes.
const FOLDER: &str = "WATERSHED_CRASH_FOLDER";
const SEED: &str = "WATERSHED_CRASH_SEED";
const NUMBER: &str = "WATERSHED_CRASH_NUMBER";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_any_moment_sqlite_keeps_every_acknowledged_write() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.db");
    let catalog = path.display().to_string();
    rounds(&catalog, 1, async || {
        Box::new(SqliteStore::open(&path).await.unwrap()) as Box<dyn Store>
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_any_moment_postgres_keeps_every_acknowledged_write() {
    let Some(server) = Server::start() else { return };
    rounds(&server.url(), 1, async || {
        Box::new(crate::store(&server.url(), UNHURRIED).await) as Box<dyn Store>
    })
    .await;
}

/// Kills either of two processes, the holder or the one that asks it, and in the end both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_processes_killed_at_any_moment_both_find_what_was_acknowledged() {
    let Some(server) = Server::start() else { return };
    rounds(&server.url(), 2, async || {
        Box::new(crate::store(&server.url(), UNHURRIED).await) as Box<dyn Store>
    })
    .await;
}

async fn rounds(catalog: &str, processes: usize, store: impl AsyncFn() -> Box<dyn Store>) {
    let first =
        number(SEED).unwrap_or_else(|| watershed_controller::Resource::fresh_uid().0.as_u64_pair().1 >> 32);
    let is_ci = std::env::var("WATERSHED_PROOF").is_ok_and(|proof| proof == "ci");
    let count = number("WATERSHED_CRASH_ROUNDS").unwrap_or(if is_ci { CI_ROUNDS } else { ROUNDS });
    let mut before = Model::default();
    let mut acknowledged = 0;
    let is_shared = catalog.starts_with("postgres:");
    for seed in first..first + count {
        let folder = tempfile::tempdir().unwrap();
        let mut random = SmallRng::seed_from_u64(seed);
        let mut running: Vec<Running> = (0..processes)
            .map(|number| Running::start(catalog, folder.path(), seed, number))
            .collect();
        // The first to die goes while the others write; what they ask then is for the next holder.
        while !running.is_empty() {
            let mut next = running.swap_remove(random.random_range(0..running.len()));
            next.wait_for(random.random_range(0..ACKNOWLEDGED_MAX));
            next.kill();
        }
        let notes = Notes::read(folder.path());
        acknowledged += notes.acknowledged();
        let controller = builder(store().await).start().await.unwrap();
        // What dead processes asked for and nobody had taken may still come to be: calls are taken in their order, so a
        // later one comes after all of it.
        if is_shared {
            let asks = builder(store().await).attach().await.unwrap();
            asks.wait_until_idle(SOON).await.unwrap();
            asks.shutdown(SOON).await.unwrap();
        }
        controller.wait_until_idle(SOON).await.unwrap();
        before = notes.compare(&before, &found(&controller), &format!("seed {seed}"));
        controller.shutdown(SOON).await.unwrap();
    }
    println!("{processes} processes, {count} rounds from seed {first}: {acknowledged} writes, none lost");
}

/// Returns the catalog, and checks that each resource is built as it was declared.
fn found(controller: &Controller) -> Model {
    let mut found = Model::default();
    for resource in controller.list(watershed_controller::Select::all()).resources {
        assert!(
            !resource.row.intents.is_deleted(),
            "{} is still there",
            resource.key()
        );
        let declared = notes::text(&resource);
        let built = resource
            .state::<crate::task::Built>()
            .unwrap()
            .map(|built| built.0);
        assert_eq!(built.as_ref(), Some(&declared), "{}", resource.key());
        found.insert(resource.row.name.as_str().to_owned(), declared);
    }
    found
}

/// A process of this program that writes.
struct Running {
    process: Child,
    output: Lines<BufReader<ChildStdout>>,
}

impl Running {
    fn start(catalog: &str, folder: &Path, seed: u64, number: usize) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["crash::writer::process", "--exact", "--ignored", "--nocapture"])
            .env(CATALOG, catalog)
            .env(FOLDER, folder)
            .env(SEED, seed.to_string())
            .env(NUMBER, number.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut process = command.spawn().expect("this program starts again");
        let output = process.stdout.take().expect("it is piped");
        Self {
            process,
            output: BufReader::new(output).lines(),
        }
    }

    /// Waits for this many acknowledgements, or for the end of the process, which on a slow machine may lose its lease
    /// so often that its writers end. With `count` zero, the process is killed while it opens its catalog.
    fn wait_for(&mut self, count: usize) {
        let acknowledged = |line: &String| line.ends_with("acknowledged");
        let lines = self.output.by_ref().map_while(Result::ok).filter(acknowledged);
        lines.take(count).for_each(drop);
    }

    fn kill(mut self) {
        self.process.kill().unwrap();
        let status = self.process.wait().unwrap();
        let was_killed = status.signal() == Some(SIGKILL);
        assert!(
            was_killed || status.success(),
            "the process failed by itself: {status}"
        );
    }
}

/// Number of the kill signal, the same on every system.
const SIGKILL: i32 = 9;

fn number(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().expect("a number"))
}
