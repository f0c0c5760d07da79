//! The shim's log, for errors that no client is there to receive.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::clock;

/// The most bytes of the log; a larger one is started anew.
const MAX_SIZE: u64 = 256 << 10;

/// A log file of bounded size.
#[derive(Debug)]
pub(crate) struct Log {
    file: Option<File>,
}

impl Log {
    /// Opens the log. If that fails, lines are dropped.
    pub(crate) fn open(path: &Path) -> Self {
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600);
        Self {
            file: options.open(path).ok(),
        }
    }

    /// Appends a line to the log.
    pub(crate) fn line(&mut self, text: &str) {
        let Some(file) = &mut self.file else {
            return;
        };
        if file.metadata().is_ok_and(|found| found.len() > MAX_SIZE) {
            let _ = file.set_len(0);
        }
        let _ = writeln!(file, "{} {text}", clock::unix_ms());
    }
}
