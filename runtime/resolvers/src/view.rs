//! A metrics view as last found valid, converted for planning queries.

use std::collections::BTreeMap;

use watershed_compilers::name_for_people;
use watershed_metrics::policy::{Effect, Fields, Layer, Rule, Truth};
use watershed_metrics::view::{Lookup, Source, Uri, Window};
use watershed_metrics::{DataType, Dimension, Grain, Measure, MeasureKind, Selector, View};
use watershed_proto::{
    DimensionSelector, MetricsViewDimension, MetricsViewMeasure, MetricsViewSpec, MetricsViewState,
    SecurityRule, SqlSource,
};

/// The error of a template in an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("can't write the expression of \"{field}\": {message}")]
pub struct RenderError {
    /// Name of the field with the expression.
    pub field: String,
    /// Cause as text.
    pub message: String,
}

/// Returns a view for planning queries; none if it was never valid. `render` executes the templates of expressions.
///
/// # Errors
/// The first expression whose template can't be executed.
pub fn view(
    name: &str,
    state: &MetricsViewState,
    render: &dyn Fn(&SqlSource) -> Result<String, String>,
) -> Result<Option<View>, RenderError> {
    let Some(spec) = &state.valid_spec else {
        return Ok(None);
    };
    let making = Making {
        spec,
        table: &state.table,
        lookups: &state.lookups,
        types: &state.types,
        render,
    };
    let (view, mut unwritten) = making.view(name);
    match unwritten.is_empty() {
        true => Ok(Some(view)),
        false => Err(unwritten.remove(0)),
    }
}

/// Returns a view that has not been validated, without types, together with the errors of fields whose templates
/// failed; those fields are missing.
pub fn untried(
    spec: &MetricsViewSpec,
    table: &str,
    lookups: &[String],
    render: &dyn Fn(&SqlSource) -> Result<String, String>,
) -> (View, Vec<RenderError>) {
    let making = Making {
        spec,
        table,
        lookups,
        types: &BTreeMap::new(),
        render,
    };
    making.view("")
}

/// Returns the layers of a view's rules: parents first, from the outermost, then its own.
pub fn layers(spec: &MetricsViewSpec) -> Vec<&[SecurityRule]> {
    let parents = spec.parent_layers.iter().map(|layer| layer.rules.as_slice());
    parents.chain([spec.security_rules.as_slice()]).collect()
}

/// Returns a layer of rules with conditions evaluated by `truth` and row filters rendered by `filter`.
pub fn layer(
    rules: &[SecurityRule],
    truth: impl Fn(&SecurityRule) -> Truth,
    filter: impl Fn(&SecurityRule) -> String,
) -> Layer {
    let rule = |rule: &SecurityRule| {
        let fields = || match rule.all_fields {
            true => Fields::All,
            false => Fields::Named(rule.fields.clone()),
        };
        let denies = rule.action == "deny";
        let effect = match (rule.r#type.as_str(), denies) {
            ("row_filter", _) => Effect::FilterRows(filter(rule)),
            ("field_access", false) => Effect::AllowFields(fields()),
            ("field_access", true) => Effect::DenyFields(fields()),
            (_, false) => Effect::AllowAccess,
            (_, true) => Effect::DenyAccess,
        };
        Rule {
            condition: truth(rule),
            effect,
        }
    };
    Layer {
        rules: rules.iter().map(rule).collect(),
    }
}

struct Making<'m> {
    spec: &'m MetricsViewSpec,
    table: &'m str,
    lookups: &'m [String],
    types: &'m BTreeMap<String, String>,
    render: &'m dyn Fn(&SqlSource) -> Result<String, String>,
}

