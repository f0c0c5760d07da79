//! A stand-in for the hosts of the internet: a proxy that answers for each of them from a store on loopback, with a certificate
//! of its own. So a project reads `https://`, `s3://` and `gs://` from the providers' own addresses, and nothing leaves the machine.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use watershed_tests::s3::{AUTHORIZATION, Store};

use crate::tls::certified;

/// The hosts that its certificate names; of any other nobody believes it.
const HOSTS: [&str; 5] = [
    "storage.googleapis.com",
    "*.s3.amazonaws.com",
    "*.s3.us-east-1.amazonaws.com",
    "s3.us-east-1.amazonaws.com",
    "data.example.org",
];

/// A running stand-in.
pub(crate) struct StandIn {
    url: String,
    certificate: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl StandIn {
    /// Starts one that answers from a store: objects of `https://data.example.org/a` stand in the bucket `data.example.org`.
    pub(crate) fn start(store: &Store) -> Self {
        let (certificate, config) = certified(&HOSTS);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (asked, store) = (Arc::clone(&requests), store.address().to_owned());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (config, asked, store) = (Arc::clone(&config), Arc::clone(&asked), store.clone());
                // A client that goes away is its own affair.
                std::thread::spawn(move || drop(tunnel(stream, config, &store, &asked)));
            }
        });
        Self {
            url,
            certificate,
            requests,
        }
    }

    /// Returns its URL, for `HTTPS_PROXY`.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the certificate that those who ask it must trust.
    pub(crate) fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Returns the requests since the last call, each as `METHOD URL`.
    pub(crate) fn requests(&self) -> Vec<String> {
        std::mem::take(&mut *self.requests.lock().expect("nobody panicked"))
    }
}

/// Opens a tunnel to the host that is asked for, and is that host.
fn tunnel(
    mut stream: TcpStream,
    config: Arc<ServerConfig>,
    store: &str,
    requests: &Mutex<Vec<String>>,
) -> io::Result<()> {
    let head = head(&mut stream)?;
    let mut words = head.split_whitespace();
    let (Some("CONNECT"), Some(host)) = (words.next(), words.next()) else {
        return stream.write_all(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n");
    };
    let host = host.trim_end_matches(":443").to_owned();
    stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(connection, stream);
    answer(&mut stream, &host, store, requests)?;
    stream.conn.send_close_notify();
    stream.flush()
}

/// Answers one request from the store.
fn answer(
    stream: &mut (impl Read + Write),
    host: &str,
    store: &str,
    requests: &Mutex<Vec<String>>,
) -> io::Result<()> {
    let head = head(stream)?;
    let (line, headers) = head.split_once("\r\n").unwrap_or((&head, ""));
    let mut words = line.split_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let said = format!("{method} https://{host}{path}");
    requests.lock().expect("nobody panicked").push(said);
    let kept = headers.lines().filter(|header| {
        let name = header.split(':').next().unwrap_or_default().to_ascii_lowercase();
        !["", "host", "authorization", "connection"].contains(&name.as_str())
    });
    let kept: String = kept.map(|header| format!("{header}\r\n")).collect();
    let bucket = bucket(host).map_or_else(String::new, |bucket| format!("/{bucket}"));
    let request = format!(
        "{method} {bucket}{path} HTTP/1.1\r\nHost: {store}\r\nAuthorization: {AUTHORIZATION}\r\nConnection: close\r\n{kept}\r\n"
    );
    let mut behind = TcpStream::connect(store)?;
    behind.write_all(request.as_bytes())?;
    io::copy(&mut behind, stream).map(drop)
}

/// The bucket that a host's name stands for; none where the path names it.
fn bucket(host: &str) -> Option<&str> {
    if host == "storage.googleapis.com" || host.starts_with("s3.") {
        return None;
    }
    Some(host.split_once(".s3.").map_or(host, |(bucket, _)| bucket))
}

/// Reads the head of a request.
fn head(stream: &mut impl Read) -> io::Result<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.extend(byte);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}
