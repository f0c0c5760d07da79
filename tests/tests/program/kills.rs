//! Killed at any moment, or with what a lake stands on broken, the program goes on as if nothing had happened.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::seq::IteratorRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use watershed_tests::line::{End, Line};
use watershed_tests::postgres::Server;
use watershed_tests::s3::Store;

use crate::connected::has_extension;
use crate::sandbox::{Sandbox, crash_points};
use crate::world::ProjectModel;

/// The number of kills unless `WATERSHED_KILLS` sets another.
const KILLS: u64 = 6;
/// The number in a lake, where a run takes several times as long.
const KILLS_IN_LAKE: u64 = 3;
/// The seed unless `WATERSHED_SEED` says otherwise.
const SEED: u64 = 7;
/// The most visits of a point that pass before the program dies there.
const MOST_VISITS: u32 = 6;
/// Work that makes or changes an output.
const MADE: [&str; 4] = ["built", "fixed", "renamed", "restored"];

fn number(variable: &str, usual: u64) -> u64 {
    let given = std::env::var(variable).ok().and_then(|given| given.parse().ok());
    given.unwrap_or(usual)
}

#[test]
fn killed_at_any_moment_the_next_run_ends_like_a_fresh_build() {
    let world = ProjectModel::new(number("WATERSHED_SEED", SEED));
    die_at_moments(Sandbox::with(&[]), world, KILLS);
}

#[test]
fn killed_at_any_moment_in_a_lake_the_next_run_ends_like_a_fresh_build() {
    if has_extension("ducklake") && has_extension("sqlite_scanner") {
        let world = ProjectModel::new(number("WATERSHED_SEED", SEED)).in_lake();
        die_at_moments(Sandbox::with(&[]).in_lake_of_files(), world, KILLS_IN_LAKE);
    }
}

fn die_at_moments(sandbox: Sandbox, mut world: ProjectModel, kills: u64) {
    let mut rng = SmallRng::seed_from_u64(number("WATERSHED_SEED", SEED));
    world.write(&sandbox);
    let begun = Instant::now();
    sandbox.expect_run(0, "the first build");
    let whole = begun.elapsed();
    for kill in 0..number("WATERSHED_KILLS", kills) {
        // Every other time there is nothing left of the last life, so that first builds are killed too.
        if kill % 2 == 1 {
            sandbox.forget();
        }
        world.change_the_root();
        world.write(&sandbox);
        let after = whole.mul_f64(rng.random_range(0.0..1.0));
        kill_after(&sandbox, after);
        recovers(
            &sandbox,
            &world,
            &format!("kill {kill} after {after:?} of {whole:?}"),
        );
    }
}

/// The run after a mishap ends like a fresh build, and a further one finds nothing to do. Returns what it made.
fn recovers(sandbox: &Sandbox, world: &ProjectModel, story: &str) -> BTreeSet<String> {
    let done = sandbox.expect_run(0, story);
    world.assert_built(sandbox, story);
    let again = sandbox.expect_run(0, story);
    assert!(again.is_empty(), "a second run did {again:?} after {story}");
    done.into_keys().collect()
}

/// Starts a run and kills it after a while, as `kill -9` does.
#[expect(
    clippy::disallowed_methods,
    reason = "what is tested is the moment itself: no event tells when it has come"
)]
fn kill_after(sandbox: &Sandbox, after: Duration) {
    let mut run = sandbox.start(&["run"]);
    std::thread::sleep(after);
    run.kill().expect("a run can be killed");
    run.wait().expect("a killed run ends");
}

/// Servers of a lake, and the lines to them.
struct Below {
    server: Arc<Server>,
    store: Store,
    catalog: Line,
    files: Line,
}

impl Below {
    fn start() -> Option<Self> {
        let needed = ["ducklake", "postgres_scanner", "httpfs"];
        let server = Server::start().filter(|_| needed.iter().all(|name| has_extension(name)))?;
        let store = Store::start()?;
        store.create_bucket("lake");
        let socket = server.socket_folder().join(".s.PGSQL.5432");
        Some(Self {
            catalog: Line::to(End::Unix(socket)),
            files: Line::to(End::Tcp(store.address().to_owned())),
            server: Arc::new(server),
            store,
        })
    }

