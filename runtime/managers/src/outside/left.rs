//! Commands that outlived the program which started them: noted while they run, ended by the next pass.
//!
//! A note has the pid and the time of its start: a pid alone may be somebody else's by now.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process_group};
use watershed_controller::Uid;

/// The note of a command that runs. It is removed when the command has ended.
#[derive(Debug)]
pub(super) struct Note(PathBuf);

impl Note {
    /// Notes the leader of a group that was started for a resource.
    ///
    /// # Errors
    /// When the file can't be written.
    pub(super) fn write(folder: &Path, uid: Uid, pid: Pid) -> io::Result<Self> {
        let path = path_of(folder, uid);
        let started = started(pid).unwrap_or_default();
        fs::write(&path, format!("{} {started}", pid.as_raw_pid()))?;
        Ok(Self(path))
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.0) {
            tracing::debug!(path = %self.0.display(), %error, "the note of a command stays");
        }
    }
}

/// Ends the group that an earlier program left for a resource, if it is still there.
pub(super) fn end(folder: &Path, uid: Uid) {
    let path = path_of(folder, uid);
    let Ok(text) = fs::read_to_string(&path) else {
        return;
    };
    let mut words = text.split_ascii_whitespace();
    let pid = words
        .next()
        .and_then(|word| word.parse().ok())
        .and_then(Pid::from_raw);
    let noted = words.next();
    if let (Some(pid), Some(noted)) = (pid, noted)
        && started(pid).as_deref() == Some(noted)
    {
        tracing::info!(
            pid = pid.as_raw_pid(),
            "ends a command that an earlier program left"
        );
        // It may end by itself meanwhile.
        let _ = kill_process_group(pid, Signal::KILL);
    }
    let _ = fs::remove_file(&path);
}

fn path_of(folder: &Path, uid: Uid) -> PathBuf {
    folder.join(uid.to_string())
}

/// Ticks from boot to the start of a process; none if it is gone, or where the system does not tell.
fn started(pid: Pid) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    // The name, in parentheses, may hold blanks and parentheses of its own.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(19).map(str::to_owned)
}
