//! Statements of plans against statements that a person would write, on one connection.

use std::path::Path;
use std::time::Instant;

use watershed_dialect::DuckDb;
use watershed_drivers::duckdb::ByHand;
use watershed_metrics::plan::{Bounds, Extent, plan};
use watershed_metrics::policy::{Effect, Layer, Rule, Truth};
use watershed_metrics::view::Source;
use watershed_metrics::{DataType, Dimension, Measure, Policy, Query, View, jiff};
use watershed_tests::measure::{Report, Unit, time};

/// The rows of the table.
const ROWS: u64 = 10_000_000;

/// Pairs of which the median counts.
const PAIRS: usize = 5;

/// Measures as their author writes them.
const MEASURES: [(&str, &str); 10] = [
    ("flights", "count(*)"),
    ("delay", "sum(dep_delay)"),
    ("mean_delay", "avg(dep_delay)"),
    ("worst", "max(dep_delay)"),
    ("arrival", "sum(arr_delay)"),
    ("late", "count(*) FILTER (dep_delay > 15)"),
    ("distance", "sum(distance)"),
    ("mean_distance", "avg(distance)"),
    ("air_time", "sum(air_time)"),
    ("longest", "max(air_time)"),
];

pub(super) fn measure(report: &Report) {
    planning(report);
    let ratios = [
        "leaderboard_ratio",
        "compare_ratio",
        "totals_ratio",
        "zone_ratio",
        "policy_ratio",
    ];
    if ratios.iter().any(|name| report.wants(name)) {
        of_statements(report);
    }
}

fn view() -> View {
    let dimension = |name: &str, column: &str, data_type, engine_type: &str| Dimension {
        name: name.to_owned(),
        data_type,
        engine_type: engine_type.to_owned(),
        source: Source::Column(column.to_owned()),
        ..Dimension::default()
    };
    let measure = |(name, expression): &(&str, &str)| Measure {
        name: (*name).to_owned(),
        data_type: DataType::Number,
        engine_type: if expression.starts_with("avg") {
            "DOUBLE"
        } else {
            "BIGINT"
        }
        .to_owned(),
        expression: (*expression).to_owned(),
        ..Measure::default()
    };
    View {
        name: "flights".to_owned(),
        table: vec!["flights".to_owned()],
        time_dimension: "at".to_owned(),
        dimensions: vec![
            dimension("carrier", "carrier", DataType::Text, "VARCHAR"),
            dimension("dest", "dest", DataType::Text, "VARCHAR"),
            dimension("at", "at", DataType::Timestamp, "TIMESTAMP"),
        ],
        measures: MEASURES.iter().map(measure).collect(),
        ..View::default()
    }
}

fn bounds() -> Bounds {
    let instant = |text: &str| text.parse::<jiff::Timestamp>().ok();
    let mut bounds = Bounds::at(instant("2014-01-01T00:00:00Z").unwrap());
    let extent = Extent {
        earliest: instant("2013-01-01T00:00:00Z"),
        latest: instant("2014-01-01T00:00:00Z"),
        watermark: None,
    };
    bounds.times.insert("at".to_owned(), extent);
    bounds
}

fn filtered(filter: &str) -> Policy {
    let rule = |effect| Rule {
        condition: Truth::True,
        effect,
    };
    Policy::of(&[Layer {
        rules: vec![
            rule(Effect::AllowAccess),
            rule(Effect::FilterRows(filter.to_owned())),
        ],
    }])
}

fn statement(query: &str, policy: &Policy) -> String {
    let query: Query = query.parse().unwrap();
    let plan = plan(&view(), policy, &query, &bounds()).unwrap();
    plan.statement(&DuckDb)
}

