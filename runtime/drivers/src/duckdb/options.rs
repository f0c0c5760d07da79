//! Options of opening an engine.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use crate::olap::Access;
use crate::sandbox::Sandbox;

/// The engine's file, and the resources that the engine may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The database file.
    pub path: PathBuf,
    /// The access to it.
    pub access: Access,
    /// The folder that relative paths in SQL start from.
    pub root: PathBuf,
    /// The folder for data that does not fit into memory; made when needed. Beside the file by default.
    pub temp_directory: PathBuf,
    /// Bytes of memory; 60 % of the machine's or the control group's by default.
    pub memory_limit: Option<u64>,
    /// Bytes in `temp_directory`; the engine's own default, nine tenths of the free space, by default.
    pub temp_limit: Option<u64>,
    /// Threads of the engine; one per core by default.
    pub threads: Option<NonZeroUsize>,
    /// The folders that SQL may reach; all that the process may by default. The working folder of the process must then
    /// be `root`, or the sandbox's own.
    pub sandbox: Option<Sandbox>,
    /// Folders of extensions, looked through before the engine's own cache: below each, a folder of the engine's version,
    /// in it one of the platform.
    pub extensions: Vec<PathBuf>,
    /// Extensions that a build needs, and that are nowhere here, are fetched from their makers' repository. They are not by
    /// default.
    pub installs: bool,
    /// The time that work waits for a file that another process has open; not at all by default.
    pub patience: Duration,
    /// Units of work that run in it at the same time; more of them wait.
    pub connections: NonZeroUsize,
    /// Transactions among those that make outputs. Builds that wait for one may share the next.
    pub builds: NonZeroUsize,
}

impl Options {
    /// The defaults for a file, in a project at `root`.
    pub fn new(path: impl Into<PathBuf>, root: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let mut temp_directory = path.clone().into_os_string();
        temp_directory.push(".tmp");
        let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Self {
            path,
            access: Access::default(),
            root: root.into(),
            temp_directory: temp_directory.into(),
            memory_limit: None,
            temp_limit: None,
            threads: None,
            sandbox: None,
            extensions: Vec::new(),
            installs: false,
            patience: Duration::ZERO,
            // A query or two are answered while all builds are at work.
            connections: cores.saturating_add(4),
            // Each waits for the disk when it commits, and another has its core meanwhile.
            builds: cores.saturating_add(2),
        }
    }
}
