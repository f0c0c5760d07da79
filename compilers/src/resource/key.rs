//! Names of resources within a project.

use std::cmp::Ordering;

use super::kind::Kind;

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
    /// The condition that the reader says.
    pub required: Option<Requirement>,
}

/// The condition of a ref on what it refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Requirement {
    /// That it is there.
    Exists,
    /// That its last run has ended.
    Completed,
    /// That its last run succeeded, and it can be used.
    Ready,
}

impl Requirement {
    /// Reads the word for it.
    pub(crate) fn read(word: &str) -> Option<Self> {
        match word {
            "exists" => Some(Self::Exists),
            "completed" => Some(Self::Completed),
            "ready" => Some(Self::Ready),
            _ => None,
        }
    }
}

impl ResourceRef {
    /// Returns the condition: what the reader says, or else that of the kind. A program, or a managed resource, is of use only once
    /// it is ready.
    pub fn requirement(&self) -> Requirement {
        self.required.unwrap_or(match self.kind {
            Kind::Job | Kind::Service | Kind::Managed => Requirement::Ready,
            _ => Requirement::Completed,
        })
    }

    /// Returns the key of the resource.
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
        // Almost all names are ASCII, and sets compare often: no allocation for those.
        if self.name.is_ascii() && other.name.is_ascii() {
            let own = self.name.bytes().map(|byte| byte.to_ascii_lowercase());
            let others = other.name.bytes().map(|byte| byte.to_ascii_lowercase());
            return self.kind.cmp(&other.kind).then_with(|| own.cmp(others));
        }
        self.key().cmp(&other.key())
    }
}
