//! Metrics views: measures and dimensions over a table.

mod dimensions;
mod keys;
mod measures;

use std::collections::BTreeMap;

use watershed_proto::{
    ExploreSpec, MetricsViewAnnotation, MetricsViewCache, MetricsViewRollup, MetricsViewSpec, TimeRange,
};

pub(crate) use keys::METRICS_VIEW;
use keys::{ANNOTATION, CACHE, ROLLUP};

use crate::{
    blocks::{
        connector,
        security::{self, Extent},
        selector,
        time_range::{self, COMPARISON, grain},
    },
    diagnostics::{At, Code, spot},
    draft::{ref_to, ref_to_table, source},
    kinds::{
        explore::{self, Origin},
        reader::{Declared, Reader},
    },
    resource::{Kind, Spec},
    text::names,
    yaml::{Fields, Node, item, word},
};

/// Deprecated keys of metrics views that belong to explores now.
const OLD_DEFAULTS: [&str; 7] = [
    "default_time_range",
    "available_time_ranges",
    "available_time_zones",
    "default_theme",
    "default_dimensions",
    "default_measures",
    "default_comparison",
];

/// Keys that a metrics view with a parent can't have.
const NOT_WITH_PARENT: [&str; 12] = [
    "model",
    "table",
    "database",
    "database_schema",
    "cache",
    "dimensions",
    "measures",
    "default_time_range",
    "available_time_ranges",
    "default_dimensions",
    "default_measures",
    "default_comparison",
];

/// Names of fields, with the place of each.
#[derive(Debug, Default)]
pub(crate) struct UsedNames(BTreeMap<String, At>);

impl UsedNames {
    /// Records a name, and reports it if another field has it.
    fn take(&mut self, name: &str, at: At, fields: &mut Fields<'_>) {
        if let Some(first) = self.0.get(&name.to_lowercase()) {
            let message = format!("two fields are named \"{name}\"");
            let hint = "names are unique among dimensions and measures";
            let code = Code::ConflictingKeys;
            fields
                .findings()
                .add_second(at, Some(*first), code, message, Some(hint));
        } else {
            self.0.insert(name.to_lowercase(), at);
        }
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains_key(&name.to_lowercase())
    }

    fn nearest(&self, name: &str) -> Option<&str> {
        names::nearest(name, self.0.keys().map(String::as_str))
    }
}

/// Reads a metrics view, and the explore that it implies.
pub(crate) fn read(reader: &mut Reader<'_, '_>) -> Declared {
    reader.refuse_sql(Kind::MetricsView);
    for key in ["security", "dimensions", "measures"] {
        reader.templates_of(key);
    }
    let names = [
        ("title", "display_name"),
        ("label", "display_name"),
        ("ai_context", "ai_instructions"),
    ];
    for (old, new) in names {
        reader.fields.deprecated(old, new);
    }
    let mut spec = MetricsViewSpec {
        display_name: reader.display_name(),
        description: reader.text("description"),
        ai_instructions: reader.text("ai_instructions"),
        ..MetricsViewSpec::default()
    };
    if let Some(old) = reader
        .fields
        .text("label")
        .filter(|_| spec.display_name.is_empty())
    {
        spec.display_name = old;
    }
    if let Some(old) = reader.fields.text("ai_context") {
        spec.ai_instructions = old;
    }
    let mut declared = Declared::new(Spec::None);
    table(reader, &mut spec, &mut declared);
    times(reader, &mut spec);
    let mut taken = UsedNames::default();
    dimensions::read(reader, &mut spec, &mut taken, &mut declared.refs);
    measures::read(reader, &mut spec, &mut taken);
    spec.parent_dimensions = selector::take(&mut reader.fields, "parent_dimensions");
    spec.parent_measures = selector::take(&mut reader.fields, "parent_measures");
    annotations(reader, &mut spec, &mut declared);
    secure(reader, &mut spec, &taken);
    spec.cache = cache(&mut reader.fields);
    query_attributes(&mut reader.fields, &mut spec);
    rollups(reader, &mut spec, &mut declared);
    dashboard(reader, &spec, &mut declared);
    reader.finish(&METRICS_VIEW);
    declared.spec = Spec::MetricsView(Box::new(spec));
    declared
}

