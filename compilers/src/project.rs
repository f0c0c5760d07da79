//! The project: a state that takes file events and returns changes of resources.
//!
//! # Invariants
//! 1. Resources and findings are a function of files and options: the order of events leaves no trace.
//! 2. Every group of files that declares something has an entry among the claims of each name that it declares.
//! 3. Of the claims on a name the first wins: explicit before implied, then the smaller path.
//! 4. A group is among the readers of every name that it may bind to.

mod apply;
mod claims;
mod cycles;
mod dangling;
mod fields;
mod files;
mod given;
mod lanes;
mod link;
mod outputs;
mod places;
mod relations;
mod surroundings;
mod uses;
mod work;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use watershed_proto::MapValue;

use crate::{
    diagnostics::Diagnostic,
    draft::{Compiled, Manifest},
    engine::Need,
    options::Options,
    resource::{Resource, ResourceKey},
    settings::{managers::ManagerSettings, trash::Trash, workloads::WorkloadSettings},
    sql::{Cache, SqlAnalysis},
};
use claims::Claims;
use dangling::Dangling;
use files::Files;
use outputs::Outputs;
use relations::Relations;

pub use places::{Location, Reference};

/// The reasons to trust, or not to trust, that a parse shows everything the project declares. Unless it is
/// [`Trust::Whole`], resources missing from the project must not be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// The files are complete: a resource that they don't declare may be deleted.
    Whole,
    /// The project has no `rill.yaml` or `watershed.yaml`.
    ManifestMissing,
    /// The manifest can't be read.
    ManifestBroken,
    /// The manifest chooses an engine in which nothing can be built.
    EngineUnfit,
    /// There are more than [`Project::MAX_FILES`] files.
    TooManyFiles,
    /// The project has no files at all.
    NoFiles,
}

/// The changes made by [`Project::apply`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Resources that are new.
    pub added: Vec<ResourceKey>,
    /// Resources with another spec, refs, paths, health or case of the name.
    pub changed: Vec<ResourceKey>,
    /// Resources that are no longer declared.
    pub removed: Vec<ResourceKey>,
    /// True if the list of findings changed.
    pub diagnostics: bool,
}

impl Changes {
    /// Returns true if nothing changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A project: its files and the resources that they declare.
#[derive(Debug, Default)]
pub struct Project {
    options: Options,
    files: Files,
    manifest: Manifest,
    manifest_trust: Option<Trust>,
    manifest_path: String,
    parser_version: String,
    env_files: BTreeMap<String, BTreeMap<String, String>>,
    variables: BTreeMap<String, String>,
    drivers: BTreeMap<String, String>,
    groups: BTreeMap<String, Group>,
    claims: Claims,
    outputs: Outputs,
    readers: BTreeMap<ResourceKey, BTreeSet<String>>,
    resources: BTreeMap<ResourceKey, Resource>,
    on_cycle: BTreeSet<ResourceKey>,
    relations: Relations,
    /// Refs to resources that don't exist, by the resource that holds the refs.
    dangling: BTreeMap<ResourceKey, Vec<Dangling>>,
    /// Dashboards and metrics views, by the dashboard or metrics view that they read.
    dashboards: BTreeMap<ResourceKey, BTreeSet<ResourceKey>>,
    /// Findings by source: a group, an `.env` file, the manifest, a member of a cycle.
    findings: BTreeMap<Source, Vec<Diagnostic>>,
    diagnostics: Vec<Diagnostic>,
    cache: Cache,
}

/// The source of findings, by which they are replaced.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Project,
    Engine,
    Env(String),
    Group(String),
    Cycle(ResourceKey),
    Refs(ResourceKey),
    Fields(ResourceKey),
}

/// The files of one stem and the result of compiling them.
#[derive(Debug, Default)]
struct Group {
    /// The path of the SQL file, if there is one.
    sql: Option<String>,
    yaml: Option<String>,
    second_yaml: Option<String>,
    compiled: Compiled,
    /// Analyses of SQL, by draft, block and statement.
    analyses: Vec<Vec<Vec<Arc<SqlAnalysis>>>>,
    /// Resources that the group's names may bind to.
    reads: BTreeSet<ResourceKey>,
}

impl Group {
    fn paths(&self) -> Vec<String> {
        let mut paths: Vec<String> = self.sql.iter().chain(&self.yaml).cloned().collect();
        paths.sort();
        paths
    }

