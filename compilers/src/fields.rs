//! Checks of the names of fields in dashboards against the fields of their metrics views.
//!
//! The compiler tells what is wrong as far as files say it; reconcilers ask the same questions of metrics views that
//! the engine found to be valid, so that both say it in the same words.

use watershed_proto::{
    CanvasSpec, ComponentSpec, DashboardDefaults, ExploreSpec, FieldSelector, MetricsViewSpec, Spot, Value,
};

use crate::text::names;

/// A name that no field has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// The unknown name, as written.
    pub name: String,
    /// The description of the mistake.
    pub message: String,
    /// A suggestion of the nearest known name, if one is near.
    pub hint: Option<String>,
    /// The place of the name, if known.
    pub at: Option<Spot>,
}

impl Unknown {
    /// Creates the report that `wanted` is none of `names`, each of which is the name of a `what`.
    pub fn new(wanted: &str, names: &[impl AsRef<str>], what: &str, at: Option<Spot>) -> Self {
        let near = names::nearest(&wanted.to_lowercase(), names.iter().map(AsRef::as_ref));
        Self {
            name: wanted.to_owned(),
            message: format!("the metrics view has no {what} \"{wanted}\""),
            hint: near.map(|near| format!("did you mean `{near}`?")),
            at,
        }
    }
}

/// The names of the fields of a metrics view.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields {
    /// The name of the time column; empty if there is none.
    pub time: String,
    /// The names of the dimensions.
    pub dimensions: Vec<String>,
    /// The names of the measures.
    pub measures: Vec<String>,
}

impl Fields {
    /// Returns the fields that a metrics view itself lists; those inherited from a parent are not included.
    pub fn from_metrics_view(view: &MetricsViewSpec) -> Self {
        Self {
            time: view.time_dimension.clone(),
            dimensions: view.dimensions.iter().map(|one| one.name.clone()).collect(),
            measures: view.measures.iter().map(|one| one.name.clone()).collect(),
        }
    }

    /// Returns the fields that a child of the view inherits; none if only the engine can tell.
    pub(crate) fn given_to(&self, child: &MetricsViewSpec) -> Option<Self> {
        let mut dimensions =
            listed(child.parent_dimensions.as_ref(), &self.dimensions, "dimension").ok()??;
        // Times are given along.
        let time = self.dimensions.iter().filter(|name| **name == self.time);
        let time: Vec<String> = time.filter(|name| !dimensions.contains(name)).cloned().collect();
        dimensions.extend(time);
        let measures = listed(child.parent_measures.as_ref(), &self.measures, "measure").ok()??;
        let own = child.time_dimension.as_str();
        Some(Self {
            time: if own.is_empty() { &self.time } else { own }.to_owned(),
            dimensions,
            measures,
        })
    }
}

/// Returns the names that a selector selects, in its order and in the spelling of `names`: all names without a
/// selector, none if only the engine can tell.
///
/// # Errors
/// All that it lists and that are not there.
pub fn listed(
    selector: Option<&FieldSelector>,
    names: &[String],
    what: &str,
) -> Result<Option<Vec<String>>, Vec<Unknown>> {
    let Some(selector) = selector else {
        return Ok(Some(names.to_vec()));
    };
    let by_engine = !selector.regex.is_empty() || !selector.duckdb_expression.is_empty();
    let says_nothing = !by_engine && selector.fields.is_empty() && selector.spots.len() == 1;
    let chosen = if selector.all || says_nothing {
        names.to_vec()
    } else if by_engine {
        return Ok(None);
    } else {
        let (mut found, mut unknown) = (Vec::new(), Vec::new());
        for (index, wanted) in selector.fields.iter().enumerate() {
            match names.iter().find(|name| name.eq_ignore_ascii_case(wanted)) {
                Some(name) => found.push(name.clone()),
                None => unknown.push(Unknown::new(
                    wanted,
                    names,
                    what,
                    selector.spots.get(index).copied(),
                )),
            }
        }
        if !unknown.is_empty() {
            return Err(unknown);
        }
        found
    };
    Ok(Some(if selector.invert {
        let rest = names.iter().filter(|name| !chosen.contains(name));
        rest.cloned().collect()
    } else {
        chosen
    }))
}