/// Reads the source of the metrics view: a model, a table, or its parent.
fn table(reader: &mut Reader<'_, '_>, spec: &mut MetricsViewSpec, declared: &mut Declared) {
    if reader.fields.has("parent") {
        for key in NOT_WITH_PARENT {
            if let Some(at) = reader.fields.key_at(key) {
                let message = format!("\"{key}\" can't stand beside \"parent\"");
                let hint = "it comes from the parent; choose its fields with `parent_dimensions` and `parent_measures`";
                reader
                    .findings()
                    .add_with_hint(at, Code::ConflictingKeys, message, hint);
            }
        }
    }
    for key in ["parent_dimensions", "parent_measures"] {
        if let (Some(at), false) = (reader.fields.key_at(key), reader.fields.has("parent")) {
            let message = format!("\"{key}\" needs a \"parent\"");
            reader.findings().add(at, Code::ConflictingKeys, message);
        }
    }
    let nodes = ["parent", "model", "table"].map(|key| reader.fields.text_node(key));
    if let ([_, Some(_), Some(table)], true) = (&nodes, nodes[0].is_none()) {
        let message = "a metrics view reads either a `model` or a `table`";
        reader.findings().add(table.at, Code::ConflictingKeys, message);
    }
    let at = nodes.iter().flatten().next().map(|node| node.at);
    if at.is_none() {
        let at = reader.fields.at();
        let message = "a metrics view needs a `model`, a `table` or a `parent`";
        reader.findings().add(at, Code::MissingKey, message);
    }
    spec.table_at = at.and_then(spot);
    let [parent, model, table] =
        nodes.map(|node| node.and_then(|node| node.scalar_text()).unwrap_or_default());
    if !parent.is_empty() {
        declared.refs.push(ref_to(Kind::MetricsView, &parent, at));
    }
    let tables = [&model, &table].into_iter().filter(|name| !name.is_empty());
    declared.refs.extend(tables.map(|name| ref_to_table(name, at)));
    (spec.parent, spec.model, spec.table) = (parent, model, table);
    spec.database = reader.text("database");
    spec.database_schema = reader.text("database_schema");
    spec.connector = match reader.fields.text_node("connector") {
        Some(node) => connector::name(&node, reader.context, reader.fields.findings()),
        None => reader.context.olap.to_owned(),
    };
    declared.connectors.push(spec.connector.clone());
}

fn times(reader: &mut Reader<'_, '_>, spec: &mut MetricsViewSpec) {
    if let Some(node) = reader.fields.text_node("timeseries") {
        spec.time_dimension = node.scalar_text().unwrap_or_default();
        spec.time_at = spot(node.at);
    }
    let watermark = reader.fields.text_node("watermark");
    spec.watermark_expression = watermark.as_ref().map(source);
    spec.smallest_time_grain = grain(&mut reader.fields, "smallest_time_grain").unwrap_or_default();
    spec.first_day_of_week = within(&mut reader.fields, "first_day_of_week", 7);
    spec.first_month_of_year = within(&mut reader.fields, "first_month_of_year", 12);
}

fn within(fields: &mut Fields<'_>, key: &str, most: u32) -> u32 {
    let at = fields.value_at(key);
    let value = fields.count(key).unwrap_or_default();
    if let (Some(at), true) = (at, value > most) {
        let message = format!("\"{key}\" takes a number from 1 to {most}, not {value}");
        fields.findings().add(at, Code::InvalidValue, message);
    }
    value
}

fn annotations(reader: &mut Reader<'_, '_>, spec: &mut MetricsViewSpec, declared: &mut Declared) {
    let connector = spec.connector.clone();
    for node in reader.fields.list("annotations").unwrap_or_default() {
        let Some((map, at)) = item(node, "an annotation", reader.findings()) else {
            continue;
        };
        let mut fields = Fields::new(map, at, reader.findings());
        let named = ["model", "table"].map(|key| fields.text_node(key));
        let place = named.iter().flatten().next().map_or(at, |node| node.at);
        if named.iter().flatten().count() != 1 {
            let message = "an annotation needs either a `model` or a `table`";
            fields.findings().add(at, Code::MissingKey, message);
        }
        let [model, table] = named.map(|node| node.and_then(|node| node.scalar_text()).unwrap_or_default());
        let tables = [&model, &table].into_iter().filter(|name| !name.is_empty());
        declared
            .refs
            .extend(tables.map(|name| ref_to_table(name, Some(place))));
        let name = fields.text("name").filter(|name| !name.is_empty());
        let annotation = MetricsViewAnnotation {
            name: name.unwrap_or_else(|| {
                if model.is_empty() {
                    table.clone()
                } else {
                    model.clone()
                }
            }),
            model,
            table,
            database: fields.text("database").unwrap_or_default(),
            database_schema: fields.text("database_schema").unwrap_or_default(),
            connector: fields.text("connector").unwrap_or_else(|| connector.clone()),
            measures: selector::take(&mut fields, "measures"),
            at: spot(place),
        };
        fields.finish(&ANNOTATION);
        spec.annotations.push(annotation);
    }
}

fn secure(reader: &mut Reader<'_, '_>, spec: &mut MetricsViewSpec, taken: &UsedNames) {
    let security = security::take(&mut reader.fields, Extent::All);
    spec.security_rules = security.rules;
    reader.conditions(&security.conditions);
    if !spec.parent.is_empty() {
        return;
    }
    for (name, at) in security.named {
        if !taken.has(&name) {
            unknown_field(&name, at, taken, reader);
        }
    }
}

/// Reports a name that no field has, with the nearest known name.
fn unknown_field(name: &str, at: At, taken: &UsedNames, reader: &mut Reader<'_, '_>) {
    let message = format!("the metrics view has no field \"{name}\"");
    match taken.nearest(name) {
        Some(near) => {
            let hint = format!("did you mean `{near}`?");
            reader
                .findings()
                .add_with_hint(at, Code::UnknownField, message, hint);
        }
        None => reader.findings().add(at, Code::UnknownField, message),
    }
}

