//! A command's end of the socket.

use std::io;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::sync::mpsc;
use watershed_api::http::calls::{Answered, Called, LocalUser, ToolCall};
use watershed_api::{Code, Owner, Problem, Reply, Request};

use super::wire::{Hello, Side, Wire, WireError};
use super::{Address, replies};

/// The reason why the owner of a state folder can't be asked.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No process listens: not yet, no longer, or the process with the folder answers no requests.
    #[error("no process is listening on the project's socket")]
    Nobody,
    /// The owner runs another version of the program.
    #[error("the folder is used by watershed {theirs}, and this is watershed {ours}")]
    OtherVersion {
        /// The owner's version.
        theirs: String,
        /// The version of this program.
        ours: String,
    },
    /// The owner accepted the connection and did not say hello in time.
    #[error("{} does not answer; it may be stopped", process(*pid))]
    Silent {
        /// The owner's process id, where the system tells it.
        pid: Option<i32>,
    },
    /// The socket can't be trusted or opened.
    #[error("the folder's socket can't be used")]
    Socket(#[source] io::Error),
}

fn process(pid: Option<i32>) -> String {
    pid.map_or_else(|| "the process".to_owned(), |pid| format!("process {pid}"))
}

/// The least time that an owner has to say hello: a busy owner is not a silent one.
const LEAST_WAIT: Duration = Duration::from_secs(2);

/// A connection to the owner, after both sides have said hello.
pub struct Connection {
    wire: Wire,
    owner: Option<Owner>,
}

impl Connection {
    /// Connects to the owner of a state folder, which must say hello within `wait` (at least two seconds).
    ///
    /// # Errors
    /// When nobody listens, the owner is of another version or says nothing, or the socket can't be used.
    pub async fn open(address: &Address, wait: Duration) -> Result<Self, ConnectError> {
        use io::ErrorKind::{ConnectionRefused, ConnectionReset, NotFound, WouldBlock};
        let nobody = |error: io::Error| match error.kind() {
            NotFound | ConnectionRefused | ConnectionReset => ConnectError::Nobody,
            // As many wait for an answer as the system lets wait.
            WouldBlock => ConnectError::Silent { pid: None },
            _ => ConnectError::Socket(error),
        };
        address.check().map_err(nobody)?;
        let stream = UnixStream::connect(address.path()).await.map_err(nobody)?;
        let pid = stream.peer_cred().ok().and_then(|owner| owner.pid());
        let mut wire = Wire::new(stream, Side::Client);
        let ours = Hello::ours();
        let greeting = async {
            wire.send(&ours).await?;
            wire.receive().await
        };
        // An owner that ends just now closes the connection: the next one is asked then.
        let theirs: Hello = tokio::time::timeout(wait.max(LEAST_WAIT), greeting)
            .await
            .map_err(|_| ConnectError::Silent { pid })?
            .map_err(|_| ConnectError::Nobody)?;
        if !theirs.fits(&ours) {
            return Err(ConnectError::OtherVersion {
                theirs: theirs.version,
                ours: ours.version,
            });
        }
        Ok(Self {
            wire,
            owner: theirs.owner,
        })
    }

    /// Returns the owner at the other end; none if it does not describe itself.
    pub fn owner(&self) -> Option<&Owner> {
        self.owner.as_ref()
    }

    /// Calls a tool, as the connection's one request, and returns the answer of its path.
    ///
    /// # Errors
    /// That of the owner, and `stopping` if the owner went away.
    pub async fn call(mut self, user: &LocalUser, called: Called) -> Result<Answered, Problem> {
        let call = ToolCall {
            tool_call: called,
            user: user.clone(),
        };
        self.wire.send(&call).await.map_err(|error| broken(&error))?;
        self.wire.receive().await.map_err(|error| broken(&error))?
    }

    /// Sends the connection's one request and returns the channel of its replies. Dropping the channel hangs up.
    pub async fn ask(mut self, request: &Request) -> mpsc::Receiver<Reply> {
        let (sender, receiver) = replies();
        if let Err(error) = self.wire.send(request).await {
            // An owner that reads no further has said why.
            let said = self.wire.receive().await;
            let last = said.unwrap_or_else(|_| Reply::Refused(broken(&error)));
            let _ = sender.send(last).await;
            return receiver;
        }
        // Ends with the last reply or when the receiver is dropped; it holds nothing that its cancellation loses.
        tokio::spawn(async move {
            loop {
                let reply = tokio::select! {
                    biased;
                    () = sender.closed() => return,
                    reply = self.wire.receive() => reply.unwrap_or_else(|error| Reply::Refused(broken(&error))),
                };
                let last = matches!(reply, Reply::Done(_) | Reply::Refused(_));
                if sender.send(reply).await.is_err() || last {
                    return;
                }
            }
        });
        receiver
    }
}

fn broken(error: &WireError) -> Problem {
    Problem::new(
        Code::Stopping,
        format!("the process that owns the folder went away: {error}"),
    )
    .hint("run the command again")
}
