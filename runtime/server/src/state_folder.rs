//! The folder that holds an environment's state, and the locks on it.
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

use watershed_drivers::sandbox::first_link;

/// The name of the state folder inside a project.
pub const STATE_FOLDER: &str = ".watershed";

/// The name of the folder with the output of programs.
pub(crate) const PROGRAMS: &str = "programs";

/// The `.gitignore` of the state folder, which excludes all of it: the state is made anew from the project.
const GITIGNORE: &str = "# Written by watershed: state of this machine, made anew from the project.\n*\n";

/// Permissions of the folder and of the files in it: for their owner alone.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// The interval at which a lock held by another process is tried again: an OS lock can't be awaited with a deadline.
const LOCK_POLL: Duration = Duration::from_millis(20);

/// The reason why the state folder can't be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The environment's name can't be the name of a folder.
    #[error("`{0}` can't be the name of an environment; letters, digits, `_`, `-` and `.` can")]
    Environment(String),
    /// The folder or something in it could not be written.
    #[error("the state folder `{}` can't be written", path.display())]
    Write {
        /// The path that could not be written.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The folder of a project in a sandbox is a symbolic link, or has one.
    #[error(
        "`{}` is a symbolic link, and the state of a project in a sandbox follows none: remove the link",
        .0.display()
    )]
    Link(PathBuf),
    /// The lock could not be taken, for a reason other than its holder.
    #[error("the lock `{}` can't be taken", path.display())]
    Lock {
        /// The path of the lock's file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// The paths of an environment's state. Creating this value touches no file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateFolder {
    root: PathBuf,
    environment: String,
}

impl StateFolder {
    /// Returns the state of `environment` below `root`, by default `PROJECT/.watershed`.
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

    /// Returns the environment's own folder.
    pub fn path(&self) -> PathBuf {
        self.root.join(&self.environment)
    }

    /// Returns the folder that all environments share.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path of the catalog: an SQLite file with resources, versions and history.
    pub fn catalog(&self) -> PathBuf {
        self.path().join("catalog.db")
    }

    /// Returns the path of the engine's database file.
    pub fn engine(&self) -> PathBuf {
        self.path().join("main.duckdb")
    }

    /// Returns the path of the proof, a record of the engine's file as it was last closed.
    pub fn proof(&self) -> PathBuf {
        self.path().join("main.duckdb.proof")
    }

    /// Returns the path of the parse cache, shared by all environments.
    pub fn parse_cache(&self) -> PathBuf {
        self.root.join("parse-cache")
    }

    /// Returns the path of the key for the hashes that stand for sealed values in specs.
    pub fn key(&self) -> PathBuf {
        self.path().join("key")
    }

    /// Returns the folder with the output of programs, which has a folder for each program.
    pub fn programs(&self) -> PathBuf {
        self.path().join(PROGRAMS)
    }

    /// Returns the folder for files that are made for an answer and removed once they are sent.
    pub fn answers(&self) -> PathBuf {
        self.path().join("answers")
    }

    /// Returns the folder for the files that reports export.
    pub fn exports(&self) -> PathBuf {
        self.path().join("exports")
    }

    /// Returns the folder that records the addresses of reports' files.
    pub fn links(&self) -> PathBuf {
        self.path().join("links")
    }

    /// Returns the folder that records the running commands of managed resources.
    pub fn calls(&self) -> PathBuf {
        self.path().join("calls")
    }

    /// Returns the folder of the logs, with one or two files for each resource.
    pub fn logs(&self) -> PathBuf {
        self.path().join("logs")
    }

    /// Refuses symbolic links in a state folder that lies in its project: they come with the project's files, and lead the
    /// engine and whoever writes the state out of it. A folder that the operator named elsewhere may be one.
    ///
    /// # Errors
    /// When the folder is a link, or has one where this environment's state lies.
    pub fn refuse_links(&self, project: &Path) -> Result<(), Error> {
        if self.root != project.join(STATE_FOLDER) {
            return Ok(());
        }
        if self.root.is_symlink() {
            return Err(Error::Link(self.root.clone()));
        }
        let ours = [self.root.join(".gitignore"), self.parse_cache(), self.path()];
        match ours.iter().find_map(|path| first_link(path)) {
            Some(link) => Err(Error::Link(link)),
            None => Ok(()),
        }
    }

