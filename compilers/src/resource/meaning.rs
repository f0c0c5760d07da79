//! Fingerprints of specs by meaning, whatever their text.
//!
//! SQL counts by its tree, or by its tokens where there is none; other values count as they are; places and text do
//! not. A model that is read counts by its number among the spec's inputs, so that a rename upstream is no change of
//! what the output depends on.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value as Json;
use watershed_proto::{MapValue, Message, ModelSpec, Value};

use super::{fingerprint::Fingerprint, key::ResourceRef, order::order_of_names, spec::Spec};
use crate::{
    sql::{SqlAnalysis, SqlParser, TableUse, digest, scan_template},
    template::{Facts, Template, is_template},
};

/// The version of the rules for fingerprints; must change with the rules.
const RULES: &str = "watershed 3";

/// Keys of inputs that hold the SQL hooks of a build.
pub(crate) const SQL_KEYS: [&str; 3] = ["pre_exec", "post_exec", "init_queries"];
/// Keys of inputs that are documentation only.
const PROSE_KEYS: [&str; 2] = ["description", "display_name"];

/// The ordinal that stands for the model itself in its own tests.
const ITSELF: usize = usize::MAX;

/// Returns the version of fingerprints made with a parser.
pub(crate) fn version(parser_version: &str) -> Arc<str> {
    format!("{RULES}, {parser_version}").into()
}

/// The two fingerprints of a model's spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meanings {
    /// The fingerprint of the whole spec.
    pub whole: Fingerprint,
    /// The fingerprint of the parts of the spec that the output's rows depend on.
    pub output: Fingerprint,
}

/// Computes the fingerprints of the spec of the model `name` by the current rules and parser. Used to compare specs
/// whose stored fingerprints have different versions.
pub fn fingerprint(name: &str, spec: &ModelSpec, parser: &dyn SqlParser) -> Meanings {
    let analysis = plain_statement(spec).and_then(|text| {
        let answer = parser.parse(&[text]).into_iter().next()?;
        Some(SqlAnalysis::read(text, &answer))
    });
    fingerprint_spec(name, spec, version(parser.version()), analysis.as_ref())
}

/// Returns the statement whose parse tree is the spec's meaning, if there is one.
fn plain_statement(spec: &ModelSpec) -> Option<&str> {
    spec.sql
        .as_ref()
        .filter(|sql| sql.engine && !sql.templated)
        .map(|sql| sql.text.as_str())
}

/// Settings of an output that affect only how later rows are added, not existing rows.
const LATER_KEYS: [&str; 4] = [
    "incremental_strategy",
    "unique_key",
    "partition_by",
    "on_schema_change",
];

/// Computes the fingerprints of the spec of the model `name`; `analysis` is that of its plain statement.
pub(crate) fn fingerprint_spec(
    name: &str,
    spec: &ModelSpec,
    version: Arc<str>,
    analysis: Option<&SqlAnalysis>,
) -> Meanings {
    let ordinals: BTreeMap<String, usize> = spec
        .inputs
        .iter()
        .enumerate()
        .map(|(at, name)| (name.to_lowercase(), at))
        .collect();
    let mut print = Print {
        hasher: blake3::Hasher::new(),
        ordinals: &ordinals,
    };
    print.bytes(version.as_bytes());
    print.main(spec, analysis);
    print.around(spec);
    print.resolver(spec.partitions.as_ref());
    print.resolver(spec.incremental_state.as_ref());
    let mut whole = Print {
        hasher: print.hasher.clone(),
        ordinals: &ordinals,
    };
    print.bytes(&output_spec(spec).encode_to_vec());
    whole.bytes(&settings(spec).encode_to_vec());
    // Which models are meant is no part of the output's meaning, and an edit all the same: `a, b` is not `b, a`.
    spec.inputs
        .iter()
        .for_each(|name| whole.bytes(name.to_lowercase().as_bytes()));
    spec.uses.iter().for_each(|name| whole.bytes(name.as_bytes()));
    // Tests look at the model itself, whatever it is called.
    let with_itself = BTreeMap::from_iter(
        ordinals
            .clone()
            .into_iter()
            .chain([(name.to_lowercase(), ITSELF)]),
    );
    whole.ordinals = &with_itself;
    for test in &spec.tests {
        whole.bytes(test.name.as_bytes());
        whole.resolver(test.data.as_ref());
        // Said only where it is so, as fingerprints of tests were made before there was a choice.
        if test.warns {
            whole.bytes(b"warns");
        }
    }
    let made = |print: Print<'_>| Fingerprint {
        version: Arc::clone(&version),
        digest: digest(&print.hasher),
    };
    Meanings {
        whole: made(whole),
        output: made(print),
    }
}

