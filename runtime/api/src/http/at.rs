//! The resources that a path of the HTTP API names.

use crate::documents::ResourceName;

/// The resources that a path names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct At {
    /// Kind and name of each resource; no kind where the path implies the kind.
    targets: Vec<(Option<String>, String)>,
}

impl At {
    /// Returns the targets of a path that names no resource.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// Returns the target of a path that names a resource by kind and name.
    pub fn resource(kind: &str, name: &str) -> Self {
        Self {
            targets: vec![(Some(kind.to_owned()), name.to_owned())],
        }
    }

    /// Returns the target of a path: a name whose kind the path implies.
    pub fn plain(name: &str) -> Self {
        Self {
            targets: vec![(None, name.to_owned())],
        }
    }

    /// Returns the resources of a selection as targets.
    pub fn selected(names: impl IntoIterator<Item = ResourceName>) -> Self {
        let target = |name: ResourceName| (Some(name.kind), name.name);
        Self {
            targets: names.into_iter().map(target).collect(),
        }
    }

    /// Returns all names, as `kind/name` where the kind is known.
    pub(super) fn names(&self) -> Vec<String> {
        let name = |(kind, name): &(Option<String>, String)| match kind {
            Some(kind) => format!("{kind}/{name}"),
            None => name.clone(),
        };
        self.targets.iter().map(name).collect()
    }

    /// Returns the first name, as `kind/name` where the kind is known; none if the path names no resource.
    pub(super) fn name(&self) -> Option<String> {
        self.names().into_iter().next()
    }

    /// Returns the first name, as `kind/name` where the kind is known; empty if the path names no resource.
    pub(super) fn one(&self) -> String {
        self.name().unwrap_or_default()
    }

    /// Returns the first name without its kind.
    pub(super) fn plain_name(&self) -> String {
        let first = self.targets.first();
        first.map(|(_, name)| name.clone()).unwrap_or_default()
    }
}

/// Percent-encodes a segment of a path, or a value of a query.
pub fn encoded(segment: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    let mut text = String::new();
    for byte in segment.bytes() {
        match plain(byte) {
            true => text.push(char::from(byte)),
            false => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}