/// A query as its author writes it, with so many of the measures.
fn query(measures: usize, rest: &str) -> String {
    let names = MEASURES[..measures].iter().map(|(name, _)| format!("\"{name}\""));
    let names = names.collect::<Vec<_>>().join(", ");
    format!(r#"{{"metrics_view": "flights", "measures": [{names}], {rest}}}"#)
}

fn planning(report: &Report) {
    if !report.wants("plan_us") {
        return;
    }
    let query: Query = query(
        10,
        r#""dimensions": ["carrier", "dest", {"name": "at", "grain": "month"}], "time_zone": "America/New_York",
        "time_range": {"start": "2013-07-01T00:00:00Z", "end": "2014-01-01T00:00:00Z"},
        "comparison_time_range": {"offset": "-1P"}, "limit": 100"#,
    )
    .parse()
    .unwrap();
    let (view, policy, bounds) = (
        view(),
        filtered("dest IN ('LAX', 'SFO') OR distance > 100"),
        bounds(),
    );
    let rounds = (0..2_000).map(|_| {
        let (took, text) = time(|| plan(&view, &policy, &query, &bounds).unwrap().statement(&DuckDb));
        assert!(text.len() > 1_000);
        took.as_secs_f64() * 1e6
    });
    report.print("plan_us", Unit::Microseconds, rounds.collect());
}

fn table(engine: &ByHand) {
    let rows = std::env::var("WATERSHED_BENCH_ROWS")
        .ok()
        .and_then(|rows| rows.parse().ok());
    let rows: u64 = rows.unwrap_or(ROWS);
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/projects/flights/data/flights.parquet");
    engine.run(&format!(
        "SET TimeZone = 'UTC'; CREATE TABLE flights AS
         SELECT carrier, dest, origin, dep_delay, arr_delay, distance, air_time,
                CAST(time_hour AS TIMESTAMP) + to_seconds(i) AS \"at\"
         FROM '{}' f, range(0, 31) t(i) LIMIT {rows}",
        file.display()
    ));
}

/// Prints the median of one statement's time over another's.
fn ratio(report: &Report, engine: &ByHand, name: &str, planned: &str, other: &str) {
    if !report.wants(name) {
        return;
    }
    let took = |sql: &str| {
        let begun = Instant::now();
        let rows = engine.run(sql);
        (begun.elapsed().as_secs_f64(), rows.len())
    };
    took(planned);
    took(other);
    let pairs = (0..PAIRS).map(|_| {
        let ((planned, rows), (other, expected)) = (took(planned), took(other));
        assert_eq!(rows, expected, "{name}: both answer the same question");
        planned / other
    });
    report.print(name, Unit::Ratio, pairs.collect());
}

fn of_statements(report: &Report) {
    let engine = ByHand::in_memory();
    engine.run("SET threads = 2");
    table(&engine);
    let open = Policy::open();
    let measures = |count: usize| {
        let written = MEASURES[..count]
            .iter()
            .map(|(name, sql)| format!("{sql} AS {name}"));
        written.collect::<Vec<_>>().join(", ")
    };
    let leaders = query(
        10,
        r#""dimensions": ["dest"], "sort": [{"name": "delay", "desc": true}], "limit": 10"#,
    );
    let all = measures(10);
    let by_hand = format!(
        "SELECT dest, {all} FROM flights GROUP BY dest ORDER BY delay DESC NULLS LAST, dest LIMIT 10"
    );
    ratio(
        report,
        &engine,
        "leaderboard_ratio",
        &statement(&leaders, &open),
        &by_hand,
    );

    let half = r#""time_range": {"start": "2013-07-01T00:00:00Z", "end": "2014-01-01T00:00:00Z"}, "comparison_time_range": {"offset": "-6M"}"#;
    let delta = r#"{"name": "before", "compute": {"comparison_value": {"measure": "flights"}}}"#;
    let compared = format!(
        r#"{{"metrics_view": "flights", "dimensions": ["dest"], "measures": ["flights", "delay", {delta}], {half}}}"#
    );
    let by_hand = "SELECT dest, count(*) FILTER (\"at\" >= '2013-07-01') AS flights, sum(dep_delay) FILTER (\"at\" >= '2013-07-01') AS delay,
            count(*) FILTER (\"at\" < '2013-07-01') AS before
         FROM flights WHERE \"at\" >= '2013-01-01' AND \"at\" < '2014-01-01' GROUP BY dest ORDER BY dest";
    ratio(
        report,
        &engine,
        "compare_ratio",
        &statement(&compared, &open),
        by_hand,
    );

    let totals = query(3, r#""dimensions": ["dest"], "totals": true"#);
    let three = measures(3);
    let by_hand = format!(
        "SELECT dest, {three} FROM flights GROUP BY GROUPING SETS ((dest), ()) ORDER BY grouping(dest), dest"
    );
    ratio(
        report,
        &engine,
        "totals_ratio",
        &statement(&totals, &open),
        &by_hand,
    );

    let days = |zone: &str| {
        query(
            1,
            &format!(r#""dimensions": [{{"name": "at", "grain": "day"}}], "time_zone": "{zone}""#),
        )
    };
    let universal =
        "SELECT date_trunc('day', \"at\") AS d, count(*) AS flights FROM flights GROUP BY 1 ORDER BY 1";
    let zone = statement(&days("America/New_York"), &open);
    let zone = format!("SELECT * FROM (\n{zone}\n) LIMIT 340");
    let universal = format!("SELECT * FROM ({universal}) LIMIT 340");
    ratio(report, &engine, "zone_ratio", &zone, &universal);

    let filter = "origin = 'JFK' OR dep_delay > 60";
    let bound = query(3, r#""dimensions": ["dest"]"#);
    let by_hand = format!("SELECT dest, {three} FROM flights WHERE ({filter}) GROUP BY dest ORDER BY dest");
    ratio(
        report,
        &engine,
        "policy_ratio",
        &statement(&bound, &filtered(filter)),
        &by_hand,
    );
}
