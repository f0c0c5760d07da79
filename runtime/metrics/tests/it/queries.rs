//! Queries in JSON: what is read, and what is refused, with its place.

use watershed_metrics::query::{Code, ComputedMeasure, Limits, Literal, Operator, Spine};
use watershed_metrics::view::Uri;
use watershed_metrics::{
    DataType, Dimension, Grain, Measure, MeasureKind, Query, QueryError, Selector, View, check,
};

pub(crate) fn dimension(name: &str, data_type: DataType) -> Dimension {
    Dimension {
        name: name.to_owned(),
        data_type,
        uri: (name == "origin").then_some(Uri::Value),
        ..Dimension::default()
    }
}

pub(crate) fn measure(name: &str, kind: MeasureKind, requires: &[&str]) -> Measure {
    Measure {
        name: name.to_owned(),
        data_type: DataType::Number,
        kind,
        requires: requires.iter().map(|&name| name.to_owned()).collect(),
        ..Measure::default()
    }
}

/// The view that the cases are about.
pub(crate) fn view() -> View {
    let mut running = measure("running", MeasureKind::Window, &["flights"]);
    running.order.push(Selector {
        name: "at".to_owned(),
        grain: Some(Grain::Day),
    });
    View {
        name: "departures".to_owned(),
        time_dimension: "at".to_owned(),
        smallest_time_grain: Some(Grain::Hour),
        dimensions: vec![
            dimension("at", DataType::Instant),
            dimension("day", DataType::Date),
            dimension("origin", DataType::Text),
            dimension("airline", DataType::Text),
            dimension("seats", DataType::Number),
            dimension("late", DataType::Boolean),
            dimension("stops", DataType::Other),
        ],
        measures: vec![
            measure("flights", MeasureKind::Simple, &[]),
            measure("delay", MeasureKind::Simple, &[]),
            running,
            measure("growth", MeasureKind::TimeComparison, &["flights"]),
            measure("share", MeasureKind::Derived, &["running", "flights"]),
        ],
        ..View::default()
    }
}

fn refusal(text: &str) -> Option<QueryError> {
    let query: Result<Query, _> = text.parse();
    query.and_then(|query| check(&query, &view())).err()
}

/// Q1 to Q6: each refusal of the cases has its code, its place, its words and its hint; each other query is accepted.
#[test]
fn queries_are_accepted_or_refused_as_the_cases_say() {
    let cases = include_str!("queries.txt");
    let mut written = String::new();
    for case in cases.split("\n\n") {
        let text: Vec<&str> = case.lines().take_while(|line| !line.starts_with("=> ")).collect();
        let query: Vec<&str> = text
            .iter()
            .filter(|line| !line.starts_with('#'))
            .copied()
            .collect();
        written += &text.join("\n");
        if !query.is_empty() {
            let said = match refusal(&query.join("\n")) {
                None => "accepted".to_owned(),
                Some(error) => {
                    let hint = error.hint.as_ref().map(|hint| format!(" ({hint})"));
                    format!("{}: {error}{}", error.code.name(), hint.unwrap_or_default())
                }
            };
            written += &format!("\n=> {said}");
        }
        written += "\n\n";
    }
    let written = format!("{}\n", written.trim_end());
    if std::env::var_os("WATERSHED_BLESS").is_some() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/queries.txt");
        std::fs::write(file, written).expect("the cases can be written");
    } else {
        assert_eq!(written, cases, "WATERSHED_BLESS=1 writes the cases anew");
    }
}

/// Q1: every key is read into its place.
#[test]
fn every_key_of_a_query_is_read() {
    let query: Query = r#"{
        "metrics_view": "departures",
        "dimensions": ["origin", {"name": "at", "grain": "day"},
            {"name": "week", "compute": {"time_floor": {"dimension": "at", "grain": "week"}}}],
        "measures": ["flights", {"name": "before", "compute": {"comparison_value": {"measure": "flights"}}}],
        "time_range": {"iso_duration": "P7D", "time_dimension": "at"},
        "comparison_time_range": {"offset": "-1P"},
        "time_zone": "America/New_York",
        "where": {"cond": {"op": "in", "exprs": [{"name": "origin"}, {"val": ["EWR", null]}]}},
        "having": {"cond": {"op": "gt", "exprs": [{"name": "before"}, {"val": 10}]}},
        "sort": [{"name": "flights", "desc": true}, "origin"],
        "limit": 10, "offset": 5, "pivot_on": ["origin"], "spine": {"time": true},
        "totals": true, "rows": false, "use_display_names": true
    }"#
    .parse()
    .expect("a query");
    assert_eq!(query.dimensions.len(), 3);
    assert_eq!(
        (query.dimensions[2].name.as_str(), query.dimensions[2].of.as_str()),
        ("week", "at")
    );
    assert_eq!(query.dimensions[2].grain, Some(Grain::Week));
    assert_eq!(
        query.measures[1].compute,
        Some(ComputedMeasure::ComparisonValue("flights".to_owned()))
    );
    assert_eq!(query.time_zone.name(), Some("America/New_York"));
    assert_eq!((query.limit, query.offset), (Some(10), 5));
    assert_eq!(
        (query.sort[0].descending, query.sort[1].descending),
        (true, false)
    );
    assert_eq!(query.spine, Some(Spine::Time));
    assert!(query.totals && !query.rows && query.use_display_names);
    assert_eq!(check(&query, &view()), Ok(()));
}

