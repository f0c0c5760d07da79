//! Bursts of edits while `start` goes on, is killed and is started again, with a reader who asks all the while.
//!
//! `WATERSHED_STORM` says how many edits there are, `WATERSHED_SEED` which. In the end every row is that of a fresh
//! build, and nothing is left over.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use watershed::socket::{Address, Connection};
use watershed::state_folder::StateFolder;
use watershed_api::operations::ops;
use watershed_api::request::QueryRequest;
use watershed_api::{Exit, Operation as _, Reply};

use crate::going::Going;
use crate::sandbox::Sandbox;
use crate::world::ProjectModel;

/// The number of edits unless `WATERSHED_STORM` sets another.
const EDITS: u64 = 40;
/// The seed unless `WATERSHED_SEED` says otherwise.
const SEED: u64 = 11;
/// Most edits in one burst.
const LONGEST_BURST: u64 = 6;

#[test]
fn after_bursts_of_edits_and_kills_all_rows_are_those_of_a_fresh_build() {
    let edits = number("WATERSHED_STORM").unwrap_or(EDITS);
    let seed = number("WATERSHED_SEED").unwrap_or(SEED);
    let mut storm = Storm::new(seed);
    let mut left = edits;
    while left > 0 {
        let burst = storm.rng.random_range(1..=LONGEST_BURST.min(left));
        left -= burst;
        storm.burst(burst);
    }
    storm.end();
}

/// A project under `start`, and what it must come to.
struct Storm {
    rng: SmallRng,
    world: ProjectModel,
    sandbox: Sandbox,
    start: Option<Going>,
    reader: Reader,
    story: String,
}

impl Storm {
    fn new(seed: u64) -> Self {
        let mut world = ProjectModel::new(seed);
        let sandbox = Sandbox::with(&[("models/steady.sql", STEADY)]);
        world.write(&sandbox);
        let start = Going::settled(&sandbox);
        Self {
            rng: SmallRng::seed_from_u64(seed),
            world,
            reader: Reader::new(&sandbox),
            start: Some(start),
            sandbox,
            story: format!("seed {seed}"),
        }
    }

    /// Some edits in a row, some of them while the last ones are still being worked on.
    fn burst(&mut self, edits: u64) {
        for _ in 0..edits {
            let what = match self.rng.random_range(0..8) {
                0 => self.switch_branches(),
                1 => self.touch_the_steady_one(),
                _ => self.world.change_files(),
            };
            self.story = format!("{}, {what}", self.story);
            self.world.write(&self.sandbox);
        }
        match self.rng.random_range(0..6) {
            0 => self.kill(),
            // The next burst comes while this one is at work.
            1 | 2 => {}
            _ => self.settle(),
        }
    }

    /// As `git checkout` does it: many files at once, with its lock held meanwhile.
    fn switch_branches(&mut self) -> String {
        let git = self.sandbox.path().join(".git");
        fs::create_dir_all(&git).expect("a folder can be made");
        fs::write(git.join("index.lock"), "").expect("a file can be written");
        let changes: Vec<String> = (0..4).map(|_| self.world.change_files()).collect();
        self.world.write(&self.sandbox);
        fs::remove_file(git.join("index.lock")).expect("a file can be removed");
        format!("switch ({})", changes.join(", "))
    }

    fn touch_the_steady_one(&mut self) -> String {
        let text = format!("{STEADY}-- {}\n", self.rng.random_range(0..1_000_000));
        self.sandbox.write("models/steady.tmp", &text);
        self.sandbox.rename("models/steady.tmp", "models/steady.sql");
        "touch steady".to_owned()
    }

    fn kill(&mut self) {
        self.story = format!("{}, KILL", self.story);
        if let Some(start) = self.start.take() {
            start.kill();
        }
        self.start = Some(Going::start(&self.sandbox));
    }

    /// Waits until everything that was saved so far is seen: an attached run asks for that.
    fn settle(&mut self) {
        let said = self.sandbox.call(&["run", "--json", "--wait", "60s"]);
        let code = i32::from(self.world.is_broken());
        assert_eq!(
            said.code,
            Some(code),
            "{}: {}\n{}",
            self.story,
            said.stderr,
            said.stdout
        );
        self.reader.assert_content(&self.story);
    }

    fn end(mut self) {
        self.world.mend();
        self.world.write(&self.sandbox);
        self.settle();
        if let Some(start) = self.start.take() {
            start.stop();
        }
        self.reader.finish(&self.story);
        self.sandbox.remove("models/steady.sql");
        let done = self.sandbox.expect_run(0, &self.story);
        assert_eq!(
            done.keys().collect::<Vec<_>>(),
            [""; 0],
            "only what was removed is dropped after {}",
            self.story
        );
        self.world.assert_built(&self.sandbox, &self.story);
        let again = self.sandbox.expect_run(0, &self.story);
        assert!(
            again.is_empty(),
            "a second run did {again:?} after {}",
            self.story
        );
    }
}

/// A table that is built anew again and again by its text, and always has these rows.
const STEADY: &str = "-- @materialize: true\nSELECT range AS k FROM range(1000)\n";

/// Asks in a loop. While a process owns the folder no answer is an error or a part of a table.
struct Reader {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<u64, String>>>,
}

impl Reader {
    fn new(sandbox: &Sandbox) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let state = sandbox.path().join(".watershed");
        let thread = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || read(&state, &stop)
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }

    fn assert_content(&mut self, story: &str) {
        if self.thread.as_ref().is_some_and(JoinHandle::is_finished) {
            self.finish(story);
        }
    }

    fn finish(&mut self, story: &str) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let read = thread.join().expect("the reader does not panic");
            let answers = read.unwrap_or_else(|error| panic!("the reader met {error} after {story}"));
            assert!(answers > 0, "the reader was answered");
        }
    }
}

fn read(state: &Path, stop: &AtomicBool) -> Result<u64, String> {
    let state = StateFolder::new(state.to_owned(), "dev").map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let mut answers = 0;
        while !stop.load(Ordering::Relaxed) {
            // Nobody is there while the killed one is followed by the next.
            let Ok(connection) =
                Connection::open(&Address::for_folder(&state), Duration::from_secs(60)).await
            else {
                tokio::task::yield_now().await;
                continue;
            };
            let request =
                ops::Query::request(QueryRequest::new("SELECT count(*), sum(k)::BIGINT FROM steady"));
            let mut replies = connection.ask(&request).await;
            while let Some(reply) = replies.recv().await {
                match reply {
                    Reply::Rows(rows) if rows != [[1000.into(), serde_json::Value::from(499_500)]] => {
                        return Err(format!("a part of a table: {rows:?}"));
                    }
                    Reply::Rows(_) => answers += 1,
                    // It was killed, or is ending.
                    Reply::Refused(refusal) if refusal.code.exit() == Exit::NotNow => {}
                    Reply::Refused(refusal) => return Err(refusal.message),
                    _ => {}
                }
            }
        }
        Ok(answers)
    })
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}
