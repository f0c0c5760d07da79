//! The folder that holds an environment's state, and who may touch it.
//!
//! `PROJECT/.watershed/<environment>/` holds the catalog, the engine's data, a lock and a socket. The lock is an OS
//! lock on an open file, so it is gone with its process however that ends. One process owns the folder exclusively
//! (`run`); any number may look at it together while nobody owns it (`status`, `query`).

pub(crate) mod ended_early;
mod swap;

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The folder's name inside a project.
pub const STATE_FOLDER: &str = ".watershed";

/// The name of the folder of the output of programs.
pub(crate) const PROGRAMS: &str = "programs";

/// Everything in the state folder is made anew from the project, so nothing of it belongs into version control.
const GITIGNORE: &str = "# Written by watershed: state of this machine, made anew from the project.\n*\n";

/// Modes of the folder and of the files in it: what they hold is for their owner.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// The interval at which a lock that somebody else holds is tried again. An OS lock can't be awaited with a deadline.
const LOCK_POLL: Duration = Duration::from_millis(20);

/// The reason why the state folder can't be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name of the environment could not be a folder.
    #[error("`{0}` can't be the name of an environment; letters, digits, `_`, `-` and `.` can")]
    Environment(String),
    /// The folder or something in it could not be made.
    #[error("the state folder `{}` can't be written", path.display())]
    Write {
        /// The path that could not be written.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The lock could not be tried.
    #[error("the lock `{}` can't be taken", path.display())]
    Lock {
        /// The lock's file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// Paths of an environment's state. Making one touches nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateFolder {
    root: PathBuf,
    environment: String,
}

impl StateFolder {
    /// The state of `environment` below `root`, which is `PROJECT/.watershed` unless told otherwise.
    ///
    /// # Errors
    /// When the environment's name could not be a folder's name.
    pub fn new(root: PathBuf, environment: &str) -> Result<Self, Error> {
        let fits = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        if environment.is_empty() || environment.starts_with('.') || !environment.chars().all(fits) {
            return Err(Error::Environment(environment.to_owned()));
        }
        Ok(Self {
            root,
            environment: environment.to_owned(),
        })
    }

    /// The environment's own folder.
    pub fn path(&self) -> PathBuf {
        self.root.join(&self.environment)
    }

    /// The folder that all environments share.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The SQLite file with resources, versions and history.
    pub fn catalog(&self) -> PathBuf {
        self.path().join("catalog.db")
    }

    /// The engine's file.
    pub fn engine(&self) -> PathBuf {
        self.path().join("main.duckdb")
    }

    /// Returns the file that says how the engine's file was left.
    pub fn proof(&self) -> PathBuf {
        self.path().join("main.duckdb.proof")
    }

    /// Returns the path of the parse cache, shared by all environments.
    pub fn parse_cache(&self) -> PathBuf {
        self.root.join("parse-cache")
    }

    /// The key by which specs hold what stands for a value.
    pub fn key(&self) -> PathBuf {
        self.path().join("key")
    }

    /// Returns the folder of the output of programs: a folder for each of them.
    pub fn programs(&self) -> PathBuf {
        self.path().join(PROGRAMS)
    }

    /// Returns the folder of files that reports make.
    pub fn exports(&self) -> PathBuf {
        self.path().join("exports")
    }

    /// Returns the folder in which it is noted which commands of managed resources run.
    pub fn calls(&self) -> PathBuf {
        self.path().join("calls")
    }

    /// Returns the folder of the logs: a file or two for each resource.
    pub fn logs(&self) -> PathBuf {
        self.path().join("logs")
    }

    /// Returns true if anything was ever built here.
    pub fn exists(&self) -> bool {
        self.catalog().exists()
    }

    /// Makes the environment's folder and nothing in it.
    ///
    /// # Errors
    /// When the disk refuses; what was made before stays.
    pub fn create(&self) -> Result<(), Error> {
        self.create_root()?;
        let path = self.path();
        make_private(&path).map_err(|source| Error::Write {
            path: path.clone(),
            source,
        })?;
        tighten(&path);
        Ok(())
    }

    /// Makes the folder that all environments share, with its `.gitignore`.
    ///
    /// # Errors
    /// When the disk refuses; what was made before stays.
    pub fn create_root(&self) -> Result<(), Error> {
        let write = |path: &Path| {
            let path = path.to_path_buf();
            move |source| Error::Write { path, source }
        };
        make_private(&self.root).map_err(write(&self.root))?;
        // A folder that a person named may hold something else.
        if self.root.file_name().is_some_and(|name| name == STATE_FOLDER) {
            set_mode(&self.root, FOLDER_MODE);
        }
        let ignore = self.root.join(".gitignore");
        if !ignore.exists() {
            fs::write(&ignore, GITIGNORE).map_err(write(&ignore))?;
        }
        Ok(())
    }

    /// Tries once to own the folder, making it where it is missing. `None` while another process uses it.
    ///
    /// # Errors
    /// When the folder can't be made or its lock can't be tried.
    pub fn try_own(&self) -> Result<Option<Lock>, Error> {
        self.create()?;
        let lock = self.try_lock(File::try_lock)?;
        if lock.is_some() {
            self.finish_swap()?;
        }
        Ok(lock)
    }

    /// Tries once to look at the folder together with others. `None` while a process owns it. A folder that can't be
    /// written, such as a backup, can be looked at too.
    ///
    /// # Errors
    /// When the folder's lock can't be tried.
    pub fn try_share(&self) -> Result<Option<Lock>, Error> {
        // What was about to be replaced is looked at by nobody.
        if self.is_being_swapped() && self.try_own()?.is_none() {
            return Ok(None);
        }
        let path = self.path().join("lock");
        match File::open(&path) {
            Ok(file) => locked(file, path, File::try_lock_shared),
            Err(_) => self.try_lock(File::try_lock_shared),
        }
    }

    fn try_lock(&self, lock: TryLock) -> Result<Option<Lock>, Error> {
        let path = self.path().join("lock");
        let open = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path);
        let file = open.map_err(|source| Error::Write {
            path: path.clone(),
            source,
        })?;
        locked(file, path, lock)
    }
}

