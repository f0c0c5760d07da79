//! The project: file events in, changes out.
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

pub use places::{Location, Reference};

/// Tells whether a parse may be taken as the whole truth about what the project declares. When it is not [`Trust::Whole`],
/// whoever applies it deletes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// The files say all.
    Whole,
    /// There is no manifest.
    ManifestMissing,
    /// The manifest can't be read.
    ManifestBroken,
    /// The manifest chooses an engine in which nothing can be built.
    EngineUnfit,
    /// There are more than [`Project::MAX_FILES`] files.
    TooManyFiles,
    /// There is no file at all.
    NoFiles,
}

/// The changes of [`Project::apply`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Resources that were not there before.
    pub added: Vec<ResourceKey>,
    /// Resources of which anything differs: spec, refs, paths, health, the name's case.
    pub changed: Vec<ResourceKey>,
    /// Resources that are gone.
    pub removed: Vec<ResourceKey>,
    /// The findings differ.
    pub diagnostics: bool,
}

impl Changes {
    /// Returns true if nothing changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A project's files and what they declare.
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
    /// Refs to nothing, by the resource that holds them.
    dangling: BTreeMap<ResourceKey, Vec<Dangling>>,
    /// Dashboards and metrics views by what they read of that sort.
    dashboards: BTreeMap<ResourceKey, BTreeSet<ResourceKey>>,
    /// Findings by what they came from: a group, an `.env` file, the manifest, a cycle's member.
    findings: BTreeMap<Source, Vec<Diagnostic>>,
    diagnostics: Vec<Diagnostic>,
    cache: Cache,
}

/// The source of findings.
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

/// The files of one stem and what they came to.
#[derive(Debug, Default)]
struct Group {
    /// Paths by role.
    sql: Option<String>,
    yaml: Option<String>,
    second_yaml: Option<String>,
    compiled: Compiled,
    /// Of each draft, of each of its blocks, of each statement.
    analyses: Vec<Vec<Vec<Arc<SqlAnalysis>>>>,
    /// Names that it may bind to.
    reads: BTreeSet<ResourceKey>,
}

impl Group {
    fn paths(&self) -> Vec<String> {
        let mut paths: Vec<String> = self.sql.iter().chain(&self.yaml).cloned().collect();
        paths.sort();
        paths
    }

    /// The path that decides who wins a name.
    fn first_path(&self) -> String {
        self.paths().into_iter().next().unwrap_or_default()
    }
}

impl Project {
    /// The most files that are compiled.
    pub const MAX_FILES: usize = 20_000;

    /// A project without files.
    pub fn new(options: Options) -> Self {
        Self {
            variables: options.variables.clone(),
            options,
            ..Self::default()
        }
    }

    /// Returns the options of the parse.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// All resources, by kind and name; also those that are broken or not supported.
    pub fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.resources.values()
    }

    /// One resource.
    pub fn resource(&self, key: &ResourceKey) -> Option<&Resource> {
        self.resources.get(key)
    }

    /// All findings, by file and place.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// The text of a file, for drawing findings about it; bytes that are no UTF-8 are replaced.
    pub fn source(&self, path: &str) -> Option<std::borrow::Cow<'_, str>> {
        self.files.content(path).map(String::from_utf8_lossy)
    }

    /// Returns true if what is not declared may be deleted.
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

    /// Paths of files that are there and do not compile: what they declared before is to be kept. Holds also files
    /// from whose ruins no resource could be made out.
    pub fn broken_paths(&self) -> BTreeSet<String> {
        let broken = self
            .groups
            .values()
            .filter(|group| group.compiled.findings.has_errors());
        broken.flat_map(Group::paths).collect()
    }

    /// The number of files that count for the project.
    pub fn file_count(&self) -> usize {
        self.files.count()
    }

    /// Paths of the files that count for the project, ordered.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.paths()
    }

    /// The manifest's name for people, or an empty text.
    pub fn display_name(&self) -> &str {
        &self.manifest.display_name
    }

    /// The users whose view of the data can be tried, with their attributes.
    pub fn mock_users(&self) -> &[MapValue] {
        &self.manifest.mock_users
    }

    /// The bounds of the trash that the manifest says.
    pub fn trash(&self) -> Trash {
        self.manifest.trash
    }

    /// Returns whether the engine may fetch extensions that a resource needs, as the manifest says.
    pub fn installs_extensions(&self) -> bool {
        !self.manifest.no_installs
    }

    /// The settings of all jobs and services that the manifest says.
    pub fn workloads(&self) -> WorkloadSettings {
        self.manifest.workloads
    }

    /// The settings of all managed resources.
    pub fn managers(&self) -> &ManagerSettings {
        &self.manifest.managers
    }

    /// The connector that models run on when they say none.
    pub fn olap_connector(&self) -> &str {
        self.manifest
            .olap_connector
            .as_deref()
            .unwrap_or(&self.options.olap_connector)
    }

    /// All variables by name: the manifest's, those of `.env` files and those of the options.
    pub fn variables(&self) -> &BTreeMap<String, String> {
        &self.variables
    }

    /// Exports the answers of the engine's parser, to be kept between processes; `None` if they are about those that
    /// were imported or last exported: what a few edits taught is soon learned again, and is not worth a file each
    /// time.
    pub fn export_cache(&mut self) -> Option<Vec<u8>> {
        if !self.cache.is_worth_an_export() {
            return None;
        }
        let live = self.live_statements();
        self.cache.export(&live)
    }

    /// Takes what an earlier process learned. Bytes that can't be read, or of another version, are ignored.
    pub fn import_cache(&mut self, bytes: &[u8]) {
        self.cache.import(bytes);
    }
}

#[cfg(test)]
mod tests;
