//! A web server whose files have all the same content, and a tag.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use watershed_tests::measure::time;

/// A server on loopback that goes on as long as the process.
pub(crate) struct Web(SocketAddr);

impl Web {
    pub(crate) fn start(content: impl Into<Arc<[u8]>>) -> Self {
        let content = content.into();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let content = Arc::clone(&content);
                std::thread::spawn(move || serve(stream, &content));
            }
        });
        Self(address)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.0)
    }

    /// Returns the time of so many requests, each on a connection of its own, so many at a time.
    pub(crate) fn round_trips(&self, count: usize, at_once: usize) -> Duration {
        let next = AtomicUsize::new(0);
        let ask = || {
            while next.fetch_add(1, Ordering::Relaxed) < count {
                let mut stream = TcpStream::connect(self.0).unwrap();
                let request = "HEAD /0.csv HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
                stream.write_all(request.as_bytes()).unwrap();
                stream.read_to_end(&mut Vec::new()).unwrap();
            }
        };
        let all = || {
            std::thread::scope(|scope| {
                for _ in 0..at_once {
                    scope.spawn(ask);
                }
            });
        };
        time(all).0
    }
}

/// Answers requests on one connection until it ends.
fn serve(stream: TcpStream, content: &[u8]) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    loop {
        let (mut first, mut closes, mut range) = (String::new(), false, None);
        loop {
            let mut line = String::new();
            if !reader.read_line(&mut line).is_ok_and(|read| read > 0) {
                return;
            }
            let lower = line.to_ascii_lowercase();
            closes |= lower.starts_with("connection: close");
            range = range.or_else(|| asked_range(&lower));
            if first.is_empty() {
                first = lower;
            } else if line == "\r\n" {
                break;
            }
        }
        let (status, part) = match range {
            Some((from, to)) => (
                "206 Partial Content",
                &content[from.min(content.len())..content.len().min(to.saturating_add(1))],
            ),
            None => ("200 OK", content),
        };
        let length = part.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nETag: \"1\"\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\nAccept-Ranges: bytes\r\nContent-Length: {length}\r\n\r\n"
        );
        let mut answered = stream.write_all(head.as_bytes());
        if !first.starts_with("head") {
            answered = answered.and_then(|()| stream.write_all(part));
        }
        if answered.is_err() || closes {
            return;
        }
    }
}

/// The first and the last byte of a header that asks for a part.
fn asked_range(header: &str) -> Option<(usize, usize)> {
    let (from, to) = header.strip_prefix("range: bytes=")?.trim().split_once('-')?;
    Some((from.parse().ok()?, to.parse().unwrap_or(usize::MAX)))
}
