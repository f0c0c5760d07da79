//! A loopback HTTP receiver that gives scripted answers and records its requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use watershed_locks::Unpoisoned;

/// A received HTTP request.
#[derive(Debug, Clone)]
pub(super) struct Request {
    /// Request line: method and path.
    pub(super) line: String,
    /// Headers by their names in lower case.
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Vec<u8>,
}

/// A scripted answer of the receiver.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    /// Returns this status line with headers, and this body.
    Says(&'static str, &'static str),
    /// Never answers.
    Hangs,
    /// Closes the connection.
    Closes,
}

/// A receiver that gives its scripted answers in order, and repeats the last one.
#[derive(Clone)]
pub(super) struct Receiver {
    pub(super) port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Receiver {
    pub(super) async fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("loopback has ports");
        let port = listener.local_addr().expect("it is bound").port();
        let receiver = Self {
            port,
            requests: Arc::default(),
        };
        tokio::spawn(receiver.clone().serve(listener, answers));
        receiver
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook?token=hidden", self.port)
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unpoisoned().clone()
    }

    async fn serve(self, listener: TcpListener, answers: Vec<Answer>) {
        let mut answers = answers.into_iter();
        let mut answer = Answer::Closes;
        while let Ok((stream, _)) = listener.accept().await {
            answer = answers.next().unwrap_or(answer);
            tokio::spawn(self.clone().exchange(stream, answer.clone()));
        }
    }

    async fn exchange(self, mut stream: TcpStream, answer: Answer) {
        let Some(request) = read(&mut stream).await else {
            return;
        };
        self.requests.lock().unpoisoned().push(request);
        match answer {
            Answer::Closes => {}
            Answer::Hangs => std::future::pending().await,
            Answer::Says(head, body) => {
                let length = body.len();
                let text =
                    format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
                // Whoever does not wait for the answer sees none.
                let _ = stream.write_all(text.as_bytes()).await;
            }
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    loop {
        if let Some(request) = whole(&bytes) {
            return Some(request);
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// Parses a request; none until it is complete.
fn whole(bytes: &[u8]) -> Option<Request> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(bytes.get(..end)?).into_owned();
    let mut lines = head.split("\r\n");
    let line = lines.next()?.to_owned();
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers
        .get("content-length")
        .map_or(0, |text| text.parse().unwrap_or(0));
    let body = bytes.get(end + 4..end + 4 + length)?.to_vec();
    Some(Request { line, headers, body })
}
