//! Measures of a metrics view.

use watershed_proto::{DimensionSelector, MapValue, MetricsViewMeasure, MetricsViewSpec, MetricsViewWindow};

use super::{
    UsedNames,
    keys::{FIELD_AND_GRAIN, MEASURE, WINDOW},
    unknown_field,
};
use crate::{
    blocks::time_range::grain,
    diagnostics::{At, Code, spot},
    draft::source,
    kinds::reader::Reader,
    yaml::{Data, Fields, Node, item, word},
};

/// A use of a field's name with its place, checked once all names are known.
type Use = (String, At);

/// The names that measures may use, and the uses to be checked.
struct Names<'n> {
    /// The name of the time dimension; empty if the view has none.
    time: String,
    taken: &'n mut UsedNames,
    uses: Vec<Use>,
}

/// Reads the measures of a metrics view.
pub(super) fn read(reader: &mut Reader<'_, '_>, spec: &mut MetricsViewSpec, taken: &mut UsedNames) {
    let list_at = reader.fields.key_at("measures");
    let items = reader.fields.list("measures").unwrap_or_default();
    let mut names = Names {
        time: spec.time_dimension.clone(),
        taken,
        uses: Vec::new(),
    };
    for (index, node) in items.into_iter().enumerate() {
        let Some((map, at)) = item(node, "a measure", reader.findings()) else {
            continue;
        };
        let mut fields = Fields::new(map, at, reader.fields.findings());
        let measure = measure(&mut fields, index, at, &mut names);
        fields.finish(&MEASURE);
        spec.measures.extend(measure);
    }
    if spec.parent.is_empty() && spec.measures.is_empty() {
        let at = list_at.unwrap_or(reader.fields.at());
        let message = "a metrics view needs at least one measure";
        let hint = "such as `- {name: rows, expression: count(*)}`";
        reader
            .findings()
            .add_with_hint(at, Code::MissingKey, message, hint);
    }
    for (name, at) in names.uses {
        if !names.taken.has(&name) {
            unknown_field(&name, at, names.taken, reader);
        }
    }
}

fn measure(
    fields: &mut Fields<'_>,
    index: usize,
    at: At,
    names: &mut Names<'_>,
) -> Option<MetricsViewMeasure> {
    fields.deprecations(&MEASURE);
    if fields.bool("ignore").unwrap_or_default() {
        fields.take_rest();
        return None;
    }
    let expression = fields.text_node("expression");
    if expression.is_none() {
        fields
            .findings()
            .add(at, Code::MissingKey, "a measure needs an `expression`");
    }
    let name_node = fields.text_node("name");
    let name = name_node.as_ref().and_then(Node::scalar_text);
    let name = name
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| format!("measure_{index}"));
    names
        .taken
        .take(&name, name_node.map_or(at, |node| node.at), fields);
    let per_dimensions = selectors(fields, "per", &mut names.uses);
    let requires = selectors(fields, "requires", &mut names.uses);
    let window = window(fields, names);
    let said = word(fields, "type", &["simple", "derived", "time_comparison"]);
    let default = if per_dimensions.is_empty() && requires.is_empty() {
        "simple"
    } else {
        "derived"
    };
    let label = fields.text("label").or_else(|| fields.text("title"));
    let measure = MetricsViewMeasure {
        name,
        display_name: fields.text("display_name").or(label).unwrap_or_default(),
        description: fields.text("description").unwrap_or_default(),
        r#type: said.unwrap_or_else(|| default.to_owned()),
        at: spot(expression.as_ref().map_or(at, |node| node.at)),
        expression: expression.as_ref().map(source),
        window,
        per_dimensions,
        requires: requires.into_iter().map(|one| one.name).collect(),
        valid_percent_of_total: fields.bool("valid_percent_of_total").unwrap_or_default(),
        treat_nulls_as: fields.text("treat_nulls_as").unwrap_or_default(),
        tags: fields.texts("tags").unwrap_or_default(),
        ..MetricsViewMeasure::default()
    };
    Some(format(fields, measure))
}

