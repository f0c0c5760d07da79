//! A running `start`, looked at from outside.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use watershed::socket::{Address, Connection};
use watershed::state_folder::StateFolder;
use watershed_api::operations::ops;
use watershed_api::request::QueryRequest;
use watershed_api::{Operation as _, Reply};

/// The program to measure.
fn program() -> OsString {
    let named = std::env::var_os("WATERSHED_PROGRAM");
    named.unwrap_or_else(|| env!("CARGO_BIN_EXE_watershed-under-test").into())
}

/// A running `start`, killed when dropped.
pub(crate) struct Start {
    root: PathBuf,
    child: Child,
    events: Option<Lines<BufReader<ChildStdout>>>,
    pub(crate) address: Address,
}

impl Start {
    pub(crate) fn new(root: &Path) -> Self {
        let mut child = Command::new(program())
            .args(["start", "--format", "jsonl"])
            .current_dir(root)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let events = BufReader::new(child.stdout.take().unwrap()).lines();
        let state = StateFolder::new(root.join(".watershed"), "dev").unwrap();
        Self {
            root: root.to_owned(),
            child,
            events: Some(events),
            address: Address::for_folder(&state),
        }
    }

    /// Waits until nothing is left to do.
    pub(crate) fn settle(&mut self) {
        for line in self.events.iter_mut().flatten() {
            if line.unwrap().starts_with(r#"{"event":"settled""#) {
                return;
            }
        }
        panic!("the program ended");
    }

    /// Milliseconds of processor time that it has used.
    pub(crate) fn cpu_ms(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        let after_name = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        let ticks = |at: usize| {
            fields
                .get(at)
                .and_then(|field| field.parse::<f64>().ok())
                .unwrap_or(0.0)
        };
        // Ticks are hundredths of a second wherever there is a `/proc`.
        (ticks(11) + ticks(12)) * 10.0
    }

    /// Megabytes of memory that it has now.
    pub(crate) fn rss_mb(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<f64>().ok());
        kilobytes.unwrap_or(f64::NAN) / 1024.0
    }

    /// Returns the durations, in milliseconds, of a resource's past runs that did a kind of work.
    pub(crate) fn runs_of(&self, name: &str, work: &str) -> Vec<f64> {
        let output = Command::new(program())
            .args(["history", name, "--json"])
            .current_dir(&self.root)
            .output()
            .unwrap();
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let runs = document["runs"].as_array().unwrap().iter();
        runs.filter(|run| run["work"] == work)
            .filter_map(|run| run["duration_ms"].as_f64())
            .collect()
    }

    /// Reads on what it tells without looking at it, so that it is never held up.
    pub(crate) fn let_go_on(&mut self) {
        let events = self.events.take();
        std::thread::spawn(move || events.into_iter().flatten().count());
    }
}

impl Drop for Start {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks over a connection of its own, as the program does.
pub(crate) async fn ask(address: &Address, sql: &str) -> Result<Vec<Vec<Value>>, String> {
    let connection = Connection::open(address, Duration::from_secs(10))
        .await
        .map_err(|error| error.to_string())?;
    let request = ops::Query::request(QueryRequest::new(sql));
    let mut replies = connection.ask(&request).await;
    let mut all = Vec::new();
    while let Some(reply) = replies.recv().await {
        match reply {
            Reply::Rows(rows) => all.extend(rows),
            Reply::Refused(refusal) => return Err(refusal.message),
            _ => {}
        }
    }
    Ok(all)
}
