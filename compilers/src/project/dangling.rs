//! Refs to resources that no file declares.
//!
//! Which name was likely meant depends on all names that there are, so those that dangle are told anew whenever
//! anything changes; where none does, that costs nothing.

use super::{Group, Project, Source, work::Work};
use crate::{
    diagnostics::{At, Code, Diagnostic, DiagnosticResource, Finding},
    draft::Body,
    resource::{Kind, ResourceKey},
    text::names,
};

/// A ref to a resource that no file declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dangling {
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) path: String,
    pub(super) at: At,
    /// True if the ref stands in a template, where a table that no file declares is named without `ref`.
    pub(super) is_template: bool,
}

impl Project {
    /// Reports dangling refs, and drops findings about refs that are resolved.
    pub(super) fn settle_refs(&mut self, work: &mut Work) {
        let touched = work.before.keys().filter(|key| !self.dangling.contains_key(key));
        for key in touched.cloned().collect::<Vec<_>>() {
            self.report(Source::Refs(key), Vec::new(), work);
        }
        if self.dangling.is_empty() {
            return;
        }
        let beside_ruins = self.groups.values().any(Group::is_ruin);
        for key in self.dangling.keys().cloned().collect::<Vec<_>>() {
            let found = self.told(&key, beside_ruins);
            self.report(Source::Refs(key), found, work);
        }
    }

    fn told(&self, key: &ResourceKey, beside_ruins: bool) -> Vec<Diagnostic> {
        let name = self.resources.get(key).map(|resource| resource.name.clone());
        let about = DiagnosticResource {
            name: name.unwrap_or_else(|| key.name.clone()),
            key: key.clone(),
        };
        let all = self.dangling.get(key).into_iter().flatten();
        all.map(|one| self.finding(one, beside_ruins).in_file(&one.path, Some(&about)))
            .collect()
    }

    fn finding(&self, one: &Dangling, beside_ruins: bool) -> Finding {
        let near = names::nearest(&one.name.to_lowercase(), self.claims.names(one.kind));
        let near = near.and_then(|near| self.resources.get(&ResourceKey::new(one.kind, near)));
        // Nobody knows what a file declares that can't be read at all.
        let unread = beside_ruins.then_some("a file that can't be read may declare it");
        let plain = one
            .is_template
            .then_some("a table that no file declares is named without `ref`");
        // What the template of Rill for a new API refers to.
        let is_example = one.kind == Kind::MetricsView && one.name == "metrics_view";
        let example = is_example.then_some(
            "an example that Rill wrote: name a metrics view and fields of it, or remove the file",
        );
        Finding {
            at: one.at,
            code: Code::MissingRef,
            message: format!("{} \"{}\" does not exist", one.kind, one.name),
            hint: near
                .map(|near| format!("did you mean `{}`?", near.name))
                .or_else(|| example.or(unread).or(plain).map(str::to_owned)),
            related: Vec::new(),
        }
    }
}

impl Group {
    /// Returns true if the group has errors and no draft that compiles, so that its declarations are unknown.
    fn is_ruin(&self) -> bool {
        let broken = |draft: &crate::draft::Draft| matches!(draft.body, Body::Broken);
        self.compiled.findings.has_errors() && self.compiled.drafts.iter().all(broken)
    }
}
