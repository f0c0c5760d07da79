//! The queries of a component as declared; viewers add time ranges and filters.

use serde_json::{Map, Value, json};
use watershed_compilers::fields::{NamedField, metrics_view_of, named_in_component};
use watershed_proto::{ComponentSpec, MapValue, MetricsViewSpec};

/// The default number of rows of a leaderboard.
const LEADERS: i64 = 7;

/// Returns the queries of a component over a metrics view, as JSON. A leaderboard has one query per dimension.
pub(super) fn queries(spec: &ComponentSpec, view: &MetricsViewSpec) -> Vec<MapValue> {
    let fields = named_in_component(spec);
    let is_measure = |field: &NamedField<'_>| {
        let mut measures = view.measures.iter();
        measures.any(|one| one.name.eq_ignore_ascii_case(field.name))
    };
    let (measures, dimensions): (Vec<_>, Vec<_>) = fields.into_iter().partition(is_measure);
    let measures = distinct(measures.iter().map(|one| json!(one.name)));
    let pivoted = dimensions.iter().filter(|one| one.setting == "col_dimensions");
    let pivoted = distinct(pivoted.map(|one| json!(one.written)));
    let dimensions = distinct(dimensions.iter().map(|one| dimension(one, view)));
    if measures.is_empty() && dimensions.is_empty() {
        return Vec::new();
    }
    let query = |dimensions: Vec<Value>| {
        let mut query = Map::new();
        query.insert(
            "metrics_view".to_owned(),
            json!(metrics_view_of(spec).unwrap_or_default()),
        );
        for (key, items) in [
            ("dimensions", &dimensions),
            ("measures", &measures),
            ("pivot_on", &pivoted),
        ] {
            if !items.is_empty() {
                query.insert(key.to_owned(), json!(items));
            }
        }
        query
    };
    let made = match spec.renderer.as_str() {
        "leaderboard" => dimensions
            .into_iter()
            .map(|one| led(query(vec![one]), spec))
            .collect(),
        _ => vec![ranked(query(dimensions), spec)],
    };
    let map = |query| {
        let value = watershed_proto::Value::from(Value::Object(query));
        let fields = value.as_map().cloned()?;
        Some(MapValue { fields })
    };
    made.into_iter().filter_map(map).collect()
}

/// Orders a leaderboard's groups by the first measure, largest first, and limits them.
fn led(mut query: Map<String, Value>, spec: &ComponentSpec) -> Map<String, Value> {
    let first = query
        .get("measures")
        .and_then(|measures| measures.get(0))
        .cloned();
    if let Some(first) = first {
        query.insert("sort".to_owned(), json!([{"name": first, "desc": true}]));
    }
    let properties = spec.renderer_properties.as_ref();
    let rows = properties.and_then(|all| all.get("num_rows")?.as_int());
    let rows = rows.filter(|rows| *rows > 0).unwrap_or(LEADERS);
    query.insert("limit".to_owned(), json!(rows));
    query
}

/// Settings of charts that name what is sorted and limited.
const AXES: [&str; 4] = ["x", "color", "stage", "y"];

