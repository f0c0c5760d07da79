//! Commands: programs that read a call and write an answer.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;
use watershed_controller::{Error, Uid};

use super::answer::{ANSWER_MAX, Answer, BAD_ANSWER, FAILED};
use super::call::Call;
use super::left;
use crate::manager::DiscoveredItem;

/// The exit code by which a program asks for another attempt: `EX_TEMPFAIL` of `sysexits.h`.
const TRY_AGAIN: i32 = 75;
/// The most bytes of the end of standard error that are kept: its last line is shown.
const STDERR_KEPT: usize = 4096;
/// The most characters of that line which are shown.
const LINE_MAX: usize = 500;
/// The time for which output is read after the program has ended: something that it started may hold it open.
const AFTER_END: Duration = Duration::from_millis(200);
/// Variables that a program gets from ours; no others.
const PASSED_ON: [&str; 3] = ["PATH", "HOME", "LANG"];

/// Runs commands below a project's root.
#[derive(Clone, Debug)]
pub struct Commands {
    root: PathBuf,
    notes: PathBuf,
}

impl Commands {
    /// Returns the runner for a project's root. In `notes`, a folder of its own, it keeps what runs, so that the next
    /// program ends what a crash of this one leaves.
    ///
    /// # Errors
    /// When the folder can't be made.
    pub fn new(root: impl Into<PathBuf>, notes: impl Into<PathBuf>) -> io::Result<Self> {
        let (root, notes) = (root.into(), notes.into());
        fs::create_dir_all(&notes)?;
        Ok(Self { root, notes })
    }

    /// Runs a command, a program with its arguments. A program with a slash in its name lies below the root.
    ///
    /// It gets a process group of its own, and of our variables PATH, HOME and LANG alone. Cancel-safe: of a dropped call
    /// the whole group is killed.
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
        let (program, arguments) = command
            .split_first()
            .ok_or_else(|| Error::permanent(FAILED, "the command is empty"))?;
        let input = serde_json::to_vec(call).map_err(|error| Error::permanent(FAILED, error.to_string()))?;
        let (status, output, group) = self.exchange(program, arguments, environment, uid, input).await?;
        // What a failed attempt left running goes with it: it is begun again.
        let answer = judge(status, &output)?;
        group.release();
        Ok(answer)
    }

    /// Runs a command that lists what there is outside: a list of `{"name", "uid"}` as JSON. The uid is that of the resource that
    /// a thing says it belongs to, as calls have it.
    ///
    /// # Errors
    /// The exit code with the last line of standard error, or `bad-answer`.
    pub async fn list(
        &self,
        command: &[String],
        environment: &BTreeMap<String, String>,
    ) -> Result<Vec<DiscoveredItem>, Error> {
        let (program, arguments) = command
            .split_first()
            .ok_or_else(|| Error::permanent(FAILED, "the command is empty"))?;
        let nobody = Uid(Default::default());
        let exchanged = self.exchange(program, arguments, environment, nobody, Vec::new());
        let (status, output, group) = timeout(LIST_WITHIN, exchanged)
            .await
            .map_err(|_| Error::transient(FAILED, "it took too long"))??;
        if !status.success() {
            judge(status, &output)?;
        }
        group.release();
        let items: Vec<ListedItem> = serde_json::from_slice(&output.answer)
            .map_err(|error| Error::transient(BAD_ANSWER, format!("its list can't be read: {error}")))?;
        let item = |item: ListedItem| DiscoveredItem {
            uid: item.uid.and_then(|uid| Some(Uid(uid.parse().ok()?))),
            name: item.name,
        };
        Ok(items.into_iter().map(item).collect())
    }

    /// Starts a program, gives it its input and reads its output until its end.
    async fn exchange(
        &self,
        program: &str,
        arguments: &[String],
        environment: &BTreeMap<String, String>,
        uid: Uid,
        input: Vec<u8>,
    ) -> Result<(ExitStatus, Output, Group), Error> {
        left::end(&self.notes, uid);
        let mut child = Command::new(self.path_of(program))
            .args(arguments)
            .current_dir(&self.root)
            .env_clear()
            .envs(
                PASSED_ON
                    .iter()
                    .filter_map(|name| Some((name, env::var_os(name)?))),
            )
            .envs(environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| not_started(program, &error))?;
        let group = Group::of(&child);
        // Without a note a crash may leave it, which the timeout of the next attempt can't help; it is run all the same.
        let _note = group.0.and_then(|pid| {
            let note = left::Note::write(&self.notes, uid, pid);
            note.inspect_err(|error| tracing::warn!(%error, "a command is not noted"))
                .ok()
        });
        let (status, output) = converse(&mut child, input)
            .await
            .map_err(|error| Error::transient(FAILED, format!("can't talk to {program}: {error}")))?;
        if !output.is_whole {
            // It writes on and on, or its children do.
            return Err(too_long());
        }
        Ok((status, output, group))
    }

    fn path_of(&self, program: &str) -> PathBuf {
        if program.contains('/') {
            self.root.join(program)
        } else {
            Path::new(program).to_owned()
        }
    }
}