/// Lists the names of an explore that its metrics view does not have.
pub(crate) fn unknown_in_explore(spec: &ExploreSpec, view: &Fields) -> Vec<Unknown> {
    let mut unknown = Vec::new();
    let mut choose = |selector: Option<&FieldSelector>, names: &[String], what: &str| {
        listed(selector, names, what).unwrap_or_else(|found| {
            unknown.extend(found);
            None
        })
    };
    let offered = choose(spec.dimensions.as_ref(), &view.dimensions, "dimension");
    // Times are looked along, not grouped by.
    let is_offered = |name: &String| *name != view.time;
    let offered = offered.map(|names| names.into_iter().filter(is_offered).collect::<Vec<_>>());
    let computed = choose(spec.measures.as_ref(), &view.measures, "measure");
    if let Some(defaults) = &spec.defaults {
        if let (Some(selector), Some(offered)) = (&defaults.dimensions, &offered) {
            choose(Some(selector), offered, "dimension");
        }
        if let (Some(selector), Some(computed)) = (&defaults.measures, &computed) {
            choose(Some(selector), computed, "measure");
        }
        unknown.extend(offered.and_then(|offered| unknown_in_comparison(defaults, &offered)));
    }
    unknown
}

/// Returns the dimension that a dashboard compares by if `dimensions` lacks it.
pub fn unknown_in_comparison(defaults: &DashboardDefaults, dimensions: &[String]) -> Option<Unknown> {
    let compared = defaults.comparison_dimension.as_str();
    let is_there = dimensions.iter().any(|name| name.eq_ignore_ascii_case(compared));
    let at = defaults.comparison_at;
    (!compared.is_empty() && !is_there).then(|| Unknown::new(compared, dimensions, "dimension", at))
}

/// Lists the names of a canvas that are missing from `dimensions`, the dimensions of all its metrics views.
pub fn unknown_in_canvas(spec: &CanvasSpec, dimensions: &[String]) -> Vec<Unknown> {
    let is_there = |wanted: &str| dimensions.iter().any(|name| name.eq_ignore_ascii_case(wanted));
    let filters = spec
        .pinned_filters
        .iter()
        .chain(&spec.required_filters)
        .enumerate();
    let unknown = filters.filter(|(_, name)| !is_there(name)).map(|(index, name)| {
        Unknown::new(
            name,
            dimensions,
            "dimension",
            spec.filter_spots.get(index).copied(),
        )
    });
    let compared = spec
        .defaults
        .iter()
        .filter_map(|defaults| unknown_in_comparison(defaults, dimensions));
    unknown.chain(compared).collect()
}

/// Returns the metrics view that a component reads, if there is one.
pub fn metrics_view_of(spec: &ComponentSpec) -> Option<&str> {
    let properties = spec.renderer_properties.as_ref()?;
    properties.str("metrics_view").filter(|name| !name.is_empty())
}

/// The sort of fields that a renderer's setting names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    Measures,
    Dimensions,
    /// Dimensions and measures alike.
    Fields,
}

/// Settings of renderers that name fields; `key.key` is a setting inside another.
const SETTINGS: [(&str, Names); 23] = [
    ("measure", Names::Measures),
    ("measures", Names::Measures),
    ("dimension", Names::Dimensions),
    ("dimensions", Names::Dimensions),
    ("row_dimensions", Names::Dimensions),
    ("col_dimensions", Names::Dimensions),
    ("columns", Names::Fields),
    ("x.field", Names::Fields),
    ("x.fields", Names::Fields),
    ("y.field", Names::Fields),
    ("y.fields", Names::Fields),
    ("y1.field", Names::Fields),
    ("y1.fields", Names::Fields),
    ("y2.field", Names::Fields),
    ("y2.fields", Names::Fields),
    ("color.field", Names::Fields),
    ("size.field", Names::Fields),
    ("stage.field", Names::Fields),
    ("measure.field", Names::Measures),
    ("measure.fields", Names::Measures),
    ("dimension.field", Names::Dimensions),
    ("tooltip.field", Names::Fields),
    ("theta.field", Names::Fields),
];

/// The text between a time column's name and a grain, where a setting names both.
const GRAIN_SUFFIX: &str = "_rill_TIME_GRAIN_";

/// Renderers that draw on two axes, one colour for each value of a dimension.
const CARTESIAN: [&str; 5] = [
    "area_chart",
    "bar_chart",
    "line_chart",
    "stacked_bar",
    "stacked_bar_normalized",
];

