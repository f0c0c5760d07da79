//! A connection: messages in both directions, within bounds.

use std::io;
use std::time::Duration;

use bytes::{Buf as _, BufMut as _, BytesMut};
use pgwire::messages::PgWireBackendMessage;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::state::SqlError;

/// Bytes that are collected before they are sent.
const TOGETHER: usize = 32 << 10;
/// Bytes that are read while a statement runs: what a client sends ahead.
const AHEAD: usize = 64 << 10;
/// The capacity of an idle connection's buffers, in bytes.
const IDLE: usize = 1 << 10;

/// A stream of bytes in both directions.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection with a client.
pub(crate) struct Wire {
    stream: Box<dyn Stream>,
    inbox: BytesMut,
    outbox: BytesMut,
    patience: Duration,
}

impl Wire {
    pub(crate) fn new(stream: Box<dyn Stream>, patience: Duration) -> Self {
        Self {
            stream,
            inbox: BytesMut::new(),
            outbox: BytesMut::new(),
            patience,
        }
    }

    /// Returns the stream; none if the client has sent more than it may at this point.
    pub(crate) fn into_stream(self) -> Option<Box<dyn Stream>> {
        self.inbox.is_empty().then_some(self.stream)
    }

    /// Writes a message, which is sent when enough is collected.
    pub(crate) async fn put(&mut self, message: PgWireBackendMessage) -> io::Result<()> {
        message.encode(&mut self.outbox).map_err(io::Error::other)?;
        self.flush_enough().await
    }

    /// Writes a row in place: a message of its own would be copied once more for each row.
    ///
    /// # Errors
    /// Those of the row, of which nothing is sent then.
    pub(crate) fn write_row(
        &mut self,
        row: impl FnOnce(&mut BytesMut) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let at = self.outbox.len();
        self.outbox.put_slice(b"D\0\0\0\0");
        let written = row(&mut self.outbox).and_then(|()| {
            let length = i32::try_from(self.outbox.len() - at - 1);
            length.map_err(|_| SqlError::new("54000", "a row is too long to be sent"))
        });
        match &written {
            Ok(length) => self.outbox[at + 1..at + 5].copy_from_slice(&length.to_be_bytes()),
            Err(_) => self.outbox.truncate(at),
        }
        written.map(drop)
    }

    /// Sends what is written, once that is enough.
    pub(crate) async fn flush_enough(&mut self) -> io::Result<()> {
        match self.outbox.len() >= TOGETHER {
            true => self.flush().await,
            false => Ok(()),
        }
    }

    /// Writes bytes, which are sent at once.
    pub(crate) async fn put_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.outbox.extend_from_slice(bytes);
        self.flush().await
    }

    /// Sends what is written.
    ///
    /// # Errors
    /// When the connection is gone, or the client takes nothing.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        while self.outbox.has_remaining() {
            let written = timeout(self.patience, self.stream.write_buf(&mut self.outbox)).await;
            if written.map_err(|_| io::ErrorKind::TimedOut)?? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        if self.outbox.capacity() > TOGETHER {
            self.outbox = BytesMut::new();
        }
        timeout(self.patience, self.stream.flush())
            .await
            .map_err(|_| io::ErrorKind::TimedOut)?
    }

    /// Reads until this many bytes have arrived. Cancel-safe: nothing that was read is lost.
    pub(crate) async fn fill(&mut self, number: usize) -> io::Result<()> {
        while self.inbox.len() < number {
            if self.stream.read_buf(&mut self.inbox).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }

    /// Returns the first bytes of those that have arrived, without taking them.
    pub(crate) fn peek(&self) -> &[u8] {
        &self.inbox
    }

    /// Takes bytes that have arrived.
    pub(crate) fn take(&mut self, number: usize) -> BytesMut {
        self.inbox.split_to(number.min(self.inbox.len()))
    }

    /// Reads a message with its kind. Cancel-safe.
    ///
    /// # Errors
    /// When the connection ends, or a message is longer than `most`; then `InvalidData`.
    pub(crate) async fn message(&mut self, most: usize) -> io::Result<(u8, BytesMut)> {
        if self.inbox.is_empty() && self.inbox.capacity() > IDLE {
            self.inbox = BytesMut::new();
        }
        self.fill(5).await?;
        let kind = self.inbox[0];
        let length = usize::try_from((&self.inbox[1..5]).get_i32()).unwrap_or(0);
        if length < 4 || length > most {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.fill(length + 1).await?;
        let mut message = self.take(length + 1);
        message.advance(5);
        Ok((kind, message))
    }

    /// Returns when the client is gone, while something else runs. Cancel-safe.
    pub(crate) async fn gone(&mut self) {
        while self.inbox.len() < AHEAD {
            match self.stream.read_buf(&mut self.inbox).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
        // Whoever sends ahead so much is waited for until the statement is over.
        std::future::pending().await
    }
}
