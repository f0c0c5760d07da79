//! The shim's own log: what nobody else can be told.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::clock;

/// Bytes from which on the log begins anew.
const MAX_SIZE: u64 = 256 << 10;

/// Appends lines to a file with a bound.
#[derive(Debug)]
pub(crate) struct Log {
    file: Option<File>,
}

impl Log {
    /// Opens it. Without one the shim works as well.
    pub(crate) fn open(path: &Path) -> Self {
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600);
        Self {
            file: options.open(path).ok(),
        }
    }

    /// Adds a line.
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
