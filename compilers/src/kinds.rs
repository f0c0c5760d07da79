//! The kinds of resources: how each is read from its settings.
//!
//! A kind has a file of its own here and one line in [`read`].

mod canvas;
mod component;
mod connector;
mod explore;
mod metrics_view;
mod migration;
pub(crate) mod model;
mod reader;
mod theme;
pub(crate) mod unsupported;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use reader::{About, Declared, Reader};

use crate::{
    diagnostics::{At, Findings},
    draft::{Body, Context, Draft, Manifest, Uses},
    resource::{Kind, Spec},
    yaml::{Fields, Map},
};

/// Reads a resource of a kind, and what comes with it.
pub(crate) fn read(kind: Kind, mut draft: Draft, mut reader: Reader<'_, '_>) -> (Vec<Draft>, Uses) {
    let declared = match kind {
        Kind::MetricsView => metrics_view::read(&mut reader),
        Kind::Explore => explore::read(&mut reader),
        Kind::Canvas => canvas::read(&mut reader),
        Kind::Component => component::read(&mut reader),
        Kind::Theme => theme::read(&mut reader),
        Kind::Connector => connector::read(&mut reader),
        Kind::Migration => migration::read(&mut reader),
        _ => Declared::new(Spec::None),
    };
    let mut uses = reader.uses;
    let mut spec = declared.spec;
    spec.set_variables(uses.values(reader.context));
    draft.refs.extend(declared.refs);
    draft.refs.append(&mut uses.refs);
    draft.connectors = declared.connectors;
    let implied = declared.implied.into_iter().map(|implied| Draft {
        kind: implied.kind,
        name: implied.name,
        name_at: implied.at.unwrap_or(draft.name_at),
        tags: draft.tags.clone(),
        refs: implied.refs,
        connectors: Vec::new(),
        body: Body::Declared(Box::new(implied.spec)),
        implicit: true,
    });
    let implied: Vec<_> = implied.collect();
    draft.body = Body::Declared(Box::new(spec));
    (std::iter::once(draft).chain(implied).collect(), uses)
}

/// Reads a kind's defaults on their own, for their findings.
pub(crate) fn try_defaults(map: Map, at: At, kind: Kind, findings: &mut Findings) {
    let context = Context {
        environment: "",
        variables: &BTreeMap::new(),
        olap: "duckdb",
        drivers: &BTreeMap::new(),
        manifest: &Manifest::default(),
    };
    let draft = Draft::new(kind, String::new(), at);
    let reader = Reader {
        context: &context,
        fields: Fields::new(map, at, findings),
        about: About {
            name: "",
            version: 1,
            display_name: String::new(),
            sql: None,
            templating: true,
            own_keys: BTreeSet::new(),
        },
        uses: Uses::default(),
    };
    read(kind, draft, reader);
}
