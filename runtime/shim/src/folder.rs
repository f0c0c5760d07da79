//! The shim's folder, within the state folder.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;

/// The name of the folder below the state folder.
const NAME: &str = "shim";

/// The name of the journal within the shim's folder.
pub(crate) const JOURNAL: &str = "journal";

/// The folder that holds lock, socket, journal and log of a shim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Returns the shim's folder in a state folder, whether or not it exists.
    pub(crate) fn of(state: &Path) -> Self {
        Self {
            path: state.join(NAME),
        }
    }

    /// Creates the folder, accessible to this user alone.
    ///
    /// # Errors
    /// When it can't be made, or belongs to somebody else or is open to others.
    pub(crate) fn make(&self) -> io::Result<()> {
        match fs::DirBuilder::new().mode(0o700).create(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let found = fs::symlink_metadata(&self.path)?;
        let is_ours = found.uid() == rustix::process::geteuid().as_raw();
        if found.is_dir() && is_ours && found.mode() & 0o077 == 0 {
            return Ok(());
        }
        let folder = self.path.display();
        let message = match is_ours {
            true => format!("`{folder}` is not a folder of this user alone: `chmod 700` closes it to others"),
            false => format!(
                "`{folder}` belongs to the user with the id {}: `chown -R` gives the state folder to whom runs the project",
                found.uid()
            ),
        };
        Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
    }

    /// Returns the folder's path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the shim's log.
    pub(crate) fn log(&self) -> PathBuf {
        self.path.join("log")
    }

    /// Returns true if a shim has written a journal in the folder.
    pub(crate) fn has_journal(&self) -> bool {
        self.path.join(JOURNAL).exists()
    }

    /// Acquires the lock that a shim holds while it lives; `None` if another shim holds it.
    ///
    /// # Errors
    /// When the file can't be opened.
    pub(crate) fn lock(&self) -> io::Result<Option<File>> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(self.path.join("lock"))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Listens on the socket. The caller holds the lock, so an existing socket file was left by a dead shim.
    ///
    /// # Errors
    /// When the socket can't be made.
    pub(crate) fn listen(&self) -> io::Result<UnixListener> {
        match fs::remove_file(self.path.join("socket")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = self.with_short_path(|path| UnixListener::bind(path))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    }

    /// Calls a function with a path to the socket that fits into a socket address, however deep the folder is.
    ///
    /// # Errors
    /// When the folder can't be opened, or the call fails.
    pub(crate) fn with_short_path<T>(&self, call: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(&self.path, flags, Mode::empty())?;
        call(Path::new(&format!("/proc/self/fd/{}/socket", folder.as_raw_fd())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_others_may_enter_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let state = tempfile::tempdir().unwrap();
        let folder = Folder::of(state.path());
        folder.make().unwrap();
        folder.make().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o750)).unwrap();
        assert_eq!(folder.make().unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn one_shim_has_the_lock_and_a_deep_folder_has_a_socket() {
        let state = tempfile::tempdir().unwrap();
        let deep = state.path().join("x".repeat(100)).join("y".repeat(100));
        fs::create_dir_all(&deep).unwrap();
        let folder = Folder::of(&deep);
        folder.make().unwrap();
        let lock = folder.lock().unwrap();
        assert!(lock.is_some());
        assert!(folder.lock().unwrap().is_none());
        let _listener = folder.listen().unwrap();
        let connected = folder.with_short_path(|path| std::os::unix::net::UnixStream::connect(path));
        assert!(connected.is_ok());
    }
}