/// Orders the groups of a chart over one dimension and limits them, as the setting that names the dimension says: `sort` is
/// `x` or `y`, with `-` for descending. With a second dimension its values are limited where they are drawn.
fn ranked(mut query: Map<String, Value>, spec: &ComponentSpec) -> Map<String, Value> {
    let items = |key: &str| {
        query
            .get(key)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let (dimensions, measures) = (items("dimensions"), items("measures"));
    // Times are objects here: they are drawn as they go.
    let ([Value::String(dimension)], Some(Value::String(measure))) =
        (dimensions.as_slice(), measures.first())
    else {
        return query;
    };
    let properties = spec.renderer_properties.as_ref();
    let axis = AXES.iter().find_map(|key| {
        let axis = properties?.get(key)?.as_map()?;
        let field = axis.get("field").and_then(watershed_proto::Value::as_str);
        (field == Some(dimension)).then_some((*key, axis))
    });
    let Some((key, axis)) = axis else { return query };
    // The values of bars that lie stand on x.
    let (own, other) = if key == "y" { ("y", "x") } else { ("x", "y") };
    let limit = axis.get("limit").and_then(watershed_proto::Value::as_int);
    let limit = limit.filter(|limit| *limit > 0);
    let sort = axis.get("sort").and_then(watershed_proto::Value::as_str);
    let by = sort.map(|sort| (sort.trim_start_matches('-'), sort.starts_with('-')));
    let sort = match (by, limit) {
        (Some((by, desc)), _) if by == own => Some((dimension, desc)),
        (Some((by, desc)), _) if by == other || by == "measure" => Some((measure, desc)),
        // The largest groups are the ones that a limit leaves.
        (_, Some(_)) => Some((measure, true)),
        _ => None,
    };
    if let Some((name, desc)) = sort {
        query.insert("sort".to_owned(), json!([{"name": name, "desc": desc}]));
    }
    if let Some(limit) = limit {
        query.insert("limit".to_owned(), json!(limit));
    }
    query
}

/// Returns a dimension for a query; times are cut to the grain that the name gives, else to the view's smallest, else
/// to days.
fn dimension(field: &NamedField<'_>, view: &MetricsViewSpec) -> Value {
    if let Some(grain) = field.grain {
        let floor = json!({"dimension": field.name, "grain": grain.to_lowercase()});
        return json!({"name": field.written, "compute": {"time_floor": floor}});
    }
    if !field.name.eq_ignore_ascii_case(&view.time_dimension) {
        return json!(field.name);
    }
    let grain = match view.smallest_time_grain.as_str() {
        "" => "day",
        grain => grain,
    };
    json!({"name": field.name, "grain": grain})
}

fn distinct(items: impl Iterator<Item = Value>) -> Vec<Value> {
    items.fold(Vec::new(), |mut all, one| {
        if !all.contains(&one) {
            all.push(one);
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use watershed_metrics::Query;
    use watershed_proto::MetricsViewMeasure;

    use super::*;

    fn asked(renderer: &str, properties: Value) -> Vec<Value> {
        let measure = |name: &str| MetricsViewMeasure {
            name: name.to_owned(),
            ..MetricsViewMeasure::default()
        };
        let view = MetricsViewSpec {
            time_dimension: "day".to_owned(),
            smallest_time_grain: "hour".to_owned(),
            measures: vec![measure("flights"), measure("late")],
            ..MetricsViewSpec::default()
        };
        let spec = ComponentSpec {
            renderer: renderer.to_owned(),
            renderer_properties: watershed_proto::Value::from(properties)
                .as_map()
                .map(|fields| MapValue {
                    fields: fields.clone(),
                }),
            ..ComponentSpec::default()
        };
        let queries: Vec<Value> = queries(&spec, &view).iter().map(Value::from).collect();
        for query in &queries {
            assert!(Query::from_json(query).is_ok(), "{query}");
        }
        queries
    }

    #[test]
    fn each_renderer_asks_for_the_fields_that_it_names() {
        for (renderer, properties, expected) in [
            (
                "kpi",
                json!({"metrics_view": "v", "measure": "flights"}),
                json!([{"metrics_view": "v", "measures": ["flights"]}]),
            ),
            (
                "leaderboard",
                json!({"metrics_view": "v", "dimensions": ["origin", "airline"], "measures": ["late", "flights"], "num_rows": 3}),
                json!([
                    {"metrics_view": "v", "dimensions": ["origin"], "measures": ["late", "flights"], "sort": [{"name": "late", "desc": true}], "limit": 3},
                    {"metrics_view": "v", "dimensions": ["airline"], "measures": ["late", "flights"], "sort": [{"name": "late", "desc": true}], "limit": 3},
                ]),
            ),
            (
                "line_chart",
                json!({"metrics_view": "v", "x": {"field": "day"}, "y": {"field": "late"}, "color": {"field": "origin"}}),
                json!([{"metrics_view": "v", "dimensions": [{"name": "day", "grain": "hour"}, "origin"], "measures": ["late"]}]),
            ),
            (
                "pivot",
                json!({"metrics_view": "v", "row_dimensions": ["origin"], "col_dimensions": ["day_rill_TIME_GRAIN_MONTH"], "measures": ["flights"]}),
                json!([{
                    "metrics_view": "v",
                    "dimensions": ["origin", {"name": "day_rill_TIME_GRAIN_MONTH", "compute": {"time_floor": {"dimension": "day", "grain": "month"}}}],
                    "measures": ["flights"],
                    "pivot_on": ["day_rill_TIME_GRAIN_MONTH"],
                }]),
            ),
            (
                "table",
                json!({"metrics_view": "v", "columns": ["origin", "late"]}),
                json!([{"metrics_view": "v", "dimensions": ["origin"], "measures": ["late"]}]),
            ),
            (
                "bar_chart",
                json!({"metrics_view": "v", "x": {"field": "origin"}, "y": {"fields": ["late", "flights"]}, "color": {"field": "rill_measures"}}),
                json!([{"metrics_view": "v", "dimensions": ["origin"], "measures": ["late", "flights"]}]),
            ),
            (
                "bar_chart",
                json!({"metrics_view": "v", "x": {"field": "origin", "sort": "-y", "limit": 5}, "y": {"field": "late"}}),
                json!([{"metrics_view": "v", "dimensions": ["origin"], "measures": ["late"], "sort": [{"name": "late", "desc": true}], "limit": 5}]),
            ),
            (
                "donut_chart",
                json!({"metrics_view": "v", "color": {"field": "origin", "limit": 3}, "measure": {"field": "late"}}),
                json!([{"metrics_view": "v", "dimensions": ["origin"], "measures": ["late"], "sort": [{"name": "late", "desc": true}], "limit": 3}]),
            ),
            (
                "bar_chart",
                json!({"metrics_view": "v", "x": {"field": "origin", "sort": "x"}, "y": {"field": "late"}}),
                json!([{"metrics_view": "v", "dimensions": ["origin"], "measures": ["late"], "sort": [{"name": "origin", "desc": false}]}]),
            ),
            (
                "line_chart",
                json!({"metrics_view": "v", "x": {"field": "day"}, "y": {"field": "late"}, "color": {"field": "origin", "limit": 5}}),
                json!([{"metrics_view": "v", "dimensions": [{"name": "day", "grain": "hour"}, "origin"], "measures": ["late"]}]),
            ),
            (
                "bar_chart",
                json!({"metrics_view": "v", "y": {"field": "origin", "sort": "-x"}, "x": {"field": "late"}}),
                json!([{"metrics_view": "v", "dimensions": ["origin"], "measures": ["late"], "sort": [{"name": "late", "desc": true}]}]),
            ),
            ("markdown", json!({"content": "Hello"}), json!([])),
        ] {
            assert_eq!(json!(asked(renderer, properties)), expected, "{renderer}");
        }
    }
}
