//! Keys and refs of resources within a project.

use std::cmp::Ordering;

use super::kind::Kind;

/// The identity of a resource within a project: its kind and its name in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceKey {
    /// The kind of the resource.
    pub kind: Kind,
    /// The name of the resource in lower case.
    pub name: String,
}

impl ResourceKey {
    /// Creates the key of a name in any case.
    pub fn new(kind: Kind, name: &str) -> Self {
        Self {
            kind,
            name: name.to_lowercase(),
        }
    }
}

/// A ref to another resource, compared without regard to the name's case.
#[derive(Debug, Clone)]
pub struct ResourceRef {
    /// The kind of the target.
    pub kind: Kind,
    /// The name of the target as written.
    pub name: String,
    /// The requirement that the ref states, if any.
    pub required: Option<Requirement>,
}

/// The condition on the target of a ref, for dependents to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Requirement {
    /// The target only has to exist.
    Exists,
    /// The target's last run has ended.
    Completed,
    /// The target's last run succeeded and made it usable.
    Ready,
}

impl Requirement {
    /// Parses the word for a requirement.
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
    /// Returns the stated requirement, or else the default of the target's kind: `ready` for jobs, services and managed
    /// resources, which are useless before, `completed` otherwise.
    pub fn requirement(&self) -> Requirement {
        self.required.unwrap_or(match self.kind {
            Kind::Job | Kind::Service | Kind::Managed => Requirement::Ready,
            _ => Requirement::Completed,
        })
    }

    /// Returns the key of the ref's target.
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
