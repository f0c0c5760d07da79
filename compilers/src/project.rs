//! The project: file events in, changes out.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    diagnostics::Diagnostic,
    options::Options,
    resource::{Resource, ResourceKey},
    sql::SqlParser,
};

/// What happened to a file. Paths are relative to the project, `/` between parts, without a leading slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileEvent {
    /// It is there with this content. Equal content is no change.
    Written {
        /// The file's path.
        path: String,
        /// The content; at most [`FileEvent::MAX_BYTES`] are read, more is a finding.
        content: Arc<[u8]>,
    },
    /// It is gone.
    Removed {
        /// The file's path.
        path: String,
    },
    /// It is there and can't be read.
    Unreadable {
        /// The file's path.
        path: String,
        /// Why.
        problem: FileProblem,
    },
}

impl FileEvent {
    /// The largest file that is compiled: 128 KiB.
    pub const MAX_BYTES: usize = 128 * 1024;
}

/// Why a file can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileProblem {
    /// It is larger than [`FileEvent::MAX_BYTES`]; its size in bytes.
    TooLarge(u64),
    /// A folder has the name of a project file.
    Folder,
    /// A symbolic link that leads back to a folder above it.
    LinkLoop,
    /// The system refused; its message.
    Io(String),
}

/// Whether a parse may be taken as the whole truth about what the project declares. When it is not
/// [`Trust::Whole`], whoever applies it deletes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// The files say all.
    Whole,
    /// There is no manifest.
    ManifestMissing,
    /// The manifest can't be read.
    ManifestBroken,
    /// There are more than [`Project::MAX_FILES`] files.
    TooManyFiles,
    /// There is no file at all.
    NoFiles,
}

/// What [`Project::apply`] changed.
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

/// A project's files and what they declare.
#[derive(Debug, Default)]
pub struct Project {
    options: Options,
    resources: BTreeMap<ResourceKey, Resource>,
    diagnostics: Vec<Diagnostic>,
}

impl Project {
    /// The most files that are compiled.
    pub const MAX_FILES: usize = 20_000;

    /// A project without files.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            ..Self::default()
        }
    }

    /// Takes what happened to files and brings resources and findings up to date, asking `parser` for what it has
    /// not seen before. Costs in proportion to what the events touch.
    pub fn apply(&mut self, events: impl IntoIterator<Item = FileEvent>, parser: &dyn SqlParser) -> Changes {
        let _ = (events.into_iter().count(), parser.version());
        Changes::default()
    }

    /// What the parse depends on beside the files.
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

    /// Whether what is not declared may be deleted.
    pub fn trust(&self) -> Trust {
        Trust::NoFiles
    }

    /// Paths of files that are there and do not compile. What they declared before is to be kept.
    pub fn broken_paths(&self) -> impl Iterator<Item = &str> {
        std::iter::empty()
    }

    /// The manifest's name for people, or an empty text.
    pub fn display_name(&self) -> &str {
        ""
    }

    /// All variables by name: the manifest's, those of `.env` files and those of the options.
    pub fn variables(&self) -> BTreeMap<String, String> {
        self.options.variables.clone()
    }

    /// What was learned from the engine's parser, to be kept between processes; `None` if it was imported and
    /// nothing was learned or dropped since.
    pub fn export_cache(&self) -> Option<Vec<u8>> {
        None
    }

    /// Takes what an earlier process learned. Bytes that can't be read, or of another version, are ignored.
    pub fn import_cache(&mut self, bytes: &[u8]) {
        let _ = bytes;
    }
}
