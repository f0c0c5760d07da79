//! Requests, their answers, and events.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::process::{Exit, Process};
use super::refusal::Refusal;
use crate::start_id::StartId;

/// One request, with the number that its answer has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Chosen by the client.
    pub number: u64,
    /// The request itself.
    pub call: Call,
}

/// The requests of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// Begins a connection.
    Hello(Hello),
    /// Starts a program, once for each start id.
    Spawn(Box<Spawn>),
    /// Lists the processes after one, at most [`PAGE`](super::PAGE).
    List {
        /// The last one of the page before.
        after: Option<StartId>,
    },
    /// Stops a process.
    Stop(Stop),
    /// Drops the record of a start whose process has ended.
    Forget {
        /// The start.
        id: StartId,
        /// True to remove its output files, too.
        remove_output: bool,
    },
    /// Prolongs the lease that [`Lifetime::Lease`] began.
    Renew {
        /// Milliseconds from now on.
        ttl_ms: u64,
    },
}

/// The first request of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The client's [`PROTOCOL`](super::PROTOCOL).
    pub protocol: u32,
    /// The epoch in which the client may change something; `None` for one that only lists.
    pub epoch: Option<u64>,
    /// The ending of processes without their holder; ignored without an epoch.
    pub lifetime: Lifetime,
    /// True to be told of exits.
    pub subscribe: bool,
}

/// The time after which processes are killed when nobody holds them any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifetime {
    /// They go on without a program, until the next one takes them over.
    Keep,
    /// They are killed when a lease is not renewed in time.
    Lease {
        /// Milliseconds from the request on.
        ttl_ms: u64,
    },
    /// They are killed some time after the last connection of the epoch has ended.
    Connected {
        /// Milliseconds from the end of the connection on.
        linger_ms: u64,
    },
}

/// One start of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spawn {
    /// The start. A second request with it starts nothing and answers with the process that is there.
    pub id: StartId,
    /// The program and its arguments. A name without `/` is looked for in the `PATH` of `environment`.
    pub command: Vec<String>,
    /// The whole environment; nothing is inherited but the tag, which is added.
    pub environment: Vec<(String, String)>,
    /// The folder that it starts in.
    pub cwd: PathBuf,
    /// The file for standard output and error; `None` discards them.
    pub output: Option<Output>,
    /// Its limits.
    pub limits: Limits,
}

/// The file that a process writes its output to, without anybody in between.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// An absolute path. Its folder is made.
    pub path: PathBuf,
    /// Bytes from which on the file is copied to `path.1` and truncated.
    pub max_size: u64,
    /// The number of copies that are kept.
    pub keep: u32,
}

/// Limits of one process and all that it starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of memory. [`Process::memory`] says how they are enforced.
    pub memory: Option<u64>,
    /// Open files, soft and hard.
    pub open_files: Option<u64>,
}

/// The end of a process, ordered by its owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// The start.
    pub id: StartId,
    /// The name of the first signal, without `SIG`: `TERM`.
    pub signal: String,
    /// Milliseconds until SIGKILL. A second request can shorten it, not prolong it.
    pub grace_ms: u64,
    /// The record after the exit.
    pub then: Then,
}

/// The end of the record of a start once its process has been stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    /// It is kept until it is forgotten.
    Keep,
    /// It is forgotten.
    Forget,
    /// It is forgotten, and its output files are removed.
    ForgetWithOutput,
}

/// One line from the shim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// The answer to a request.
    Answer {
        /// The number of the request.
        number: u64,
        /// The outcome.
        answer: Result<Answer, Refusal>,
    },
    /// News, for those who subscribed.
    Event(Event),
}

/// The answer to a request that was carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Of hello: the connection is open.
    Hello {
        /// The pid of the shim.
        pid: u32,
        /// The version of the crate that the shim is of.
        version: String,
    },
    /// Of spawn and stop: the process as it is now. Of a stop of what nobody knows: `None`.
    Process(Option<Process>),
    /// Of list: a page.
    Processes {
        /// In the order of their ids.
        processes: Vec<Process>,
        /// True if there may be more.
        more: bool,
    },
    /// Of all others.
    Done,
}

/// News of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A process has ended. Told once, and not again after a lost connection: list then.
    Exited {
        /// The start.
        id: StartId,
        /// The end.
        exit: Exit,
    },
}
