//! A Postgres server for one test: on a Unix socket in a temporary folder, without a port.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// The variable that makes a missing server an error instead of a reason to skip tests.
pub const REQUIRED: &str = "WATERSHED_REQUIRE_POSTGRES";

/// The user that the server runs as when the tests run as root, as the server refuses to.
const USER: &str = "postgres";

/// A running server with one empty database, `postgres`.
#[derive(Debug)]
pub struct Server {
    folder: TempDir,
    binaries: PathBuf,
}

impl Server {
    /// Starts a server; none, with a message, if its binaries are missing on this machine.
    ///
    /// # Panics
    /// If it does not start, or is missing where [`REQUIRED`] is set.
    pub fn start() -> Option<Self> {
        let Some(binaries) = binaries() else {
            let missing = "the binaries of Postgres are missing (Debian: apt-get install postgresql)";
            assert!(std::env::var_os(REQUIRED).is_none(), "{missing}");
            #[allow(clippy::print_stderr, reason = "whoever runs the tests should see it")]
            {
                eprintln!("skipped: {missing}");
            }
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder for the server");
        let server = Self { folder, binaries };
        server.own_folder();
        let data = server.data();
        server.run(
            "initdb",
            [
                OsStr::new("--auth=trust"),
                "-U".as_ref(),
                USER.as_ref(),
                data.as_ref(),
            ],
        );
        server.begin();
        Some(server)
    }

    /// Stops the server at once, as a crash does, and starts it again.
    ///
    /// # Panics
    /// If it does not start.
    pub fn crash(&self) {
        self.stop();
        self.begin();
    }

    /// Returns the folder of the server's socket.
    pub fn socket_folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns a URL that connects to the server.
    pub fn url(&self) -> String {
        let folder = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://{USER}@{folder}/postgres")
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Starts the server again.
    ///
    /// # Panics
    /// If it does not start.
    pub fn begin(&self) {
        // Tests look at what processes see of each other; what survives a power cut is the server's own affair.
        let options = format!(
            "-k {} -c listen_addresses= -c fsync=off",
            self.folder.path().display()
        );
        let (data, log) = (self.data(), self.folder.path().join("log"));
        let start = ["start", "-w", "-o", options.as_str()].map(OsStr::new);
        self.run(
            "pg_ctl",
            start
                .into_iter()
                .chain(["-D".as_ref(), data.as_os_str()])
                .chain(["-l".as_ref(), log.as_os_str()]),
        );
    }

    /// Stops the server at once, as a crash does.
    ///
    /// # Panics
    /// If it can't be stopped.
    pub fn stop(&self) {
        let data = self.data();
        self.run(
            "pg_ctl",
            [
                OsStr::new("stop"),
                "-m".as_ref(),
                "immediate".as_ref(),
                "-D".as_ref(),
                data.as_ref(),
            ],
        );
    }

    fn own_folder(&self) {
        let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
        if is_root {
            let (user, group) = (id("-u"), id("-g"));
            chown(self.folder.path(), Some(user), Some(group)).expect("the server gets its folder");
        }
    }

    fn run(&self, program: &str, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) {
        let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
        let mut command = if is_root {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", USER, "--regid", USER, "--clear-groups", "--"]);
            command.arg(self.binaries.join(program));
            command
        } else {
            Command::new(self.binaries.join(program))
        };
        command.args(arguments).current_dir(self.folder.path());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let status = command.status().expect("the server's programs run");
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        assert!(status.success(), "{program} failed: {status}\n{log}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A test may have stopped it.
        if self.data().join("postmaster.pid").exists() {
            self.stop();
        }
    }
}

/// Returns the folder with the newest version's binaries, where Debian and others put them.
fn binaries() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut versions: Vec<PathBuf> = versions.flatten().map(|entry| entry.path().join("bin")).collect();
    versions.sort();
    versions
        .into_iter()
        .rfind(|folder| folder.join("initdb").exists())
}

fn id(which: &str) -> u32 {
    let output = Command::new("id")
        .args([which, USER])
        .output()
        .expect("`id` runs");
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().expect("the server's user is there")
}
