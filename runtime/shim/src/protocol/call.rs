//! Requests of clients, answers and events.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::process::{Exit, Process};
use super::refusal::Refusal;
use crate::start_id::StartId;

/// A request with the number of its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Number chosen by the client, repeated in the answer.
    pub number: u64,
    /// The call and its arguments.
    pub call: Call,
}

/// A call of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// Opens a connection.
    Hello(Hello),
    /// Starts a program, once for each start id.
    Spawn(Box<Spawn>),
    /// Lists starts in the order of their ids, at most [`PAGE`](super::PAGE).
    List {
        /// Last start of the previous page; none for the first page.
        after: Option<StartId>,
    },
    /// Stops a process.
    Stop(Stop),
    /// Removes the record of a start whose process has ended.
    Forget {
        /// Start id whose record is removed.
        id: StartId,
        /// True to remove the start's output files too.
        remove_output: bool,
    },
    /// Renews the lease that [`Lifetime::Lease`] began.
    Renew {
        /// New term of the lease from now on, in milliseconds.
        ttl_ms: u64,
    },
}

/// The first request of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Version of the client's protocol: [`PROTOCOL`](super::PROTOCOL).
    pub protocol: u32,
    /// Epoch in which the client changes processes; `None` for a client that only lists.
    pub epoch: Option<u64>,
    /// Fate of processes whose holder is gone; ignored without an epoch.
    pub lifetime: Lifetime,
    /// True to receive events of exits.
    pub subscribe: bool,
}

/// The fate of processes whose holder is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifetime {
    /// Processes run on until the next program takes them over.
    Keep,
    /// Processes are killed when the lease expires.
    Lease {
        /// Term of the lease from the request on, in milliseconds.
        ttl_ms: u64,
    },
    /// Processes are killed some time after the epoch's last connection has ended.
    Connected {
        /// Time between the end of the connection and the kill, in milliseconds.
        linger_ms: u64,
    },
}

/// An order to start a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spawn {
    /// Start id. A repeated order with the same id starts nothing and returns the existing process.
    pub id: StartId,
    /// Program and arguments. A name without `/` is looked up in the `PATH` of `environment`.
    pub command: Vec<String>,
    /// The whole environment. Only the tag is added; nothing is inherited.
    pub environment: Vec<(String, String)>,
    /// Working directory.
    pub cwd: PathBuf,
    /// Output file for standard output and standard error; `None` discards both.
    pub output: Option<Output>,
    /// Resource limits of the process.
    pub limits: Limits,
}

/// A file to which a process writes its output directly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Absolute path of the file. A missing folder is created.
    pub path: PathBuf,
    /// Size in bytes at which the file is copied to `path.1` and truncated.
    pub max_size: u64,
    /// The most copies that are kept.
    pub keep: u32,
}

/// Resource limits of a process and its descendants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Memory in bytes; none for no limit. [`Process::memory`] tells how the limit is enforced.
    pub memory: Option<u64>,
    /// Number of open files, soft and hard; none for no limit.
    pub open_files: Option<u64>,
}

/// An order to stop a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// Start id of the process to stop.
    pub id: StartId,
    /// The name of the first signal, without `SIG`: `TERM`.
    pub signal: String,
    /// Time until SIGKILL, in milliseconds. A repeated order can shorten but not prolong it.
    pub grace_ms: u64,
    /// Fate of the start's record after the exit.
    pub then: Then,
}

/// The fate of a start's record once its process was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    /// Kept until a client forgets it.
    Keep,
    /// Removed.
    Forget,
    /// Removed together with the output files.
    ForgetWithOutput,
}

/// A message from the shim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// The answer to a request.
    Answer {
        /// Number of the request.
        number: u64,
        /// Result of the request.
        answer: Result<Answer, Refusal>,
    },
    /// An event, for subscribed clients.
    Event(Event),
}

/// The result of a successful request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// For hello: the connection is open.
    Hello {
        /// Process id of the shim.
        pid: u32,
        /// Version of the shim's crate.
        version: String,
    },
    /// For spawn and stop: the process in its current state; `None` for a stop of an unknown start.
    Process(Option<Process>),
    /// For list: a page of starts.
    Processes {
        /// Starts in the order of their ids.
        processes: Vec<Process>,
        /// True if another page may follow.
        more: bool,
    },
    /// For all other calls: success.
    Done,
}

/// A change of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A process has ended. Sent once, and not repeated after a lost connection: clients list then.
    Exited {
        /// Start id of the process.
        id: StartId,
        /// Exit status, time and reason.
        exit: Exit,
    },
}