impl Making<'_> {
    /// Returns the view, and the errors of fields that are missing because their templates failed.
    fn view(&self, name: &str) -> (View, Vec<RenderError>) {
        let spec = self.spec;
        let mut unwritten = Vec::new();
        let watermark = spec.watermark_expression.as_ref();
        let watermark = watermark.map(|source| self.text("watermark", source));
        let watermark = watermark.and_then(|text| kept(text, &mut unwritten));
        let dimensions = spec.dimensions.iter().enumerate();
        let dimensions = dimensions.map(|(place, one)| self.dimension(place, one));
        let dimensions = dimensions.filter_map(|one| kept(one, &mut unwritten)).collect();
        let measures = spec.measures.iter().map(|one| self.measure(one));
        let measures = measures.filter_map(|one| kept(one, &mut unwritten)).collect();
        let view = View {
            name: name.to_owned(),
            table: parts(self.table),
            columns: Vec::new(),
            watermark,
            first_day_of_week: spec.first_day_of_week,
            first_month_of_year: spec.first_month_of_year,
            time_dimension: spec.time_dimension.clone(),
            smallest_time_grain: grain(&spec.smallest_time_grain),
            dimensions,
            measures,
        };
        (view, unwritten)
    }

    fn text(&self, field: &str, source: &SqlSource) -> Result<String, RenderError> {
        (self.render)(source).map_err(|message| RenderError {
            field: field.to_owned(),
            message,
        })
    }

    fn engine_type(&self, name: &str) -> String {
        self.types.get(name).cloned().unwrap_or_default()
    }

    fn dimension(&self, place: usize, one: &MetricsViewDimension) -> Result<Dimension, RenderError> {
        let source = match &one.expression {
            Some(source) => Source::Expression(self.text(&one.name, source)?),
            None => Source::Column(one.column.clone()),
        };
        let lookup = self.lookups.get(place).filter(|table| !table.is_empty());
        let engine_type = match lookup {
            // What is shown is another table's column, whose type nobody looked at: it is compared as text.
            Some(_) => "VARCHAR".to_owned(),
            None => self.engine_type(&one.name),
        };
        Ok(Dimension {
            name: one.name.clone(),
            display_name: for_people(&one.display_name, &one.name),
            data_type: DataType::of(&engine_type),
            engine_type: if lookup.is_some() {
                String::new()
            } else {
                engine_type
            },
            source,
            lookup: lookup.map(|table| Lookup {
                table: parts(table),
                key: one.lookup_key_column.clone(),
                value: one.lookup_value_column.clone(),
                default: filled(&one.lookup_default_expression),
            }),
            smallest_time_grain: grain(&one.smallest_time_grain),
            unnest: one.unnest,
            uri: match one.uri.as_str() {
                "" | "false" => None,
                "true" => Some(Uri::Value),
                text => Some(Uri::Expression(text.to_owned())),
            },
            hidden: false,
        })
    }

    fn measure(&self, one: &MetricsViewMeasure) -> Result<Measure, RenderError> {
        let expression = match &one.expression {
            Some(source) => self.text(&one.name, source)?,
            None => String::new(),
        };
        let engine_type = self.engine_type(&one.name);
        let window = one.window.as_ref();
        Ok(Measure {
            name: one.name.clone(),
            display_name: for_people(&one.display_name, &one.name),
            data_type: DataType::of(&engine_type),
            engine_type,
            kind: kind(one),
            expression,
            requires: one.requires.clone(),
            per: one.per_dimensions.iter().map(selector).collect(),
            order: window.map_or_else(Vec::new, |window| window.order.iter().map(selector).collect()),
            window: window.map(|window| Window {
                partition: window.partition,
                frame: window.frame.clone(),
            }),
            treat_nulls_as: filled(&one.treat_nulls_as),
            hidden: false,
        })
    }
}

fn kept<T>(made: Result<T, RenderError>, unwritten: &mut Vec<RenderError>) -> Option<T> {
    made.map_err(|error| unwritten.push(error)).ok()
}

fn kind(one: &MetricsViewMeasure) -> MeasureKind {
    if one.window.is_some() {
        MeasureKind::Window
    } else if !one.per_dimensions.is_empty() {
        MeasureKind::Per
    } else if one.r#type == "time_comparison" {
        MeasureKind::TimeComparison
    } else if one.r#type == "derived" || !one.requires.is_empty() {
        MeasureKind::Derived
    } else {
        MeasureKind::Simple
    }
}

fn selector(one: &DimensionSelector) -> Selector {
    Selector {
        name: one.name.clone(),
        grain: grain(&one.time_grain),
    }
}

/// Returns the display name: the stated one, or one derived from the name.
fn for_people(stated: &str, name: &str) -> String {
    match stated {
        "" => name_for_people(name),
        stated => stated.to_owned(),
    }
}

fn filled(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// Parses a grain in the form of specs.
fn grain(name: &str) -> Option<Grain> {
    Some(match name {
        "second" | "s" => Grain::Second,
        "minute" | "min" | "m" => Grain::Minute,
        "hour" | "h" => Grain::Hour,
        "day" | "d" => Grain::Day,
        "week" | "w" => Grain::Week,
        "month" => Grain::Month,
        "quarter" | "q" => Grain::Quarter,
        "year" | "y" => Grain::Year,
        _ => return None,
    })
}

/// Splits a qualified name into its parts, which are plain or in double quotes.
#[must_use]
pub fn parts(written: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut part = String::new();
    let mut quoted = false;
    let mut chars = written.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                part.push('"');
            }
            '"' => quoted = !quoted,
            '.' if !quoted => found.push(std::mem::take(&mut part)),
            c => part.push(c),
        }
    }
    found.push(part);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart_as_the_engine_writes_them() {
        assert_eq!(parts("\"a.b\".\"c\"\"d\""), ["a.b", "c\"d"]);
        assert_eq!(parts("main.codes"), ["main", "codes"]);
    }
}
