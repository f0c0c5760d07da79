//! A metrics view combined with its parent, and the tables that it reads.

use watershed_compilers::fields::Fields;
use watershed_core::{Error, RefView, Refreshes};
use watershed_dialect::{ENGINE, Quoting as _};
use watershed_outputs::traces::Version;
use watershed_proto::{MetricsViewDimension, MetricsViewSpec, MetricsViewState, ModelState, SecurityLayer};

use super::KIND;
use crate::{model, refs, selector::Choosing};

/// A metrics view with all inputs of a check.
#[derive(Debug, Clone, PartialEq)]
pub struct Whole {
    /// The spec; includes the parent's fields after completion.
    pub spec: MetricsViewSpec,
    /// The view's table, as written in SQL.
    pub table: String,
    /// The tables of annotations, as written in SQL and in their order.
    pub annotations: Vec<String>,
    /// The tables of rollups, as written in SQL and in their order.
    pub rollups: Vec<String>,
    /// The lookup tables by dimension, in the order of dimensions; empty for a dimension without one.
    pub lookups: Vec<String>,
    /// The lookup tables of all dimensions, including the parent's after completion.
    pub translations: Vec<String>,
    /// A hash of all inputs of the check; while it is equal, the check is skipped.
    pub proof: String,
    /// True if a table is not the output of a model.
    pub streaming: bool,
    /// The parent from which fields are inherited; none after completion.
    parent: Option<MetricsViewState>,
}

impl Whole {
    /// Adds the objects that migrations and connectors created to the proof, since expressions may use any of them.
    pub fn depends_on(&mut self, made: Option<Version>) {
        let Some(made) = made else { return };
        let mut proof = blake3::Hasher::new();
        proof.update(self.proof.as_bytes()).update(&made);
        self.proof = proof.finalize().to_hex().as_str()[..32].to_owned();
    }

    /// Collects the inputs of a check, apart from the fields of a parent.
    ///
    /// # Errors
    /// When its parent has not been found to be valid.
    pub fn new(spec: &MetricsViewSpec, refs: &[RefView], asked: Refreshes) -> Result<Self, Error> {
        let mut proof = blake3::Hasher::new();
        // States of before held the rules of parents and children in one list, and no tables of lookups.
        proof.update(b"layers");
        let meaning = spec.meaning.as_ref().map(|meaning| meaning.digest.as_slice());
        proof.update(meaning.unwrap_or_default());
        proof
            .update(&asked.plain.to_le_bytes())
            .update(&asked.full.to_le_bytes());
        let mut tables = Tables {
            refs,
            proof,
            streaming: false,
        };
        let mut whole = spec.clone();
        whole.fault = None;
        let mut given_by = None;
        let table = if spec.parent.is_empty() {
            tables.main(spec)
        } else {
            let parent = parent(spec, refs)?;
            tables.proof.update(parent.proof.as_bytes());
            tables.streaming |= parent.streaming;
            let table = parent.table.clone();
            given_by = Some(parent);
            table
        };
        let annotations = whole.annotations.iter().map(|one| {
            let name = if one.model.is_empty() {
                &one.table
            } else {
                &one.model
            };
            tables.named(&one.database, &one.database_schema, name)
        });
        let annotations = annotations.collect();
        let rollups = whole.rollups.iter();
        let rollups = rollups.map(|one| tables.named("", "", &one.model)).collect();
        let lookups = whole
            .dimensions
            .iter()
            .map(|one| tables.lookup(&one.lookup_table));
        let lookups: Vec<String> = lookups.collect();
        Ok(Self {
            spec: whole,
            table,
            annotations,
            rollups,
            translations: lookups.clone(),
            lookups,
            proof: tables.proof.finalize().to_hex().as_str()[..32].to_owned(),
            streaming: tables.streaming,
            parent: given_by,
        })
    }
}

/// A resolver of table names, which records the outputs found in the proof.
struct Tables<'a> {
    refs: &'a [RefView],
    proof: blake3::Hasher,
    streaming: bool,
}

