//! A web server of small files, each with a tag.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use watershed_tests::measure::time;

const CONTENT: &str = "n\n1\n";

/// A server on loopback that goes on as long as the process.
pub(crate) struct Web(SocketAddr);

impl Web {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                std::thread::spawn(move || serve(stream));
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
fn serve(stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    loop {
        let (mut first, mut closes, mut is_part) = (String::new(), false, false);
        loop {
            let mut line = String::new();
            if !reader.read_line(&mut line).is_ok_and(|read| read > 0) {
                return;
            }
            let lower = line.to_ascii_lowercase();
            closes |= lower.starts_with("connection: close");
            is_part |= lower.starts_with("range:");
            if first.is_empty() {
                first = lower;
            } else if line == "\r\n" {
                break;
            }
        }
        let status = if is_part { "206 Partial Content" } else { "200 OK" };
        let length = CONTENT.len();
        let mut answer = format!("HTTP/1.1 {status}\r\nETag: \"1\"\r\nContent-Length: {length}\r\n\r\n");
        if !first.starts_with("head") {
            answer.push_str(CONTENT);
        }
        if stream.write_all(answer.as_bytes()).is_err() || closes {
            return;
        }
    }
}
