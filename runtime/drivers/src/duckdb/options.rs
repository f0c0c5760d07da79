//! Options for opening an engine.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use crate::olap::{Access, Home};
use crate::sandbox::{Sandbox, WorkingFolder};
use crate::shares::{MemoryShare, Share};

/// The engine's file, and the resources that the engine may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Path of the database file. In a lake nothing lies there.
    pub path: PathBuf,
    /// Place of the data: the file, or a lake.
    pub home: Home,
    /// Access to the file: read-write or read-only.
    pub access: Access,
    /// Base folder of relative paths in SQL.
    pub root: PathBuf,
    /// Folder for data that exceeds memory, created on demand. By default beside the file.
    pub temp_directory: PathBuf,
    /// Memory limit in bytes; by default 60 % of the memory of the machine or control group.
    pub memory_limit: Option<u64>,
    /// The share of the engine in its memory limit; all of the limit by default.
    pub memory_share: Option<MemoryShare>,
    /// Limit of `temp_directory` in bytes; by default the engine's own, nine tenths of the free space.
    pub temp_limit: Option<u64>,
    /// Number of engine threads; by default one per core.
    pub threads: Option<NonZeroUsize>,
    /// Folders that SQL may access; none for no restriction. With a sandbox, the working directory of the process must
    /// be `root`, or `working_folder`.
    pub sandbox: Option<Sandbox>,
    /// The empty working folder of a process that runs several projects; none if there is one project.
    pub working_folder: Option<WorkingFolder>,
    /// Folders with extensions, searched before the engine's cache: each contains a folder per engine version, and
    /// inside that a folder per platform.
    pub extensions: Vec<PathBuf>,
    /// Extensions that are loaded before the engine is confined; none by default.
    pub loads: Vec<String>,
    /// True if missing extensions may be installed from the vendor's repository; false by default.
    pub installs: bool,
    /// The longest wait for a file that another process has open; zero by default.
    pub patience: Duration,
    /// The most units of work that run at once; further ones wait.
    pub connections: NonZeroUsize,
    /// The most transactions that build outputs at once. Builds that wait for a slot may share the next transaction.
    pub builds: NonZeroUsize,
    /// The share in the slots for builds of the whole process; none if the process has this engine alone.
    pub share: Option<Share>,
}

impl Options {
    /// Returns the default options for a file in a project at `root`.
    pub fn new(path: impl Into<PathBuf>, root: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let mut temp_directory = path.clone().into_os_string();
        temp_directory.push(".tmp");
        let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Self {
            path,
            home: Home::File,
            access: Access::default(),
            root: root.into(),
            temp_directory: temp_directory.into(),
            memory_limit: None,
            memory_share: None,
            temp_limit: None,
            threads: None,
            sandbox: None,
            working_folder: None,
            extensions: Vec::new(),
            loads: Vec::new(),
            installs: false,
            patience: Duration::ZERO,
            // A query or two are answered while all builds are at work.
            connections: cores.saturating_add(4),
            // Each waits for the disk when it commits, and another has its core meanwhile.
            builds: cores.saturating_add(2),
            share: None,
        }
    }
}
