//! A server on loopback that says whatever a test wants, and keeps what it was asked.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// The most bytes that an answer without end has: whoever reads so many has no bound.
const ENDLESS: usize = 64 << 20;

/// The answer to each request.
#[derive(Debug, Clone)]
pub(crate) enum Says {
    /// This text, after which nothing comes and the connection stays open.
    Text(String),
    /// The first text, then the second one again and again.
    Endless(&'static str, String),
}

/// A server. It lives as long as the test.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    ended: Receiver<usize>,
}

impl Says {
    /// Returns an answer with a status, headers and no body.
    pub(crate) fn head(status: &str, headers: &str) -> Self {
        Self::Text(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n{headers}\r\n"))
    }

    /// Returns a redirect.
    pub(crate) fn moved(to: &str) -> Self {
        Self::head("302 Found", &format!("location: {to}\r\n"))
    }
}

impl Host {
    /// Starts a server without encryption at 127.0.0.1.
    pub(crate) fn start(says: Says) -> Self {
        Self::at(1, says)
    }

    /// Starts a server without encryption at 127.0.0.`last`.
    pub(crate) fn at(last: u8, says: Says) -> Self {
        Self::at_port(last, 0, says).unwrap()
    }

    /// Starts a server without encryption at 127.0.0.`last` and a port; none if the port is taken.
    pub(crate) fn at_port(last: u8, port: u16, says: Says) -> Option<Self> {
        let listener = TcpListener::bind((Ipv4Addr::new(127, 0, 0, last), port)).ok()?;
        Some(Self::serve(listener, says, None))
    }

    /// Starts a server that speaks TLS at 127.0.0.1.
    pub(crate) fn secure(says: Says, tls: Arc<ServerConfig>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        Self::serve(listener, says, Some(tls))
    }

    fn serve(listener: TcpListener, says: Says, tls: Option<Arc<ServerConfig>>) -> Self {
        let address = listener.local_addr().unwrap();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let (tell, ended) = channel();
        let kept = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (says, tls, kept, tell) = (says.clone(), tls.clone(), Arc::clone(&kept), tell.clone());
                std::thread::spawn(move || {
                    let said = match tls {
                        None => exchange(stream, &says, &kept),
                        Some(tls) => {
                            let connection = ServerConnection::new(tls).unwrap();
                            exchange(StreamOwned::new(connection, stream), &says, &kept)
                        }
                    };
                    // The test may have ended.
                    let _ = tell.send(said);
                });
            }
        });
        Self {
            address,
            asked,
            ended,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Returns the heads of the requests so far.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// Waits until the other side has left a connection, and returns the bytes that were said on it.
    pub(crate) fn left_after(&self) -> usize {
        self.ended.recv().unwrap()
    }
}

/// Answers requests of a connection until the other side leaves; returns the bytes that were said.
fn exchange(mut stream: impl Read + Write, says: &Says, asked: &Mutex<Vec<String>>) -> usize {
    let (mut said, mut head, mut byte) = (0, Vec::new(), [0]);
    while stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.extend(byte);
        // A body is read as a head that never ends.
        if !head.ends_with(b"\r\n\r\n") {
            continue;
        }
        let text = String::from_utf8_lossy(&std::mem::take(&mut head)).into_owned();
        asked.lock().unwrap().push(text);
        let (first, again) = match says {
            Says::Text(text) => (text.as_str(), ""),
            Says::Endless(first, again) => (*first, again.as_str()),
        };
        if stream.write_all(first.as_bytes()).is_err() {
            return said;
        }
        said += first.len();
        while !again.is_empty() && said < ENDLESS {
            if stream.write_all(again.as_bytes()).is_err() {
                return said;
            }
            said += again.len();
        }
    }
    said
}

/// Asserts that an answer without end was left before it ended.
pub(crate) fn assert_bounded(said: usize) {
    assert!(said < ENDLESS, "{said} bytes were read");
}
