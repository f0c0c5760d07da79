//! The owner's end of the socket.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use watershed_api::http::calls::ToolCall;
use watershed_api::{Owner, Problem, Reply, Request};

use super::wire::Either;
use super::wire::{Hello, Side, Wire, WireError};
use super::{Address, Service, replies};

/// The time that a client has for its hello and its request before the connection is closed.
const PATIENCE: Duration = Duration::from_secs(10);

/// A socket on which requests are answered until this value is dropped.
///
/// Hold the folder's lock before binding: whatever socket is there is then left over and is replaced.
pub struct Listener {
    address: Address,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Listener {
    /// Binds the socket and starts to answer requests with `service`.
    ///
    /// # Errors
    /// When the socket can't be made.
    pub fn bind<S: Service>(address: Address, service: Arc<S>) -> io::Result<Self> {
        address.prepare()?;
        // Bound under another name first: at its own name it is never there with looser permissions.
        let fresh = address.path().with_extension("new");
        remove(&fresh)?;
        let listener = UnixListener::bind(&fresh)?;
        fs::set_permissions(&fresh, fs::Permissions::from_mode(0o600))?;
        fs::rename(&fresh, address.path())?;
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(accept(listener, service, stop.clone(), tasks.clone()));
        Ok(Self { address, stop, tasks })
    }

    /// Stops accepting requests and waits until the accepted ones are answered.
    pub async fn finish(self) {
        self.stop.cancel();
        let _ = remove(self.address.path());
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn remove(path: &std::path::Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

async fn accept<S: Service>(
    listener: UnixListener,
    service: Arc<S>,
    stop: CancellationToken,
    tasks: TaskTracker,
) {
    loop {
        // Both arms are cancel-safe: an accepted stream is returned at once or stays in the backlog.
        let stream = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match stream {
            Ok((stream, _)) => drop(tasks.spawn(answer(stream, Arc::clone(&service)))),
            // Too many open files, most likely: those that are open will end.
            Err(error) => {
                tracing::warn!(%error, "can't accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Answers one connection. Every failure is reported to the client.
async fn answer<S: Service>(stream: UnixStream, service: Arc<S>) {
    let mut wire = Wire::new(stream, Side::Owner);
    let greeted = tokio::time::timeout(PATIENCE, greet(&mut wire, service.owner())).await;
    let request = match greeted {
        Ok(Some(Ok(Asked::Operation(request)))) => *request,
        Ok(Some(Ok(Asked::Tool(call)))) => {
            let answering = service.tool(call.user, call.tool_call);
            let answered = tokio::select! {
                answered = answering => answered,
                // Work goes on by itself: a call of it ends once it is stored.
                () = wire.closed() => return,
            };
            let _ = tokio::time::timeout(PATIENCE, wire.send(&answered)).await;
            return;
        }
        Ok(Some(Err(wrong))) => {
            let refused = Reply::Refused(wrong);
            let _ = tokio::time::timeout(PATIENCE, wire.send(&refused)).await;
            return;
        }
        Ok(None) | Err(_) => return,
    };
    let (sender, mut receiver) = replies();
    let serving = async {
        service.serve(request, sender).await;
    };
    let sending = async {
        loop {
            let reply: Option<Reply> = tokio::select! {
                reply = receiver.recv() => reply,
                () = wire.closed() => None,
            };
            let Some(reply) = reply else { break };
            if wire.send(&reply).await.is_err() {
                break;
            }
        }
        // The service notices that nobody listens.
        drop(receiver);
    };
    tokio::join!(serving, sending);
}

/// The one message of a client.
enum Asked {
    Operation(Box<Request>),
    Tool(Box<ToolCall>),
}

impl Asked {
    async fn receive(wire: &mut Wire) -> Result<Self, WireError> {
        Ok(match wire.receive_either(ToolCall::BEGINS).await? {
            Either::First(call) => Self::Tool(Box::new(call)),
            Either::Second(request) => Self::Operation(Box::new(request)),
        })
    }
}

/// Exchanges hellos and returns the client's request, or the problem of an unreadable one; none for a foreign client.
async fn greet(wire: &mut Wire, owner: Option<Owner>) -> Option<Result<Asked, Problem>> {
    let theirs: Hello = wire.receive().await.ok()?;
    let ours = Hello {
        owner,
        ..Hello::ours()
    };
    wire.send(&ours).await.ok()?;
    if !theirs.fits(&ours) {
        return None;
    }
    match Asked::receive(wire).await {
        Ok(asked) => Some(Ok(asked)),
        Err(error) => error.problem().map(Err),
    }
}
