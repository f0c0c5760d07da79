//! Servers that tests start: where their programs stand, and a process that says on which port of loopback it listens.

use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Set where a missing server is an error and no reason to skip.
pub const REQUIRED: &str = "WATERSHED_REQUIRE_SERVERS";

/// The stream on which a server says where it listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// Its standard output.
    Out,
    /// Its standard error.
    Err,
}

/// A running server, which ends with this value.
#[derive(Debug)]
pub struct Server {
    process: Child,
    address: String,
}

impl Server {
    /// Starts a program that listens on a free port, and waits until it says the URL.
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

    /// Returns its host and port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Stops it, in the middle of whatever it does.
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

/// Says that something is missing and a test is skipped, for whoever runs the tests.
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

/// Returns the folder of servers that `scripts/fetch-test-servers` fetched.
pub fn fetched() -> PathBuf {
    target().join("test-servers")
}

/// Returns the folder of what is built and fetched.
pub fn target() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(|root| root.join("target"));
    std::env::var_os("CARGO_TARGET_DIR")
        .map(PathBuf::from)
        .or(own)
        .unwrap_or_default()
}
