//! A project's folder, compiled: what [`Folder`] sees, fed to the compiler, with what it learned kept between
//! processes.

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

/// More than the largest project needs, in bytes.
const LARGEST_CACHE: usize = 256 << 20;

/// A project's folder and what it declares.
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
    /// The project below `root`, not looked at yet. `cache` is a file that keeps what the engine's parser said, so
    /// that an unchanged project asks it nothing; it is read now, and anybody may delete it.
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

    /// Returns the project's folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The same for a project that is confined to some folders: links that lead out of them are not followed.
    #[must_use]
    pub fn confined(mut self, sandbox: Option<Sandbox>) -> Self {
        self.folder = Folder::confined(sandbox);
        self
    }

    /// Looks at the files in `scope` and compiles what changed since the last look. Blocks.
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

    /// Notes that all changes up to now are in the catalog.
    pub(super) fn changes_are_applied(&mut self) {
        self.changed.clear();
    }

    /// After the first look: only what was written since then is known to have changed, what is new, and what is gone.
    pub(super) fn forget_unchanged_since(&mut self, then: Timestamp, rows: &[Arc<Row>]) {
        let folder = &self.folder;
        let rows: Vec<&Row> = rows.iter().map(Arc::as_ref).collect();
        self.changed
            .forget_old(&rows, |path| folder.is_written_after(path, then.0));
    }

    /// Says of each edit which files are behind it.
    pub(super) fn say_origins(&self, batch: Batch, rows: &[Arc<Row>]) -> Batch {
        let rows: Vec<&Row> = rows.iter().map(Arc::as_ref).collect();
        self.changed.say(batch, &rows)
    }

    /// The project as of the last look.
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

/// The variables of the project below `root`, from its manifest and its `.env` files alone. Blocks.
///
/// # Errors
/// When the folder can't be listed.
pub fn variables(root: &Path, options: Options) -> Result<BTreeMap<String, String>, FolderError> {
    Ok(surroundings(root, options)?.variables().clone())
}

/// The bounds of the trash of the project below `root`, as its manifest has them. Blocks.
///
/// # Errors
/// When the folder can't be listed.
pub fn trash(root: &Path, options: Options) -> Result<TrashLimits, FolderError> {
    Ok(settings::trash_limits(&surroundings(root, options)?))
}

/// The users of the manifest of the project below `root` whose view of the data can be tried, with their attributes. Blocks.
///
/// # Errors
/// When the folder can't be listed.
pub fn mock_users(root: &Path, options: Options) -> Result<Vec<MapValue>, FolderError> {
    Ok(surroundings(root, options)?.mock_users().to_vec())
}

/// The settings of all jobs, services and managed resources of the project below `root`, as its manifest has them: nothing
/// else is looked at. Blocks.
pub fn programs(root: &Path, options: Options) -> (WorkloadSettings, ManagerSettings) {
    let read = |name: &str| {
        let content = regular::read(&root.join(name), FileEvent::MAX_BYTES).ok()?;
        Some(FileEvent::Written {
            path: name.to_owned(),
            content: content.into(),
        })
    };
    let mut project = Project::new(options);
    project.apply(MANIFESTS.into_iter().filter_map(read), &EngineParser::default());
    (project.workloads(), project.managers().clone())
}

/// A project with its manifest and its `.env` files alone.
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

/// Writes a file that others may be reading: by rename, under a name that nobody else writes to.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    secrets::write_for_owner(path, bytes)
}
