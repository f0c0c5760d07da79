//! Asynchronous client of a shim.
//!
//! It connects when it is first used, and starts a shim if there is none. From then on it stays connected, as long as it
//! lives: when the shim was killed it starts another one, which finds what still runs. Every call has a deadline and may
//! be repeated, so the client repeats those whose answers were lost.

mod connection;
mod error;
mod launch;

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{Mutex, broadcast};
use tokio::time::{Instant, sleep, timeout_at};

pub use self::error::Error;
pub use self::launch::Launch;

use self::connection::Connection;
use crate::folder::Folder;
use crate::protocol::{Answer, Call, Event, Exit, Hello, Lifetime, PROTOCOL, Process, Spawn, Stop};
use crate::start_id::StartId;

/// Time limit of a call, including the connection and the start of a shim. Even a slow disk needs only a tenth of it.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// The most unread news of a slow receiver; older ones are dropped, and the receiver is told.
const MAX_NEWS: usize = 4_096;

/// First and longest delay between attempts to connect.
const BACKOFF: [Duration; 2] = [Duration::from_millis(5), Duration::from_secs(2)];

/// Settings of a client.
#[derive(Debug, Clone)]
pub struct Options {
    /// Path of the state folder, which must exist.
    pub state_folder: PathBuf,
    /// Command line of a shim; `None` never starts one.
    pub launch: Option<Launch>,
    /// Epoch in which the client changes processes; `None` for a client that only lists.
    pub epoch: Option<u64>,
    /// Fate of processes whose client is gone.
    pub lifetime: Lifetime,
}

/// News of processes, which may be lost: [`Client::list`] shows the current state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// A process has ended.
    Exited {
        /// Start id of the process.
        id: StartId,
        /// Exit status, time and reason.
        exit: Exit,
    },
    /// The connection was restored, possibly to a new shim: exits may have been missed.
    Reconnected,
}

/// A client of a state folder's shim. Clones share the connection; dropping the last one closes it.
#[derive(Debug, Clone)]
pub struct Client(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    folder: Folder,
    options: Options,
    current: Mutex<Option<Connection>>,
    news: broadcast::Sender<News>,
}

impl Client {
    /// Creates a client, which connects at the first call.
    ///
    /// # Errors
    /// When the state folder is not there.
    pub fn new(mut options: Options) -> Result<Self, Error> {
        let state = options.state_folder.canonicalize().map_err(Error::Folder)?;
        let folder = Folder::of(&state);
        options.state_folder = state;
        Ok(Self(Arc::new(Shared {
            folder,
            options,
            current: Mutex::new(None),
            news: broadcast::channel(MAX_NEWS).0,
        })))
    }

    /// Returns true if a shim has ever served the state folder. Otherwise there is nothing to list.
    pub fn is_used(&self) -> bool {
        self.0.folder.has_journal()
    }

    /// Subscribes to news of processes from now on.
    pub fn news(&self) -> broadcast::Receiver<News> {
        self.0.news.subscribe()
    }

    /// Starts a program once per start id and returns the process; a repeated call changes nothing.
    ///
    /// # Errors
    /// When the shim refuses or can't be reached. Dropping the future leaves open whether the program was started.
    pub async fn spawn(&self, order: Spawn) -> Result<Process, Error> {
        match self.call(Call::Spawn(Box::new(order))).await? {
            Answer::Process(Some(process)) => Ok(process),
            _ => Err(Error::Unexpected),
        }
    }

    /// Lists all starts that are not forgotten.
    ///
    /// # Errors
    /// When the shim can't be reached.
    pub async fn list(&self) -> Result<Vec<Process>, Error> {
        let mut all: Vec<Process> = Vec::new();
        loop {
            let after = all.last().map(|process| process.id.clone());
            let Answer::Processes { processes, more } = self.call(Call::List { after }).await? else {
                return Err(Error::Unexpected);
            };
            let is_empty = processes.is_empty();
            all.extend(processes);
            if !more || is_empty {
                return Ok(all);
            }
        }
    }

    /// Begins to stop a process and returns without waiting for its end, which [`News::Exited`] reports. Returns the
    /// process; `None` if its start is unknown or forgotten.
    ///
    /// # Errors
    /// When the shim refuses or can't be reached. Dropping the future leaves open whether the stop was stored.
    pub async fn stop(&self, stop: Stop) -> Result<Option<Process>, Error> {
        match self.call(Call::Stop(stop)).await? {
            Answer::Process(process) => Ok(process),
            Answer::Done => Ok(None),
            _ => Err(Error::Unexpected),
        }
    }