/// The longest that a list may take.
const LIST_WITHIN: Duration = Duration::from_secs(60);

/// A thing outside, as a command lists it.
#[derive(Deserialize)]
struct ListedItem {
    name: String,
    uid: Option<String>,
}

/// The group of a command. It is killed when this is dropped before its end.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        let pid = child.id().and_then(|id| i32::try_from(id).ok());
        Self(pid.and_then(Pid::from_raw))
    }

    /// The command has ended by itself: what it left running on purpose stays.
    fn release(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            // All of it may have ended by itself.
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

/// Output as far as it is kept.
#[derive(Debug, Default)]
struct Output {
    answer: Vec<u8>,
    /// False if the answer was longer than [`ANSWER_MAX`].
    is_whole: bool,
    errors: Vec<u8>,
}

/// Gives a program its input, and reads its output until its end.
async fn converse(child: &mut Child, input: Vec<u8>) -> io::Result<(ExitStatus, Output)> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let mut output = Output {
        is_whole: true,
        ..Output::default()
    };
    let Output {
        answer,
        is_whole,
        errors,
    } = &mut output;
    let talk = async {
        let write = async {
            if let Some(mut stdin) = stdin {
                // It need not read its input.
                let _ = stdin.write_all(&input).await;
            }
        };
        let read_answer = async {
            if let Some(stdout) = stdout {
                *is_whole = read_up_to(stdout, answer).await;
            }
        };
        let read_errors = async {
            if let Some(stderr) = stderr {
                read_tail(stderr, errors).await;
            }
        };
        tokio::join!(write, read_answer, read_errors);
    };
    let mut talk = Box::pin(talk);
    let status = tokio::select! {
        status = child.wait() => {
            let status = status?;
            // Something that it left running may hold its output open.
            let _ = timeout(AFTER_END, &mut talk).await;
            status
        }
        () = &mut talk => child.wait().await?,
    };
    drop(talk);
    Ok((status, output))
}

/// Reads to the end into `kept`; false, at once, if it is longer than [`ANSWER_MAX`].
async fn read_up_to(mut from: impl AsyncRead + Unpin, kept: &mut Vec<u8>) -> bool {
    let mut chunk = [0; 8192];
    while let Ok(count @ 1..) = from.read(&mut chunk).await {
        kept.extend_from_slice(chunk.get(..count).unwrap_or_default());
        if kept.len() > ANSWER_MAX {
            return false;
        }
    }
    true
}

/// Reads to the end, and keeps the last bytes.
async fn read_tail(mut from: impl AsyncRead + Unpin, kept: &mut Vec<u8>) {
    let mut chunk = [0; 8192];
    while let Ok(count @ 1..) = from.read(&mut chunk).await {
        kept.extend_from_slice(chunk.get(..count).unwrap_or_default());
        let excess = kept.len().saturating_sub(STDERR_KEPT);
        kept.drain(..excess);
    }
}

fn judge(status: ExitStatus, output: &Output) -> Result<Answer, Error> {
    if status.success() {
        return Answer::read(&output.answer);
    }
    // A program that fails may write anything; what it says in an answer goes before its last line.
    let answer = Answer::read(&output.answer).unwrap_or_default();
    if let Some(failure) = answer.failure() {
        return Err(failure);
    }
    let how = match status.code() {
        Some(code) => format!("exit {code}"),
        None => status.to_string(),
    };
    let message = match last_line(&output.errors).or(answer.message.clone()) {
        Some(line) => format!("{how}: {line}"),
        None => how,
    };
    let mut error = Error::transient(FAILED, message);
    if status.code() == Some(TRY_AGAIN) {
        error.retry_after = answer.wait().ok().flatten();
    }
    Err(error)
}

fn last_line(errors: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(errors);
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().filter(|c| !c.is_control()).take(LINE_MAX).collect())
}

fn not_started(program: &str, error: &io::Error) -> Error {
    let message = format!("can't start {program}: {error}");
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => Error {
            hint: Some(
                "the program must be executable; with a slash in its name it lies below the project's root"
                    .into(),
            ),
            ..Error::permanent(FAILED, message)
        },
        _ => Error::transient(FAILED, message),
    }
}

pub(super) fn too_long() -> Error {
    Error::transient(
        BAD_ANSWER,
        format!("its answer is longer than {ANSWER_MAX} bytes"),
    )
}
