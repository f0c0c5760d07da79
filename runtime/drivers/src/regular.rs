//! Regular files, read up to a size limit.
//!
//! A named pipe has no end until somebody closes it, a device may have none at all, and opening either may wait for
//! ever. So nothing but a regular file is opened, and what is read is counted while it is read: a file may grow after
//! its size was asked for.

use std::{
    fmt,
    fs::{self, File, FileType},
    io::{self, Read as _},
    path::Path,
};

use thiserror::Error;

/// The kind of a path that is not a regular file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Oddity {
    /// A directory instead of a file.
    Folder,
    /// A named pipe.
    Pipe,
    /// A Unix domain socket.
    Socket,
    /// A character or block device.
    Device,
    /// A kind that only some systems have.
    Other,
}

impl Oddity {
    /// Returns the kind of a special file; none for a regular one. Expects the type behind links.
    #[must_use]
    pub fn from_type(found: FileType) -> Option<Self> {
        if found.is_file() {
            return None;
        }
        Some(if found.is_dir() {
            Self::Folder
        } else {
            oddity_of(found)
        })
    }
}

impl fmt::Display for Oddity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Folder => "a folder",
            Self::Pipe => "a named pipe",
            Self::Socket => "a socket",
            Self::Device => "a device",
            Self::Other => "no regular file",
        })
    }
}

/// The error of reading a file.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The path is not a regular file, and was not opened.
    #[error("it is {0}, expected a regular file")]
    Odd(Oddity),
    /// The file exceeds the limit; its known size in bytes.
    #[error("its {0} bytes are more than allowed")]
    TooLarge(u64),
    /// The system refused the access.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Io(error) => error,
            error => io::Error::new(io::ErrorKind::InvalidInput, error.to_string()),
        }
    }
}

/// Opens a regular file for reading, without ever waiting for a writer. Returns its size too.
///
/// # Errors
/// When it is anything else, or the system refuses.
pub fn open(path: &Path) -> Result<(File, u64), ReadError> {
    // Asked before it is opened, as opening a device may do something, and after, as it may be another one by then.
    refuse_odd(fs::metadata(path)?.file_type())?;
    let file = open_without_waiting(path)?;
    let metadata = file.metadata()?;
    refuse_odd(metadata.file_type())?;
    Ok((file, metadata.len()))
}

/// Reads a whole regular file, at most `most` bytes long.
///
/// # Errors
/// When it is anything else, larger, or the system refuses.
pub fn read(path: &Path, most: usize) -> Result<Vec<u8>, ReadError> {
    let most = most as u64;
    let (file, size) = open(path)?;
    if size > most {
        return Err(ReadError::TooLarge(size));
    }
    // One more than it seems to hold, so that its end is met without a larger buffer.
    let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
    file.take(most + 1).read_to_end(&mut content)?;
    match content.len() as u64 {
        length if length > most => Err(ReadError::TooLarge(length)),
        _ => Ok(content),
    }
}

fn refuse_odd(found: FileType) -> Result<(), ReadError> {
    Oddity::from_type(found).map_or(Ok(()), |oddity| Err(ReadError::Odd(oddity)))
}

#[cfg(unix)]
fn open_without_waiting(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

#[cfg(not(unix))]
fn open_without_waiting(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(unix)]
fn oddity_of(found: FileType) -> Oddity {
    use std::os::unix::fs::FileTypeExt as _;
    if found.is_fifo() {
        Oddity::Pipe
    } else if found.is_socket() {
        Oddity::Socket
    } else if found.is_block_device() || found.is_char_device() {
        Oddity::Device
    } else {
        Oddity::Other
    }
}

#[cfg(not(unix))]
fn oddity_of(_: FileType) -> Oddity {
    Oddity::Other
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    fn refused(path: &Path) -> String {
        read(path, 10).unwrap_err().to_string()
    }

    #[test]
    fn a_file_is_read_up_to_its_bound_and_no_further() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, [7; 10]).unwrap();
        assert_eq!(read(&path, 10).unwrap(), [7; 10]);
        assert!(matches!(read(&path, 9), Err(ReadError::TooLarge(10))));
    }

    #[test]
    fn what_has_no_size_is_bounded_while_it_is_read() {
        // A regular file of size 0 that holds something.
        let path = Path::new("/proc/self/status");
        if path.exists() {
            assert!(matches!(read(path, 10), Err(ReadError::TooLarge(11))));
        }
    }

    #[test]
    fn pipes_sockets_devices_and_folders_are_refused_without_a_wait() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            place("pipe"),
            rustix::fs::FileType::Fifo,
            0o600.into(),
            0,
        )
        .unwrap();
        let _socket = UnixListener::bind(place("socket")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", place("link")).unwrap();
        assert_eq!(
            refused(&place("pipe")),
            "it is a named pipe, expected a regular file"
        );
        assert_eq!(
            refused(&place("socket")),
            "it is a socket, expected a regular file"
        );
        assert_eq!(refused(&place("link")), "it is a device, expected a regular file");
        assert_eq!(refused(folder.path()), "it is a folder, expected a regular file");
    }
}
