//! Commands: a program that reads the message.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Child;
use tokio::time::timeout;

use super::{Attempt, BoxFuture, DeliveryError, Notifier, Receipt};
use crate::message::{Message, shown};
use crate::policy;

/// The time that a program may take.
const WITHIN: Duration = Duration::from_secs(60);
/// The most bytes of the end of standard error that are kept: its last line is shown.
const STDERR_KEPT: usize = 4096;
/// The time for which output is read after the program has ended.
const AFTER_END: Duration = Duration::from_millis(200);
/// Variables that a program gets from ours; no others.
const PASSED_ON: [&str; 3] = ["PATH", "HOME", "LANG"];

/// Runs a program for each message: an argument list without a shell, the message as JSON on its standard input, the key
/// in the variable `WATERSHED_KEY`.
#[derive(Debug, Clone)]
pub struct Command {
    root: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    within: Duration,
}

impl Command {
    /// Returns the notifier for a program with its arguments, which starts in a project's root. A program with a slash in
    /// its name lies below the root.
    pub fn new(root: impl Into<PathBuf>, arguments: Vec<String>) -> Self {
        Self {
            root: root.into(),
            arguments,
            environment: Vec::new(),
            within: WITHIN,
        }
    }

    /// Sets a variable of the program.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Sets the time that a program may take: a minute unless set.
    #[must_use]
    pub fn within(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    async fn run(&self, message: &Message, attempt: Attempt<'_>) -> Result<Receipt, DeliveryError> {
        let input =
            serde_json::to_vec(message).map_err(|error| DeliveryError::permanent(error.to_string()))?;
        let mut child = self.spawn(message, attempt)?;
        // All that it started ends with it, however this ends.
        let _group = Group::of(&child);
        let ended = timeout(self.within, converse(&mut child, input)).await;
        let (status, errors) = match ended {
            Ok(Ok(ended)) => ended,
            Ok(Err(error)) => return Err(DeliveryError::transient(format!("can't talk to it: {error}"))),
            Err(_) => {
                let message = format!("it took longer than {} s", self.within.as_secs());
                return Err(DeliveryError::transient(message));
            }
        };
        judge(status, &errors)
    }

    fn spawn(&self, message: &Message, attempt: Attempt<'_>) -> Result<Child, DeliveryError> {
        let (program, arguments) = self
            .arguments
            .split_first()
            .ok_or_else(|| DeliveryError::permanent("the command is empty"))?;
        let passed_on = PASSED_ON
            .iter()
            .filter_map(|name| Some((name, env::var_os(name)?)));
        tokio::process::Command::new(path_of(&self.root, program))
            .args(arguments)
            .current_dir(&self.root)
            .env_clear()
            .envs(passed_on)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env("WATERSHED_KEY", message.key.as_str())
            .env("WATERSHED_ATTEMPT", attempt.number.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| {
                let message = format!("can't start the program: {error}");
                match error.kind() {
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied => {
                        DeliveryError::permanent(message)
                    }
                    _ => DeliveryError::transient(message),
                }
            })
    }
}

impl Notifier for Command {
    fn deliver<'a>(
        &'a self,
        message: &'a Message,
        attempt: Attempt<'a>,
    ) -> BoxFuture<'a, Result<Receipt, DeliveryError>> {
        Box::pin(self.run(message, attempt))
    }
}

fn path_of(root: &Path, program: &str) -> PathBuf {
    match program.contains('/') {
        true => root.join(program),
        false => Path::new(program).to_owned(),
    }
}

/// The group of a program. It is killed when this is dropped.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        let pid = child.id().and_then(|id| i32::try_from(id).ok());
        Self(pid.and_then(Pid::from_raw))
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

/// Gives a program its input, and waits for its end.
async fn converse(child: &mut Child, input: Vec<u8>) -> std::io::Result<(ExitStatus, Vec<u8>)> {
    let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
    let mut errors = Vec::new();
    let talk = async {
        let write = async {
            if let Some(mut stdin) = stdin {
                // It need not read its input.
                let _ = stdin.write_all(&input).await;
            }
        };
        let read = async {
            if let Some(stderr) = stderr {
                read_tail(stderr, &mut errors).await;
            }
        };
        tokio::join!(write, read);
    };
    let mut talk = Box::pin(talk);
    let status = tokio::select! {
        status = child.wait() => {
            let status = status?;
            // What it said last may still be in the pipe; something that it left running may hold that open.
            let _ = timeout(AFTER_END, &mut talk).await;
            status
        }
        () = &mut talk => child.wait().await?,
    };
    drop(talk);
    Ok((status, errors))
}

/// Reads to the end, and keeps the last bytes.
async fn read_tail(mut from: impl AsyncRead + Unpin, kept: &mut Vec<u8>) {
    let mut chunk = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut chunk).await {
        kept.extend_from_slice(chunk.get(..count).unwrap_or_default());
        let excess = kept.len().saturating_sub(STDERR_KEPT);
        kept.drain(..excess);
    }
}

fn judge(status: ExitStatus, errors: &[u8]) -> Result<Receipt, DeliveryError> {
    if status.success() {
        return Ok(Receipt {
            said: "exit 0".to_owned(),
        });
    }
    let how = status
        .code()
        .map_or_else(|| status.to_string(), |code| format!("exit {code}"));
    let text = String::from_utf8_lossy(errors);
    let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
    let message = last.map_or_else(|| how.clone(), |line| format!("{how}: {}", shown(line)));
    Err(DeliveryError::of(policy::of_exit(status.code()), message))
}
