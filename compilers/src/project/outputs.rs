//! The tables that models write, and the model that owns each.
//!
//! Two models of different names may ask for one table. The first of them by its path has it, in whatever order their
//! files came: of the other one nothing is built, so that neither takes the rows of the other for its own.

use std::collections::{BTreeMap, BTreeSet};

use super::{Group, claims::Claim, claims::Claims};
use crate::{
    diagnostics::{At, Code, Diagnostic, DiagnosticResource, Finding, Nearby, Related},
    draft::{Body, Draft},
    resource::{Kind, ResourceKey, Spec},
};

/// A model that writes a table; the smallest owns it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Writer {
    /// The claim of the model on its name.
    pub(super) claim: Claim,
    /// The key of the model that writes the output.
    pub(super) key: ResourceKey,
}

/// The models that write each table, by the table's name in lower case.
#[derive(Debug, Default)]
pub(super) struct Outputs(BTreeMap<String, BTreeSet<Writer>>);

impl Outputs {
    pub(super) fn insert(&mut self, table: String, writer: Writer) {
        self.0.entry(table).or_default().insert(writer);
    }

    pub(super) fn remove(&mut self, table: &str, writer: &Writer) {
        if let Some(writers) = self.0.get_mut(table) {
            writers.remove(writer);
            if writers.is_empty() {
                self.0.remove(table);
            }
        }
    }

    /// Returns the model that owns a table. Models that lost their own name are skipped.
    pub(super) fn owner(&self, table: &str, claims: &Claims) -> Option<&Writer> {
        let mut writers = self.0.get(table).into_iter().flatten();
        writers.find(|writer| claims.winner(&writer.key) == Some(&writer.claim))
    }

    /// Returns the groups of all models that write a table.
    pub(super) fn groups(&self, table: &str) -> impl Iterator<Item = &String> {
        let writers = self.0.get(table).into_iter().flatten();
        writers.map(|writer| &writer.claim.group)
    }
}

/// Returns the table that a model writes, in lower case; none if the draft is no model or does not compile.
pub(super) fn table(draft: &Draft) -> Option<String> {
    let Body::Spec(spec) = &draft.body else {
        return None;
    };
    let Spec::Model(spec) = spec.as_ref() else {
        return None;
    };
    let said = spec.output_properties.as_ref().and_then(|all| all.str("table"));
    let said = said.filter(|said| !said.is_empty());
    Some(said.unwrap_or(&draft.name).to_ascii_lowercase())
}

/// Returns the tables that the models of a group write, each with the index of the draft and the model's key.
pub(super) fn tables(group: &Group) -> impl Iterator<Item = (usize, ResourceKey, String)> {
    let drafts = group.compiled.drafts.iter().enumerate();
    drafts.filter_map(|(index, draft)| {
        let key = ResourceKey::new(Kind::Model, &draft.name);
        Some((index, key, table(draft)?))
    })
}

/// Returns the finding about a model whose table is owned by another model.
pub(super) fn other_writer(
    draft: &Draft,
    group: &Group,
    groups: &BTreeMap<String, Group>,
    (claims, outputs): (&Claims, &Outputs),
) -> Option<Diagnostic> {
    let table = table(draft)?;
    let own = ResourceKey::new(draft.kind, &draft.name);
    let owner = outputs.owner(&table, claims).filter(|owner| owner.key != own)?;
    let first = groups.get(&owner.claim.group)?;
    let other = first.compiled.drafts.get(owner.claim.draft)?;
    let path = |group: &Group, at: At| group.path(at.role).cloned().unwrap_or_default();
    let (at, there) = (draft.output_at(), other.output_at());
    let finding = Finding {
        at,
        code: Code::OutputShared,
        message: format!("\"{table}\" is the table of model \"{}\" too", other.name),
        hint: Some("give one of them another name, or another `output.table`".to_owned()),
        related: Vec::new(),
    };
    let about = DiagnosticResource {
        key: own,
        name: draft.name.clone(),
    };
    let mut found = finding.in_file(&path(group, at), Some(&about));
    found.related.push(Related {
        path: path(first, there),
        span: there.span,
        message: Nearby::first(there).message.to_owned(),
    });
    Some(found)
}
