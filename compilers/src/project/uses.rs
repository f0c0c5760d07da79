//! Names that SQL and settings use, and the kinds to which they may bind.

use std::sync::Arc;

use super::claims::Claims;
use crate::{
    diagnostics::At,
    draft::RawRef,
    draft::{Draft, Purpose},
    resource::{Kind, Requirement, ResourceKey},
    sql::SqlAnalysis,
};

/// A use of a name in SQL or settings.
pub(super) struct Use<'a> {
    pub(super) kind: Option<Kind>,
    pub(super) name: &'a str,
    /// True if the resource's own name means a look at its last result, not a ref.
    pub(super) own_look: bool,
    /// True if the name binds to a model of that name, if there is one.
    pub(super) binds: bool,
    /// The place of the use if the name can only mean a resource, so that a missing one is a mistake.
    pub(super) expected: Option<At>,
    /// True if the name stands in the list `refs`.
    listed: bool,
    /// A `relationships` test uses it.
    pub(super) is_related: bool,
    /// The requirement that the ref states, if any.
    pub(super) required: Option<Requirement>,
}

/// Kinds that a bare name in the list `refs` may mean, in the order of precedence.
const BARE: [Kind; 4] = [Kind::Model, Kind::Job, Kind::Service, Kind::Managed];

impl Use<'_> {
    /// Returns the kind that the name binds to, given the declared resources.
    pub(super) fn kind(&self, claims: &Claims) -> Kind {
        let bare = || {
            let is_there = |kind: &Kind| claims.exists(&ResourceKey::new(*kind, self.name));
            BARE.into_iter().find(is_there).filter(|_| self.listed)
        };
        self.kind.or_else(bare).unwrap_or(Kind::Model)
    }

    /// Returns all kinds that the name may bind to.
    pub(super) fn kinds(&self) -> &[Kind] {
        match (&self.kind, self.listed) {
            (Some(kind), _) => std::slice::from_ref(kind),
            (None, true) => &BARE,
            (None, false) => &BARE[..1],
        }
    }
}

/// Returns the names that a draft uses, in the order of first use.
pub(super) fn uses<'a>(draft: &'a Draft, analyses: &'a [Vec<Arc<SqlAnalysis>>]) -> Vec<Use<'a>> {
    let mut found = Vec::new();
    for (at, (block, analyses)) in draft.blocks.iter().zip(analyses).enumerate() {
        let is_related = draft.relations.iter().any(|relation| relation.block == at);
        // Tests and states look at the finished table of their own model, which is no cycle.
        let looks = matches!(block.purpose, Purpose::State | Purpose::Test | Purpose::UnitTest);
        let is_metrics_sql = block.tables == Kind::MetricsView;
        for (statement, analysis) in block.statements.iter().zip(analyses) {
            let incremental = statement
                .variant
                .as_ref()
                .is_some_and(|variant| variant.incremental);
            let exact = statement.variant.as_ref().is_none_or(|variant| variant.exact);
            for table in &analysis.tables {
                found.push(Use {
                    kind: is_metrics_sql.then_some(Kind::MetricsView),
                    name: &table.name,
                    // Read from another database, or in the incremental variant, its own name is not its own new table
                    // either.
                    own_look: looks || table.foreign || incremental,
                    binds: true,
                    // In plain SQL a name may be that of a table which nobody declares; in a query of metrics there is
                    // nothing else to read.
                    expected: (is_metrics_sql && exact).then(|| block.place.whole_text(&block.text)),
                    listed: false,
                    is_related,
                    required: None,
                });
            }
        }
    }
    let binds = matches!(
        draft.kind,
        Kind::Model | Kind::MetricsView | Kind::Api | Kind::Alert | Kind::Report
    );
    // Nothing else could be meant by what a program refers to.
    let is_program = matches!(draft.kind, Kind::Job | Kind::Service | Kind::Managed);
    // What only parts need is said first: a later condition beats it.
    let is_weak = |raw: &&RawRef| draft.kind == Kind::Managed && raw.required == Some(Requirement::Exists);
    let raw = draft.refs.iter();
    let raw = raw.clone().filter(is_weak).chain(raw.filter(|raw| !is_weak(raw)));
    found.extend(raw.map(|raw| Use {
        kind: raw.kind,
        name: &raw.name,
        own_look: raw.own_look,
        binds: binds || is_program,
        expected: (raw.expected || (is_program && raw.listed)).then(|| raw.at.unwrap_or(draft.name_at)),
        listed: raw.listed,
        is_related: false,
        required: required(draft.kind, raw.required),
    }));
    found
}

/// Returns the requirement of a ref, given what it states. Refs of managed resources require at most completion, as
/// only their steps wait for more.
fn required(kind: Kind, said: Option<Requirement>) -> Option<Requirement> {
    match (kind, said) {
        (Kind::Managed, Some(Requirement::Exists)) => said,
        (Kind::Managed, _) => Some(Requirement::Completed),
        _ => said,
    }
}
