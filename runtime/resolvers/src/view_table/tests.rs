use std::sync::Arc;

use serde_json::{Value, json};
use watershed_compilers::SqlParser as _;
use watershed_drivers::olap::{Catalog, Seen};
use watershed_outputs::sql_parser::EngineParser;

use super::{Fields, Named, Taken, take};
use crate::ResolveError;

fn fields() -> Arc<Fields> {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Arc::new(Fields {
        view: "delays".to_owned(),
        dimensions: names(&["t", "origin", "Carrier name"]),
        measures: names(&["flights", "delay"]),
    })
}

struct Bench {
    writer: Box<dyn Catalog>,
    parser: EngineParser,
    aggregates: std::collections::BTreeSet<String>,
}

impl Bench {
    fn new() -> Self {
        let parser = EngineParser::default();
        Self {
            writer: watershed_drivers::catalog(&Seen::default()).unwrap(),
            aggregates: parser.vocabulary().unwrap().aggregates,
            parser,
        }
    }

    /// Returns the query of a statement, and what is left of the statement.
    fn take(&self, sql: &str) -> Result<Option<(Option<Value>, String)>, String> {
        let tree = self.parser.parse(&[sql]).pop().unwrap();
        let tree = tree.map_err(|error| format!("{sql}: {error:?}"))?;
        let mut document: Value = serde_json::from_str(tree.document()).unwrap();
        let before = document.clone();
        let find = |named: &Named| {
            let is_meant = ["", "metrics"].contains(&named.schema.as_str())
                && named.table.eq_ignore_ascii_case("delays");
            is_meant.then(fields)
        };
        let is_aggregate = |name: &str| self.aggregates.contains(name);
        match take(&mut document, "answer", &find, &is_aggregate) {
            Ok(None) => {
                assert_eq!(document, before, "{sql}");
                Ok(None)
            }
            Ok(Some(Taken { query, fields })) => {
                assert_eq!(fields.view, "delays");
                Ok(Some((query, self.writer.text(&document.to_string()).unwrap())))
            }
            Err(ResolveError::MetricsSql { message, hint }) => {
                Err(format!("{message}. {}", hint.unwrap_or_default()))
            }
            Err(other) => panic!("{sql}: {other}"),
        }
    }

    #[track_caller]
    fn asks(&self, sql: &str, query: Value, left: &str) {
        let (asked, text) = self.take(sql).unwrap().unwrap();
        assert_eq!((asked, text.as_str()), (Some(query), left), "{sql}");
    }
}

fn by(dimensions: Value, measures: Value) -> Value {
    json!({"metrics_view": "delays", "dimensions": dimensions, "measures": measures})
}

fn month() -> Value {
    json!({"name": "t by month", "compute": {"time_floor": {"dimension": "t", "grain": "month"}}})
}