    /// Returns true if the environment's folder has a catalog, or if this user may not know: to whom the folder is closed
    /// the project is not one that was never built.
    pub fn exists(&self) -> bool {
        self.catalog().try_exists().unwrap_or(true)
    }

    /// Creates the environment's folder, empty.
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

    /// Creates the folder that all environments share, with its `.gitignore`.
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

    /// Tries once to lock the folder exclusively, and creates it where it is missing. `None` while another process uses
    /// it.
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

    /// Tries once to lock the folder for reading, shared with other readers. `None` while a process owns it.
    ///
    /// A folder that can't be written, such as a backup, can be locked too.
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

/// A function that tries to lock an open file, exclusively or shared.
type TryLock = fn(&File) -> Result<(), TryLockError>;

fn locked(file: File, path: PathBuf, lock: TryLock) -> Result<Option<Lock>, Error> {
    match lock(&file) {
        Ok(()) => Ok(Some(Lock { file, path })),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(source)) => Err(Error::Lock { path, source }),
    }
}

/// Creates a folder that its owner alone can open, if it is missing.
fn make_private(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(FOLDER_MODE);
    builder.create(path)
}

/// Restricts an environment's folder and its files to their owner, whoever created them.
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

/// Sets the permissions of a path, unless it belongs to another user.
fn set_mode(path: &Path, mode: u32) {
    let is_other = |metadata: &fs::Metadata| metadata.permissions().mode() & 0o777 != mode;
    if fs::symlink_metadata(path).is_ok_and(|found| is_other(&found))
        && let Err(error) = fs::set_permissions(path, fs::Permissions::from_mode(mode))
    {
        tracing::debug!(path = %path.display(), %error, "the mode could not be set");
    }
}

/// A lock on the state folder, released when dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Releases the folder for the next process. Nothing in this process may use it afterwards.
    pub(crate) fn release(&self) {
        if let Err(error) = self.file.unlock() {
            tracing::warn!(%error, "can't let go of the state folder before the instance is dropped");
        }
    }

    /// Returns a proof that tells later whether the folder at the path is still the locked one.
    pub fn proof(&self) -> Owned {
        Owned {
            path: self.path.clone(),
            file: self.file.metadata().ok().map(|file| identity(&file)),
        }
    }
}

/// The identity of a lock's file at the time it was locked.
#[derive(Debug, Clone)]
pub struct Owned {
    path: PathBuf,
    file: Option<(u64, u64)>,
}

impl Owned {
    /// Returns true if the locked file is still at its path; false once somebody removed or replaced the folder.
    pub fn still(&self) -> bool {
        let now = fs::metadata(&self.path).ok().map(|file| identity(&file));
        now.is_some() && now == self.file
    }
}

/// Returns the device and the inode number of a file.
fn identity(file: &fs::Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// The deadline of a wait for something that another process holds.
#[derive(Debug, Clone, Copy)]
pub struct Patience(Instant);

impl Patience {
    /// Returns the deadline that is `wait` from now.
    pub fn new(wait: Duration) -> Self {
        // Far enough away where the sum does not fit.
        let far = Duration::from_secs(365 * 24 * 3600);
        let now = Instant::now();
        Self(now.checked_add(wait).unwrap_or(now + far))
    }

    /// Returns the time left until the deadline.
    pub fn left(&self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Waits a moment before another try; returns false once the deadline has passed. Cancel-safe.
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
    fn a_folder_that_nobody_can_look_into_is_not_one_that_is_not_there() {
        let temp = tempfile::tempdir().unwrap();
        let state = folder(&temp);
        assert!(!state.exists());
        // A link to itself is refused by the system whoever asks.
        std::os::unix::fs::symlink(state.root(), state.root()).unwrap();
        assert!(state.exists());
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