/// Returns true if a name stands for all measures or their values in a renderer, and for no field.
fn is_virtual(renderer: &str, name: &str) -> bool {
    match name {
        "rill_measures" => CARTESIAN.contains(&renderer),
        "measures" => renderer == "combo_chart",
        "value" => renderer == "funnel_chart",
        _ => false,
    }
}

/// Renderers that draw other charts than those on two axes.
const CHARTS: [&str; 6] = [
    "combo_chart",
    "donut_chart",
    "funnel_chart",
    "heatmap",
    "pie_chart",
    "scatter_plot",
];

/// Returns true if a renderer reads a setting as names of fields. The same key of another renderer may hold anything.
fn reads_setting(renderer: &str, setting: &str) -> bool {
    match setting {
        "measure" => renderer == "kpi",
        "measures" => matches!(renderer, "kpi_grid" | "leaderboard" | "pivot"),
        "dimension" | "dimensions" => renderer == "leaderboard",
        "row_dimensions" | "col_dimensions" => renderer == "pivot",
        "columns" => renderer == "table",
        _ => CARTESIAN.contains(&renderer) || CHARTS.contains(&renderer),
    }
}

/// Returns the sort of fields that a renderer's setting names: a colour is a dimension on two axes and a measure in a
/// heatmap.
fn names_of(renderer: &str, setting: &str, names: Names) -> Names {
    match (setting, renderer) {
        ("color.field", "heatmap") => Names::Measures,
        ("color.field", _) if CARTESIAN.contains(&renderer) => Names::Dimensions,
        _ => names,
    }
}

/// Returns true if a setting colours by value instead of by a field.
fn is_by_value(spec: &ComponentSpec, setting: &str) -> bool {
    let properties = spec.renderer_properties.as_ref();
    let color = properties
        .and_then(|all| all.get("color"))
        .and_then(Value::as_map);
    let r#type = color.and_then(|color| color.get("type")).and_then(Value::as_str);
    setting == "color.field" && r#type == Some("value")
}

/// Lists the names of a component that its metrics view does not have.
pub fn unknown_in_component(spec: &ComponentSpec, view: &Fields) -> Vec<Unknown> {
    let mut dimensions = view.dimensions.clone();
    dimensions.extend((!view.time.is_empty()).then(|| view.time.clone()));
    let all: Vec<String> = dimensions.iter().chain(&view.measures).cloned().collect();
    let mut unknown = Vec::new();
    for (setting, names) in settings_of(spec) {
        let (what, known) = match names_of(&spec.renderer, setting, names) {
            Names::Measures => ("measure", &view.measures),
            Names::Dimensions => ("dimension", &dimensions),
            Names::Fields => ("field", &all),
        };
        for (key, written) in texts(spec, setting) {
            let NamedField { name, .. } = NamedField::read(setting, written);
            let is_there = known.iter().any(|one| one.eq_ignore_ascii_case(name));
            if !is_there && !is_virtual(&spec.renderer, name) {
                let at = spec.spots.get(&key).or(spec.at.as_ref());
                unknown.push(Unknown::new(name, known, what, at.copied()));
            }
        }
    }
    unknown
}

/// A field named by a setting of a renderer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedField<'a> {
    /// The path of the setting, such as `measures` or `x.field`.
    pub setting: &'static str,
    /// The field's name, without a grain.
    pub name: &'a str,
    /// The name as written, possibly with a grain.
    pub written: &'a str,
    /// The grain that the name includes, if any: `day_rill_TIME_GRAIN_MONTH` is `day` by `MONTH`.
    pub grain: Option<&'a str>,
}

impl<'a> NamedField<'a> {
    fn read(setting: &'static str, written: &'a str) -> Self {
        let (name, grain) = match written.split_once(GRAIN_SUFFIX) {
            Some((name, grain)) => (name, Some(grain)),
            None => (written, None),
        };
        Self {
            setting,
            name,
            written,
            grain,
        }
    }
}

/// Lists the fields that a component names, in the order of its settings.
pub fn named_in_component(spec: &ComponentSpec) -> Vec<NamedField<'_>> {
    settings_of(spec)
        .flat_map(|(setting, _)| {
            let texts = texts(spec, setting).into_iter();
            texts.map(move |(_, written)| NamedField::read(setting, written))
        })
        .filter(|field| !is_virtual(&spec.renderer, field.name))
        .collect()
}

/// Returns the settings of a component's renderer that name fields.
fn settings_of(spec: &ComponentSpec) -> impl Iterator<Item = (&'static str, Names)> {
    SETTINGS
        .into_iter()
        .filter(|(setting, _)| reads_setting(&spec.renderer, setting) && !is_by_value(spec, setting))
}

