//! A WebSocket as an editor elsewhere has it, frame by frame.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// A frame as it came.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// A text.
    Text(String),
    /// The end of the connection, in order or not.
    End,
}

/// A connection that is a WebSocket. All calls block.
pub(crate) struct Socket(TcpStream);

impl Socket {
    /// Asks for a WebSocket at a path with these headers; the status and body of the answer if it is refused.
    pub(crate) fn open(
        address: SocketAddr,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Result<Self, (u16, String)> {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(LONG)).expect("a timeout can be set");
        let mut head = format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        );
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all((head + "\r\n").as_bytes()).expect("it reads");
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("a head");
            answer.push(byte[0]);
        }
        let text = String::from_utf8_lossy(&answer).to_lowercase();
        let status: u16 = text
            .split(' ')
            .nth(1)
            .expect("a status")
            .parse()
            .expect("a status");
        if status == 101 {
            return Ok(Self(stream));
        }
        let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length: usize = length.map_or(0, |length| length.trim().parse().expect("a length"));
        let mut body = vec![0; length];
        stream.read_exact(&mut body).expect("a body");
        Err((status, String::from_utf8_lossy(&body).into_owned()))
    }

    /// Sends a text; false if the other side takes no more.
    pub(crate) fn send(&mut self, text: &str) -> bool {
        self.frame(0x81, text.as_bytes())
    }

    fn frame(&mut self, first: u8, bytes: &[u8]) -> bool {
        let mut frame = vec![first];
        match bytes.len() {
            length @ 0..=125 => frame.push(0x80 | u8::try_from(length).expect("a byte")),
            length @ 126..=65_535 => {
                frame.push(0x80 | 126);
                frame.extend(u16::try_from(length).expect("two bytes").to_be_bytes());
            }
            length => {
                frame.push(0x80 | 127);
                frame.extend((length as u64).to_be_bytes());
            }
        }
        // A mask of zeros is one, and leaves the bytes as they are.
        frame.extend([0; 4]);
        frame.extend(bytes);
        self.0.write_all(&frame).is_ok()
    }

    /// Returns the next text, or the end; pings are answered.
    pub(crate) fn next(&mut self) -> Frame {
        loop {
            let mut start = [0; 2];
            if self.0.read_exact(&mut start).is_err() {
                return Frame::End;
            }
            let mut length = u64::from(start[1] & 0x7f);
            if length == 126 {
                let mut more = [0; 2];
                self.0.read_exact(&mut more).expect("a length");
                length = u64::from(u16::from_be_bytes(more));
            } else if length == 127 {
                let mut more = [0; 8];
                self.0.read_exact(&mut more).expect("a length");
                length = u64::from_be_bytes(more);
            }
            let mut bytes = vec![0; usize::try_from(length).expect("a length")];
            self.0.read_exact(&mut bytes).expect("a whole frame");
            match start[0] & 0x0f {
                1 => return Frame::Text(String::from_utf8(bytes).expect("text")),
                8 => return Frame::End,
                9 => {
                    self.frame(0x8a, &bytes);
                }
                other => assert_eq!(other, 10, "no such frame is sent"),
            }
        }
    }
}
