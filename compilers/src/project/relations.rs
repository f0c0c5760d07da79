//! `relationships` tests against a model that reads, in the end, the tested one: they are run with that later model, after both.
//!
//! # Invariants
//! 1. A pair of models is late if the second reads the first in the end, other than by tests of this sort. So where a test is run follows
//!    from the files alone, and its move closes no cycle.
//! 2. The test of a late pair stands in the spec of the later model, and the tested model has no ref of it.

use std::collections::{BTreeMap, BTreeSet};

use watershed_proto::{ModelSpec, ModelTest};

use super::{Group, claims::Claims, cycles::Knots};
use crate::{
    diagnostics::Role,
    draft::Draft,
    resource::{Kind, Resource, ResourceKey, Spec},
};

type Resources = BTreeMap<ResourceKey, Resource>;

/// A tested model, and the later model with which its test is run.
type Pair = (ResourceKey, ResourceKey);

/// A model's part in `relationships` tests.
#[derive(Debug, Clone, Default)]
pub(super) struct Part {
    /// Models that only this model's own `relationships` tests read.
    pub(super) tested_against: BTreeSet<ResourceKey>,
    /// Refs that come from `relationships` tests alone, including tests moved to this model.
    pub(super) soft: BTreeSet<ResourceKey>,
}

/// All `relationships` tests of a project, by model.
#[derive(Debug, Default)]
pub(super) struct Relations {
    parts: BTreeMap<ResourceKey, Part>,
    late: BTreeSet<Pair>,
}

impl Relations {
    /// Replaces a model's part; an empty part is removed.
    pub(super) fn set(&mut self, key: ResourceKey, part: Part) {
        if part.tested_against.is_empty() && part.soft.is_empty() {
            self.parts.remove(&key);
        } else {
            self.parts.insert(key, part);
        }
    }

    /// Removes a model's part.
    pub(super) fn remove(&mut self, key: &ResourceKey) {
        self.parts.remove(key);
    }

    /// Returns true if a test of `tested` against `other` is run after `other` is built.
    pub(super) fn is_late(&self, tested: &ResourceKey, other: &ResourceKey) -> bool {
        !self.late.is_empty() && self.late.contains(&(tested.clone(), other.clone()))
    }

    /// Recomputes the late pairs. Returns the models whose tests may have changed: both of each new or removed pair,
    /// and the later model of each touched one.
    pub(super) fn settle(
        &mut self,
        resources: &Resources,
        touched: &BTreeSet<ResourceKey>,
    ) -> BTreeSet<ResourceKey> {
        let late = self.find(resources, touched);
        let mut again = BTreeSet::new();
        for (tested, later) in late.symmetric_difference(&self.late) {
            again.extend([tested.clone(), later.clone()]);
        }
        let edited = late.iter().filter(|(tested, _)| touched.contains(tested));
        again.extend(edited.map(|(_, later)| later.clone()));
        self.late = late;
        again
    }

    /// Returns the late pairs, searched in the cycles of refs and tests that touched models or former pairs can reach.
    fn find(&self, resources: &Resources, touched: &BTreeSet<ResourceKey>) -> BTreeSet<Pair> {
        let mut late = BTreeSet::new();
        if self.parts.is_empty() {
            return late;
        }
        let before = self.late.iter().flat_map(|(tested, later)| [tested, later]);
        let roots = touched.iter().chain(before).collect();
        let next = |key: &ResourceKey| {
            let tests = self
                .parts
                .get(key)
                .into_iter()
                .flat_map(|part| &part.tested_against);
            let tests = tests.filter_map(|key| resources.get_key_value(key).map(|(key, _)| key));
            self.read(resources, key).chain(tests).collect()
        };
        for knot in Knots::new(resources, &next).run(&roots) {
            let members: BTreeSet<&ResourceKey> = knot.iter().copied().collect();
            let mut upstream: BTreeMap<&ResourceKey, BTreeSet<&ResourceKey>> = BTreeMap::new();
            for tested in knot {
                let others = self
                    .parts
                    .get(tested)
                    .into_iter()
                    .flat_map(|part| &part.tested_against);
                for other in others.filter_map(|other| members.get(other).copied()) {
                    let above = upstream
                        .entry(other)
                        .or_insert_with(|| self.above(resources, other, &members));
                    if above.contains(tested) && is_one_engine(resources, tested, other) {
                        late.insert((tested.clone(), other.clone()));
                    }
                }
            }
        }
        late
    }

