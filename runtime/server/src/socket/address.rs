//! The address of a state folder's socket.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::state_folder::StateFolder;

/// Longest socket path that every system accepts, in bytes without its terminator (macOS has 104, Linux 108).
const LONGEST: usize = 100;

/// The path of a socket: in the state folder, or in the runtime folder where that path would be too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    path: PathBuf,
    place: Folder,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Folder {
    StateFolder,
    RuntimeFolder,
}

impl Address {
    /// Returns the address for a state folder, which is the same in every process.
    pub fn for_folder(state: &StateFolder) -> Self {
        let folder = state.path();
        let folder = folder.canonicalize().unwrap_or(folder);
        let near = folder.join("socket");
        if near.as_os_str().len() <= LONGEST {
            return Self {
                path: near,
                place: Folder::StateFolder,
            };
        }
        let name = format!("{:016x}.sock", fingerprint(&folder));
        Self {
            path: runtime_folder().join(name),
            place: Folder::RuntimeFolder,
        }
    }

    /// Returns the path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Ensures that nobody else can have created the socket, and creates the runtime folder where it is needed.
    ///
    /// # Errors
    /// When the runtime folder belongs to somebody else or is open to others.
    pub(super) fn prepare(&self) -> io::Result<()> {
        if self.place == Folder::StateFolder {
            return Ok(());
        }
        let folder = runtime_folder();
        match fs::DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => self.check(),
        }
    }

    /// Checks that the runtime folder is accessible to this user alone. A socket in the state folder is as safe as its
    /// data.
    ///
    /// # Errors
    /// When it is not, or is missing.
    pub(super) fn check(&self) -> io::Result<()> {
        if self.place == Folder::StateFolder {
            return Ok(());
        }
        let folder = runtime_folder();
        let meta = fs::symlink_metadata(&folder)?;
        let ours = meta.uid() == rustix::process::geteuid().as_raw();
        if meta.is_dir() && ours && meta.mode() & 0o077 == 0 {
            return Ok(());
        }
        let message = format!("`{}` is not a folder of this user alone", folder.display());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
    }
}

/// Returns the folder for sockets whose path in the state folder would be too long.
fn runtime_folder() -> PathBuf {
    let user = rustix::process::geteuid().as_raw();
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        Some(folder) if folder.is_absolute() && folder.as_os_str().len() < LONGEST - 40 => {
            folder.join("watershed")
        }
        _ => PathBuf::from(format!("/tmp/watershed-{user}")),
    }
}

/// Returns the FNV-1a hash of a path, the same in every build, unlike that of the standard hashers.
fn fingerprint(path: &Path) -> u64 {
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_path_stays_with_its_state_and_a_long_one_moves() {
        let near = StateFolder::new("/p/.watershed".into(), "dev").unwrap();
        assert_eq!(
            Address::for_folder(&near).path(),
            Path::new("/p/.watershed/dev/socket")
        );
        let deep = format!("/{}/.watershed", "x".repeat(120));
        let far = Address::for_folder(&StateFolder::new(deep.into(), "dev").unwrap());
        assert!(
            far.path().as_os_str().len() <= LONGEST,
            "{}",
            far.path().display()
        );
        assert_eq!(far.path().extension().unwrap(), "sock");
    }
}
