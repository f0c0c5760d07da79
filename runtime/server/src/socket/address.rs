//! The address of a state folder's socket.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::state_folder::StateFolder;

/// Longest path that every system takes for a socket, terminator excluded (macOS has 104 bytes, Linux 108).
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
    /// The address for a state folder; the same for every process that asks.
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

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes sure that nobody else could have put the socket there.
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

    /// Returns true if the runtime folder is ours alone; true for a socket in the state folder, which is as safe as its
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

/// The folder for sockets whose own place has too long a path.
fn runtime_folder() -> PathBuf {
    let user = rustix::process::geteuid().as_raw();
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        Some(folder) if folder.is_absolute() && folder.as_os_str().len() < LONGEST - 40 => {
            folder.join("watershed")
        }
        _ => PathBuf::from(format!("/tmp/watershed-{user}")),
    }
}

/// FNV-1a: the same in every build, which the standard hashers don't promise.
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
