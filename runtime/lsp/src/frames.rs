//! A reader of messages from a pipe, with a limit on their size.
//!
//! A message says its length before it comes. Whoever believes that can be made to take all memory there is; so a thread
//! reads message by message, and ends the conversation at one that is larger than any editor's.

use std::{
    io::{self, BufRead as _, BufReader, Read, Write},
    pin::Pin,
    task::{Context, Poll},
    thread,
};

use futures::{
    AsyncRead, SinkExt as _, Stream, StreamExt as _, TryStreamExt as _, channel::mpsc, executor::block_on,
    stream::IntoAsyncRead,
};

/// The largest message, in bytes: room for the largest document that is kept, with its characters escaped.
const MOST_BYTES: u64 = 32 << 20;
/// The largest header of a message, in bytes.
const MOST_HEADER: u64 = 8 << 10;
/// The largest number of messages that wait for the server; with more, the editor waits.
const MOST_WAITING: usize = 16;

type Bytes = io::Result<Vec<u8>>;

/// The messages from a pipe, as a stream of bytes.
pub struct Frames(IntoAsyncRead<futures::stream::BoxStream<'static, Bytes>>);

impl Frames {
    /// Starts to read messages on a new thread, which ends with the pipe or at the first message that is invalid or too
    /// large.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn read(input: impl Read + Send + 'static) -> io::Result<Self> {
        let (mut sender, receiver) = mpsc::channel::<Bytes>(MOST_WAITING);
        thread::Builder::new()
            .name("lsp-input".to_owned())
            .spawn(move || {
                let mut input = BufReader::new(input);
                loop {
                    let frame = frame(&mut input);
                    let is_last = !matches!(&frame, Ok(bytes) if !bytes.is_empty());
                    if block_on(sender.send(frame)).is_err() || is_last {
                        return;
                    }
                }
            })?;
        // An empty frame is the end of the pipe.
        let frames = receiver.boxed();
        Ok(Self(frames.into_async_read()))
    }
}

impl Frames {
    /// Takes messages that come without headers, from a connection that keeps them apart and bounds them.
    pub fn of_messages(messages: impl Stream<Item = Vec<u8>> + Send + 'static) -> Self {
        let frames = messages.map(|message| {
            let mut frame = format!("Content-Length: {}\r\n\r\n", message.len()).into_bytes();
            frame.extend(message);
            Ok(frame)
        });
        Self(frames.boxed().into_async_read())
    }
}

/// A writer that hands messages on one by one, without their headers.
pub struct Messages<F> {
    send: F,
    /// Bytes that are no whole message yet.
    waiting: Vec<u8>,
}

impl<F: FnMut(Vec<u8>) -> io::Result<()>> Messages<F> {
    /// Creates a writer that hands messages to `send`, whose errors end the conversation.
    pub fn new(send: F) -> Self {
        Self {
            send,
            waiting: Vec::new(),
        }
    }
}

impl<F: FnMut(Vec<u8>) -> io::Result<()>> Write for Messages<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() as u64 > MOST_HEADER + MOST_BYTES {
            return Err(invalid("the server wrote a message that is too large"));
        }
        loop {
            let mut rest = BufReader::new(self.waiting.as_slice());
            // What the server writes is well-formed: an error means that the rest is still to come.
            let Ok(frame) = frame(&mut rest) else {
                return Ok(bytes.len());
            };
            let head = frame.windows(4).position(|end| end == b"\r\n\r\n");
            let Some(head) = head else {
                return Ok(bytes.len());
            };
            self.waiting.drain(..frame.len());
            (self.send)(frame.get(head + 4..).unwrap_or_default().to_vec())?;
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsyncRead for Frames {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

/// Reads one message with its header; returns no bytes at the end of the pipe.
fn frame(input: &mut BufReader<impl Read>) -> Bytes {
    let mut bytes = Vec::new();
    let mut length = None;
    loop {
        let start = bytes.len();
        let left = MOST_HEADER.saturating_sub(start as u64);
        let read = input.take(left).read_until(b'\n', &mut bytes)?;
        let line = bytes.get(start..).unwrap_or_default();
        if read == 0 && start == 0 {
            return Ok(Vec::new());
        }
        if !line.ends_with(b"\r\n") {
            return Err(invalid("the lines before a message can't be read"));
        }
        if line == b"\r\n" {
            break;
        }
        let text = String::from_utf8_lossy(line);
        if let Some((name, value)) = text.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse::<u64>().ok();
        }
    }
    let length = length.ok_or_else(|| invalid("a message does not say its length"))?;
    if length > MOST_BYTES {
        return Err(invalid(&format!(
            "a message of {length} bytes is larger than {MOST_BYTES}"
        )));
    }
    let before = bytes.len() as u64;
    input.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 - before < length {
        return Err(invalid("the pipe ended inside a message"));
    }
    Ok(bytes)
}

fn invalid(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &'static str) -> Bytes {
        frame(&mut BufReader::new(input.as_bytes()))
    }

    #[test]
    fn messages_are_read_whole_and_the_end_is_empty() {
        assert_eq!(
            read("Content-Length: 2\r\n\r\n{}rest").expect("whole"),
            b"Content-Length: 2\r\n\r\n{}"
        );
        assert!(read("").expect("the end").is_empty());
    }

    #[test]
    fn messages_are_handed_on_without_their_headers_however_they_are_cut() {
        let mut told = Vec::new();
        let mut messages = Messages::new(|message| {
            told.push(message);
            Ok(())
        });
        for byte in b"Content-Length: 2\r\n\r\n{}Content-Length: 3\r\n\r\n[1]Content-" {
            messages.write_all(&[*byte]).expect("it is taken");
        }
        messages
            .write_all(b"Length: 1\r\n\r\n1Content-Length: 1\r\n\r\n2")
            .expect("it is taken");
        assert_eq!(
            told,
            [b"{}".to_vec(), b"[1]".to_vec(), b"1".to_vec(), b"2".to_vec()]
        );
    }

    #[test]
    fn what_no_editor_sends_is_refused_before_it_is_taken() {
        for input in [
            "Content-Length: 99999999999999\r\n\r\n",
            "Content-Length: 18446744073709551616\r\n\r\n",
            "Content-Length: -1\r\n\r\n",
            "Content-Type: x\r\n\r\n{}",
            "Content-Length: 9\r\n\r\n{}",
            "no end",
        ] {
            assert!(read(input).is_err(), "{input:?}");
        }
        let endless = io::repeat(b'a');
        assert!(frame(&mut BufReader::new(endless)).is_err());
    }
}
