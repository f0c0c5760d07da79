//! A MariaDB server for one test: on loopback, on a port of its own, in a temporary folder.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::server::skip;

/// The longest time that the server may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server with one empty database, `shop`, and a user `ada`.
#[derive(Debug)]
pub struct Server {
    folder: TempDir,
    port: u16,
    process: Child,
}

impl Server {
    /// Starts a server; none, with a message, if its binaries are missing on this machine.
    ///
    /// # Panics
    /// If it does not start, or is missing where [`REQUIRED`](crate::server::REQUIRED) is set.
    pub fn start(password: &str) -> Option<Self> {
        let Some(server) = program("mariadbd") else {
            skip("the binaries of MariaDB are missing (Debian: apt-get install mariadb-server)");
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder for the server");
        let data = format!("--datadir={}", folder.path().join("data").display());
        let install = program("mariadb-install-db").expect("it comes with the server");
        let installed = Command::new(install)
            .args([
                "--no-defaults",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                "--user=root",
            ])
            .arg(&data)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(
            installed.is_ok_and(|status| status.success()),
            "a data folder is made"
        );
        let free = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = free.local_addr().expect("its address").port();
        drop(free);
        let socket = folder.path().join("socket");
        let process = Command::new(server)
            .args([
                "--no-defaults",
                "--user=root",
                "--bind-address=127.0.0.1",
                "--innodb-flush-log-at-trx-commit=0",
            ])
            .arg(&data)
            .arg(format!("--socket={}", socket.display()))
            .arg(format!("--port={port}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(started.elapsed() < PATIENCE, "the server listens");
            #[allow(clippy::disallowed_methods, reason = "nothing tells when it listens")]
            std::thread::sleep(Duration::from_millis(20));
        }
        let server = Self {
            folder,
            port,
            process,
        };
        server.run(&format!(
            "CREATE DATABASE shop; CREATE USER ada@'127.0.0.1' IDENTIFIED BY '{password}'; \
             GRANT ALL ON shop.* TO ada@'127.0.0.1'"
        ));
        Some(server)
    }

    /// Returns the port on which it listens.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Runs SQL statements in the server.
    ///
    /// # Panics
    /// If one fails.
    pub fn run(&self, sql: &str) {
        let client = program("mariadb").expect("the client comes with the server");
        let status = Command::new(client)
            .args(["--no-defaults", "--user=root", "--execute", sql])
            .arg(format!(
                "--socket={}",
                self.folder.path().join("socket").display()
            ))
            .stdin(Stdio::null())
            .status();
        assert!(status.is_ok_and(|status| status.success()), "{sql}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn program(name: &str) -> Option<PathBuf> {
    let folders = ["/usr/sbin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"];
    let places = folders.into_iter().map(|folder| Path::new(folder).join(name));
    places.into_iter().find(|path| path.is_file())
}
