//! Execution of a program: with exactly the environment that the caller gives, output read up to a bound, and all
//! descendants ended with the program.

mod group;
mod marked;
mod streams;
#[cfg(test)]
mod tests;

use std::env;
use std::ffi::OsString;
use std::future::pending;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use group::Group;
pub use marked::{MARK_VARIABLE, end_marked};
use streams::Streams;

/// Environment variables that callers may pass on from this process.
const PASSED_ON: [&str; 3] = ["PATH", "HOME", "LANG"];
/// Default time between asking a program to end and killing it.
const GRACE: Duration = Duration::from_secs(2);

/// A program to run, with its arguments, environment, input and bounds.
#[derive(Debug, Clone)]
pub struct Program {
    /// The executable file, or a name that is looked up on the `PATH`.
    pub path: PathBuf,
    /// Arguments, passed without a shell.
    pub arguments: Vec<String>,
    /// Working directory.
    pub folder: PathBuf,
    /// Environment variables in addition to the mark; of several values for a name, the last counts.
    pub environment: Vec<(OsString, OsString)>,
    /// Bytes for standard input, which the program need not read.
    pub input: Vec<u8>,
    /// Part of standard output that is kept.
    pub output: Keep,
    /// Part of standard error that is kept.
    pub errors: Keep,
    /// Time limit of the run; unlimited if `None`. Dropping the run ends the program.
    pub within: Option<Duration>,
    /// The time between asking the program to end (`TERM`) and killing it.
    pub grace: Duration,
    mark: String,
}

/// The part of an output stream that is kept. The stream is always read to its end, so that the program never blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// No part: the stream is discarded.
    Nothing,
    /// The first bytes, at most this number; a program that writes more is ended.
    First(usize),
    /// The last bytes, at most this number.
    Last(usize),
}

/// The error of a run without an exit status.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The program was not started.
    #[error("can't start the program: {0}")]
    Start(io::Error),
    /// The program's streams or its end can't be observed.
    #[error("can't talk to it: {0}")]
    Talk(io::Error),
    /// The program exceeded its time limit and was ended.
    #[error("it took longer than {} s", .0.as_secs())]
    TooLong(Duration),
    /// The program wrote more bytes than its bound and was ended.
    #[error("its output is longer than {0} bytes")]
    TooMuch(usize),
}

/// The result of a program that has ended. Dropping it kills processes that the program has left running.
#[derive(Debug)]
pub struct Ended {
    /// Exit status of the program.
    pub status: ExitStatus,
    /// The kept part of standard output.
    pub output: Vec<u8>,
    /// The kept part of standard error.
    pub errors: Vec<u8>,
    group: Group,
}

impl Program {
    /// Creates a program from a command (its name and arguments) that starts in a folder; none if the command is empty.
    /// A name with a slash is a path below the folder.
    ///
    /// It gets no variable and no input, its output is thrown away, and it may take any time.
    #[must_use]
    pub fn new(folder: &Path, command: &[String]) -> Option<Self> {
        let (program, arguments) = command.split_first()?;
        let path = match program.contains('/') {
            true => folder.join(program),
            false => PathBuf::from(program),
        };
        Some(Self {
            path,
            arguments: arguments.to_vec(),
            folder: folder.to_owned(),
            environment: Vec::new(),
            input: Vec::new(),
            output: Keep::Nothing,
            errors: Keep::Nothing,
            within: None,
            grace: GRACE,
            mark: uuid::Uuid::new_v4().to_string(),
        })
    }

    /// Adds environment variables.
    pub fn variables<N: Into<OsString>, V: Into<OsString>>(
        &mut self,
        variables: impl IntoIterator<Item = (N, V)>,
    ) {
        let variables = variables.into_iter();
        let owned = variables.map(|(name, value)| (name.into(), value.into()));
        self.environment.extend(owned);
    }

    /// Passes on PATH, HOME and LANG from this process.
    pub fn pass_on(&mut self) {
        self.variables(
            PASSED_ON
                .iter()
                .filter_map(|name| Some((name, env::var_os(name)?))),
        );
    }

    /// Returns the mark in the environment of the program and its descendants, by which [`end_marked`] finds them.
    #[must_use]
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// Runs the program to its end.
    ///
    /// It gets a process group of its own. One that takes too long or writes too much is asked to end (`TERM`), and killed
    /// after the grace, together with its group and with what left the group but has the mark still. Cancel-safe: of a
    /// dropped run all of that is killed at once.
    ///
    /// # Errors
    /// When the program can't be started or waited for, or was ended at a bound.
    pub async fn run(&self) -> Result<Ended, RunError> {
        let mut child = self.spawn().map_err(RunError::Start)?;
        let group = Group::of(&child, &self.mark);
        let (mut streams, too_much) = (Streams::new(self.output, self.errors), Notify::new());
        let status = {
            let mut talk = pin!(streams.converse(&mut child, &self.input, &too_much));
            let status = tokio::select! {
                biased;
                status = &mut talk => Some(status.map_err(RunError::Talk)?),
                () = too_much.notified() => None,
                () = passed(self.within) => None,
            };
            if status.is_none() {
                group.ask();
                // How it ends makes no difference any more.
                let _ = timeout(self.grace, talk).await;
            }
            status
        };
        if let Some(max) = streams.exceeded() {
            return Err(RunError::TooMuch(max));
        }
        let status = status.ok_or_else(|| RunError::TooLong(self.within.unwrap_or_default()))?;
        let (output, errors) = streams.kept();
        Ok(Ended {
            status,
            output,
            errors,
            group,
        })
    }

    fn spawn(&self) -> io::Result<Child> {
        let stdin = match self.input.is_empty() {
            true => Stdio::null(),
            false => Stdio::piped(),
        };
        Command::new(&self.path)
            .args(&self.arguments)
            .current_dir(&self.folder)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env(MARK_VARIABLE, &self.mark)
            .stdin(stdin)
            .stdout(self.output.stdio())
            .stderr(self.errors.stdio())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
    }
}

impl Keep {
    fn stdio(self) -> Stdio {
        match self {
            Self::Nothing => Stdio::null(),
            Self::First(_) | Self::Last(_) => Stdio::piped(),
        }
    }
}

impl RunError {
    /// Returns true if the program is missing or may not be executed, so that another attempt would not help.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        let Self::Start(error) = self else { return false };
        matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
        )
    }
}

impl Ended {
    /// Formats the exit code or signal: `exit 3`.
    #[must_use]
    pub fn how(&self) -> String {
        let code = self.status.code();
        code.map_or_else(|| self.status.to_string(), |code| format!("exit {code}"))
    }

    /// Returns the last line of standard error that is not blank.
    #[must_use]
    pub fn last_line(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.errors);
        let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
        Some(line.to_owned())
    }

    /// Lets processes that the program has left running go on.
    pub fn release(mut self) {
        self.group.release();
    }
}

/// Waits for a time; for ever if `None`.
async fn passed(within: Option<Duration>) {
    match within {
        Some(within) => sleep(within).await,
        None => pending().await,
    }
}