/// Returns a copy of a spec without SQL and derived fields.
fn settings(spec: &ModelSpec) -> ModelSpec {
    let mut spec = spec.clone();
    spec.sql = None;
    spec.meaning = None;
    spec.output_meaning = None;
    spec.inputs.clear();
    spec.uses.clear();
    spec.fault = None;
    // Read from the output's settings, which count.
    spec.incremental_output = None;
    spec.tests.clear();
    // They are among the input's settings, whose meaning counts.
    spec.init_queries.clear();
    spec.pre_exec.clear();
    spec.post_exec.clear();
    spec.order_by_at = None;
    spec.encoding_at = None;
    if let Some(freshness) = &mut spec.freshness {
        freshness.at = None;
    }
    if let Some(export) = &mut spec.export {
        export.at = None;
    }
    if let Some(properties) = &mut spec.input_properties {
        properties.fields.remove("sql");
        SQL_KEYS
            .iter()
            .for_each(|key| drop(properties.fields.remove(*key)));
    }
    let resolvers = spec.incremental_state.iter_mut().chain(&mut spec.partitions);
    for properties in resolvers.filter_map(|resolver| resolver.properties.as_mut()) {
        properties.fields.remove("sql");
    }
    spec
}

/// Returns a copy of a spec reduced to what the output's rows depend on.
fn output_spec(spec: &ModelSpec) -> ModelSpec {
    let mut spec = settings(spec);
    spec.refresh_schedule = None;
    spec.timeout_seconds = 0;
    spec.partitions_concurrency_limit = 0;
    spec.stage_connector.clear();
    spec.stage_properties = None;
    spec.retry = None;
    spec.change_mode = 0;
    spec.protect = None;
    spec.freshness = None;
    // Files are written of the rows that there are.
    spec.export = None;
    spec.defined_as_source = false;
    if let Some(properties) = &mut spec.output_properties {
        // `output_kind` says it, defaults included.
        properties.fields.remove("materialize");
        LATER_KEYS
            .iter()
            .for_each(|key| drop(properties.fields.remove(*key)));
    }
    if let Some(properties) = &mut spec.input_properties {
        properties.fields.remove("invalidate_on_change");
        PROSE_KEYS
            .iter()
            .for_each(|key| drop(properties.fields.remove(*key)));
    }
    for files in &mut spec.local_files {
        files.invalidate_on_change = true;
    }
    spec
}

/// The version of the rules for fingerprints of kinds other than models; must change with the rules.
const DECLARED_RULES: &str = "watershed declared 1";

/// Computes the fingerprint of the spec of a kind other than models, with refs replaced by ordinals.
pub(crate) fn fingerprint_declared(spec: &Spec, refs: &[ResourceRef]) -> Fingerprint {
    let mut said = spec.said();
    let order = order_of_names(&said, refs.iter().map(|to| to.name.as_str()));
    number_names(&mut said, &order);
    let mut hasher = blake3::Hasher::new();
    hasher.update(said.to_string().as_bytes());
    for (name, value) in spec.variables().into_iter().flatten() {
        for text in [name, value] {
            hasher
                .update(&(text.len() as u64).to_le_bytes())
                .update(text.as_bytes());
        }
    }
    Fingerprint {
        version: DECLARED_RULES.into(),
        digest: digest(&hasher),
    }
}

