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
    /// The resource compiles.
    Ok,
    /// The resource's files exist but do not compile: it has a name and diagnostics and no spec. The previous
    /// declaration must be kept.
    Broken,
    /// The resource's kind is recognised but does nothing yet: it has a name and no spec.
    Unsupported,
}

/// A resource that files of the project declare.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// The kind of the resource.
    pub kind: Kind,
    /// The name of the resource, in its original case.
    pub name: String,
    /// The resources that this one reads, in order and without repetition.
    pub refs: Vec<ResourceRef>,
    /// The files that declare it, without a leading slash, ordered.
    pub paths: Vec<String>,
    /// The tags of the resource, as written.
    pub tags: Vec<String>,
    /// The desired spec; [`Spec::None`] if the resource is broken or unsupported.
    pub spec: Spec,
    /// The fingerprint of kind and spec by meaning, with refs as ordinals and without the name.
    pub meaning: Fingerprint,
    /// The health of the resource after its files were read.
    pub health: Health,
    /// The names on the resource's cycle, from itself back to itself; none if it is on no cycle.
    pub cycle: Option<Vec<String>>,
}

impl Resource {
    /// Returns the kind and name that identify the resource.
    pub fn key(&self) -> ResourceKey {
        ResourceKey::new(self.kind, &self.name)
    }
}
