//! Translation of legacy queries by name, as far as metrics queries can express them.

use serde_json::{Map, Value as Json};
use watershed_proto::{DataResolver, MapValue, Value};

/// The only legacy query that is supported.
const AGGREGATION: &str = "MetricsViewAggregation";
/// Legacy settings without effect on rows.
const DROPPED: [&str; 3] = ["instance_id", "priority", "exact"];

/// Translates a legacy query to a data block; none if it has no equivalent.
#[must_use]
pub fn data(name: &str, args: Option<&MapValue>) -> Option<DataResolver> {
    if name != AGGREGATION {
        return None;
    }
    let Json::Object(mut query) = keys(Json::from(args?)) else {
        return None;
    };
    query.retain(|key, _| !DROPPED.contains(&key.as_str()));
    if let Some(view) = query.remove("metrics_view_name") {
        query.insert("metrics_view".to_owned(), view);
    }
    let fields = query.into_iter().map(|(key, value)| (key, Value::from(value)));
    Some(DataResolver {
        resolver: "metrics".to_owned(),
        properties: Some(MapValue {
            fields: fields.collect(),
        }),
    })
}

/// Translates keys and the operators of conditions to the current format.
fn keys(value: Json) -> Json {
    match value {
        Json::Array(items) => items.into_iter().map(keys).collect(),
        Json::Object(map) => {
            let entry = |(key, value): (String, Json)| match (snake_case(&key).as_str(), &value) {
                // What a constant holds is nobody's key.
                ("val", _) => ("val".to_owned(), value),
                ("ident", _) => ("name".to_owned(), value),
                ("op", Json::String(word)) => {
                    let word = word.trim_start_matches("OPERATION_").to_lowercase();
                    ("op".to_owned(), word.into())
                }
                (key, _) => (key.to_owned(), keys(value)),
            };
            map.into_iter().map(entry).collect::<Map<_, _>>().into()
        }
        other => other,
    }
}

fn snake_case(key: &str) -> String {
    key.chars().fold(String::new(), |mut key, c| {
        if c.is_ascii_uppercase() {
            key.push('_');
        }
        key.push(c.to_ascii_lowercase());
        key
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use watershed_metrics::Query;

    use super::*;

    fn args(json: Json) -> MapValue {
        let Json::Object(map) = json else {
            unreachable!("it is a mapping")
        };
        let fields = map.into_iter().map(|(key, value)| (key, Value::from(value)));
        MapValue {
            fields: fields.collect(),
        }
    }

    #[test]
    fn an_aggregation_is_a_query_of_its_metrics_view() {
        let old = json!({
            "metricsView": "sales", "instanceId": "default", "priority": 1,
            "dimensions": [{"name": "port"}], "measures": [{"name": "total"}],
            "timeRange": {"isoDuration": "P7D"}, "limit": 10, "sort": [{"name": "total", "desc": true}],
            "where": {"cond": {"op": "OPERATION_EQ", "exprs": [{"ident": "port"}, {"val": "isoDuration"}]}},
        });
        let data = data(AGGREGATION, Some(&args(old))).unwrap();
        let read = Json::from(&data.properties.unwrap());
        let expected = json!({
            "metrics_view": "sales",
            "dimensions": [{"name": "port"}], "measures": [{"name": "total"}],
            "time_range": {"iso_duration": "P7D"}, "limit": 10, "sort": [{"name": "total", "desc": true}],
            "where": {"cond": {"op": "eq", "exprs": [{"name": "port"}, {"val": "isoDuration"}]}},
        });
        assert_eq!(read, expected);
        assert!(Query::from_json(&read).is_ok());
    }

    #[test]
    fn other_questions_are_none() {
        assert_eq!(data("MetricsViewToplist", Some(&args(json!({})))), None);
        assert_eq!(data(AGGREGATION, None), None);
    }
}