#[test]
fn s_api27_a_select_over_a_view_is_a_metrics_query_and_the_rest_reads_its_answer() {
    let bench = Bench::new();
    bench.asks(
        "SELECT origin, sum(flights) FROM metrics.delays GROUP BY origin",
        by(json!(["origin"]), json!(["flights"])),
        "SELECT delays.origin AS origin, delays.flights AS sum FROM answer AS delays",
    );
    bench.asks(
        "SELECT d.ORIGIN AS o, flights / 2 AS half FROM delays d GROUP BY 1 ORDER BY sum(d.flights) DESC, o LIMIT 3",
        by(json!(["origin"]), json!(["flights"])),
        "SELECT d.origin AS o, (d.flights / 2) AS half FROM answer AS d ORDER BY d.flights DESC, o LIMIT 3",
    );
    // What tools of charts write.
    bench.asks(
        "SELECT DATE_TRUNC('month', t) AS __timestamp, SUM(flights) AS \"SUM(flights)\" FROM metrics.delays \
         WHERE t >= TO_TIMESTAMP('2024-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND 1 = 1 \
         GROUP BY DATE_TRUNC('month', t) HAVING SUM(flights) > 10 ORDER BY \"SUM(flights)\" DESC LIMIT 1000",
        json!({
            "metrics_view": "delays", "dimensions": [month()], "measures": ["flights"],
            "where": {"cond": {"op": "gte", "exprs": [{"name": "t"}, {"val": "2024-01-01 00:00:00.000000"}]}},
        }),
        "SELECT delays.\"t by month\" AS __timestamp, delays.flights AS \"SUM(flights)\" FROM answer AS delays \
         WHERE ((1 = 1) AND (delays.flights > 10)) ORDER BY \"SUM(flights)\" DESC LIMIT 1000",
    );
    // A time that is shown in the place of its dimension.
    bench.asks(
        "SELECT date_trunc('month', t) AS t, delay FROM delays GROUP BY 1 ORDER BY t",
        by(json!([month()]), json!(["delay"])),
        "SELECT delays.\"t by month\" AS t, delays.delay AS delay FROM answer AS delays ORDER BY t",
    );
    bench.asks(
        "SELECT CAST(t AS DATE) AS day, delay FROM delays GROUP BY CAST(t AS DATE)",
        by(
            json!([{"name": "t by day", "compute": {"time_floor": {"dimension": "t", "grain": "day"}}}]),
            json!(["delay"]),
        ),
        "SELECT CAST(delays.\"t by day\" AS DATE) AS \"day\", delays.delay AS delay FROM answer AS delays",
    );
    bench.asks(
        "SELECT DISTINCT \"carrier name\" FROM metrics.delays WHERE origin = NULL OR origin IN ('JFK')",
        json!({
            "metrics_view": "delays", "dimensions": ["Carrier name"], "measures": [],
            "where": {"cond": {"op": "or", "exprs": [
                {"cond": {"op": "and", "exprs": [
                    {"cond": {"op": "eq", "exprs": [{"name": "origin"}, {"val": null}]}},
                    {"cond": {"op": "neq", "exprs": [{"name": "origin"}, {"val": null}]}},
                ]}},
                {"cond": {"op": "in", "exprs": [{"name": "origin"}, {"val": ["JFK"]}]}},
            ]}},
        }),
        "SELECT DISTINCT delays.\"Carrier name\" AS \"carrier name\" FROM answer AS delays",
    );
}

#[test]
fn s_api27_what_tools_put_around_a_statement_reads_the_answer() {
    let bench = Bench::new();
    let one = by(json!(["origin"]), json!(["flights"]));
    for (sql, left) in [
        (
            "SELECT o, max(n) FROM (SELECT origin AS o, flights AS n FROM metrics.delays) AS tool GROUP BY o LIMIT 5",
            "SELECT o, max(n) FROM (SELECT delays.origin AS o, delays.flights AS n FROM answer AS delays) AS tool \
             GROUP BY o LIMIT 5",
        ),
        (
            "SELECT \"_\".origin, sum(\"_\".flights) AS n FROM (SELECT * FROM metrics.delays) AS \"_\" GROUP BY \"_\".origin",
            "SELECT _.origin AS origin, _.flights AS n FROM answer AS _",
        ),
        (
            "WITH a AS (SELECT origin, flights FROM delays) SELECT * FROM a AS x JOIN a AS y USING (origin)",
            "WITH a AS (SELECT delays.origin AS origin, delays.flights AS flights FROM answer AS delays)SELECT * \
             FROM a AS x INNER JOIN a AS y USING (origin)",
        ),
    ] {
        let (asked, text) = bench.take(sql).unwrap().unwrap();
        assert_eq!((asked, text.as_str()), (Some(one.clone()), left), "{sql}");
    }
    // No row is asked for.
    for sql in [
        "SELECT * FROM metrics.delays LIMIT 0",
        "SELECT * FROM (SELECT * FROM metrics.delays) AS t WHERE 1 = 0",
        "SELECT * FROM (SELECT * FROM metrics.delays) AS t WHERE false",
    ] {
        assert_eq!(bench.take(sql).unwrap().unwrap().0, None, "{sql}");
    }
    for other in [
        "SELECT * FROM main.delays",
        "WITH delays AS (SELECT 1) SELECT * FROM delays",
        "SELECT 1",
    ] {
        assert_eq!(bench.take(other), Ok(None), "{other}");
    }
}

