//! Input files of commands, or standard input in their place.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use watershed_api::Exit;

use super::failure::Failure;

/// Returns the first `most` bytes of a file, or all of a shorter one; `-` is standard input.
pub(super) fn bytes(file: &Path, most: u64) -> Result<Vec<u8>, Failure> {
    let mut content = Vec::new();
    let read = open(file).and_then(|open| open.take(most).read_to_end(&mut content));
    read.map(|_| content).map_err(|error| unreadable(file, error))
}

/// Returns the first `most` bytes of a text file, or all of a shorter one; `-` is standard input.
pub(super) fn text(file: &Path, most: u64) -> Result<String, Failure> {
    let mut content = String::new();
    let read = open(file).and_then(|open| open.take(most).read_to_string(&mut content));
    read.map(|_| content).map_err(|error| unreadable(file, error))
}

fn is_standard_input(file: &Path) -> bool {
    file.as_os_str() == "-"
}

fn open(file: &Path) -> io::Result<Box<dyn Read>> {
    if is_standard_input(file) {
        return Ok(Box::new(io::stdin()));
    }
    Ok(Box::new(File::open(file)?))
}

fn unreadable(file: &Path, error: io::Error) -> Failure {
    let what = match is_standard_input(file) {
        true => "standard input".to_owned(),
        false => format!("`{}`", file.display()),
    };
    Failure {
        exit: Exit::Usage,
        error: anyhow::Error::new(error).context(format!("can't read {what}")),
        hint: None,
    }
}
