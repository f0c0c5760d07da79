//! A client of HTTP that sends what it is told to, byte by byte.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// An answer.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    /// The status.
    pub(crate) status: u16,
    /// The head, in lower case.
    pub(crate) head: String,
    /// The body.
    pub(crate) body: Vec<u8>,
}

impl Response {
    /// Returns the body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("no JSON ({error}): {}", String::from_utf8_lossy(&self.body)))
    }

    /// Returns a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let line = self
            .head
            .lines()
            .find(|line| line.starts_with(&format!("{name}:")))?;
        Some(line.split_once(':')?.1.trim())
    }
}

/// A service at an address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client(pub(crate) SocketAddr);

impl Client {
    /// Sends bytes, and reads the answer to its end; none if the other side hangs up without one.
    pub(crate) async fn raw(self, bytes: &[u8]) -> Option<Response> {
        let mut stream = TcpStream::connect(self.0).await.expect("it listens");
        // It may have answered before it has read everything.
        let _ = stream.write_all(bytes).await;
        let mut answer = Vec::new();
        let read = tokio::time::timeout(LONG, stream.read_to_end(&mut answer)).await;
        assert!(read.is_ok(), "no end came");
        parse(&answer)
    }

    /// Sends a request with a body of JSON, if there is one.
    pub(crate) async fn send(
        self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Response {
        let body = body.map(Value::to_string);
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = &body {
            head.push_str(&format!(
                "content-type: application/json\r\ncontent-length: {}\r\n",
                body.len()
            ));
        }
        head.push_str("\r\n");
        head.push_str(body.as_deref().unwrap_or_default());
        let response = self.raw(head.as_bytes()).await;
        response.unwrap_or_else(|| panic!("{method} {path} was not answered"))
    }

    /// Puts a file to a path.
    pub(crate) async fn put(self, path: &str, headers: &[(&str, &str)], file: &[u8]) -> Response {
        let mut call = format!(
            "PUT {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n",
            file.len()
        );
        for (name, value) in headers {
            call.push_str(&format!("{name}: {value}\r\n"));
        }
        let mut call = (call + "\r\n").into_bytes();
        call.extend(file);
        let response = self.raw(&call).await;
        response.unwrap_or_else(|| panic!("PUT {path} was not answered"))
    }

    /// Reads a path.
    pub(crate) async fn get(self, path: &str) -> Response {
        self.send("GET", path, &[], None).await
    }

    /// Posts JSON to a path.
    pub(crate) async fn post(self, path: &str, body: &Value) -> Response {
        self.send("POST", path, &[], Some(body)).await
    }

    /// Posts a CloudEvent in its structured mode.
    pub(crate) async fn event(self, path: &str, event: &Value) -> Response {
        let body = event.to_string();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/cloudevents+json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.raw(head.as_bytes()).await.expect("an answer")
    }

    /// Begins to read a stream of events.
    pub(crate) async fn events(self, path: &str, last: Option<&str>) -> Events {
        let last: Vec<(&str, &str)> = last.map(|id| ("last-event-id", id)).into_iter().collect();
        self.events_of(path, &last).await
    }

    /// Begins to read a stream of events, with these headers.
    pub(crate) async fn events_of(self, path: &str, headers: &[(&str, &str)]) -> Events {
        let lines = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        self.events_with(path, &lines.collect::<String>()).await
    }

    /// Begins to read a stream of events, with lines of the head.
    pub(crate) async fn events_with(self, path: &str, more: &str) -> Events {
        let mut stream = TcpStream::connect(self.0).await.expect("it listens");
        let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{more}\r\n");
        stream.write_all(head.as_bytes()).await.expect("it reads");
        let mut events = Events {
            stream: BufReader::new(stream),
            chunk: Vec::new(),
        };
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            let read = events.stream.read_line(&mut line).await.expect("a head");
            assert!(read > 0, "the stream ended in its head");
        }
        events
    }
}

fn parse(answer: &[u8]) -> Option<Response> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let body = &answer[end + 4..];
    let body = match head.contains("transfer-encoding: chunked") {
        true => unchunked(body),
        false => body.to_vec(),
    };
    Some(Response { status, head, body })
}

/// Returns the answer at the beginning of what was read, if all of a body of known length is there.
pub(crate) fn whole(read: &[u8]) -> Option<Response> {
    let response = parse(read)?;
    let length: usize = response.header("content-length")?.parse().ok()?;
    (response.body.len() == length).then_some(response)
}

fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = body.windows(2).position(|two| two == b"\r\n") {
        let size = String::from_utf8_lossy(&body[..end]).into_owned();
        let size = usize::from_str_radix(&size, 16).unwrap_or_default();
        let Some(chunk) = body.get(end + 2..end + 2 + size) else {
            break;
        };
        whole.extend(chunk);
        body = body.get(end + 4 + size..).unwrap_or_default();
    }
    whole
}

/// An event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    /// The name.
    pub(crate) name: String,
    /// The place to go on from; empty if the event has none.
    pub(crate) id: String,
    /// The data.
    pub(crate) data: Value,
}

/// A stream of events as it is read.
pub(crate) struct Events {
    stream: BufReader<TcpStream>,
    /// Bytes that were read and make no event yet.
    chunk: Vec<u8>,
}

impl Events {
    /// Waits for the next event; none at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        let next = tokio::time::timeout(LONG, self.read()).await;
        next.expect("no event came, and no end")
    }

    async fn read(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.chunk.windows(2).position(|two| two == b"\n\n") {
                let text: Vec<u8> = self.chunk.drain(..end + 2).collect();
                match event(&String::from_utf8_lossy(&text)) {
                    Some(event) => return Some(event),
                    // A comment.
                    None => continue,
                }
            }
            let mut size = String::new();
            self.stream
                .read_line(&mut size)
                .await
                .ok()
                .filter(|read| *read > 0)?;
            let size = usize::from_str_radix(size.trim(), 16)
                .ok()
                .filter(|size| *size > 0)?;
            let mut chunk = vec![0; size + 2];
            self.stream.read_exact(&mut chunk).await.ok()?;
            chunk.truncate(size);
            self.chunk.extend(chunk);
        }
    }
}

fn event(text: &str) -> Option<Event> {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.map(|value| value.trim_start().to_owned())
    };
    Some(Event {
        name: field("event:")?,
        id: field("id:").unwrap_or_default(),
        data: serde_json::from_str(&field("data:")?).expect("the data is JSON"),
    })
}
