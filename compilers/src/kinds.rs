//! The kinds of resources, and the reading of each from its settings.
//!
//! A kind has a file of its own here, with a table of its keys and a function `read`, and its line in
//! `resource/table.rs`.

mod alert;
mod api;
mod canvas;
mod common;
mod component;
mod connector;
mod explore;
pub(crate) mod inert;
mod job;
mod managed;
mod metrics_view;
mod migration;
mod model;
mod program;
mod reader;
mod report;
mod service;
mod theme;
pub(crate) mod unsupported;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use common::{COMMON, PARSER};
pub(crate) use connector::words_of;
pub use model::{READER_OPTIONS, lakehouse_log, refused_object, refused_output, with_all_columns};
pub(crate) use model::{is_known, no_rows_of};
use reader::Declared;
pub(crate) use reader::{About, Reader};
pub use service::REPLICAS_MAX;

use crate::{
    diagnostics::{At, Code, Findings},
    draft::{Body, Context, Draft, Manifest, Uses},
    resource::{FileKind, Kind, Spec, table::kinds},
    yaml::{Block, Fields, Key, Map, Takes},
};

macro_rules! dispatch {
    ($($(#[doc = $doc:literal])+ $kind:ident = $word:literal $(| $other:literal)* {
        $(keys: $module:ident::$keys:ident, spec: $spec:ident $(, defaults: $key:literal $(| $old:literal)*)?)?
    })+) => {
        fn declared(kind: Kind, reader: &mut Reader<'_, '_>) -> Declared {
            match kind {
                $($(Kind::$kind => $module::read(reader),)?)+
                _ => Declared::new(Spec::None),
            }
        }

        /// Returns the keys that only a kind has; none for kinds that are recognised but do nothing.
        pub(crate) fn keys(kind: Kind) -> Option<&'static Block> {
            match kind {
                $($(Kind::$kind => Some(&$module::$keys),)?)+
                _ => None,
            }
        }

        /// Keys of the manifest that hold the defaults of a kind. The keys for models and sources are in the manifest's
        /// own table, as they are two keys of one kind.
        pub(crate) const DEFAULTS: &[Key] = &[$($($(
            default_key(concat!("Defaults of resources of kind `", $word, "`."), $key, None),
            $(default_key(concat!("Defaults of resources of kind `", $word, "`."), $old, Some($key)),)*
        )?)?)+];

        /// Returns the kind whose defaults a key of the manifest holds.
        pub(crate) fn kind_of_defaults(key: &str) -> Option<Kind> {
            match key {
                $($($($key $(| $old)* => Some(Kind::$kind),)?)?)+
                _ => None,
            }
        }
    };
}

kinds!(dispatch);

const fn default_key(meaning: &'static str, name: &'static str, instead: Option<&'static str>) -> Key {
    Key {
        name,
        takes: Takes::Any,
        meaning,
        instead,
    }
}

/// Reads a resource of a kind, together with the resources that it implies.
pub(crate) fn read(kind: Kind, mut draft: Draft, mut reader: Reader<'_, '_>) -> (Vec<Draft>, Uses) {
    let declared = declared(kind, &mut reader);
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
    draft.table_at = declared.table_at;
    draft.blocks = reader.blocks;
    draft.relations = declared.relations;
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

/// Reads the defaults of a kind by themselves, to report wrong values.
pub(crate) fn try_defaults(map: Map, at: At, kind: FileKind, findings: &mut Findings) {
    let context = Context {
        environment: "",
        variables: &BTreeMap::new(),
        are_variables_known: true,
        olap: "duckdb",
        drivers: &BTreeMap::new(),
        manifest: &Manifest::default(),
        engine: None,
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
            refs: Vec::new(),
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
