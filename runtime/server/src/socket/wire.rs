//! The messages on the socket.

use std::io;

use futures::{SinkExt, StreamExt};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::net::UnixStream;
use tokio_util::codec::{Framed, LinesCodec, LinesCodecError};
use watershed_api::{Code, Owner, Problem};

/// Longest request, in bytes: a statement that a person or a script sends.
const LONGEST_REQUEST: usize = 16 << 20;
/// Longest reason why a request can't be read, in bytes; the rest is cut off.
const LONGEST_REASON: usize = 500;
/// Longest reply, in bytes: the document of 100,000 resources.
const LONGEST_REPLY: usize = 512 << 20;

/// The first message of both sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    /// Name of the protocol, by which a foreign program on the socket is recognised.
    pub(super) program: String,
    /// Version of the program.
    pub(super) version: String,
    /// The owner of the folder; none from a client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) owner: Option<Owner>,
}

impl Hello {
    pub(super) fn ours() -> Self {
        Self {
            program: "watershed".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            owner: None,
        }
    }

    /// Returns true if both sides have the same protocol and version.
    pub(super) fn fits(&self, other: &Self) -> bool {
        (&self.program, &self.version) == (&other.program, &other.version)
    }
}

/// The reason why a message could not be sent or read.
#[derive(Debug, thiserror::Error)]
pub(super) enum WireError {
    #[error("the connection broke")]
    Line(#[from] LinesCodecError),
    #[error("a message is not in the form that this version knows")]
    Form(#[from] serde_json::Error),
    #[error("the other side closed the connection")]
    Closed,
}

impl WireError {
    /// Returns the problem of a received request that can't be read; none if nobody is left to receive it.
    pub(super) fn problem(&self) -> Option<Problem> {
        let message = match self {
            Self::Form(error) => {
                let mut said = format!("the request can't be read: {error}");
                // It may quote the request.
                said.truncate(said.floor_char_boundary(LONGEST_REASON));
                said
            }
            Self::Line(LinesCodecError::MaxLineLengthExceeded) => {
                format!("the request is longer than {LONGEST_REQUEST} bytes")
            }
            Self::Line(LinesCodecError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                "the request is no text in UTF-8".to_owned()
            }
            Self::Line(_) | Self::Closed => return None,
        };
        Some(Problem::new(Code::BadArgument, message))
    }
}

/// One connection as a stream of messages.
pub(super) struct Wire {
    lines: Framed<UnixStream, LinesCodec>,
}

/// One of two messages.
pub(super) enum Either<T, U> {
    First(T),
    Second(U),
}

/// The side of a connection, which determines the longest message that it reads.
#[derive(Debug, Clone, Copy)]
pub(super) enum Side {
    Client,
    Owner,
}

impl Wire {
    pub(super) fn new(stream: UnixStream, side: Side) -> Self {
        let longest = match side {
            Side::Client => LONGEST_REPLY,
            Side::Owner => LONGEST_REQUEST,
        };
        Self {
            lines: Framed::new(stream, LinesCodec::new_with_max_length(longest)),
        }
    }

    pub(super) async fn send(&mut self, message: &impl Serialize) -> Result<(), WireError> {
        let line = serde_json::to_string(message)?;
        Ok(self.lines.send(line).await?)
    }

    /// Reads the next message, and parses it as either of two, told apart by the beginning of its line. Cancel-safe, as
    /// [`receive`](Self::receive).
    pub(super) async fn receive_either<T: DeserializeOwned, U: DeserializeOwned>(
        &mut self,
        begins: &str,
    ) -> Result<Either<T, U>, WireError> {
        let line = self.lines.next().await.ok_or(WireError::Closed)??;
        Ok(match line.starts_with(begins) {
            true => Either::First(serde_json::from_str(&line)?),
            false => Either::Second(serde_json::from_str(&line)?),
        })
    }

    /// Reads the next message. Cancel-safe: a half-read line stays in the buffer.
    pub(super) async fn receive<T: DeserializeOwned>(&mut self) -> Result<T, WireError> {
        let line = self.lines.next().await.ok_or(WireError::Closed)??;
        Ok(serde_json::from_str(&line)?)
    }

    /// Resolves when the other side hangs up. Cancel-safe.
    pub(super) async fn closed(&mut self) {
        // Clients say nothing after their request; whatever still comes is read and dropped.
        while let Some(Ok(_)) = self.lines.next().await {}
    }
}
