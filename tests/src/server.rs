//! Servers that tests start: the folders of their programs, and a process that prints its loopback port.

use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The variable that makes a missing server an error instead of a reason to skip tests.
pub const REQUIRED: &str = "WATERSHED_REQUIRE_SERVERS";

/// The stream on which a server prints its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// The standard output of the server.
    Out,
    /// The standard error of the server.
    Err,
}

/// A running server, which is stopped when dropped.
#[derive(Debug)]
pub struct Server {
    process: Child,
    address: String,
}

impl Server {
    /// Starts a program that listens on a free port, and waits until it prints its URL.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start(command: &mut Command, says: Says) -> Self {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        match says {
            Says::Out => command.stdout(Stdio::piped()),
            Says::Err => command.stderr(Stdio::piped()),
        };
        let mut process = command.spawn().expect("the server's program runs");
        let stream: Option<Box<dyn Read + Send>> = match says {
            Says::Out => process.stdout.take().map(|stream| Box::new(stream) as _),
            Says::Err => process.stderr.take().map(|stream| Box::new(stream) as _),
        };
        let mut said = BufReader::new(stream.expect("what it says is a pipe")).lines();
        let address = said
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| {
                let address = line.split_once("http://")?.1.trim();
                Some(address.trim_end_matches('"').to_owned())
            })
            .expect("it says where it listens");
        // It writes a line for each request, and must not wait for a reader.
        std::thread::spawn(move || said.for_each(drop));
        Self { process, address }
    }

    /// Returns the server's host and port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Kills the server in the middle of its work.
    pub fn stop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Reports that a test is skipped because something is missing.
///
/// # Panics
/// Where [`REQUIRED`] is set.
pub fn skip(missing: &str) {
    assert!(std::env::var_os(REQUIRED).is_none(), "{missing}");
    #[allow(clippy::print_stderr, reason = "whoever runs the tests should see it")]
    {
        eprintln!("skipped: {missing}");
    }
}

/// Returns the folder of the engine's extensions.
pub fn extensions() -> PathBuf {
    target().join("duckdb-extensions")
}

/// Returns the folder of the servers that `scripts/fetch-test-servers` downloaded.
pub fn fetched() -> PathBuf {
    target().join("test-servers")
}

/// Returns the folder of build results and downloads.
pub fn target() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = package
        .ancestors()
        .find(|folder| folder.join("Cargo.lock").exists());
    let own = root.map(|root| root.join("target"));
    std::env::var_os("CARGO_TARGET_DIR")
        .map(PathBuf::from)
        .or(own)
        .unwrap_or_default()
}
