//! Local processes, run by the shim of a state folder.

use std::ffi::OsString;
use std::path::PathBuf;

use tokio::sync::broadcast;
use watershed_core::Timestamp;
use watershed_shim::protocol::{self, FailureClass, Lifetime, Refusal, Spawn, Stop};
use watershed_shim::{Client, Launch, Options};

use super::{Backend, BoxFuture, Connect, End, Error, News, Observation, Phase, Program, Start, StartId};
use crate::policy::exit::{Exit, StartFailure};

/// Name of the backend in messages.
const NAME: &str = "process";

/// The most unread news of a slow receiver; older ones are dropped, and a listing makes up for them.
const MAX_NEWS: usize = 4_096;

/// Connector to the shim of a state folder, which is started with the first process.
#[derive(Debug, Clone)]
pub struct LocalProcesses {
    /// Path of the folder with the shim's socket and journal.
    pub state_folder: PathBuf,
    /// The program that acts as the shim when called with `arguments`.
    pub program: PathBuf,
    /// Arguments of the program.
    pub arguments: Vec<OsString>,
    /// Fate of processes whose holder is gone.
    pub lifetime: Lifetime,
}

impl Connect for LocalProcesses {
    fn runs_containers(&self) -> bool {
        false
    }

    fn connect(&self, epoch: u64) -> Result<std::sync::Arc<dyn Backend>, Error> {
        let client = Client::new(Options {
            state_folder: self.state_folder.clone(),
            launch: Some(Launch {
                program: self.program.clone(),
                arguments: self.arguments.clone(),
            }),
            epoch: Some(epoch),
            lifetime: self.lifetime,
        });
        let client = client.map_err(|error| failed(&error))?;
        let news = broadcast::channel(MAX_NEWS).0;
        let process = Process {
            client: client.clone(),
            epoch,
            news: news.clone(),
        };
        tokio::spawn(pass_on(client.news(), news));
        Ok(std::sync::Arc::new(process))
    }
}

/// The backend of local processes under one epoch.
#[derive(Debug)]
struct Process {
    client: Client,
    epoch: u64,
    news: broadcast::Sender<News>,
}

/// Forwards news of the shim while the client exists.
async fn pass_on(mut from: broadcast::Receiver<watershed_shim::News>, to: broadcast::Sender<News>) {
    use broadcast::error::RecvError;
    loop {
        let news = match from.recv().await {
            Ok(watershed_shim::News::Exited { id, exit }) => News::Ended {
                id,
                end: end_of(exit.end),
                at: time(exit.at_ms),
                was_stopped: exit.stop.is_some(),
            },
            Ok(watershed_shim::News::Reconnected) | Err(RecvError::Lagged(_)) => News::Missed,
            Err(RecvError::Closed) => return,
        };
        // Nobody listens before the first scan.
        let _ = to.send(news);
    }
}

impl Backend for Process {
    fn name(&self) -> &'static str {
        NAME
    }

    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn start(&self, start: Start) -> BoxFuture<'_, Result<Observation, Error>> {
        Box::pin(async move {
            let Program::Local { command, cwd } = start.program else {
                return Err(Error::Unsupported {
                    backend: NAME,
                    message: "a container is no local process".to_owned(),
                });
            };
            let spawn = Spawn {
                id: start.id,
                command,
                environment: start.environment,
                cwd,
                output: start.output,
                limits: start.limits,
            };
            let process = self.client.spawn(spawn).await;
            process.map(observation).map_err(|error| failed(&error))
        })
    }

    fn stop(&self, stop: Stop) -> BoxFuture<'_, Result<Option<Observation>, Error>> {
        Box::pin(async move {
            if !self.client.is_used() {
                return Ok(None);
            }
            let process = self.client.stop(stop).await;
            process
                .map(|process| process.map(observation))
                .map_err(|error| failed(&error))
        })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Observation>, Error>> {
        Box::pin(async move {
            if !self.client.is_used() {
                return Ok(Vec::new());
            }
            let processes = self.client.list().await.map_err(|error| failed(&error))?;
            Ok(processes.into_iter().map(observation).collect())
        })
    }

    fn forget(&self, id: StartId, remove_output: bool) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            if !self.client.is_used() {
                return Ok(());
            }
            let forgotten = self.client.forget(id, remove_output).await;
            forgotten.map_err(|error| failed(&error))
        })
    }

    fn free_memory(&self) -> Option<u64> {
        super::free_memory()
    }

    fn news(&self) -> broadcast::Receiver<News> {
        self.news.subscribe()
    }
}

fn time(ms: u64) -> Timestamp {
    Timestamp(i64::try_from(ms).unwrap_or(i64::MAX))
}

fn end_of(end: protocol::End) -> End {
    match end {
        protocol::End::Code(code) => End::Exit(Exit::Code(code)),
        protocol::End::Signal(signal) => End::Exit(Exit::Signal(signal)),
        protocol::End::OutOfMemory => End::Exit(Exit::OutOfMemory),
        protocol::End::Unknown => End::Exit(Exit::Unknown),
        protocol::End::Reboot => End::Reboot,
    }
}

fn observation(process: protocol::Process) -> Observation {
    let mut stopping = process.stopping.is_some();
    let mut backend_id = None;
    let phase = match process.phase {
        protocol::Phase::Starting => Phase::Starting,
        protocol::Phase::Running { pid, .. } => {
            backend_id = Some(pid.to_string());
            Phase::Running
        }
        protocol::Phase::Failed(failure) => Phase::NotStarted {
            failure: match failure.class {
                FailureClass::ProgramMissing => StartFailure::ProgramMissing,
                FailureClass::NotExecutable => StartFailure::NotExecutable,
                FailureClass::BadFolder => StartFailure::BadFolder,
                FailureClass::BadCommand => StartFailure::BadCommand,
                FailureClass::BadOutput => StartFailure::BadOutput,
                FailureClass::ForkFailed => StartFailure::ForkFailed,
            },
            message: failure.message,
        },
        protocol::Phase::Exited(exit) => {
            stopping |= exit.stop.is_some();
            Phase::Ended {
                end: end_of(exit.end),
                at: time(exit.at_ms),
            }
        }
    };
    Observation {
        id: process.id,
        epoch: process.epoch,
        backend_id,
        started: time(process.started_at_ms),
        stopping,
        phase,
    }
}

fn failed(error: &watershed_shim::Error) -> Error {
    use watershed_shim::Error as Failed;
    match error {
        Failed::Refused(Refusal::StaleEpoch { epoch, newest }) => Error::StaleEpoch {
            epoch: *epoch,
            newest: *newest,
        },
        Failed::Refused(Refusal::Occupied { living }) => Error::Occupied {
            living: living.clone(),
        },
        Failed::Refused(Refusal::Superseded { newer }) => Error::Superseded { newer: newer.clone() },
        Failed::Refused(Refusal::StillRunning) => Error::StillRunning,
        Failed::Refused(refusal) if !error.is_transient() => Error::Refused {
            backend: NAME,
            message: refusal.to_string(),
        },
        other => Error::Unreachable {
            backend: NAME,
            message: with_sources(other),
        },
    }
}

fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
