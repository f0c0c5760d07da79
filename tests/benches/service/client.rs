//! A client that keeps its connections, and costs little beside the service.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::PLACE;

/// A service at an address, asked with a token.
#[derive(Clone, Copy)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    /// Line of the head with the token.
    pub(crate) bearer: &'static str,
}

/// A connection that is kept.
pub(crate) struct Connection {
    bearer: &'static str,
    stream: TcpStream,
    read: Vec<u8>,
}

impl Client {
    pub(crate) async fn connect(self) -> Connection {
        let stream = TcpStream::connect(self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Connection {
            bearer: self.bearer,
            stream,
            read: Vec::with_capacity(64 << 10),
        }
    }

    /// Asks for more rows than any buffer holds, and takes none of them.
    pub(crate) async fn stall(self) -> TcpStream {
        let mut connection = self.connect().await;
        let body = r#"{"sql": "FROM range(1000000000)"}"#;
        let call = format!(
            "POST {PLACE}/query HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{}\r\n{body}",
            body.len(),
            self.bearer
        );
        connection.stream.write_all(call.as_bytes()).await.unwrap();
        connection.stream
    }

    /// Reads all pages of the list, and returns the time that takes.
    pub(crate) async fn all_pages(self) -> Duration {
        let mut connection = self.connect().await;
        let begun = Instant::now();
        let mut page = String::new();
        loop {
            let body = connection
                .get(&format!("{PLACE}/resources?limit=1000{page}"))
                .await;
            let body: Value = serde_json::from_slice(&body).unwrap();
            match body["next"].as_str() {
                Some(next) => page = format!("&page={next}"),
                None => return begun.elapsed(),
            }
        }
    }

    /// Asks for one resource so many times a second until that is enough; returns the time of each in milliseconds, from when it
    /// was due.
    pub(crate) async fn at_a_pace(self, per_second: u64, enough: CancellationToken) -> Vec<f64> {
        let connections = 8;
        let between = Duration::from_micros(1_000_000 * connections / per_second);
        let asking = (0..connections).map(|_| {
            let enough = enough.clone();
            tokio::spawn(async move {
                let mut connection = self.connect().await;
                let mut due = tokio::time::Instant::now();
                let mut times = Vec::new();
                while !enough.is_cancelled() {
                    tokio::time::sleep_until(due).await;
                    connection.get(&format!("{PLACE}/resources/model/m1")).await;
                    times.push(due.elapsed().as_secs_f64() * 1_000.0);
                    due += between;
                }
                times
            })
        });
        let mut times = Vec::new();
        for one in asking.collect::<Vec<_>>() {
            times.extend(one.await.unwrap());
        }
        times
    }
}

impl Connection {
    /// Reads a path, and returns the body.
    pub(crate) async fn get(&mut self, path: &str) -> Vec<u8> {
        let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{}\r\n", self.bearer);
        self.exchange(head.as_bytes()).await
    }

    /// Posts nothing to a path, and returns the body.
    pub(crate) async fn post(&mut self, path: &str) -> Vec<u8> {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n{}\r\n",
            self.bearer
        );
        self.exchange(head.as_bytes()).await
    }

    /// Sends a body to a path, with more lines of the head, and returns the body of the answer.
    pub(crate) async fn send(&mut self, method: &str, path: &str, more: &str, body: &str) -> Vec<u8> {
        let call = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n{more}{}\r\n{body}",
            body.len(),
            self.bearer
        );
        self.exchange(call.as_bytes()).await
    }

    async fn exchange(&mut self, head: &[u8]) -> Vec<u8> {
        self.stream.write_all(head).await.unwrap();
        self.read.clear();
        let (mut end, mut length) = (None, 0);
        loop {
            if self.stream.read_buf(&mut self.read).await.unwrap() == 0 {
                panic!("it hung up: {}", String::from_utf8_lossy(&self.read));
            }
            if end.is_none()
                && let Some(found) = self.read.windows(4).position(|four| four == b"\r\n\r\n")
            {
                let head = String::from_utf8_lossy(&self.read[..found]).to_ascii_lowercase();
                assert!(
                    head.starts_with("http/1.1 20"),
                    "{}",
                    String::from_utf8_lossy(&self.read)
                );
                let line = head.lines().find_map(|line| line.strip_prefix("content-length:"));
                length = line.unwrap().trim().parse().unwrap();
                end = Some(found + 4);
            }
            if let Some(end) = end
                && self.read.len() >= end + length
            {
                return self.read[end..].to_vec();
            }
        }
    }

    /// Reads a path in a form to the end of its body, and keeps nothing.
    pub(crate) async fn drain(mut self, path: &str, media: &str) {
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\naccept: {media}\r\n{}\r\n",
            self.bearer
        );
        self.stream.write_all(head.as_bytes()).await.unwrap();
        let (mut first, mut last) = (true, Vec::new());
        loop {
            self.read.clear();
            if self.stream.read_buf(&mut self.read).await.unwrap() == 0 {
                break;
            }
            assert!(
                !first || self.read.starts_with(b"HTTP/1.1 200"),
                "{:?}",
                self.read
            );
            first = false;
            last.extend_from_slice(&self.read[self.read.len().saturating_sub(5)..]);
            last.drain(..last.len().saturating_sub(5));
        }
        assert_eq!(last, b"0\r\n\r\n", "the body is whole");
    }

    /// Begins to read the stream of the instance.
    pub(crate) async fn watch(self) -> TcpStream {
        self.watch_of("it").await
    }

    /// Begins to read the stream of an instance.
    pub(crate) async fn watch_of(mut self, instance: &str) -> TcpStream {
        let head = format!(
            "GET /v1/instances/{instance}/watch HTTP/1.1\r\nhost: localhost\r\n{}\r\n",
            self.bearer
        );
        self.stream.write_all(head.as_bytes()).await.unwrap();
        self.stream
    }
}
