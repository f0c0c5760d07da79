//! A connection to the shim: a task that owns the socket, and callers that wait for answers.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};

use super::error::Error;
use crate::protocol::{Answer, Call, Event, Hello, MAX_FRAME, Message, Refusal, Request, frame};

/// The most calls in the send queue; further callers wait.
const MAX_CALLS: usize = 256;

/// The most bytes that are read from the socket at a time.
const CHUNK: usize = 64 << 10;

/// A call with the channel for its answer.
struct Waiting {
    call: Call,
    answer: oneshot::Sender<Result<Answer, Refusal>>,
}

/// A connection after its hello. Clones share it; dropping the last one closes it.
#[derive(Debug, Clone)]
pub(super) struct Connection {
    calls: mpsc::Sender<Waiting>,
    shim: Arc<AtomicU32>,
}

impl Connection {
    /// Opens a connection and starts its task, which calls `told` for each event and `over` at its end.
    ///
    /// # Errors
    /// When the other side is another user, or refuses.
    pub(super) async fn open(
        stream: UnixStream,
        hello: Hello,
        told: impl Fn(Event) + Send + Sync + 'static,
        over: impl FnOnce() + Send + 'static,
    ) -> Result<Self, Error> {
        let peer = stream.peer_cred().map_err(|_| Error::Disconnected)?;
        if peer.uid() != rustix::process::geteuid().as_raw() {
            return Err(Error::WrongUser);
        }
        let (calls, waiting) = mpsc::channel(MAX_CALLS);
        let (reader, writer) = stream.into_split();
        let (greeted, is_greeted) = oneshot::channel::<()>();
        tokio::spawn(async move {
            Task::new(reader, writer, waiting).run(told).await;
            // A connection that was refused is not made again.
            if is_greeted.await.is_ok() {
                over();
            }
        });
        let connection = Self {
            calls,
            shim: Arc::default(),
        };
        match connection.call(Call::Hello(hello)).await? {
            Answer::Hello { pid, .. } => {
                connection.shim.store(pid, Ordering::Relaxed);
                let _ = greeted.send(());
                Ok(connection)
            }
            _ => Err(Error::Unexpected),
        }
    }

    /// Returns the pid of the shim.
    pub(super) fn shim(&self) -> u32 {
        self.shim.load(Ordering::Relaxed)
    }

    /// Returns true once the socket is closed.
    pub(super) fn is_over(&self) -> bool {
        self.calls.is_closed()
    }

    /// Sends a call and waits for its answer.
    ///
    /// # Errors
    /// When the shim refuses, or the connection ends before the answer.
    pub(super) async fn call(&self, call: Call) -> Result<Answer, Error> {
        let (answer, answered) = oneshot::channel();
        let waiting = Waiting { call, answer };
        self.calls.send(waiting).await.map_err(|_| Error::Disconnected)?;
        match answered.await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(Error::Disconnected),
        }
    }
}

/// The task that owns a connection's socket.
struct Task {
    reader: OwnedReadHalf,
    writer: OwnedWriteHalf,
    calls: mpsc::Receiver<Waiting>,
    asked: HashMap<u64, oneshot::Sender<Result<Answer, Refusal>>>,
    next: u64,
    received: Vec<u8>,
    sending: Vec<u8>,
}

impl Task {
    fn new(reader: OwnedReadHalf, writer: OwnedWriteHalf, calls: mpsc::Receiver<Waiting>) -> Self {
        Self {
            reader,
            writer,
            calls,
            asked: HashMap::new(),
            next: 0,
            received: Vec::new(),
            sending: Vec::new(),
        }
    }

    /// Serves until the socket is closed, the shim violates the protocol, or the last handle is dropped. All three
    /// branches of the select are cancel-safe: a channel keeps its next item, a read consumes nothing until it
    /// completes, and a write reports its progress.
    async fn run(mut self, told: impl Fn(Event)) {
        let mut chunk = vec![0_u8; CHUNK];
        loop {
            tokio::select! {
                biased;
                read = self.reader.read(&mut chunk) => {
                    let Ok(count @ 1..) = read else { return };
                    self.received.extend(chunk.get(..count).unwrap_or_default());
                    if !self.deliver(&told) {
                        return;
                    }
                }
                written = self.writer.write(&self.sending), if !self.sending.is_empty() => {
                    let Ok(count @ 1..) = written else { return };
                    self.sending.drain(..count);
                    self.sending.shrink_to(CHUNK);
                }
                call = self.calls.recv(), if self.sending.len() < CHUNK => {
                    let Some(waiting) = call else { return };
                    self.ask(waiting);
                }
            }
        }
    }

    fn ask(&mut self, Waiting { call, answer }: Waiting) {
        let before = self.sending.len();
        let number = self.next;
        self.next += 1;
        let written = frame::write(&Request { number, call }, &mut self.sending);
        let refusal = match written {
            Err(error) => Some(error.to_string()),
            Ok(()) if self.sending.len() - before > MAX_FRAME => Some("it is too large".to_owned()),
            Ok(()) => None,
        };
        if let Some(reason) = refusal {
            self.sending.truncate(before);
            let _ = answer.send(Err(Refusal::Malformed(reason)));
            return;
        }
        self.asked.retain(|_, asked| !asked.is_closed());
        self.asked.insert(number, answer);
    }

    /// Delivers received answers and events; false if a message violates the protocol.
    fn deliver(&mut self, told: &impl Fn(Event)) -> bool {
        let Ok(messages) = frame::read::<Message>(&mut self.received) else {
            return false;
        };
        for message in messages {
            match message {
                Message::Event(event) => told(event),
                Message::Answer { number, answer } => {
                    if let Some(asked) = self.asked.remove(&number) {
                        let _ = asked.send(answer);
                    }
                }
            }
        }
        true
    }
}