fn format(fields: &mut Fields<'_>, measure: MetricsViewMeasure) -> MetricsViewMeasure {
    const PRESETS: [&str; 6] = [
        "none",
        "humanize",
        "currency_usd",
        "currency_eur",
        "percentage",
        "interval_ms",
    ];
    fields.take("format");
    let d3_at = fields.value_at("format_d3");
    let preset = word(fields, "format_preset", &PRESETS);
    let format_d3 = fields.text("format_d3").unwrap_or_default();
    if let (Some(at), Some(_)) = (d3_at, &preset) {
        let message = "a measure has a `format_preset` or a `format_d3`, not both";
        fields.findings().add(at, Code::ConflictingKeys, message);
    }
    let locale = fields.map("format_d3_locale").map(|(map, _)| MapValue {
        fields: map
            .into_iter()
            .map(|(key, entry)| (key, entry.value.to_value()))
            .collect(),
    });
    MetricsViewMeasure {
        format_preset: preset.unwrap_or_default(),
        format_d3,
        format_d3_locale: locale,
        ..measure
    }
}

/// Takes a list of dimensions, each a name or a mapping of `name` and `time_grain`.
fn selectors(fields: &mut Fields<'_>, key: &str, uses: &mut Vec<Use>) -> Vec<DimensionSelector> {
    let Some(node) = fields.take(key).map(|entry| entry.value) else {
        return Vec::new();
    };
    let items = match node.data {
        Data::List(items) => items,
        _ => vec![node],
    };
    let mut found = Vec::new();
    for node in items {
        if let Some(name) = node.scalar_text() {
            uses.push((name.clone(), node.at));
            found.push(DimensionSelector {
                name,
                time_grain: String::new(),
            });
        } else if let Some((map, at)) = item(node, "a dimension", fields.findings()) {
            let mut block = Fields::new(map, at, fields.findings());
            let name = block.text("name").unwrap_or_default();
            let time_grain = grain(&mut block, "time_grain").unwrap_or_default();
            block.finish(&FIELD_AND_GRAIN);
            uses.push((name.clone(), at));
            found.push(DimensionSelector { name, time_grain });
        }
    }
    found
}

/// Takes the window of a measure: `time`, `true`, `all`, or a mapping with `partition`, `order` and `frame`.
fn window(fields: &mut Fields<'_>, names: &mut Names<'_>) -> Option<MetricsViewWindow> {
    let entry = fields.take("window")?;
    let node = entry.value;
    match &node.data {
        Data::Map(map) => {
            let mut block = Fields::new(map.clone(), entry.key_at, fields.findings());
            let window = MetricsViewWindow {
                partition: block.bool("partition").unwrap_or(true),
                order: order(&mut block, names),
                frame: block.text("frame").unwrap_or_default(),
            };
            block.finish(&WINDOW);
            Some(window)
        }
        _ => match node.scalar_text().as_deref() {
            Some("time" | "true") => Some(MetricsViewWindow {
                partition: true,
                order: by_time(node.at, String::new(), fields, names)
                    .into_iter()
                    .collect(),
                ..MetricsViewWindow::default()
            }),
            Some("all") => Some(MetricsViewWindow::default()),
            Some("false") => None,
            _ => {
                let message = "\"window\" takes `time`, `all` or a mapping";
                let hint = "such as `{order: day, frame: ROWS BETWEEN 6 PRECEDING AND CURRENT ROW}`";
                fields
                    .findings()
                    .add_with_hint(node.at, Code::InvalidValue, message, hint);
                None
            }
        },
    }
}

/// Takes the dimensions that order a window; `time` is the time dimension, unless a field has that name.
fn order(block: &mut Fields<'_>, names: &mut Names<'_>) -> Vec<DimensionSelector> {
    let mut uses = Vec::new();
    let said = selectors(block, "order", &mut uses);
    let mut found = Vec::new();
    for (selector, (name, at)) in said.into_iter().zip(uses) {
        if name.eq_ignore_ascii_case(TIME) && !names.taken.has(TIME) {
            found.extend(by_time(at, selector.time_grain, block, names));
        } else {
            names.uses.push((name, at));
            found.push(selector);
        }
    }
    found
}

/// The word that stands for the time dimension, whatever its name.
const TIME: &str = "time";

/// Returns the time dimension as the order of a window; reports a view without one.
fn by_time(
    at: At,
    time_grain: String,
    fields: &mut Fields<'_>,
    names: &Names<'_>,
) -> Option<DimensionSelector> {
    if names.time.is_empty() {
        let message = "a window that is ordered by time needs the metrics view to have a `timeseries`";
        let hint = "name a dimension: `window: {order: NAME}`, or all groups: `window: all`";
        fields
            .findings()
            .add_with_hint(at, Code::MissingKey, message, hint);
        return None;
    }
    Some(DimensionSelector {
        name: names.time.clone(),
        time_grain,
    })
}
