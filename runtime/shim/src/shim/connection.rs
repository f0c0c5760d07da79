//! A client's connection to the shim.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use crate::protocol::{Hello, MAX_FRAME, Message, Request, frame};

/// The most unsent bytes for a client. A client that does not read loses its connection.
const MAX_WAITING: usize = 2 * MAX_FRAME;

/// The most bytes that are read from a client at a time.
const CHUNK: usize = 64 << 10;

/// A connection with the client's hello.
#[derive(Debug)]
pub(super) struct Connection {
    stream: UnixStream,
    received: Vec<u8>,
    waiting: Vec<u8>,
    wants_room: bool,
    is_over: bool,
    hello: Option<Hello>,
}

impl Connection {
    /// Accepts a connection if its peer is the same user.
    ///
    /// # Errors
    /// When it is somebody else, or the system refuses.
    pub(super) fn new(stream: UnixStream) -> io::Result<Self> {
        let peer = rustix::net::sockopt::socket_peercred(&stream)?;
        if peer.uid != rustix::process::geteuid() {
            return Err(ErrorKind::PermissionDenied.into());
        }
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            received: Vec::new(),
            waiting: Vec::new(),
            wants_room: false,
            is_over: false,
            hello: None,
        })
    }

    pub(super) fn stream(&self) -> &UnixStream {
        &self.stream
    }

    pub(super) fn hello(&self) -> Option<&Hello> {
        self.hello.as_ref()
    }

    pub(super) fn greeted(&mut self, hello: Hello) {
        self.hello = Some(hello);
    }

    /// Returns true once the peer has closed the connection or violated the protocol.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Takes the requests that have arrived.
    pub(super) fn requests(&mut self) -> Vec<Request> {
        let mut chunk = [0_u8; CHUNK];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => {
                    self.is_over = true;
                    break;
                }
                Ok(count) => {
                    self.received.extend(chunk.get(..count).unwrap_or_default());
                    if count < CHUNK || self.received.len() > MAX_FRAME {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.is_over |= error.kind() != ErrorKind::WouldBlock;
                    break;
                }
            }
        }
        let requests = frame::read(&mut self.received);
        self.received.shrink_to(CHUNK);
        requests.unwrap_or_else(|_| {
            self.is_over = true;
            Vec::new()
        })
    }

    /// Queues a message for the end of the turn.
    pub(super) fn send(&mut self, message: &Message) {
        if frame::write(message, &mut self.waiting).is_err() || self.waiting.len() > MAX_WAITING {
            self.is_over = true;
        }
    }

    /// Sends as much as the socket takes. Returns true or false if the connection must start or stop waiting for room.
    pub(super) fn flush(&mut self) -> Option<bool> {
        while !self.waiting.is_empty() && !self.is_over {
            match self.stream.write(&self.waiting) {
                Ok(count) => drop(self.waiting.drain(..count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.is_over = true,
            }
        }
        if self.waiting.is_empty() {
            self.waiting.shrink_to(CHUNK);
        }
        let wants = !self.waiting.is_empty();
        let has_changed = wants != self.wants_room;
        self.wants_room = wants;
        has_changed.then_some(wants)
    }
}
