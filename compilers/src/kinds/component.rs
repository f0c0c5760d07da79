//! Components: a part of a canvas, in a file of its own or inside the canvas.

use std::collections::BTreeMap;

use watershed_proto::{ComponentSpec, MapValue, Spot};

use crate::{
    diagnostics::{Code, spot},
    draft::{RawRef, ref_to},
    kinds::reader::{Declared, Reader},
    resource::{Kind, Spec},
    text::names,
    yaml::{Data, Entry, Fields, Map, Node, keys::blocks},
};

blocks! {
    /// Keys of a component; the remaining key names its renderer.
    pub(crate) static COMPONENT = "component" Kept {
        "title": Text, "The name for people." => "display_name";
        "description": Text, "What it shows.";
        "subtitle": Text, "A line below its name.";
        "input": List(&Any), "Variables that it reads.";
        "output": Any, "The variable that it sets.";
    }
}

/// The known renderers; others are accepted unchecked.
pub(crate) const RENDERERS: [&str; 24] = [
    "kpi",
    "kpi_grid",
    "markdown",
    "image",
    "leaderboard",
    "table",
    "pivot",
    "line_chart",
    "bar_chart",
    "area_chart",
    "stacked_bar",
    "stacked_bar_normalized",
    "donut_chart",
    "pie_chart",
    "funnel_chart",
    "heatmap",
    "combo_chart",
    "scatter_plot",
    "vega_lite",
    "custom_chart",
    "select",
    "switch",
    "template",
    "text",
];

/// Reads a component from its settings.
pub(crate) fn read(reader: &mut Reader<'_, '_>) -> Declared {
    reader.fields.deprecations(&COMPONENT);
    reader.refuse_sql(Kind::Component);
    let display_name = reader.display_name();
    let description = reader.text("description");
    let subtitle = reader.text("subtitle");
    let input = reader.values("input");
    let output = reader.fields.take("output").map(|entry| entry.value.to_value());
    let at = reader.fields.at();
    let rest = reader.fields.take_rest();
    let Some((mut spec, refs)) = renderer(rest, at, &mut reader.fields) else {
        return Declared::new(Spec::Component(Box::default()));
    };
    if !display_name.is_empty() {
        spec.display_name = display_name;
    }
    if !description.is_empty() {
        spec.description = description;
    }
    spec.subtitle = subtitle;
    spec.input = input;
    spec.output = output;
    let mut declared = Declared::new(Spec::Component(Box::new(spec)));
    declared.refs = refs;
    declared
}

/// Reads the one renderer of a component, or of a canvas's item, from the remaining settings.
pub(crate) fn renderer(
    rest: Map,
    at: crate::diagnostics::At,
    fields: &mut Fields<'_>,
) -> Option<(ComponentSpec, Vec<RawRef>)> {
    let several: Vec<String> = rest.keys().cloned().collect();
    let mut entries = rest.into_iter();
    let (Some((renderer, entry)), None) = (entries.next(), entries.next()) else {
        let (code, message) = match several.as_slice() {
            [] => (
                Code::MissingKey,
                "a component needs one renderer, such as `kpi` or `markdown`".to_owned(),
            ),
            several => (
                Code::ConflictingKeys,
                format!("a component has one renderer, not `{}`", several.join("`, `")),
            ),
        };
        fields.findings().add(at, code, message);
        return None;
    };
    if !RENDERERS.contains(&renderer.as_str())
        && let Some(near) = names::nearest(&renderer, RENDERERS.into_iter().chain(COMPONENT.names()))
    {
        let message = format!("unknown renderer \"{renderer}\"");
        fields.findings().add_with_hint(
            entry.key_at,
            Code::MisspelledKey,
            message,
            format!("did you mean `{near}`?"),
        );
    }
    let Entry { key_at, value } = entry;
    let Data::Map(map) = value.data else {
        let message = format!("\"{renderer}\" takes a mapping, not {}", value.data.type_name());
        fields.findings().add(value.at, Code::WrongType, message);
        return None;
    };
    let text = |key: &str| map.get(key).and_then(|entry| entry.value.scalar_text());
    let metrics_view = text("metrics_view").filter(|name| !name.is_empty());
    let at = map.get("metrics_view").map(|entry| entry.value.at);
    let refs = metrics_view
        .iter()
        .map(|name| ref_to(Kind::MetricsView, name, at));
    let spec = ComponentSpec {
        display_name: text("title").unwrap_or_default(),
        description: text("description").unwrap_or_default(),
        at: spot(key_at),
        spots: spots(&map),
        renderer_properties: Some(MapValue { fields: values(&map) }),
        renderer,
        ..ComponentSpec::default()
    };
    Some((spec, refs.collect()))
}

fn values(map: &Map) -> BTreeMap<String, watershed_proto::Value> {
    map.iter()
        .map(|(key, entry)| (key.clone(), entry.value.to_value()))
        .collect()
}

/// Returns the places of values by path: `key`, `key.key`, and `key.0` in lists.
fn spots(map: &Map) -> BTreeMap<String, Spot> {
    let mut found = BTreeMap::new();
    for (key, entry) in map {
        place(key, &entry.value, 2, &mut found);
    }
    found
}

fn place(key: &str, node: &Node, depth: usize, found: &mut BTreeMap<String, Spot>) {
    found.extend(spot(node.at).map(|spot| (key.to_owned(), spot)));
    if depth == 0 {
        return;
    }
    match &node.data {
        Data::Map(map) => map
            .iter()
            .for_each(|(inner, entry)| place(&format!("{key}.{inner}"), &entry.value, depth - 1, found)),
        Data::List(items) => items
            .iter()
            .enumerate()
            .for_each(|(index, item)| place(&format!("{key}.{index}"), item, depth - 1, found)),
        _ => {}
    }
}
