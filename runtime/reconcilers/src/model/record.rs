//! What the engine records beside an output, in the transaction that makes it.
//!
//! The record is what proves that an output is still what would be built. The catalog's copy of it (a model's
//! state) may be older after a crash; the engine's wins.

use std::fmt;

use uuid::Uuid;

/// Identity of what a build made: two outputs with one build id hold the same.
///
/// A table gets a fresh one with every build that replaced it. A view's is derived from its definition and from
/// what it reads, so making it again changes nothing for those that read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BuildId(pub Uuid);

/// Fingerprint of a definition: SQL as the engine's tree, inputs as ordinals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meaning {
    /// Version of the rules that made it; fingerprints of different versions do not compare.
    pub version: String,
    /// The fingerprint.
    pub digest: [u8; 16],
}

/// What an output is in the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A view: a name for its SQL.
    View,
    /// A table: rows of its own.
    Table,
}

/// What a ref of a model stood for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Name of the output that it read.
    pub table: String,
    /// The build that it read.
    pub build: BuildId,
}

/// A local file as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSeen {
    /// Path relative to the project.
    pub path: String,
    /// Modification time, nanoseconds since the epoch.
    pub modified_ns: i64,
    /// Size in bytes.
    pub size: u64,
    /// Hash of the content; none if the file changed while it was read.
    pub content: Option<[u8; 32]>,
    /// When time and size were looked at, nanoseconds since the epoch.
    pub seen_at_ns: i64,
}

/// How many refreshes were asked for, or answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Refreshes {
    /// Plain ones.
    pub plain: u64,
    /// Full ones.
    pub full: u64,
}

/// What the engine records beside an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The catalog whose resource made it: the uid of its project parser.
    pub catalog: Uuid,
    /// The build that made it.
    pub build: BuildId,
    /// Its name.
    pub table: String,
    /// View or table.
    pub shape: Shape,
    /// Fingerprint of the definition that made it.
    pub meaning: Meaning,
    /// The definition that made it, as it was stored in the catalog: fingerprinted anew by later versions.
    pub definition: Vec<u8>,
    /// What its refs stood for, in the order of the ordinals.
    pub inputs: Vec<Input>,
    /// The local files that it read, sorted by path.
    pub files: Vec<FileSeen>,
    /// The refreshes that it answered.
    pub answered: Refreshes,
    /// Number of rows; none for a view.
    pub rows: Option<u64>,
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