/// Q5: filters keep their shape, numbers their digits.
#[test]
fn filters_keep_their_shape_and_numbers_their_digits() {
    use watershed_metrics::query::Filter;
    let query: Query = r#"{"metrics_view": "departures", "measures": ["flights"], "where":
        {"cond": {"op": "not", "exprs": [{"cond": {"op": "EQ", "exprs":
            [{"name": "seats"}, {"val": 9007199254740993}]}}]}}}"#
        .parse()
        .expect("a query");
    let Some(Filter::Condition {
        op: Operator::Not,
        operands,
    }) = query.r#where
    else {
        panic!("no negation");
    };
    let [
        Filter::Condition {
            op: Operator::Eq,
            operands,
        },
    ] = operands.as_slice()
    else {
        panic!("no comparison");
    };
    assert!(
        matches!(&operands[1], Filter::Value(Literal::Number(number)) if number.to_string() == "9007199254740993")
    );
}

/// Q20: what makes statements too long is refused before anything is planned.
#[test]
fn too_many_fields_values_and_levels_are_refused() {
    let query = |inner: &str| format!(r#"{{"metrics_view": "departures", {inner}}}"#);
    let code = |inner: &str| refusal(&query(inner)).map(|error| error.code);
    let measures = vec![r#""flights""#; Limits::FIELDS + 1].join(",");
    assert_eq!(
        code(&format!(r#""measures": [{measures}]"#)),
        Some(Code::TooLarge)
    );
    let values = |count: usize| {
        let values = vec!["1"; count].join(",");
        format!(
            r#""measures": ["flights"], "where":
                {{"cond": {{"op": "in", "exprs": [{{"name": "seats"}}, {{"val": [{values}]}}]}}}}"#
        )
    };
    assert_eq!(code(&values(Limits::VALUES)), None);
    assert_eq!(code(&values(Limits::VALUES + 1)), Some(Code::TooLarge));
    let nested = |depth: usize| {
        let mut filter = r#"{"val": true}"#.to_owned();
        for _ in 0..depth {
            filter = format!(r#"{{"cond": {{"op": "and", "exprs": [{filter}]}}}}"#);
        }
        format!(r#""measures": ["flights"], "where": {filter}"#)
    };
    assert_eq!(code(&nested(Limits::DEPTH)), None);
    assert_eq!(code(&nested(Limits::DEPTH + 1)), Some(Code::TooLarge));
    assert!(code(&nested(10_000)).is_some());
}

/// A circle of measures ends the check all the same.
#[test]
fn measures_that_require_each_other_do_not_hang_the_check() {
    let mut view = view();
    view.measures.push(measure("hen", MeasureKind::Derived, &["egg"]));
    view.measures.push(measure("egg", MeasureKind::Derived, &["hen"]));
    let query: Query = r#"{"metrics_view": "departures", "measures": ["hen"]}"#
        .parse()
        .expect("a query");
    assert_eq!(check(&query, &view), Ok(()));
}

#[test]
fn types_are_known_by_the_engines_names() {
    for (name, expected) in [
        ("VARCHAR", DataType::Text),
        ("ENUM('a', 'b(')", DataType::Text),
        ("DECIMAL(18,3)", DataType::Number),
        ("ubigint", DataType::Number),
        ("BOOLEAN", DataType::Boolean),
        ("DATE", DataType::Date),
        ("TIMESTAMP", DataType::Timestamp),
        ("TIMESTAMP_NS", DataType::Timestamp),
        ("TIMESTAMP WITH TIME ZONE", DataType::Instant),
        ("VARCHAR[]", DataType::Other),
        ("STRUCT(a INTEGER)", DataType::Other),
        ("INTERVAL", DataType::Other),
    ] {
        assert_eq!(DataType::of(name), expected, "{name}");
    }
}

/// Q1: a text is short for a mapping with `name`, wherever a field is named.
#[test]
fn a_field_is_named_by_a_text_or_a_mapping() {
    let form = |name: &dyn Fn(&str) -> String| -> Query {
        let (day, flights) = (name("at"), name("flights"));
        let text = format!(
            r#"{{"metrics_view": "v", "dimensions": [{day}, {{"name": "d", "compute": {{"time_floor": {{"dimension": {day},
            "grain": "day"}}}}}}], "measures": [{flights}, {{"name": "c", "compute": {{"count_distinct": {{"dimension": {day}}}}}}},
            {{"name": "p", "compute": {{"percent_of_total": {{"measure": {flights}}}}}}}], "pivot_on": [{day}], "sort": [{day}],
            "where": {{"cond": {{"op": "in", "exprs": [{{"name": "at"}}, {{"subquery": {{"dimension": {day},
            "measures": [{flights}]}}}}]}}}}}}"#
        );
        text.parse().expect("a query")
    };
    let short = form(&|name| format!("\"{name}\""));
    let long = form(&|name| format!("{{\"name\": \"{name}\"}}"));
    assert_eq!(short, long);
}

/// A block that is empty says nothing, as one that is not there.
#[test]
fn empty_blocks_say_nothing() {
    let plain: Query = r#"{"metrics_view": "v", "measures": ["flights"]}"#
        .parse()
        .expect("a query");
    let empty: Query = r#"{"metrics_view": "v", "measures": ["flights"], "dimensions": [], "where": {}, "having": {}, "sort": [],
        "time_range": {}, "comparison_time_range": {}, "spine": {}, "pivot_on": []}"#
        .parse()
        .expect("a query");
    assert_eq!(plain, empty);
}
