//! A program that goes on while a test does something: its events, one a line.

use std::io::{BufRead as _, BufReader, Lines, Read as _};
use std::process::{Child, ChildStdout, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::sandbox::Sandbox;

/// A command whose events are read while it goes on. Dropping it kills it.
pub(crate) struct Going {
    child: Child,
    events: Lines<BufReader<ChildStdout>>,
}

impl Going {
    /// `run`, begun.
    pub(crate) fn run(project: &Sandbox) -> Self {
        Self::with_arguments(project, &["run", "--format", "jsonl"])
    }

    /// `start`, begun; nothing has converged yet.
    pub(crate) fn start(project: &Sandbox) -> Self {
        Self::with_arguments(project, &["start", "--format", "jsonl"])
    }

    /// `start`, converged for the first time.
    pub(crate) fn settled(project: &Sandbox) -> Self {
        let mut start = Self::start(project);
        start.round();
        start
    }

    /// Any command that writes one object a line.
    pub(crate) fn with_arguments(project: &Sandbox, arguments: &[&str]) -> Self {
        let mut command = project.command(arguments);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program can be started");
        let events = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        Self { child, events }
    }

    /// The next event; waits for it.
    pub(crate) fn next(&mut self) -> Value {
        let Some(line) = self.events.next() else {
            panic!("it ended before the event came: {}", self.complaints());
        };
        serde_json::from_str(&line.expect("events are text")).expect("each line is an event")
    }

    /// Reads events until each of these was seen, in any order: kind and resource.
    pub(crate) fn until(&mut self, wanted: &[(&str, &str)]) {
        let mut missing = wanted.to_vec();
        while !missing.is_empty() {
            let event = self.next();
            missing.retain(|(kind, name)| event["event"] != *kind || event["resource"]["name"] != *name);
        }
    }

    /// Reads events up to the last, and returns the document in it.
    pub(crate) fn document(&mut self) -> Value {
        loop {
            let event = self.next();
            if event["event"] == "run_finished" {
                return event["document"].clone();
            }
        }
    }

    /// Reads the events up to where nothing is left to do.
    pub(crate) fn round(&mut self) -> Round {
        let mut events = Vec::new();
        loop {
            let event = self.next();
            let is_settled = event["event"] == "settled";
            events.push(event);
            if is_settled {
                return Round { events };
            }
        }
    }

    /// Reads rounds until one did something: a save may be seen in two steps, the first of which changes nothing.
    pub(crate) fn done(&mut self) -> String {
        loop {
            let done = self.round().done();
            if !done.is_empty() {
                return done;
            }
        }
    }

    /// Reads rounds until, all together, these were done: `name:work`.
    pub(crate) fn until_done(&mut self, wanted: &[&str]) {
        let mut missing = wanted.to_vec();
        while !missing.is_empty() {
            let round = self.round();
            let done: Vec<String> = round.done().split(' ').map(str::to_owned).collect();
            missing.retain(|wanted| !done.iter().any(|done| done == wanted));
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("the program can be signalled");
    }

    /// Its process id.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Kills it, as a power cut would.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("the program can be killed");
        self.child.wait().expect("the program ends");
    }

    /// Waits for its end.
    pub(crate) fn code(mut self) -> Option<i32> {
        self.child.wait().expect("the program ends").code()
    }

    /// Stops it in order, and returns its last document.
    pub(crate) fn stop(mut self) -> Value {
        self.signal(Signal::TERM);
        let document = self.document();
        assert_eq!(self.code(), Some(143));
        document
    }

    fn complaints(&mut self) -> String {
        let mut text = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            let _ = stderr.read_to_string(&mut text);
        }
        text
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The events from one change up to where nothing was left to do.
pub(crate) struct Round {
    pub(crate) events: Vec<Value>,
}

impl Round {
    /// Returns the work that was done, as `name:work`, ordered by name; failures as `name:failed`.
    pub(crate) fn done(&self) -> String {
        let mut done: Vec<String> = self
            .of("resource_finished")
            .filter_map(|event| {
                let name = event["resource"]["name"].as_str()?;
                let outcome = event["run"]["outcome"].as_str()?;
                let work = match outcome {
                    "done" => event["work"].as_str()?,
                    "failed" | "skipped" => outcome,
                    _ => return None,
                };
                Some(format!("{name}:{work}"))
            })
            .collect();
        done.sort();
        done.dedup();
        done.join(" ")
    }

    /// Code and place of what came to be wrong, or is mended: `code path:line`.
    pub(crate) fn told(&self, kind: &str) -> Vec<String> {
        let text = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
        self.of(kind)
            .map(|event| {
                format!(
                    "{} {}:{}",
                    text(event, "code"),
                    text(event, "path"),
                    event["line"]
                )
            })
            .collect()
    }

    /// Returns the exit code of a `run` at this point.
    pub(crate) fn exit_code(&self) -> Option<i64> {
        self.events.last()?["exit_code"].as_i64()
    }

    fn of(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.events.iter().filter(move |event| event["event"] == kind)
    }
}
