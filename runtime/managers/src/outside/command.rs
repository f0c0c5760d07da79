//! Commands: programs that read a call and write an answer.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use watershed_controller::{Error, Uid};
use watershed_outside::Program;
use watershed_outside::program::{Ended, Keep, RunError};

use super::answer::{ANSWER_MAX, Answer, BAD_ANSWER, FAILED};
use super::call::Call;
use super::orphans;
use crate::manager::DiscoveredItem;

/// The exit code with which a program asks for another attempt: `EX_TEMPFAIL` of `sysexits.h`.
const TRY_AGAIN: i32 = 75;
/// The number of bytes kept from the end of standard error, for the last line.
const STDERR_KEPT: usize = 4096;
/// The largest number of characters shown of the last line.
const LINE_MAX: usize = 500;
/// A runner of commands for a project.
#[derive(Clone, Debug)]
pub struct Commands {
    root: PathBuf,
    notes: PathBuf,
}

impl Commands {
    /// Returns a runner for a project's root. The folder `notes` lists running commands, so that a later program can
    /// end them after a crash.
    ///
    /// # Errors
    /// When the folder can't be made.
    pub fn new(root: impl Into<PathBuf>, notes: impl Into<PathBuf>) -> io::Result<Self> {
        let (root, notes) = (root.into(), notes.into());
        fs::create_dir_all(&notes)?;
        Ok(Self { root, notes })
    }

    /// Runs a command, given as a program and its arguments. A program with a slash in its name lies under the
    /// project's root.
    ///
    /// It gets a process group of its own, and of our variables PATH, HOME and LANG alone. Cancel-safe: of a dropped call
    /// all that it started is killed.
    ///
    /// # Errors
    /// The failure that the answer states, the exit code with the last line of standard error, or `bad-answer`.
    /// [`retry_after`](Error::retry_after) is set if the program asked for a wait.
    pub async fn run(
        &self,
        command: &[String],
        environment: &BTreeMap<String, String>,
        uid: Uid,
        call: &Call,
    ) -> Result<Answer, Error> {
        let mut program = self.program(command, environment)?;
        program.input =
            serde_json::to_vec(call).map_err(|error| Error::permanent(FAILED, error.to_string()))?;
        let ended = self.exchange(&program, uid).await?;
        // What a failed attempt left running goes with it: it is begun again.
        let answer = judge(&ended)?;
        ended.release();
        Ok(answer)
    }

    /// Runs a command that lists the things outside as a JSON list of `{"name", "uid"}`. Each uid names the resource
    /// that owns the thing.
    ///
    /// # Errors
    /// The exit code with the last line of standard error, or `bad-answer`.
    pub async fn list(
        &self,
        command: &[String],
        environment: &BTreeMap<String, String>,
    ) -> Result<Vec<DiscoveredItem>, Error> {
        let mut program = self.program(command, environment)?;
        program.within = Some(LIST_WITHIN);
        let ended = self.exchange(&program, Uid(Default::default())).await?;
        if !ended.status.success() {
            judge(&ended)?;
        }
        let items: Vec<ListedItem> = serde_json::from_slice(&ended.output)
            .map_err(|error| Error::transient(BAD_ANSWER, format!("its list can't be read: {error}")))?;
        ended.release();
        let item = |item: ListedItem| DiscoveredItem {
            uid: item.uid.and_then(|uid| Some(Uid(uid.parse().ok()?))),
            name: item.name,
        };
        Ok(items.into_iter().map(item).collect())
    }

    fn program(&self, command: &[String], environment: &BTreeMap<String, String>) -> Result<Program, Error> {
        let mut program = Program::new(&self.root, command)
            .ok_or_else(|| Error::permanent(FAILED, "the command is empty"))?;
        program.pass_on();
        program.variables(environment.clone());
        program.output = Keep::First(ANSWER_MAX);
        program.errors = Keep::Last(STDERR_KEPT);
        Ok(program)
    }

    /// Runs a program for a resource. A program that an earlier process left running for the same resource is ended
    /// first.
    async fn exchange(&self, program: &Program, uid: Uid) -> Result<Ended, Error> {
        orphans::end(&self.notes, uid);
        // Without a note a crash may leave it, which the timeout of the next attempt can't help; it is run all the same.
        let note = orphans::Note::write(&self.notes, uid, program.mark());
        let _note = note.inspect_err(|error| tracing::warn!(%error, "a command is not noted"));
        program.run().await.map_err(|error| failed(program, &error))
    }
}

/// The longest time that a command may take to list things.
const LIST_WITHIN: Duration = Duration::from_secs(60);

/// A thing in the list that a command writes.
#[derive(Deserialize)]
struct ListedItem {
    name: String,
    uid: Option<String>,
}

fn judge(ended: &Ended) -> Result<Answer, Error> {
    if ended.status.success() {
        return Answer::read(&ended.output);
    }
    // A program that fails may write anything; what it says in an answer goes before its last line.
    let answer = Answer::read(&ended.output).unwrap_or_default();
    if let Some(failure) = answer.failure() {
        return Err(failure);
    }
    let how = ended.how();
    let last_line = ended.last_line().map(|line| shown(&line));
    let message = match last_line.or(answer.message.clone()) {
        Some(line) => format!("{how}: {line}"),
        None => how,
    };
    let mut error = Error::transient(FAILED, message);
    if ended.status.code() == Some(TRY_AGAIN) {
        error.retry_after = answer.wait().ok().flatten();
    }
    Err(error)
}

fn shown(line: &str) -> String {
    line.chars().filter(|c| !c.is_control()).take(LINE_MAX).collect()
}

fn failed(program: &Program, error: &RunError) -> Error {
    let path = program.path.display();
    match error {
        RunError::Start(cause) if error.is_permanent() => Error {
            hint: Some(
                "the program must be executable; with a slash in its name it lies below the project's root"
                    .into(),
            ),
            ..Error::permanent(FAILED, format!("can't start {path}: {cause}"))
        },
        RunError::Start(cause) => Error::transient(FAILED, format!("can't start {path}: {cause}")),
        RunError::Talk(cause) => Error::transient(FAILED, format!("can't talk to {path}: {cause}")),
        RunError::TooLong(_) => Error::transient(FAILED, error.to_string()),
        // It writes on and on, or its children do.
        RunError::TooMuch(_) => too_long(),
    }
}

pub(super) fn too_long() -> Error {
    Error::transient(
        BAD_ANSWER,
        format!("its answer is longer than {ANSWER_MAX} bytes"),
    )
}