/// Takes a lock on an open file if nobody holds another one.
type TryLock = fn(&File) -> Result<(), TryLockError>;

fn locked(file: File, path: PathBuf, lock: TryLock) -> Result<Option<Lock>, Error> {
    match lock(&file) {
        Ok(()) => Ok(Some(Lock { file, path })),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(source)) => Err(Error::Lock { path, source }),
    }
}

/// Makes a folder that its owner alone can look into, if it is not there.
fn make_private(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(FOLDER_MODE);
    builder.create(path)
}

/// Lets nobody but its owner look into an environment's folder and its files, whatever made them.
pub(crate) fn tighten(folder: &Path) {
    set_mode(folder, FOLDER_MODE);
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        match entry.file_type() {
            Ok(kind) if kind.is_file() => set_mode(&entry.path(), FILE_MODE),
            Ok(kind) if kind.is_dir() => set_mode(&entry.path(), FOLDER_MODE),
            _ => {}
        }
    }
}

/// Sets the mode of a path, unless it belongs to another user.
fn set_mode(path: &Path, mode: u32) {
    let is_other = |metadata: &fs::Metadata| metadata.permissions().mode() & 0o777 != mode;
    if fs::symlink_metadata(path).is_ok_and(|found| is_other(&found))
        && let Err(error) = fs::set_permissions(path, fs::Permissions::from_mode(mode))
    {
        tracing::debug!(path = %path.display(), %error, "the mode could not be set");
    }
}

/// A held lock, given back when dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Lets go of the folder, for whoever wants it next. Nothing of this process may use it afterwards.
    pub(crate) fn release(&self) {
        if let Err(error) = self.file.unlock() {
            tracing::warn!(%error, "can't let go of the state folder before the instance is dropped");
        }
    }

    /// Returns a proof by which it can be seen later whether the folder is still the one that is locked.
    pub fn proof(&self) -> Owned {
        Owned {
            path: self.path.clone(),
            file: self.file.metadata().ok().map(|file| identity(&file)),
        }
    }
}

/// A lock's file as it was when it was locked.
#[derive(Debug, Clone)]
pub struct Owned {
    path: PathBuf,
    file: Option<(u64, u64)>,
}

impl Owned {
    /// Returns true if that file still stands at its path. Someone may have removed the folder, or put another in its
    /// place.
    pub fn still(&self) -> bool {
        let now = fs::metadata(&self.path).ok().map(|file| identity(&file));
        now.is_some() && now == self.file
    }
}

/// Device and number of a file.
fn identity(file: &fs::Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// A deadline for something that another process holds.
#[derive(Debug, Clone, Copy)]
pub struct Patience(Instant);

impl Patience {
    /// Patience for `wait` from now on.
    pub fn new(wait: Duration) -> Self {
        // Far enough away where the sum does not fit.
        let far = Duration::from_secs(365 * 24 * 3600);
        let now = Instant::now();
        Self(now.checked_add(wait).unwrap_or(now + far))
    }

    /// Returns the time that is left.
    pub fn left(&self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Waits a moment before another try; false when the deadline has passed. Cancel-safe.
    pub async fn another_try(&self) -> bool {
        if Instant::now() >= self.0 {
            return false;
        }
        tokio::time::sleep(LOCK_POLL).await;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(temp: &tempfile::TempDir) -> StateFolder {
        StateFolder::new(temp.path().join(STATE_FOLDER), "dev").unwrap()
    }

    #[test]
    fn one_owns_or_many_look() {
        let temp = tempfile::tempdir().unwrap();
        let state = folder(&temp);
        let owner = state.try_own().unwrap().expect("nobody else is here");
        assert!(state.try_own().unwrap().is_none());
        assert!(state.try_share().unwrap().is_none());
        drop(owner);
        let first = state.try_share().unwrap().expect("the owner has gone");
        let second = state.try_share().unwrap().expect("looking is shared");
        assert!(state.try_own().unwrap().is_none());
        drop((first, second));
        assert!(state.try_own().unwrap().is_some());
    }

    #[test]
    fn a_folder_that_was_replaced_is_not_the_one_that_is_owned() {
        let temp = tempfile::tempdir().unwrap();
        let state = folder(&temp);
        let owned = state.try_own().unwrap().expect("nobody else is here").proof();
        assert!(owned.still());
        let (here, there) = (state.root().to_path_buf(), temp.path().join("away"));
        fs::rename(&here, &there).unwrap();
        assert!(!owned.still());
        fs::rename(&there, &here).unwrap();
        assert!(owned.still());
        fs::rename(&here, &there).unwrap();
        drop(state.try_own().unwrap());
        assert!(!owned.still());
    }

    #[test]
    fn the_folder_keeps_itself_out_of_version_control() {
        let temp = tempfile::tempdir().unwrap();
        folder(&temp).create().unwrap();
        let ignore = fs::read_to_string(temp.path().join(".watershed/.gitignore")).unwrap();
        assert!(ignore.ends_with("*\n"));
    }

    #[test]
    fn an_environment_can_not_lead_out_of_the_folder() {
        for bad in ["", "..", ".git", "a/b", "a b"] {
            assert!(StateFolder::new("x".into(), bad).is_err(), "{bad:?}");
        }
        assert!(StateFolder::new("x".into(), "prod-2.eu").is_ok());
    }
}