fn number_names(said: &mut Json, order: &[String]) {
    match said {
        Json::String(text) => {
            let lower = text.to_lowercase();
            if let Some(number) = order.iter().position(|name| *name == lower) {
                *text = format!("\0{number}");
            }
        }
        Json::Array(items) => items.iter_mut().for_each(|item| number_names(item, order)),
        Json::Object(map) => map.values_mut().for_each(|value| number_names(value, order)),
        _ => {}
    }
}

struct Print<'a> {
    hasher: blake3::Hasher,
    ordinals: &'a BTreeMap<String, usize>,
}

impl Print<'_> {
    fn bytes(&mut self, bytes: &[u8]) {
        self.hasher
            .update(&(bytes.len() as u64).to_le_bytes())
            .update(bytes);
    }

    fn main(&mut self, spec: &ModelSpec, analysis: Option<&SqlAnalysis>) {
        match (&spec.sql, analysis) {
            (Some(_), Some(analysis)) => self.analysis(analysis),
            (Some(sql), None) => self.text(&sql.text, sql.templated),
            (None, _) => self.bytes(b"none"),
        }
    }

    fn analysis(&mut self, analysis: &SqlAnalysis) {
        self.bytes(&analysis.fingerprint);
        analysis
            .tables
            .iter()
            .for_each(|TableUse { name, .. }| self.table(name));
    }

    fn text(&mut self, text: &str, templated: bool) {
        let template = if templated {
            Template::read(text).ok()
        } else {
            None
        };
        let facts = template
            .map(|template| Facts::from_template(&template))
            .unwrap_or_default();
        let refs = facts
            .refs
            .iter()
            .map(|found| (found.offset, found.name.as_str()))
            .collect();
        let (tables, fingerprint) = scan_template(text, &refs);
        self.bytes(&fingerprint);
        tables.iter().for_each(|name| self.table(name));
    }

    fn table(&mut self, name: &str) {
        let lower = name.to_lowercase();
        match self.ordinals.get(&lower) {
            Some(ordinal) => self.bytes(format!("#{ordinal}").as_bytes()),
            None => self.bytes(format!("={lower}").as_bytes()),
        }
    }

    fn around(&mut self, spec: &ModelSpec) {
        let Some(properties) = &spec.input_properties else {
            return;
        };
        for key in SQL_KEYS {
            match properties.get(key) {
                Some(value) => match (value.as_str(), value.as_list()) {
                    (Some(text), _) => self.text(text, is_template(text)),
                    (None, Some(list)) if list.iter().all(|item| item.as_str().is_some()) => {
                        self.bytes(&(list.len() as u64).to_le_bytes());
                        let texts = list.iter().filter_map(Value::as_str);
                        texts.for_each(|text| self.text(text, is_template(text)));
                    }
                    (None, _) => self.value(value),
                },
                None => self.bytes(b""),
            }
        }
    }

    fn value(&mut self, value: &Value) {
        self.bytes(&value.encode_to_vec());
    }

    fn resolver(&mut self, resolver: Option<&watershed_proto::DataResolver>) {
        let Some(resolver) = resolver else {
            return self.bytes(b"");
        };
        self.bytes(resolver.resolver.as_bytes());
        let properties = resolver.properties.clone().unwrap_or_default();
        let (sql, rest): (BTreeMap<_, _>, BTreeMap<_, _>) =
            properties.fields.into_iter().partition(|(key, _)| key == "sql");
        self.bytes(&MapValue { fields: rest }.encode_to_vec());
        for text in sql.values().filter_map(Value::as_str) {
            self.text(text, is_template(text));
        }
    }
}
