//! The kinds of resources: how each is read from its settings.
//!
//! A kind has a file of its own here, one line in [`read`] and one in [`keys`].

mod alert;
mod api;
mod canvas;
mod common;
mod component;
mod connector;
mod explore;
pub(crate) mod inert;
mod job;
mod metrics_view;
mod migration;
mod model;
mod reader;
mod report;
mod service;
mod theme;
pub(crate) mod unsupported;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use common::{COMMON, PARSER};
pub use model::READER_OPTIONS;
pub(crate) use model::is_known;
pub(crate) use reader::{About, Reader};

use crate::{
    diagnostics::{At, Code, Findings},
    draft::{Body, Context, Draft, Manifest, Uses},
    resource::{FileKind, Kind, Spec},
    yaml::{Block, Fields, Map},
};

/// Reads a resource of a kind, and what comes with it.
pub(crate) fn read(kind: Kind, mut draft: Draft, mut reader: Reader<'_, '_>) -> (Vec<Draft>, Uses) {
    let declared = match kind {
        Kind::Model => model::read(&mut reader),
        Kind::MetricsView => metrics_view::read(&mut reader),
        Kind::Explore => explore::read(&mut reader),
        Kind::Canvas => canvas::read(&mut reader),
        Kind::Component => component::read(&mut reader),
        Kind::Theme => theme::read(&mut reader),
        Kind::Connector => connector::read(&mut reader),
        Kind::Migration => migration::read(&mut reader),
        Kind::Api => api::read(&mut reader),
        Kind::Alert => alert::read(&mut reader),
        Kind::Report => report::read(&mut reader),
        Kind::Job => job::read(&mut reader),
        Kind::Service => service::read(&mut reader),
        Kind::AiEval | Kind::Skill | Kind::Translation => reader::Declared::new(Spec::None),
    };
    if !kind.is_supported() {
        unsupported::warn(kind, &draft, reader.findings());
    }
    let mut uses = reader.uses;
    let mut spec = declared.spec;
    let mut variables = uses.values(reader.context);
    if kind == Kind::Model && uses.environment {
        // What the environment's name decides is part of the meaning, as a variable's value is.
        variables.insert(".environment".to_owned(), reader.context.environment.to_owned());
    }
    spec.set_variables(variables);
    draft.refs.extend(declared.refs);
    draft.refs.append(&mut uses.refs);
    draft.connectors = declared.connectors;
    draft.blocks = reader.blocks;
    let implied = declared.implied.into_iter().map(|implied| Draft {
        tags: draft.tags.clone(),
        refs: implied.refs,
        body: Body::Spec(Box::new(implied.spec)),
        implicit: true,
        ..Draft::new(implied.kind, implied.name, implied.at.unwrap_or(draft.name_at))
    });
    let implied: Vec<_> = implied.collect();
    draft.body = match spec {
        Spec::None => Body::Unsupported,
        spec => Body::Spec(Box::new(spec)),
    };
    (std::iter::once(draft).chain(implied).collect(), uses)
}

/// Returns the keys of a kind, beside those that all resources take; none for kinds that are kept and do nothing.
pub(crate) fn keys(kind: Kind) -> Option<&'static Block> {
    Some(match kind {
        Kind::Model => &model::MODEL,
        Kind::MetricsView => &metrics_view::METRICS_VIEW,
        Kind::Explore => &explore::EXPLORE,
        Kind::Canvas => &canvas::CANVAS,
        Kind::Component => &component::COMPONENT,
        Kind::Theme => &theme::THEME,
        Kind::Connector => &connector::CONNECTOR,
        Kind::Migration => &migration::MIGRATION,
        Kind::Api => &api::API,
        Kind::Alert => &alert::ALERT,
        Kind::Report => &report::REPORT,
        Kind::Job => &job::JOB,
        Kind::Service => &service::SERVICE,
        Kind::AiEval | Kind::Skill | Kind::Translation => return None,
    })
}

/// Reads a kind's defaults on their own, for findings about their values.
pub(crate) fn try_defaults(map: Map, at: At, kind: FileKind, findings: &mut Findings) {
    let context = Context {
        environment: "",
        variables: &BTreeMap::new(),
        are_variables_known: true,
        olap: "duckdb",
        drivers: &BTreeMap::new(),
        manifest: &Manifest::default(),
    };
    let mut trial = Findings::default();
    let draft = Draft::new(kind.kind(), String::new(), at);
    let reader = Reader {
        context: &context,
        fields: Fields::new(map, at, &mut trial),
        about: About {
            name: "",
            is_source: kind == FileKind::Source,
            version: 1,
            display_name: String::new(),
            sql: None,
            templating: true,
            own_keys: BTreeSet::new(),
        },
        uses: Uses::default(),
        blocks: Vec::new(),
    };
    read(kind.kind(), draft, reader);
    // What a single resource lacks, its file can still say.
    let about_values = trial.iter().filter(|finding| {
        matches!(
            finding.code,
            Code::WrongType | Code::InvalidValue | Code::DeprecatedKey
        )
    });
    about_values.for_each(|finding| findings.push(finding.clone()));
}
