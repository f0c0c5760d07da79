//! Resources that a project declares: kinds, names, refs and specs.

pub(crate) mod file_kind;
mod fingerprint;
mod key;
mod kind;
pub mod meaning;
mod order;
mod spec;
pub mod spec_json;
pub(crate) mod table;

pub use fingerprint::Fingerprint;
pub use key::{Requirement, ResourceKey, ResourceRef};
pub use kind::Kind;
pub use spec::Spec;

pub(crate) use file_kind::FileKind;
pub(crate) use kind::WORDS;

/// The health of a resource after its files were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// It compiles.
    Ok,
    /// Its files are there and do not compile: it has a name and diagnostics, and no spec. What it declared before
    /// is to be kept.
    Broken,
    /// Its kind is recognised and does nothing yet: it has a name and no spec.
    Unsupported,
}

/// One declared thing.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// Its kind.
    pub kind: Kind,
    /// Its name, in the case in which it was written.
    pub name: String,
    /// The resources that it reads, ordered and without repetition.
    pub refs: Vec<ResourceRef>,
    /// The files that declare it, without a leading slash, ordered.
    pub paths: Vec<String>,
    /// Its tags, as written.
    pub tags: Vec<String>,
    /// The desired spec.
    pub spec: Spec,
    /// Fingerprint of kind and spec by meaning, refs as ordinals; the name is no part of it.
    pub meaning: Fingerprint,
    /// Its health after its files were read.
    pub health: Health,
    /// The names on its cycle in order, from itself back to itself, if it is on one.
    pub cycle: Option<Vec<String>>,
}

impl Resource {
    /// Its identity.
    pub fn key(&self) -> ResourceKey {
        ResourceKey::new(self.kind, &self.name)
    }
}
