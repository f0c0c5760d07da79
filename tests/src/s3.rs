//! An object store with the S3 protocol, for one test: on loopback, on a port of its own, in memory.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use crate::server::{Says, Server, extensions, fetched, skip};

/// The header of a signed request: the store requires one, and does not check signatures.
pub const AUTHORIZATION: &str = "AWS4-HMAC-SHA256 \
    Credential=key-of-a-test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0";

/// A running store, at first without buckets.
#[derive(Debug)]
pub struct Store(Server);

impl Store {
    /// Starts a store; none, with a message, if its program or the engine's extension for it is missing on this
    /// machine.
    ///
    /// # Panics
    /// If it does not start, or is missing where [`REQUIRED`](crate::server::REQUIRED) is set.
    pub fn start() -> Option<Self> {
        let servers = fetched().join("s3");
        if !servers.join("moto").is_dir() || !extensions().is_dir() {
            skip(
                "the S3 server or the engine's extension is missing (scripts/fetch-test-servers, scripts/fetch-extensions)",
            );
            return None;
        }
        let mut command = Command::new("python3");
        command
            .args(["-u", "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"])
            .env("PYTHONPATH", &servers);
        Some(Self(Server::start(&mut command, Says::Err)))
    }

    /// Returns the URL of the store.
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Returns the store's host and port.
    pub fn address(&self) -> &str {
        self.0.address()
    }

    /// Creates a bucket.
    pub fn create_bucket(&self, bucket: &str) {
        self.put(&format!("/{bucket}"), b"");
    }

    /// Writes an object.
    pub fn write(&self, bucket: &str, key: &str, content: &[u8]) {
        self.put(&format!("/{bucket}/{key}"), content);
    }

    /// Returns the content of an object; none if the object does not exist.
    ///
    /// # Panics
    /// If the store does not answer.
    pub fn read(&self, bucket: &str, key: &str) -> Option<Vec<u8>> {
        let (head, body) = self.request("GET", &format!("/{bucket}/{key}"), b"");
        head.starts_with("HTTP/1.1 200").then_some(body)
    }

    /// Returns the keys of a bucket, sorted.
    ///
    /// # Panics
    /// If the store does not answer.
    pub fn keys(&self, bucket: &str) -> Vec<String> {
        let (mut keys, mut next) = (Vec::new(), String::new());
        loop {
            let (_, body) = self.request("GET", &format!("/{bucket}?list-type=2{next}"), b"");
            let page = String::from_utf8_lossy(&body).into_owned();
            let within = |tag: &str, rest: &str| Some(rest.split_once(&format!("</{tag}>"))?.0.to_owned());
            keys.extend(page.split("<Key>").skip(1).filter_map(|rest| within("Key", rest)));
            let token = page.split_once("<NextContinuationToken>");
            match token.and_then(|(_, rest)| within("NextContinuationToken", rest)) {
                Some(token) => next = format!("&continuation-token={token}"),
                None => break,
            }
        }
        keys.sort();
        keys
    }

    /// Returns the entity tag of an object.
    ///
    /// # Panics
    /// If there is none.
    pub fn tag(&self, bucket: &str, key: &str) -> String {
        let (head, _) = self.request("HEAD", &format!("/{bucket}/{key}"), b"");
        let tag = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("etag:").map(str::to_owned));
        tag.unwrap_or_else(|| panic!("{key} has no tag: {head}"))
    }

    /// Removes an object.
    ///
    /// # Panics
    /// If the store refuses.
    pub fn remove(&self, bucket: &str, key: &str) {
        let (head, _) = self.request("DELETE", &format!("/{bucket}/{key}"), b"");
        assert!(head.starts_with("HTTP/1.1 2"), "{head}");
    }

    /// Makes the store refuse every access key from now on, or accept any again.
    ///
    /// # Panics
    /// If the store does not answer.
    pub fn know_no_key(&self, none: bool) {
        let requests_before = if none { "0" } else { "inf" };
        let (head, _) = self.request("POST", "/moto-api/reset-auth", requests_before.as_bytes());
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    }

    /// Kills the store in the middle of its work.
    pub fn stop(&mut self) {
        self.0.stop();
    }

    fn put(&self, path: &str, body: &[u8]) {
        let (head, _) = self.request("PUT", path, body);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    }

    /// Sends a request, and returns the head and the body of the response.
    fn request(&self, method: &str, path: &str, body: &[u8]) -> (String, Vec<u8>) {
        let mut stream = TcpStream::connect(self.0.address()).expect("the store answers");
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\nAuthorization: {AUTHORIZATION}\r\nConnection: close\r\n\r\n",
            self.0.address(),
            body.len()
        );
        stream.write_all(head.as_bytes()).expect("a request is sent");
        stream.write_all(body).expect("a body is sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer comes");
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.map_or(answer.len(), |at| at + 4);
        let body = answer.split_off(end);
        (String::from_utf8_lossy(&answer).into_owned(), body)
    }
}