    /// Removes the record of a start whose process has ended, and its output files on request.
    ///
    /// # Errors
    /// When the process runs, or the shim refuses or can't be reached.
    pub async fn forget(&self, id: StartId, remove_output: bool) -> Result<(), Error> {
        self.call(Call::Forget { id, remove_output }).await.map(drop)
    }

    /// Renews the lease of [`Lifetime::Lease`].
    ///
    /// # Errors
    /// When the lease has ended, or the shim can't be reached.
    pub async fn renew(&self, ttl: Duration) -> Result<(), Error> {
        let ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        self.call(Call::Renew { ttl_ms }).await.map(drop)
    }

    /// Returns the pid of the shim, starting it if none runs.
    ///
    /// # Errors
    /// When the shim can't be reached.
    pub async fn shim(&self) -> Result<u32, Error> {
        let deadline = Instant::now() + CALL_TIMEOUT;
        let connection = self.0.connection(deadline).await?;
        Ok(connection.shim())
    }

    /// Sends a call, reconnecting until it is answered or its time is up.
    async fn call(&self, call: Call) -> Result<Answer, Error> {
        let deadline = Instant::now() + CALL_TIMEOUT;
        loop {
            let connection = self.0.connection(deadline).await?;
            let answered = timeout_at(deadline, connection.call(call.clone())).await;
            match answered.map_err(|_| Error::TimedOut)? {
                // The connection is over; another one is made.
                Err(Error::Disconnected) => {}
                other => return other,
            }
        }
    }
}

impl Shared {
    /// Returns the open connection, or establishes one.
    async fn connection(self: &Arc<Self>, deadline: Instant) -> Result<Connection, Error> {
        let mut current = timeout_at(deadline, self.current.lock())
            .await
            .map_err(|_| Error::TimedOut)?;
        if let Some(connection) = current.as_ref().filter(|connection| !connection.is_over()) {
            return Ok(connection.clone());
        }
        let mut pause = BACKOFF[0];
        let connection = loop {
            match timeout_at(deadline, self.connect()).await {
                Ok(Ok(connection)) => break connection,
                Ok(Err(error)) if !error.is_transient() => return Err(error),
                Ok(Err(error)) if Instant::now() + pause >= deadline => return Err(error),
                Ok(Err(_)) => {
                    sleep(pause).await;
                    pause = (pause * 2).min(BACKOFF[1]);
                }
                Err(_) => return Err(Error::TimedOut),
            }
        };
        if current.replace(connection.clone()).is_some() {
            let _ = self.news.send(News::Reconnected);
        }
        Ok(connection)
    }

    /// Makes one attempt to connect, starting a shim if none runs.
    async fn connect(self: &Arc<Self>) -> Result<Connection, Error> {
        let stream = match launch::connect(&self.folder).await {
            Ok(stream) => stream,
            Err(error) => match &self.options.launch {
                Some(launch) => {
                    let end = launch.start(&self.folder)?;
                    launch::connect_when_ready(&self.folder, end).await?
                }
                None => return Err(Error::NotThere(error)),
            },
        };
        let shared = Arc::downgrade(self);
        let told = {
            let news = self.news.clone();
            move |Event::Exited { id, exit }| drop(news.send(News::Exited { id, exit }))
        };
        let over = move || drop(tokio::spawn(reconnect(shared)));
        let hello = Hello {
            protocol: PROTOCOL,
            epoch: self.options.epoch,
            lifetime: self.options.lifetime,
            subscribe: true,
        };
        Connection::open(stream, hello, told, over).await
    }
}

/// Reconnects after a loss, so that a new shim watches the processes still running. Ends with the client, or when the
/// shim refuses it.
///
/// Boxed, as the connection that it makes reconnects in turn.
fn reconnect(shared: Weak<Shared>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        let mut pause = BACKOFF[0];
        loop {
            let Some(shared) = shared.upgrade() else {
                return;
            };
            match shared.connection(Instant::now() + CALL_TIMEOUT).await {
                Err(error) if error.is_transient() => {}
                _ => return,
            }
            drop(shared);
            sleep(pause).await;
            pause = (pause * 2).min(BACKOFF[1]);
        }
    })
}
