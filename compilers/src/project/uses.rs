//! Names that SQL and settings use, and the kinds that they stand for.

use std::sync::Arc;

use super::claims::Claims;
use crate::{
    diagnostics::At,
    draft::RawRef,
    draft::{Draft, Purpose},
    resource::{Kind, Requirement, ResourceKey},
    sql::SqlAnalysis,
};

/// A name that SQL or settings use, in the order of first use.
pub(super) struct Use<'a> {
    pub(super) kind: Option<Kind>,
    pub(super) name: &'a str,
    /// Its own name here is no ref.
    pub(super) own_look: bool,
    /// It binds to a model of its name, if there is one.
    pub(super) binds: bool,
    /// It names a resource and nothing else, here.
    pub(super) expected: Option<At>,
    /// It stands in the list `refs`.
    listed: bool,
    /// The condition that it says.
    pub(super) required: Option<Requirement>,
}

/// Kinds that a bare name of the list `refs` may stand for, in the order in which they are tried.
const BARE: [Kind; 4] = [Kind::Model, Kind::Job, Kind::Service, Kind::Managed];

impl Use<'_> {
    /// Returns the kind that it stands for.
    pub(super) fn kind(&self, claims: &Claims) -> Kind {
        let bare = || {
            let is_there = |kind: &Kind| claims.exists(&ResourceKey::new(*kind, self.name));
            BARE.into_iter().find(is_there).filter(|_| self.listed)
        };
        self.kind.or_else(bare).unwrap_or(Kind::Model)
    }

    /// Returns the kinds that it may stand for, whatever is declared.
    pub(super) fn kinds(&self) -> &[Kind] {
        match (&self.kind, self.listed) {
            (Some(kind), _) => std::slice::from_ref(kind),
            (None, true) => &BARE,
            (None, false) => &BARE[..1],
        }
    }
}

/// The names that a draft may bind to, in the order of first use.
pub(super) fn uses<'a>(draft: &'a Draft, analyses: &'a [Vec<Arc<SqlAnalysis>>]) -> Vec<Use<'a>> {
    let mut found = Vec::new();
    for (block, analyses) in draft.blocks.iter().zip(analyses) {
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
        required: required(draft.kind, raw.required),
    }));
    found
}

/// The condition that a ref says. The passes and the teardown of a managed resource wait for nobody: its steps upwards
/// do, until what it refers to can be used.
fn required(kind: Kind, said: Option<Requirement>) -> Option<Requirement> {
    match (kind, said) {
        (Kind::Managed, Some(Requirement::Exists)) => said,
        (Kind::Managed, _) => Some(Requirement::Completed),
        _ => said,
    }
}
