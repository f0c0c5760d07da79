//! The program as a server in a process of its own.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

/// A running server, which ends when it is stopped.
pub(crate) struct Serving {
    child: Child,
    said: BufReader<ChildStderr>,
    /// Port of SQL clients, once it was said.
    sql: Option<u16>,
    /// Address of the HTTP API.
    pub(crate) address: SocketAddr,
}

impl Serving {
    /// Starts the program with the `server.yaml` of a folder, and waits until it listens.
    pub(crate) fn start(folder: &Path) -> Self {
        let mut child = Command::new(program())
            .args(["serve", "-c", "server.yaml"])
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let (mut line, mut sql) = (String::new(), None);
        while !line.contains("http://") {
            line.clear();
            assert_ne!(said.read_line(&mut line).unwrap(), 0);
            sql = sql.or(port_of_sql(&line));
        }
        let address = line.split("http://").nth(1).unwrap_or_else(|| panic!("{line}"));
        let address = address.trim().parse().unwrap();
        Self {
            child,
            said,
            sql,
            address,
        }
    }

    /// Waits until the server answers SQL clients, and returns their port.
    pub(crate) fn sql_port(&mut self) -> u16 {
        let mut line = String::new();
        loop {
            if let Some(port) = self.sql {
                return port;
            }
            line.clear();
            assert_ne!(self.said.read_line(&mut line).unwrap(), 0);
            self.sql = port_of_sql(&line);
        }
    }

    /// Waits until all instances are open.
    pub(crate) fn wait_until_ready(&self) {
        while !self.is_ready() {}
    }

    fn is_ready(&self) -> bool {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream
            .write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.starts_with("HTTP/1.1 200")
    }

    /// Returns the resident memory of the process, in KiB.
    pub(crate) fn resident_kib(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.unwrap().trim().trim_end_matches(" kB");
        number.parse().unwrap()
    }

    /// Stops the server, and waits until it has ended.
    pub(crate) fn stop(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let mut rest = String::new();
        self.said.read_to_string(&mut rest).unwrap();
        self.child.wait().unwrap();
    }
}

fn port_of_sql(line: &str) -> Option<u16> {
    let address = line.split("answers SQL at ").nth(1)?;
    address.trim().rsplit(':').next()?.parse().ok()
}

/// Returns the path of the program: that of `WATERSHED_PROGRAM`, or the one that was built with the benchmark.
pub(crate) fn program() -> String {
    let program = std::env::var("WATERSHED_PROGRAM");
    program.unwrap_or_else(|_| env!("CARGO_BIN_EXE_watershed-under-test").to_owned())
}

/// Writes a file that only its owner may read.
pub(crate) fn write_closed(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}
