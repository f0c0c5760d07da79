//! The language server of a project over a WebSocket: one connection is one editor, and one message one of the protocol.
//!
//! The server works on the project's files and on the texts that its connection has open. Nothing is written, and addresses
//! are those of a virtual root, so that nobody learns where the project lies.

mod remote;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRequestParts as _;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::request::Parts;
use axum::response::Response;
use futures::channel::mpsc;
use futures::executor::block_on;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt as _, StreamExt as _};
use tokio::sync::mpsc as bounded;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use watershed_api::{Code, Problem};
use watershed_lsp::{Frames, Host, Messages, Server};

use self::remote::Remote;
use super::answers::Unanswered;
use super::caller::Caller;
use super::limits::{Gate, OpenStream};
use super::service::MOST_EDITORS;
use super::{guard, streams};
use crate::instance::Instance;

/// The largest message, in bytes: that of the language server.
const MOST_BYTES: usize = 32 << 20;
/// The most messages that wait for the server, or for the editor.
const MOST_WAITING: usize = 16;
/// The interval at which the editor is asked whether it is still there.
const PING_EVERY: Duration = Duration::from_secs(30);
/// The time after which an editor that says nothing, not even in answer, is gone.
const SILENCE: Duration = Duration::from_secs(90);
/// The time that the editor has to take the last message.
const FAREWELL: Duration = Duration::from_millis(500);

/// The project to which an editor connects.
pub(super) struct Place<'p> {
    /// Name of the instance, as addresses have it.
    pub(super) name: &'p str,
    /// The instance whose files are worked on.
    pub(super) instance: &'p Arc<Instance>,
    /// Limits on what callers may use.
    pub(super) gate: &'p Arc<Gate>,
    /// Places for the instance's editors.
    pub(super) editors: &'p Arc<Semaphore>,
    /// The token that is cancelled when the service is about to stop.
    pub(super) stopping: &'p CancellationToken,
}

/// Makes the connection of a call a WebSocket with the language server behind it.
///
/// # Errors
/// `bad-argument` for a request that is no WebSocket's, `not-allowed` for a page of another site, `busy`.
pub(super) async fn connect(parts: &Parts, caller: &Caller, to: Place<'_>) -> Result<Response, Unanswered> {
    let mut head = parts.clone();
    let upgrade = WebSocketUpgrade::from_request_parts(&mut head, &()).await;
    let upgrade = upgrade.map_err(|refused| {
        let message = format!("this path is a WebSocket: {}", refused.body_text());
        Unanswered::Status(Problem::new(Code::BadArgument, message), refused.status())
    })?;
    guard::check_socket(parts, caller)?;
    let place = to.gate.stream_place(caller, to.name)?;
    let editor = Arc::clone(to.editors).try_acquire_owned().map_err(|_| {
        let message = format!("{MOST_EDITORS} editors are connected to `{}` already", to.name);
        Problem::new(Code::Busy, message).hint("close one of them, or connect later")
    })?;
    let connection = Connection {
        instance: Arc::clone(to.instance),
        name: to.name.to_owned(),
        stopping: to.stopping.clone(),
        _places: (place, editor),
    };
    let over = streams::end_of_access(caller);
    let upgrade = upgrade.max_message_size(MOST_BYTES).max_frame_size(MOST_BYTES);
    Ok(upgrade.on_upgrade(move |socket| connection.serve(socket, over)))
}

/// A connection of an editor to a project.
struct Connection {
    instance: Arc<Instance>,
    /// Name of the instance, as addresses have it.
    name: String,
    stopping: CancellationToken,
    /// The places of the connection among the streams and among the editors.
    _places: (OpenStream, OwnedSemaphorePermit),
}

impl Connection {
    /// Serves the editor until it leaves, its access ends or the service stops.
    async fn serve(self, socket: WebSocket, over: impl Future<Output = ()> + Send) {
        let (to_server, received) = mpsc::channel::<Vec<u8>>(MOST_WAITING);
        let (sender, to_editor) = bounded::channel::<Vec<u8>>(MOST_WAITING);
        if let Err(error) = self.begin(received, sender) {
            tracing::error!(%error, "the system gives no thread to a language server");
            return;
        }
        let (mut output, input) = socket.split();
        let leaving = self.instance.leaving.clone();
        tokio::select! {
            biased;
            () = over => {}
            () = self.stopping.cancelled() => {}
            () = leaving.cancelled() => {}
            () = hear(input, to_server) => {}
            () = tell(&mut output, to_editor) => {}
        }
        let _ = tokio::time::timeout(FAREWELL, output.close()).await;
    }

    /// Starts the server on a thread of its own, for it compiles; the thread ends with its channels.
    fn begin(&self, received: mpsc::Receiver<Vec<u8>>, sender: bounded::Sender<Vec<u8>>) -> io::Result<()> {
        let (instance, name) = (Arc::clone(&self.instance), self.name.clone());
        let runtime = tokio::runtime::Handle::current();
        let opener = Box::new(move |_: &std::path::Path, handle| {
            let remote = Remote::open(Arc::clone(&instance), &name, handle, &runtime);
            Some(Box::new(remote) as Box<dyn Host>)
        });
        std::thread::Builder::new()
            .name("lsp".to_owned())
            .spawn(move || {
                let output = Messages::new(|message| {
                    let sent = sender.blocking_send(message);
                    sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
                });
                // Whatever the editor says is its folder, there is one project.
                let server = Server::new(opener, Some("/".into()));
                if let Err(error) = block_on(server.run(Frames::of_messages(received), output)) {
                    tracing::debug!(%error, "a conversation with an editor ended early");
                }
            })
            .map(drop)
    }
}

/// Hands the editor's messages to the server, until one of both ends.
async fn hear(mut input: SplitStream<WebSocket>, mut to_server: mpsc::Sender<Vec<u8>>) {
    while let Ok(Some(Ok(message))) = tokio::time::timeout(SILENCE, input.next()).await {
        let bytes = match message {
            Message::Text(text) => text.as_bytes().to_vec(),
            Message::Ping(_) | Message::Pong(_) => continue,
            Message::Binary(_) | Message::Close(_) => return,
        };
        if to_server.send(bytes).await.is_err() {
            return;
        }
    }
}

/// Hands the server's messages to the editor, until one of both ends.
async fn tell(output: &mut SplitSink<WebSocket, Message>, mut to_editor: bounded::Receiver<Vec<u8>>) {
    let mut pings = tokio::time::interval(PING_EVERY);
    loop {
        let message = tokio::select! {
            message = to_editor.recv() => match message.map(String::from_utf8) {
                Some(Ok(text)) => Message::Text(text.into()),
                _ => return,
            },
            _ = pings.tick() => Message::Ping(Vec::new().into()),
        };
        if output.send(message).await.is_err() {
            return;
        }
    }
}
