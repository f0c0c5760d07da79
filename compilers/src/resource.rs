//! What a project declares: kinds, names, refs and specs.

use std::{cmp::Ordering, fmt, sync::Arc};

pub use crate::spec::Spec;

/// A kind of resource that project files can declare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Evaluation of an assistant's answers.
    AiEval,
    /// A condition that people are told about.
    Alert,
    /// A query that programs call.
    Api,
    /// A board of components.
    Canvas,
    /// One part of a canvas.
    Component,
    /// Access to another system.
    Connector,
    /// A dashboard over one metrics view.
    Explore,
    /// Measures and dimensions over a table.
    MetricsView,
    /// SQL that is run once.
    Migration,
    /// A table or view; sources are models too.
    Model,
    /// A query that people are sent the result of.
    Report,
    /// Instructions to an assistant.
    Skill,
    /// Colours.
    Theme,
    /// Words in another language.
    Translation,
}

impl Kind {
    /// Every kind, in the order of their names.
    pub const ALL: [Kind; 14] = [
        Kind::AiEval,
        Kind::Alert,
        Kind::Api,
        Kind::Canvas,
        Kind::Component,
        Kind::Connector,
        Kind::Explore,
        Kind::MetricsView,
        Kind::Migration,
        Kind::Model,
        Kind::Report,
        Kind::Skill,
        Kind::Theme,
        Kind::Translation,
    ];

    /// The kind as project files, documents and the catalog write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::AiEval => "ai_eval",
            Kind::Alert => "alert",
            Kind::Api => "api",
            Kind::Canvas => "canvas",
            Kind::Component => "component",
            Kind::Connector => "connector",
            Kind::Explore => "explore",
            Kind::MetricsView => "metrics_view",
            Kind::Migration => "migration",
            Kind::Model => "model",
            Kind::Report => "report",
            Kind::Skill => "skill",
            Kind::Theme => "theme",
            Kind::Translation => "translation",
        }
    }

    /// The kind that documents and the catalog write so.
    pub fn read(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Identity of a resource within a project: its kind and its name in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceKey {
    /// The kind.
    pub kind: Kind,
    /// The name in lower case.
    pub name: String,
}

impl ResourceKey {
    /// The key of a name in any case.
    pub fn new(kind: Kind, name: &str) -> Self {
        Self {
            kind,
            name: name.to_lowercase(),
        }
    }
}

/// A resource that another one reads. Compared without regard to the name's case.
#[derive(Debug, Clone)]
pub struct ResourceRef {
    /// The kind.
    pub kind: Kind,
    /// The name as the reader wrote it.
    pub name: String,
}

impl ResourceRef {
    /// Who is meant.
    pub fn key(&self) -> ResourceKey {
        ResourceKey::new(self.kind, &self.name)
    }
}

impl PartialEq for ResourceRef {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for ResourceRef {}

impl PartialOrd for ResourceRef {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ResourceRef {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// 128 bits that stand for a meaning, with the version of the rules that made them.
///
/// Two fingerprints of one version are equal when what they stand for means the same. Fingerprints of different
/// versions say nothing about one another: make the old text's anew with [`Project`] and compare those.
///
/// [`Project`]: crate::Project
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint {
    /// Version of the rules: ours and the engine's parser.
    pub version: Arc<str>,
    /// The bits.
    pub digest: [u8; 16],
}

impl Fingerprint {
    /// The message that specs carry.
    pub fn to_proto(&self) -> watershed_proto::Fingerprint {
        watershed_proto::Fingerprint {
            version: self.version.to_string(),
            digest: self.digest.to_vec(),
        }
    }
}

/// How a resource came out of its files.
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
    /// What it reads, ordered and without repetition.
    pub refs: Vec<ResourceRef>,
    /// The files that declare it, without a leading slash, ordered.
    pub paths: Vec<String>,
    /// Its tags, as written.
    pub tags: Vec<String>,
    /// What is wanted.
    pub spec: Spec,
    /// Fingerprint of kind and spec by meaning, refs as ordinals; the name is no part of it.
    pub meaning: Fingerprint,
    /// How it came out of its files.
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