    /// Returns the path that decides which group wins a name.
    fn first_path(&self) -> String {
        self.paths().into_iter().next().unwrap_or_default()
    }
}

impl Project {
    /// The largest number of files that are compiled.
    pub const MAX_FILES: usize = 20_000;

    /// Creates a project without files.
    pub fn new(options: Options) -> Self {
        Self {
            variables: options.variables.clone(),
            options,
            ..Self::default()
        }
    }

    /// Returns the options that the project is compiled with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Returns all resources by kind and name, including broken and unsupported ones.
    pub fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.resources.values()
    }

    /// Returns the resource of a key, if it is declared.
    pub fn resource(&self, key: &ResourceKey) -> Option<&Resource> {
        self.resources.get(key)
    }

    /// Returns all findings, by file and place.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// Returns the text of a file for showing findings about it; bytes that are not UTF-8 are replaced.
    pub fn source(&self, path: &str) -> Option<std::borrow::Cow<'_, str>> {
        self.files.content(path).map(String::from_utf8_lossy)
    }

    /// Returns whether resources that the project does not declare may be deleted, or why not.
    pub fn trust(&self) -> Trust {
        if self.files.over_limit() {
            Trust::TooManyFiles
        } else if self.files.is_empty() {
            Trust::NoFiles
        } else if self.is_manifest_whole()
            && self
                .engine()
                .is_some_and(|engine| engine.lacks.contains(&Need::Builds))
        {
            Trust::EngineUnfit
        } else {
            self.manifest_trust.unwrap_or(Trust::ManifestMissing)
        }
    }

    /// Returns the paths of files that exist and do not compile. Resources that they declared before must be kept, even
    /// if the files no longer show which.
    pub fn broken_paths(&self) -> BTreeSet<String> {
        let broken = self
            .groups
            .values()
            .filter(|group| group.compiled.findings.has_errors());
        broken.flat_map(Group::paths).collect()
    }

    /// Returns the number of files that belong to the project.
    pub fn file_count(&self) -> usize {
        self.files.count()
    }

    /// Returns the paths of the files that belong to the project, in order.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.paths()
    }

    /// Returns the display name of the project; empty if the manifest has none.
    pub fn display_name(&self) -> &str {
        &self.manifest.display_name
    }

    /// Returns the users whose view of the data can be tried out, with their attributes.
    pub fn mock_users(&self) -> &[MapValue] {
        &self.manifest.mock_users
    }

    /// Folders and files that everybody may read, without a leading slash.
    pub fn public_paths(&self) -> &[String] {
        &self.manifest.public_paths
    }

    /// Returns true if the manifest leaves a path out of the project.
    pub fn ignores(&self, path: &str) -> bool {
        self.files.is_ignored(path)
    }

    /// Returns the bounds of the trash that the manifest sets.
    pub fn trash(&self) -> Trash {
        self.manifest.trash
    }

    /// Returns true if the manifest lets the engine install extensions that a resource needs.
    pub fn installs_extensions(&self) -> bool {
        !self.manifest.no_installs
    }

    /// Returns the settings of all jobs and services that the manifest sets.
    pub fn workloads(&self) -> WorkloadSettings {
        self.manifest.workloads
    }

    /// Returns the settings of all managed resources that the manifest sets.
    pub fn managers(&self) -> &ManagerSettings {
        &self.manifest.managers
    }

    /// Returns the connector that models run on unless they name another.
    pub fn olap_connector(&self) -> &str {
        self.manifest
            .olap_connector
            .as_deref()
            .unwrap_or(&self.options.olap_connector)
    }

    /// Returns all variables by name, from the manifest, `.env` files and the options.
    pub fn variables(&self) -> &BTreeMap<String, String> {
        &self.variables
    }

    /// Exports the answers of the engine's parser for the next process; none if they changed too little since the last
    /// import or export to be worth a file.
    pub fn export_cache(&mut self) -> Option<Vec<u8>> {
        if !self.cache.is_worth_an_export() {
            return None;
        }
        let live = self.live_statements();
        self.cache.export(&live)
    }

    /// Imports answers of the engine's parser from an earlier process. Unreadable bytes and other versions are ignored.
    pub fn import_cache(&mut self, bytes: &[u8]) {
        self.cache.import(bytes);
    }
}

#[cfg(test)]
mod tests;