impl Tables<'_> {
    fn main(&mut self, spec: &MetricsViewSpec) -> String {
        let name = if spec.model.is_empty() {
            &spec.table
        } else {
            &spec.model
        };
        self.named(&spec.database, &spec.database_schema, name)
    }

    /// Returns the output of a model in SQL or, if no model has the name, the table of that name.
    fn named(&mut self, database: &str, schema: &str, name: &str) -> String {
        let output = refs::find(self.refs, model::KIND, name).and_then(refs::state::<ModelState>);
        if let Some(output) = output.filter(|output| !output.result_table.is_empty()) {
            self.proof.update(output.build_id.as_bytes());
            self.proof.update(output.result_table.as_bytes());
            return ENGINE.name(&output.result_table);
        }
        self.streaming = true;
        let parts = [database, schema, name]
            .into_iter()
            .filter(|part| !part.is_empty());
        parts.map(|name| ENGINE.name(name)).collect::<Vec<_>>().join(".")
    }

    /// Returns a possibly qualified table in SQL.
    fn lookup(&mut self, written: &str) -> String {
        match written.rsplit_once('.') {
            None if written.is_empty() => String::new(),
            None => self.named("", "", written.trim_matches('"')),
            Some((before, last)) => {
                let named = self.named("", "", last.trim_matches('"'));
                if self.streaming {
                    format!("{before}.{last}")
                } else {
                    named
                }
            }
        }
    }
}

fn parent(spec: &MetricsViewSpec, refs: &[RefView]) -> Result<MetricsViewState, Error> {
    let view = refs::find(refs, KIND, &spec.parent);
    view.and_then(refs::state::<MetricsViewState>)
        .filter(|state| state.valid_spec.is_some())
        .ok_or_else(|| {
            let message = format!("metrics view \"{}\" has not been found to be valid", spec.parent);
            Error::transient("parent-unchecked", message)
        })
}

impl Whole {
    /// Adds the fields and settings that the spec inherits from its parent.
    ///
    /// # Errors
    /// When the parent has not the fields that are chosen, or the engine can't say which those are.
    pub(super) async fn complete(&mut self, choosing: &Choosing<'_>) -> Result<(), Error> {
        let Some(parent) = self.parent.take() else {
            return Ok(());
        };
        let Some(from) = parent.valid_spec else {
            return Ok(());
        };
        let spec = &mut self.spec;
        let Fields {
            dimensions: names,
            measures,
            ..
        } = Fields::from_metrics_view(&from);
        let chosen = spec.parent_dimensions.as_ref();
        let wanted = choosing.choose(chosen, &names, "dimension").await?;
        let time = from.time_dimension.as_str();
        let dimensions = from.dimensions.iter();
        spec.dimensions = dimensions
            .filter(|one| wanted.contains(&one.name) || one.name == time)
            .cloned()
            .collect();
        let wanted = choosing
            .choose(spec.parent_measures.as_ref(), &measures, "measure")
            .await?;
        let measures = from.measures.iter();
        spec.measures = measures
            .filter(|one| wanted.contains(&one.name))
            .cloned()
            .collect();
        let table = |one: &MetricsViewDimension| {
            let place = from.dimensions.iter().position(|other| other.name == one.name);
            let table = place.and_then(|place| parent.lookups.get(place));
            table.cloned().unwrap_or_default()
        };
        self.translations = spec.dimensions.iter().map(table).collect();
        inherit(spec, from);
        Ok(())
    }
}

fn inherit(spec: &mut MetricsViewSpec, from: MetricsViewSpec) {
    spec.connector = from.connector;
    spec.cache = from.cache;
    for (name, text) in from.query_attributes {
        spec.query_attributes.entry(name).or_insert(text);
    }
    for (own, parents) in [
        (&mut spec.time_dimension, from.time_dimension),
        (&mut spec.smallest_time_grain, from.smallest_time_grain),
    ] {
        if own.is_empty() {
            *own = parents;
        }
    }
    for (own, parents) in [
        (&mut spec.first_day_of_week, from.first_day_of_week),
        (&mut spec.first_month_of_year, from.first_month_of_year),
    ] {
        if *own == 0 {
            *own = parents;
        }
    }
    spec.watermark_expression = spec.watermark_expression.take().or(from.watermark_expression);
    // The parent's rules stay apart from the child's: among these, an `include` would open what the parent closed.
    spec.parent_layers = from.parent_layers;
    spec.parent_layers.push(SecurityLayer {
        rules: from.security_rules,
    });
}
