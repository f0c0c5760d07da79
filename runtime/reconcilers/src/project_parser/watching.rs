//! Refs of what reports how resources stand: alerts and reports on `resource_status`, behind APIs as well. They read all others, so
//! that they are looked at when these have settled, and again when one of them stands differently.
//!
//! Those that report read one another in no order, nor does one read what reads it: of these it tells what was last known.

use std::collections::{BTreeMap, BTreeSet};

use watershed_compilers::{Kind, Spec};
use watershed_core::{Key, Ref};
use watershed_proto::DataResolver;
use watershed_resolvers::status;

/// The resources that are going to be there, with the refs that their files say.
pub(super) struct Watching<'a> {
    refs: BTreeMap<&'a Key, &'a [Ref]>,
    reporters: BTreeSet<&'a Key>,
}

impl<'a> Watching<'a> {
    /// Finds what reports among some resources; nothing if none does. `spec` reads their specs.
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

    /// Returns those that report.
    pub(super) fn reporters(&self) -> impl Iterator<Item = Key> {
        self.reporters.iter().map(|key| (*key).clone())
    }

    /// Returns the refs to all that they report, but to one another and to what reads one of them.
    pub(super) fn refs(&self) -> Vec<Ref> {
        let below = self.below();
        let others = self.refs.keys().filter(|key| !below.contains(**key));
        let kinds =
            others.filter(|key| Kind::read(key.kind.as_str()).is_some_and(|kind| kind.is_supported()));
        kinds
            .map(|key| Ref::completed(key.kind.as_str(), key.name.as_str()))
            .collect()
    }

    /// Returns those that report, and all that reads one of them, however far away.
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

/// Returns the question of an alert or a report; none of other kinds.
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

/// Returns true for the spec of something that asks for statuses itself: its refs are no part of what it means.
pub(super) fn is_of_reporter(spec: &Spec) -> bool {
    let data = match spec {
        Spec::Alert(alert) => &alert.data,
        Spec::Report(report) => &report.data,
        _ => return false,
    };
    data.as_ref()
        .is_some_and(|data| data.resolver == status::RESOLVER)
}
