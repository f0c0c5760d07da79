//! The compilation of a project's folder, with the answers of the engine's parser cached between processes.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use watershed_compilers::{
    Changes, FileEvent, MANIFESTS, ManagerSettings, Options, Project, WorkloadSettings,
};
use watershed_core::{Batch, Row, Timestamp};
use watershed_drivers::olap::TrashLimits;
use watershed_drivers::regular;
use watershed_drivers::sandbox::Sandbox;
use watershed_outputs::{secrets, settings, sql_parser::EngineParser};
use watershed_proto::MapValue;

use super::folder::{Folder, FolderError};
use super::origins::Changed;
use super::touched::Scope;

/// The largest size of a cache file, in bytes; the largest projects need less.
const LARGEST_CACHE: usize = 256 << 20;

/// A project's folder, and the project compiled from it.
#[derive(Debug)]
pub struct Compilation {
    root: PathBuf,
    cache: Option<PathBuf>,
    folder: Folder,
    project: Project,
    parser: EngineParser,
    changed: Changed,
}

impl Compilation {
    /// Creates the compilation of the project in `root`, without looking at files yet. `cache` is a file with answers
    /// of the engine's parser, read now, so that an unchanged project needs no parsing; it may be deleted at any time.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>, options: Options, cache: Option<PathBuf>) -> Self {
        let mut project = Project::new(options);
        if let Some(bytes) = cache
            .as_ref()
            .and_then(|cache| regular::read(cache, LARGEST_CACHE).ok())
        {
            project.import_cache(&bytes);
        }
        Self {
            root: root.into(),
            cache,
            folder: Folder::default(),
            project,
            parser: EngineParser::default(),
            changed: Changed::default(),
        }
    }

    /// Returns the folder of the project.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns true if the project is confined to the folders of a sandbox.
    pub(super) fn is_confined(&self) -> bool {
        self.folder.is_confined()
    }

    /// Confines the project to the folders of a sandbox: links that lead out of them are not followed.
    #[must_use]
    pub fn confined(mut self, sandbox: Option<Sandbox>) -> Self {
        self.folder = Folder::confined(sandbox);
        self
    }

    /// Reads the files in `scope` and compiles those that changed since the last look. Blocks.
    ///
    /// # Errors
    /// When the folder can't be listed. Then nothing is known anew.
    pub fn refresh(&mut self, scope: &Scope) -> Result<Changes, FolderError> {
        let events = self.folder.look(&self.root, scope)?;
        self.changed.add(&events);
        let changes = self.project.apply(events, &self.parser);
        if let (Some(cache), Some(bytes)) = (&self.cache, self.project.export_cache())
            && let Err(error) = replace(cache, &bytes)
        {
            tracing::debug!(path = %cache.display(), %error, "the parse cache was not kept");
        }
        Ok(changes)
    }

    /// Sets the authors of the files that have changed since the last applied parse.
    pub(super) fn name_authors(&mut self, author: impl FnMut(&str) -> Option<Arc<str>>) {
        self.changed.name_authors(author);
    }

    /// Records that all changes so far have been applied to the catalog.
    pub(super) fn changes_are_applied(&mut self) {
        self.changed.clear();
    }

    /// Limits the known changes after a first look to files that were written since `then`, are new, or are gone.
    pub(super) fn forget_unchanged_since(&mut self, then: Timestamp, rows: &[Arc<Row>]) {
        let folder = &self.folder;
        let rows: Vec<&Row> = rows.iter().map(Arc::as_ref).collect();
        self.changed
            .forget_old(&rows, |path| folder.is_written_after(path, then.0));
    }

    /// Sets the origin of each edit to the files behind it.
    pub(super) fn say_origins(&self, batch: Batch, rows: &[Arc<Row>]) -> Batch {
        let rows: Vec<&Row> = rows.iter().map(Arc::as_ref).collect();
        self.changed.say(batch, &rows)
    }

    /// Returns the project as of the last look.
    #[must_use]
    pub fn project(&self) -> &Project {
        &self.project
    }

    /// Returns the number of files at the last look.
    #[must_use]
    pub fn files(&self) -> usize {
        self.folder.len()
    }
}

/// Returns the variables of the project in `root`, read from its manifest and `.env` files only. Blocks.
///
/// # Errors
/// When the folder can't be listed.
pub fn variables(root: &Path, options: Options) -> Result<BTreeMap<String, String>, FolderError> {
    Ok(surroundings(root, options)?.variables().clone())
}

/// Returns the bounds of the trash that the manifest of the project in `root` sets. Blocks.
///
/// # Errors
/// When the folder can't be listed.
pub fn trash(root: &Path, options: Options) -> Result<TrashLimits, FolderError> {
    Ok(settings::trash_limits(&surroundings(root, options)?))
}

/// Returns the mock users, with their attributes, that the manifest of the project in `root` lists. Blocks.
///
/// # Errors
/// When the folder can't be listed.
pub fn mock_users(root: &Path, options: Options) -> Result<Vec<MapValue>, FolderError> {
    Ok(surroundings(root, options)?.mock_users().to_vec())
}

/// Returns the settings for jobs, services and managed resources from the manifest of the project in `root`, without
/// reading other files. Blocks.
pub fn programs(root: &Path, options: Options) -> (WorkloadSettings, ManagerSettings) {
    let project = manifest(root, options);
    (project.workloads(), project.managers().clone())
}

/// The project below `root` with its manifest alone. Blocks.
pub fn manifest(root: &Path, options: Options) -> Project {
    let read = |name: &str| {
        let content = regular::read(&root.join(name), FileEvent::MAX_BYTES).ok()?;
        Some(FileEvent::Written {
            path: name.to_owned(),
            content: content.into(),
        })
    };
    let mut project = Project::new(options);
    project.apply(MANIFESTS.into_iter().filter_map(read), &EngineParser::default());
    project
}

/// Returns a project compiled from the manifest and the `.env` files only.
fn surroundings(root: &Path, options: Options) -> Result<Project, FolderError> {
    let mut events = Folder::default().look(root, &Scope::Everything)?;
    events.retain(|event| {
        let path = match event {
            FileEvent::Written { path, .. } => path,
            FileEvent::Removed { .. } | FileEvent::Unreadable { .. } => return false,
        };
        path.ends_with(".env") || MANIFESTS.contains(&path.as_str())
    });
    let mut project = Project::new(options);
    project.apply(events, &EngineParser::default());
    Ok(project)
}

/// Replaces a file atomically, by renaming a file of a unique name.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    secrets::write_for_owner(path, bytes)
}