fn cache(fields: &mut Fields<'_>) -> Option<MetricsViewCache> {
    let (map, at) = fields.map("cache")?;
    let mut block = Fields::new(map, at, fields.findings());
    let cache = MetricsViewCache {
        enabled: block.bool("enabled"),
        key_sql: block.text("key_sql").unwrap_or_default(),
        key_ttl_seconds: block.seconds("key_ttl").unwrap_or_default(),
    };
    block.finish(&CACHE);
    Some(cache)
}

fn query_attributes(fields: &mut Fields<'_>, spec: &mut MetricsViewSpec) {
    let Some((map, _)) = fields.map("query_attributes") else {
        return;
    };
    for (name, entry) in map {
        let fine = !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'));
        if !fine {
            let message = format!("\"{name}\" is no name for an attribute");
            let hint = "use letters, digits, `_`, `.` and `-`";
            fields
                .findings()
                .add_with_hint(entry.key_at, Code::InvalidValue, message, hint);
        }
        spec.query_attributes
            .insert(name, entry.value.scalar_text().unwrap_or_default());
    }
}

fn rollups(reader: &mut Reader<'_, '_>, spec: &mut MetricsViewSpec, declared: &mut Declared) {
    for node in reader.fields.list("rollups").unwrap_or_default() {
        let Some((map, at)) = item(node, "a rollup", reader.findings()) else {
            continue;
        };
        let has_times = !spec.time_dimension.is_empty();
        let mut fields = Fields::new(map, at, reader.findings());
        let model = fields.text_node("model");
        let grain = grain(&mut fields, "time_grain");
        if model.is_none() || grain.is_none() || !has_times {
            let message = "a rollup needs a `model`, a `time_grain` and the metrics view a `timeseries`";
            fields.findings().add(at, Code::MissingKey, message);
        }
        let name = model.as_ref().and_then(Node::scalar_text).unwrap_or_default();
        let named_at = model.map(|node| node.at);
        spec.rollups.push(MetricsViewRollup {
            time_grain: grain.unwrap_or_default(),
            time_zone: fields.text("time_zone").unwrap_or_default(),
            at: named_at.and_then(spot),
            model: name.clone(),
        });
        fields.finish(&ROLLUP);
        declared.refs.push(ref_to_table(&name, named_at));
    }
}

/// Adds the implied explore, from the block `explore` or from the deprecated keys.
fn dashboard(reader: &mut Reader<'_, '_>, spec: &MetricsViewSpec, declared: &mut Declared) {
    let old_keys: Vec<_> = OLD_DEFAULTS
        .into_iter()
        .filter_map(|key| Some((key, reader.fields.key_at(key)?)))
        .collect();
    for (key, at) in &old_keys {
        if reader.fields.has("explore") {
            let message = format!("\"{key}\" can't stand beside \"explore\"");
            let hint = "say it in the block `explore`";
            reader
                .findings()
                .add_with_hint(*at, Code::ConflictingKeys, message, hint);
        } else {
            let message = format!("key \"{key}\" is deprecated");
            let hint = "say it in a block `explore`, or in an explore of its own";
            reader
                .findings()
                .add_with_hint(*at, Code::DeprecatedKey, message, hint);
        }
    }
    let theme_at = reader.fields.value_at("default_theme");
    let old = old_defaults(&mut reader.fields);
    if !old.theme.is_empty() {
        declared.refs.push(ref_to(Kind::Theme, &old.theme, theme_at));
    }
    let origin = Origin {
        view: reader.about.name,
        display_name: &spec.display_name,
        version: reader.about.version,
    };
    let context = reader.context;
    let implied = explore::from_metrics_view(&mut reader.fields, &origin, old, context);
    declared.implied.extend(implied);
}

fn old_defaults(fields: &mut Fields<'_>) -> ExploreSpec {
    let mut defaults = watershed_proto::DashboardDefaults {
        dimensions: selector::take(fields, "default_dimensions"),
        measures: selector::take(fields, "default_measures"),
        time_range: time_range::one(fields, "default_time_range"),
        ..Default::default()
    };
    if let Some((map, at)) = fields.map("default_comparison") {
        let mut block = Fields::new(map, at, fields.findings());
        let modes = ["none", "time", "dimension"];
        defaults.comparison_mode = word(&mut block, "mode", &modes).unwrap_or_default();
        defaults.comparison_dimension = block.text("dimension").unwrap_or_default();
        block.finish(&COMPARISON);
    }
    let says_nothing = defaults == watershed_proto::DashboardDefaults::default();
    ExploreSpec {
        theme: fields.text("default_theme").unwrap_or_default(),
        time_ranges: old_ranges(fields),
        time_zones: time_range::time_zones(fields, "available_time_zones"),
        defaults: (!says_nothing).then_some(defaults),
        ..ExploreSpec::default()
    }
}

fn old_ranges(fields: &mut Fields<'_>) -> Vec<TimeRange> {
    time_range::list(fields, "available_time_ranges")
}