    /// A project that is built here, by way of the lines.
    fn project(&self) -> Sandbox {
        let host = self.server.socket_folder().display();
        let secret = format!(
            "CREATE SECRET files (TYPE s3, KEY_ID 'key-of-a-test', SECRET 'secret', REGION 'us-east-1', \
             ENDPOINT '{}', URL_STYLE 'path', USE_SSL false)",
            self.store.address()
        );
        let attach = format!(
            "ATTACH 'ducklake:postgres:host={host} user=postgres dbname=postgres' AS lake \
             (METADATA_SCHEMA 'watershed_project_dev')"
        );
        let connector = format!(
            "driver: ducklake\ncatalog: postgres\nhost: 127.0.0.1\nport: {}\nuser: postgres\ndbname: postgres\n\
             data_path: s3://lake/files\nstore: bucket\n",
            self.catalog.port()
        );
        let project = Sandbox::with(&[]).in_lake(&connector, vec![secret, attach]);
        project.write_bucket("secret", &format!("http://127.0.0.1:{}", self.files.port()));
        project
    }

    /// The bytes that went to and from the catalog and the store.
    fn carried(&self) -> [u64; 2] {
        [self.catalog.carried(), self.files.carried()]
    }

    /// Breaks something amid a run. Returns its story, and what the run said that it had made.
    fn break_a_run(
        &self,
        sandbox: &Sandbox,
        rng: &mut SmallRng,
        whole: [u64; 2],
    ) -> (String, BTreeSet<String>) {
        let [catalog, files] = whole.map(|bytes| rng.random_range(1..bytes.max(2)));
        match rng.random_range(0..6) {
            0 | 1 => {
                let point = crash_points(&["commit"]).choose(rng).expect("points");
                let visits = rng.random_range(0..MOST_VISITS);
                let died = sandbox.dies_at(point, visits);
                return (
                    format!("dead: {died} at {point} after {visits} visits"),
                    BTreeSet::new(),
                );
            }
            2 => {
                let mut run = sandbox.start(&["run"]);
                let pid = Pid::from_child(&run);
                self.catalog.cut_after(catalog, move || {
                    kill_process(pid, Signal::KILL).unwrap_or_default()
                });
                run.wait().expect("a run ends");
                return (format!("killed after {catalog} bytes"), BTreeSet::new());
            }
            3 => {
                let (server, line) = (Arc::clone(&self.server), self.catalog.clone());
                self.catalog.cut_after(catalog, move || {
                    server.crash();
                    line.let_through();
                });
            }
            4 => self.catalog.cut_after(catalog, || {}),
            _ => self.files.cut_after(files, || {}),
        }
        let said = sandbox.call(&["run", "--json"]);
        let document: Value = serde_json::from_str(&said.stdout).unwrap_or_default();
        let resources = document["resources"].as_array().cloned().unwrap_or_default();
        let is_made = |one: &&Value| one["work"].as_str().is_some_and(|work| MADE.contains(&work));
        let made = resources.iter().filter(is_made);
        let made = made
            .filter_map(|one| one["name"].as_str().map(str::to_owned))
            .collect();
        (
            format!("the lines broken after {catalog} or {files} bytes: {said:?}"),
            made,
        )
    }
}

#[test]
fn whatever_breaks_below_a_lake_the_next_run_ends_like_a_fresh_build() {
    let Some(below) = Below::start() else { return };
    let seed = number("WATERSHED_SEED", SEED);
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut world = ProjectModel::new(seed).in_lake();
    let sandbox = below.project();
    world.write(&sandbox);
    sandbox.expect_run(0, "the first build");
    let before = below.carried();
    world.change_the_root();
    world.write(&sandbox);
    recovers(&sandbox, &world, "a change");
    let after = below.carried();
    let whole = [after[0] - before[0], after[1] - before[1]];
    for round in 0..number("WATERSHED_KILLS", KILLS_IN_LAKE) {
        world.change_the_root();
        world.write(&sandbox);
        let (story, made) = below.break_a_run(&sandbox, &mut rng, whole);
        below.catalog.mend();
        below.files.mend();
        let story = format!("seed {seed}, round {round}, {story}");
        let done = recovers(&sandbox, &world, &story);
        let twice: Vec<_> = made.intersection(&done).collect();
        assert!(twice.is_empty(), "{twice:?} were made twice: {story}");
    }
}