#[test]
fn s_api27_what_a_view_has_no_answer_to_is_refused_with_what_works() {
    let bench = Bench::new();
    for (sql, said) in [
        ("SELECT * FROM metrics.delays", "name the fields of `delays`"),
        ("SELECT * FROM metrics.delays LIMIT 10", "name the fields"),
        ("SELECT count(*) FROM metrics.delays", "`count` needs rows"),
        ("SELECT max(t) FROM metrics.delays", "`max` needs rows"),
        ("SELECT mode(origin) FROM metrics.delays", "`mode` needs rows"),
        (
            "SELECT wavg(delay, flights) FROM metrics.delays",
            "`wavg` needs rows",
        ),
        (
            "SELECT count(flights) FROM metrics.delays",
            "is an aggregate already: write `sum(flights)`",
        ),
        (
            "SELECT sum(DISTINCT flights) FROM metrics.delays",
            "is an aggregate already",
        ),
        (
            "SELECT sum(flights) FILTER (WHERE true) FROM metrics.delays",
            "is an aggregate already",
        ),
        (
            "SELECT sum(flight) FROM metrics.delays",
            "`flight` is no field of `delays`; `flights` is one",
        ),
        (
            "SELECT orgin FROM metrics.delays",
            "`orgin` is no field of `delays`; `origin` is one",
        ),
        (
            "SELECT other.origin FROM metrics.delays",
            "`other.origin` is no field",
        ),
        (
            "SELECT origin, flights FROM metrics.delays GROUP BY flights",
            "is a measure, and groups are dimensions",
        ),
        (
            "SELECT flights FROM metrics.delays GROUP BY length(origin)",
            "groups are dimensions",
        ),
        (
            "SELECT flights FROM metrics.delays GROUP BY ROLLUP (origin)",
            "no ROLLUP",
        ),
        (
            "SELECT origin, t FROM metrics.delays GROUP BY origin",
            "`t` has to stand in GROUP BY",
        ),
        (
            "SELECT rank() OVER (ORDER BY flights) FROM metrics.delays",
            "no rows for a window",
        ),
        (
            "SELECT sum(flights) OVER () FROM metrics.delays",
            "no rows for a window",
        ),
        (
            "SELECT (SELECT 1), origin FROM metrics.delays",
            "no SELECT in its expressions",
        ),
        (
            "SELECT origin FROM metrics.delays WHERE flights > 1",
            "HAVING filters by measures",
        ),
        (
            "SELECT origin FROM metrics.delays WHERE upper(origin) = 'JFK'",
            "a field on one side",
        ),
        ("SELECT origin FROM metrics.delays WHERE x = 1", "`x` is no field"),
        (
            "SELECT origin FROM metrics.delays WHERE origin IN (SELECT 'JFK')",
            "filters have no subquery",
        ),
        (
            "SELECT a.origin FROM metrics.delays a JOIN metrics.delays b USING (origin)",
            "one metrics view, once",
        ),
        ("SELECT origin FROM metrics.delays, other", "read alone"),
        (
            "SELECT origin FROM metrics.delays QUALIFY true",
            "without QUALIFY",
        ),
        (
            "SELECT origin FROM metrics.delays USING SAMPLE 1",
            "without SAMPLE",
        ),
        ("SELECT 1 FROM metrics.delays", "asks for no field"),
    ] {
        let refused = bench.take(sql).expect_err(sql);
        assert!(refused.contains(said), "{sql}: {refused}");
        assert!(
            refused.contains("SELECT t, sum(flights) FROM metrics.delays GROUP BY t"),
            "{sql}: {refused}"
        );
    }
}
