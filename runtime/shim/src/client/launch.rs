//! Starting a shim, and connecting to its socket.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::error::Error;
use crate::folder::Folder;

/// Time limit for a new shim to serve, including the creation of a journal.
const READY: Duration = Duration::from_secs(8);

/// The most bytes of the shim's log that an error quotes.
const LAST_WORDS: usize = 500;

/// Command line of a shim; the process has to call [`run`](crate::run).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The shim's program: an absolute path, or a name in `PATH`.
    pub program: PathBuf,
    /// Arguments of the program.
    pub arguments: Vec<OsString>,
}

impl Launch {
    /// Starts the shim process and returns a channel that reports its end. Starting two at once is harmless: the second
    /// finds the lock taken and ends.
    ///
    /// # Errors
    /// When the process can't be started.
    pub(super) fn start(&self, folder: &Folder) -> Result<oneshot::Receiver<ExitStatus>, Error> {
        folder.make().map_err(Error::Folder)?;
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600);
        let log = options.open(folder.log()).map_err(Error::Folder)?;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let mut child = command.spawn().map_err(Error::Launch)?;
        // Whoever ends first: the shim is no zombie while the program lives, and an orphan afterwards.
        let reaper = std::thread::Builder::new().name("shim-reaper".to_owned());
        let (ended, end) = oneshot::channel();
        let waits = reaper.stack_size(64 << 10).spawn(move || {
            if let Ok(status) = child.wait() {
                let _ = ended.send(status);
            }
        });
        waits.map_err(Error::Launch)?;
        Ok(end)
    }
}

/// Connects to the shim that serves a folder.
///
/// # Errors
/// When there is none.
pub(super) async fn connect(folder: &Folder) -> io::Result<UnixStream> {
    // Connecting to a local socket doesn't wait, unless its queue is full.
    let stream = folder.with_short_path(|path| std::os::unix::net::UnixStream::connect(path))?;
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

/// Connects to a shim that was just started, waiting until it serves.
///
/// # Errors
/// When it ends at once or doesn't serve in time.
pub(super) async fn connect_when_ready(
    folder: &Folder,
    mut end: oneshot::Receiver<ExitStatus>,
) -> Result<UnixStream, Error> {
    let deadline = Instant::now() + READY;
    let mut pause = Duration::from_millis(1);
    loop {
        match connect(folder).await {
            Ok(stream) => return Ok(stream),
            Err(_) if Instant::now() >= deadline => return Err(Error::TimedOut),
            Err(_) => {}
        }
        match end.try_recv() {
            // Another one was there, or it was killed: look again.
            Ok(status) if status.code().is_none_or(|code| code == 0) => return Err(Error::Disconnected),
            Ok(_) => return Err(Error::Ended(last_words(folder))),
            Err(_) => {
                sleep(pause).await;
                pause = (pause * 2).min(Duration::from_millis(50));
            }
        }
    }
}

fn last_words(folder: &Folder) -> String {
    let log = fs::read(folder.log()).unwrap_or_default();
    let from = log.len().saturating_sub(LAST_WORDS);
    String::from_utf8_lossy(log.get(from..).unwrap_or_default())
        .trim()
        .to_owned()
}
