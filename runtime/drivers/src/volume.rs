//! Volume of a path, and its free space.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

/// The least free space for any work, in bytes: a few of the engine's blocks, its log, and the catalog's journal.
const LEAST: u64 = 16 << 20;

/// A volume with its space at the time of the look-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// Mount point of the volume.
    pub mount: PathBuf,
    /// Free bytes that this process may use.
    pub free: u64,
    /// Total size in bytes.
    pub size: u64,
}

impl Volume {
    /// Returns the volume of a path; of its folder if the path does not exist.
    ///
    /// # Errors
    /// What the system says.
    pub fn at_path(path: &Path) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        let found = path.ancestors().find_map(|above| above.canonicalize().ok());
        let path = found.ok_or(io::ErrorKind::NotFound)?;
        let (free, size) = room(&path)?;
        Ok(Self {
            mount: mount(&path),
            free,
            size,
        })
    }

    /// Returns the free bytes that are missing for the engine to work at all; 0 if there are enough.
    #[must_use]
    pub fn missing(&self) -> u64 {
        LEAST.saturating_sub(self.free)
    }
}

impl fmt::Display for Volume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (free, size) = (Bytes(self.free), Bytes(self.size));
        write!(f, "`{}` has {free} free of {size}", self.mount.display())
    }
}

/// A number of bytes, formatted for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["B", "kB", "MB", "GB", "TB"];
        let mut unit = 0;
        let mut divisor = 1_u64;
        while self.0 / divisor >= 1_000 && unit + 1 < units.len() {
            unit += 1;
            divisor *= 1_000;
        }
        let unit = units.get(unit).copied().unwrap_or_default();
        match divisor {
            1 => write!(f, "{} {unit}", self.0),
            _ => write!(
                f,
                "{}.{} {unit}",
                self.0 / divisor,
                self.0 % divisor * 10 / divisor
            ),
        }
    }
}

#[cfg(unix)]
fn room(path: &Path) -> io::Result<(u64, u64)> {
    let found = rustix::fs::statvfs(path)?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    Ok((bytes(found.f_bavail), bytes(found.f_blocks)))
}

/// Returns the highest ancestor of a path on the same device.
#[cfg(unix)]
fn mount(path: &Path) -> PathBuf {
    use std::os::unix::fs::MetadataExt as _;
    let device = |path: &Path| path.metadata().ok().map(|metadata| metadata.dev());
    let own = device(path);
    let on_it = path.ancestors().take_while(|above| device(above) == own);
    on_it.last().unwrap_or(path).to_owned()
}

#[cfg(not(unix))]
fn room(_: &Path) -> io::Result<(u64, u64)> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(unix))]
fn mount(path: &Path) -> PathBuf {
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_not_there_yet_is_on_the_volume_of_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let whole = Volume::at_path(folder.path()).unwrap();
        let below = Volume::at_path(&folder.path().join("a/b")).unwrap();
        assert_eq!((&below.mount, below.size), (&whole.mount, whole.size));
        assert!(folder.path().canonicalize().unwrap().starts_with(&whole.mount));
        assert!(whole.free <= whole.size);
    }

    #[test]
    fn what_is_missing_is_what_any_work_needs() {
        let volume = |free| Volume {
            mount: "/m".into(),
            free,
            size: 120_000_000,
        };
        assert_eq!(volume(LEAST).missing(), 0);
        assert_eq!(volume(4_096).missing(), LEAST - 4_096);
        assert_eq!(volume(4_096).to_string(), "`/m` has 4.0 kB free of 120.0 MB");
    }
}
