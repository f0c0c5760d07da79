//! Refs of alerts and reports that query the status of resources, directly or through APIs. They refer to all other
//! resources, so that they run after these have settled and again when a status changes.
//!
//! Those that report read one another in no order, nor does one read what reads it: of these it tells what was last known.

use std::collections::{BTreeMap, BTreeSet};

use watershed_compilers::{Kind, Spec};
use watershed_core::{Key, Ref};
use watershed_proto::DataResolver;
use watershed_resolvers::status;

/// The future resources with the refs of their files, and the status reporters among them.
pub(super) struct Watching<'a> {
    refs: BTreeMap<&'a Key, &'a [Ref]>,
    reporters: BTreeSet<&'a Key>,
}

impl<'a> Watching<'a> {
    /// Finds the status reporters among resources; none if there are none. `spec` returns the spec of a resource.
    pub(super) fn new(
        refs: BTreeMap<&'a Key, &'a [Ref]>,
        spec: impl Fn(&Key) -> Option<Spec>,
    ) -> Option<Self> {
        let reports = |key: &Key| {
            let api = |name: &str| match spec(&Key::new(Kind::Api.as_str(), name))? {
                Spec::Api(api) => api.data,
                _ => None,
            };
            let data = question(key, &spec);
            data.is_some_and(|data| status::asked(&data, api).is_some())
        };
        let reporters: BTreeSet<&Key> = refs.keys().copied().filter(|key| reports(key)).collect();
        (!reporters.is_empty()).then_some(Self { refs, reporters })
    }

    /// Returns the keys of the resources that report the project's status.
    pub(super) fn reporters(&self) -> impl Iterator<Item = Key> {
        self.reporters.iter().map(|key| (*key).clone())
    }

    /// Returns refs to all resources except status reporters and their transitive dependents.
    pub(super) fn refs(&self) -> Vec<Ref> {
        let below = self.below();
        let others = self.refs.keys().filter(|key| !below.contains(**key));
        let kinds =
            others.filter(|key| Kind::read(key.kind.as_str()).is_some_and(|kind| kind.is_supported()));
        kinds
            .map(|key| Ref::completed(key.kind.as_str(), key.name.as_str()))
            .collect()
    }

    /// Returns the status reporters and their transitive dependents.
    fn below(&self) -> BTreeSet<Key> {
        let mut readers: BTreeMap<Key, Vec<&Key>> = BTreeMap::new();
        for (key, refs) in &self.refs {
            for reference in refs.iter().filter(|_| !self.reporters.contains(*key)) {
                readers.entry(reference.key()).or_default().push(key);
            }
        }
        let mut found: BTreeSet<Key> = self.reporters().collect();
        let mut left: Vec<Key> = self.reporters().collect();
        while let Some(key) = left.pop() {
            for reader in readers.get(&key).into_iter().flatten() {
                if found.insert((*reader).clone()) {
                    left.push((*reader).clone());
                }
            }
        }
        found
    }
}

/// Returns the data block of an alert or report; none for other kinds.
fn question(key: &Key, spec: impl Fn(&Key) -> Option<Spec>) -> Option<DataResolver> {
    let kind = key.kind.as_str();
    if kind != Kind::Alert.as_str() && kind != Kind::Report.as_str() {
        return None;
    }
    match spec(key)? {
        Spec::Alert(alert) => alert.data,
        Spec::Report(report) => report.data,
        _ => None,
    }
}

/// Returns true if a spec queries statuses itself, so that its refs are not part of its meaning.
pub(super) fn is_of_reporter(spec: &Spec) -> bool {
    let data = match spec {
        Spec::Alert(alert) => &alert.data,
        Spec::Report(report) => &report.data,
        _ => return false,
    };
    data.as_ref()
        .is_some_and(|data| data.resolver == status::RESOLVER)
}