    /// Returns the resources that a resource reads, except through `relationships` tests.
    fn read<'a>(&self, resources: &'a Resources, key: &ResourceKey) -> impl Iterator<Item = &'a ResourceKey> {
        let refs = resources.get(key).into_iter().flat_map(|resource| &resource.refs);
        let refs = refs.filter_map(|one| resources.get_key_value(&one.key()).map(|(key, _)| key));
        let part = self.parts.get(key);
        refs.filter(move |key| !part.is_some_and(|part| part.soft.contains(*key)))
    }

    /// Returns the members of a cycle that a member reads, transitively.
    fn above<'a>(
        &self,
        resources: &'a Resources,
        key: &'a ResourceKey,
        members: &BTreeSet<&ResourceKey>,
    ) -> BTreeSet<&'a ResourceKey> {
        let (mut found, mut open) = (BTreeSet::new(), vec![key]);
        while let Some(key) = open.pop() {
            let next = self.read(resources, key).filter(|key| members.contains(key));
            open.extend(next.filter(|key| found.insert(*key)));
        }
        found
    }

    /// Returns the tests of a model to run with it: its own tests that are not moved, then tests moved to the model.
    pub(super) fn tests(&self, draft: &Draft, spec: &ModelSpec, moved: Vec<ModelTest>) -> Vec<ModelTest> {
        let own = ResourceKey::new(draft.kind, &draft.name);
        let is_moved = |at: usize| {
            let mut relations = draft.relations.iter().filter(|relation| relation.test == at);
            relations.any(|relation| self.is_late(&own, &ResourceKey::new(Kind::Model, &relation.to)))
        };
        let kept = spec.tests.iter().enumerate().filter(|(at, _)| !is_moved(*at));
        kept.map(|(_, test)| test.clone()).chain(moved).collect()
    }

    /// Returns the tests of earlier models that are run with the model `later`, by the earlier model's name.
    pub(super) fn moved_to(
        &self,
        later: &ResourceKey,
        groups: &BTreeMap<String, Group>,
        claims: &Claims,
    ) -> Vec<(String, Vec<ModelTest>)> {
        let pairs = self.late.iter().filter(|(_, other)| other == later);
        let moved = pairs.filter_map(|(tested, _)| {
            let claim = claims.winner(tested)?;
            let group = groups.get(&claim.group)?;
            let draft = group.compiled.drafts.get(claim.draft)?;
            let path = group.path(Role::Yaml).cloned().unwrap_or_default();
            let spec = draft.model()?;
            let relations = draft.relations.iter();
            let relations =
                relations.filter(|relation| ResourceKey::new(Kind::Model, &relation.to) == *later);
            let tests = relations.filter_map(|relation| spec.tests.get(relation.test));
            let tests = tests.map(|test| ModelTest {
                name: format!("{} of {}", test.name, draft.name),
                path: path.clone(),
                ..test.clone()
            });
            Some((draft.name.clone(), tests.collect()))
        });
        moved.collect()
    }
}

/// Returns true if two models are built in the same engine, so that one transaction can read both.
fn is_one_engine(resources: &Resources, one: &ResourceKey, other: &ResourceKey) -> bool {
    let engine = |key| match &resources.get(key)?.spec {
        Spec::Model(spec) => Some(spec.output_connector.as_str()),
        _ => None,
    };
    engine(one).is_some() && engine(one) == engine(other)
}