/// Returns the texts of a setting, one or a list, each with the key of its place.
fn texts<'a>(spec: &'a ComponentSpec, setting: &str) -> Vec<(String, &'a str)> {
    let Some(properties) = &spec.renderer_properties else {
        return Vec::new();
    };
    let (first, second) = match setting.split_once('.') {
        Some((first, second)) => (first, Some(second)),
        None => (setting, None),
    };
    let outer = properties.get(first);
    let value = match second {
        None => outer,
        Some(second) => outer.and_then(Value::as_map).and_then(|map| map.get(second)),
    };
    let Some(value) = value else { return Vec::new() };
    if let Some(text) = value.as_str() {
        return vec![(setting.to_owned(), text)];
    }
    let items = value.as_list().unwrap_or_default().iter().enumerate();
    items
        .filter_map(|(index, item)| Some((format!("{setting}.{index}"), item.as_str()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use watershed_proto::{MapValue, Spot};

    use super::*;

    fn component(renderer: &str, setting: &str, value: Value) -> ComponentSpec {
        let fields = match setting.split_once('.') {
            None => BTreeMap::from([(setting.to_owned(), value)]),
            Some((outer, inner)) => BTreeMap::from([(
                outer.to_owned(),
                Value::from(BTreeMap::from([(inner.to_owned(), value)])),
            )]),
        };
        ComponentSpec {
            renderer: renderer.into(),
            renderer_properties: Some(MapValue { fields }),
            spots: BTreeMap::from([(setting.to_owned(), Spot { line: 7, column: 3 })]),
            ..ComponentSpec::default()
        }
    }

    fn told(component: &ComponentSpec) -> Option<(String, u32)> {
        let view = Fields {
            time: "day".into(),
            dimensions: vec!["port".into()],
            measures: vec!["flights".into()],
        };
        let unknown = unknown_in_component(component, &view).into_iter().next()?;
        Some((unknown.message, unknown.at.map_or(0, |at| at.line)))
    }

    #[test]
    fn names_of_fields_are_found_wherever_a_renderer_has_them() {
        let list =
            |names: &[&str]| Value::from(names.iter().map(|name| Value::from(*name)).collect::<Vec<_>>());
        for (renderer, setting, value) in [
            ("kpi", "measure", "Flights".into()),
            ("leaderboard", "dimensions", list(&["port"])),
            ("line_chart", "x.field", "day".into()),
            ("pivot", "col_dimensions", list(&["day_rill_TIME_GRAIN_MONTH"])),
            ("bar_chart", "color.field", "rill_measures".into()),
            ("combo_chart", "color.field", "measures".into()),
            ("bar_chart", "color.field", "port".into()),
            ("heatmap", "color.field", "flights".into()),
            ("vega_lite", "measure", "anything".into()),
            ("line_chart", "measures", "anything".into()),
            ("kpi", "dimensions", list(&["anything"])),
            ("a_renderer_of_tomorrow", "y.field", "anything".into()),
            ("bar_chart", "color", "primary".into()),
        ] {
            assert_eq!(
                told(&component(renderer, setting, value)),
                None,
                "{renderer} {setting}"
            );
        }
        let wrong = told(&component("line_chart", "y.field", "flihgts".into()));
        assert_eq!(
            wrong,
            Some(("the metrics view has no field \"flihgts\"".into(), 7))
        );
        assert!(told(&component("kpi", "measure", "port".into())).is_some());
        for (renderer, name) in [
            ("combo_chart", "rill_measures"),
            ("bar_chart", "measures"),
            ("bar_chart", "flights"),
            ("heatmap", "port"),
        ] {
            let wrong = told(&component(renderer, "color.field", name.into()));
            assert!(wrong.is_some(), "{renderer} has no {name} to colour by");
        }
        let mut by_value = component("bar_chart", "color.field", "anything".into());
        let color = [("field", "anything"), ("type", "value")];
        let color = color.map(|(key, value)| (key.to_owned(), Value::from(value)));
        let fields = BTreeMap::from([("color".to_owned(), Value::from(BTreeMap::from(color)))]);
        by_value.renderer_properties = Some(MapValue { fields });
        assert_eq!(told(&by_value), None);
        assert!(told(&component("table", "columns", list(&["port", "nothing"]))).is_some());
    }
}
