//! A store that speaks S3, for one test: on loopback, on a port of its own, in memory.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Set where a missing server is an error and no reason to skip.
pub const REQUIRED: &str = "WATERSHED_REQUIRE_SERVERS";

/// It wants requests to be signed, and does not check signatures.
const AUTHORIZATION: &str = "AWS4-HMAC-SHA256 \
    Credential=key-of-a-test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0";

/// A running store without buckets.
#[derive(Debug)]
pub struct Store {
    process: Child,
    address: String,
}

impl Store {
    /// Starts a store; none if it, or the extension with which the engine reads from it, is not on this machine, which is
    /// said.
    ///
    /// # Panics
    /// If it does not start, or is missing where [`REQUIRED`] is set.
    pub fn start() -> Option<Self> {
        let servers = target().join("test-servers");
        if !servers.join("moto").is_dir() || !extensions().is_dir() {
            let missing = "the S3 server or the engine's extension is missing (scripts/fetch-test-servers, scripts/fetch-extensions)";
            assert!(std::env::var_os(REQUIRED).is_none(), "{missing}");
            #[allow(clippy::print_stderr, reason = "whoever runs the tests should see it")]
            {
                eprintln!("skipped: {missing}");
            }
            return None;
        }
        let mut process = Command::new("python3")
            .args(["-u", "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"])
            .env("PYTHONPATH", &servers)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("python3 runs");
        let mut said = BufReader::new(process.stderr.take().expect("its output is a pipe")).lines();
        let address = said
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| Some(line.split_once("http://")?.1.trim().to_owned()))
            .expect("it says where it listens");
        // It writes a line for each request, and must not wait for a reader.
        std::thread::spawn(move || said.for_each(drop));
        Some(Self { process, address })
    }

    /// Returns its URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Makes a bucket.
    pub fn create_bucket(&self, bucket: &str) {
        self.put(&format!("/{bucket}"), b"");
    }

    /// Writes an object.
    pub fn write(&self, bucket: &str, key: &str, content: &[u8]) {
        self.put(&format!("/{bucket}/{key}"), content);
    }

    /// Stops it, in the middle of whatever it does.
    pub fn stop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    fn put(&self, path: &str, body: &[u8]) {
        let mut stream = TcpStream::connect(&self.address).expect("the store answers");
        let head = format!(
            "PUT {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\nAuthorization: {AUTHORIZATION}\r\nConnection: close\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).expect("a request is sent");
        stream.write_all(body).expect("a body is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer comes");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns the folder of the engine's extensions.
pub fn extensions() -> PathBuf {
    target().join("duckdb-extensions")
}

fn target() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(|root| root.join("target"));
    std::env::var_os("CARGO_TARGET_DIR")
        .map(PathBuf::from)
        .or(own)
        .unwrap_or_default()
}
