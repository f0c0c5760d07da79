//! Metrics views as tables: what a caller reads who may read nothing else.

use serde_json::{Value, json};

use super::answers::{Random, share, shown};
use super::{Holder, Host, has_psql};

/// Rows of which a viewer sees those of the tenant `a`; each other row has an origin that is no number.
const SALES: &str = "-- @materialize: true
SELECT if(i % 3 = 0, 'b', 'a') AS tenant, if(i % 3 = 0, 'hidden ' || i, (i % 7)::VARCHAR) AS origin,
  'secret ' || i AS secret, TIMESTAMP '2024-01-01' + to_days(i) AS t, i AS n
FROM range(120) numbers(i)
";

const VIEW: &str = "type: metrics_view
model: sales
display_name: Sold
description: What was sold, of one's own tenant
timeseries: t
dimensions:
  - {column: origin, description: Where it was sold}
  - column: secret
measures:
  - {name: units, expression: sum(n), description: Units sold}
  - {name: rows, expression: count(*)}
  - {name: spread, expression: max(n) - min(n)}
security:
  access: true
  row_filter: tenant = 'a'
  exclude:
    - {if: 'true', names: [secret, spread]}
";

const PROJECT: &[(&str, &str)] = &[
    ("one/watershed.yaml", ""),
    ("one/models/sales.sql", SALES),
    ("one/metrics/sold.yaml", VIEW),
    (
        "one/metrics/closed.yaml",
        "type: metrics_view\nmodel: sales\nmeasures:\n  - {name: units, expression: sum(n)}\nsecurity: {access: false}\n",
    ),
    // An output of this name is meant before the view.
    ("one/models/twice.sql", "SELECT 1 AS origin, 2 AS units\n"),
    (
        "one/metrics/twice_view.yaml",
        "type: metrics_view\nname: twice\nmodel: sales\ndimensions: [{column: origin}]\nmeasures:\n  - {name: units, expression: count(*)}\n",
    ),
    // As on the page, of other days.
    (
        "one/models/air.sql",
        "-- @materialize: true\nSELECT if(i % 2 = 0, 'JFK', 'LGA') AS origin, TIMESTAMP '2013-01-01' + to_days(i::INT) AS day, \
         10 AS scheduled, 1 AS ruined FROM range(365) days(i)\n",
    ),
    (
        "one/metrics/airport_days.yaml",
        "type: metrics_view\nversion: 1\nmodel: air\ntimeseries: day\ndimensions: [{column: origin}]\nmeasures:\n\
         \x20 - {name: scheduled, expression: sum(scheduled)}\n  - {name: ruined, expression: sum(ruined)}\n\
         \x20 - {name: ruined_share, expression: ruined / scheduled, requires: [ruined, scheduled]}\n",
    ),
    (
        "server.yaml",
        "listen: 127.0.0.1:0\nsql: {listen: 127.0.0.1:0}\nauth: {tokens: tokens.yaml}\ninstances:\n  one: {project: one}\n",
    ),
];

fn host() -> (Host, Holder) {
    let host = Host::with(PROJECT, &["one"]);
    let plain = host.holder("plain", r#"{"one": "read"}"#, "");
    (host, plain)
}

impl Host {
    /// Asks one statement of the instance; returns its rows, or what was said of its error.
    #[track_caller]
    fn reads(&self, holder: &Holder, statement: &str) -> String {
        let (out, said) = self.ask(holder, "one", &[statement]);
        assert!(said.is_empty(), "{statement}: {said}");
        out
    }

    /// Asks a metrics view over HTTP; returns its rows as psql shows them.
    fn asks(&self, holder: &Holder, query: &Value) -> String {
        let path = "/v1/instances/one/metrics/sold/query";
        shown(&self.rows_of(holder, path, &json!({"query": query})))
    }
}

#[test]
fn s_api27_who_may_read_nothing_else_reads_metrics_views_under_their_policies() {
    if !has_psql() {
        return;
    }
    let (host, plain) = host();
    for (command, has) in [
        ("\\d", &["metrics|sold|view|"][..]),
        ("\\dv metrics.*", &["metrics|twice|view|", "metrics|sold|view|"]),
        ("\\dn", &["metrics|"]),
        (
            "\\d+ sold",
            &[
                "origin|text|",
                "Where it was sold",
                "units|numeric|",
                "Units sold",
                "t|timestamp",
            ],
        ),
    ] {
        let out = host.reads(&plain, command);
        for part in has {
            assert!(out.contains(part), "{command}: {part}: {out}");
        }
        for hidden in ["closed", "sales", "secret", "spread", "main|"] {
            assert!(
                command == "\\dn" || !out.contains(hidden),
                "{command}: {hidden}: {out}"
            );
        }
    }
    let described = "SELECT obj_description('metrics.sold'::regclass, 'pg_class'), col_description('sold'::regclass, 2), current_schema()";
    assert_eq!(
        host.reads(&plain, described),
        "What was sold, of one's own tenant|Where it was sold|metrics\n"
    );
    for (statement, rows) in [
        ("SELECT sum(units) FROM metrics.sold", "4800\n"),
        (
            "SELECT origin, units FROM sold WHERE origin < '2' ORDER BY 1",
            "0|756\n1|684\n",
        ),
        (
            "SELECT origin, sum(units) AS n FROM metrics.sold GROUP BY 1 HAVING sum(units) > 683 ORDER BY n DESC, 1 LIMIT 2",
            "0|756\n4|720\n",
        ),
        (
            "SELECT max(n), count(*) FROM (SELECT date_trunc('month', t) AS m, rows AS n FROM metrics.sold) AS virtual",
            "20|4\n",
        ),
        ("SELECT * FROM (SELECT * FROM metrics.sold) AS t LIMIT 0", ""),
        ("SELECT origin FROM metrics.sold WHERE origin = NULL", ""),
        (
            "SELECT upper(origin) || '!' FROM sold WHERE origin IN ('3') GROUP BY origin",
            "3!\n",
        ),
        // A cast that fails for hidden rows alone is computed of the others.
        (
            "SELECT count(*) FROM (SELECT origin FROM sold) o WHERE CAST(origin AS INT) >= 0",
            "7\n",
        ),
        (
            "SELECT origin FROM sold GROUP BY origin HAVING CAST(origin AS INT) = 5",
            "5\n",
        ),
    ] {
        assert_eq!(host.reads(&plain, statement), rows, "{statement}");
    }
    for (statement, state) in [
        ("SELECT * FROM sold", "name the fields of `sold`"),
        ("SELECT secret FROM sold", "`secret` is no field of `sold`"),
        ("SELECT origin FROM sold ORDER BY secret", "`secret` is no field"),
        (
            "SELECT origin FROM sold WHERE secret = 'secret 1'",
            "`secret` is no field",
        ),
        ("SELECT spread FROM sold", "`spread` is no field"),
        ("SELECT units FROM metrics.closed", "42501"),
        ("SELECT units FROM metrics.solt", "sold"),
        ("SELECT n FROM sales", "42501"),
        ("SELECT units FROM sold, sales", "42601"),
        ("SELECT units, (SELECT max(n) FROM sales) FROM sold", "42601"),
        (
            "SELECT u FROM (SELECT units AS u FROM sold) a, (SELECT n FROM sales) b",
            "42501",
        ),
        (
            "SELECT u FROM (SELECT units AS u FROM sold) a, read_text('/etc/passwd') b",
            "42501",
        ),
        ("SELECT getenv('HOME') || origin FROM sold", "42501"),
        (
            "SELECT units FROM sold WHERE 1 = (SELECT count(*) FROM pg_class)",
            "4",
        ),
        ("EXPLAIN SELECT units FROM sold", "42501"),
        ("INSERT INTO metrics.sold VALUES (1)", "25006"),
        ("SELECT units FORM sold", "42601"),
    ] {
        let (out, said) = host.ask(&plain, "one", &[statement]);
        assert!(out.is_empty() && said.contains(state), "{statement}: {out}{said}");
    }
    // An error quotes no row, not even a visible one.
    let (out, said) = host.ask(&plain, "one", &["SELECT CAST(origin || 'x' AS INT) FROM sold"]);
    assert!(
        out.is_empty() && !said.contains("0x") && !said.contains("Conversion"),
        "{out}{said}"
    );
    // Over HTTP, too, a mistake of one's own text is told to whoever made it.
    let head = format!(
        "authorization: Bearer {}\r\ncontent-type: application/json\r\n",
        plain.whole
    );
    let body = json!({"sql": "SELECT count(*) FROM sold"}).to_string();
    let (status, _, body) = host
        .service
        .send("POST", "/v1/instances/one/metrics/sold/query", &head, &body);
    assert!(
        status == 400 && body.contains("selects fields"),
        "{status}: {body}"
    );
    // Who reads outputs too has both, and an output's name is its own.
    let reader = host.holder("reader", r#"{"one": "read+query"}"#, "");
    assert_eq!(host.reads(&reader, "SELECT * FROM twice"), "1|2\n");
    assert_eq!(
        host.reads(&reader, "SELECT sum(units) FROM metrics.twice"),
        "120\n"
    );
    assert_eq!(
        host.reads(&reader, "SELECT sum(units) FROM metrics.sold"),
        "4800\n"
    );
    assert_eq!(host.reads(&reader, "SELECT sum(n) FROM sales"), "7140\n");
    assert_eq!(
        host.reads(&reader, "SELECT 'metrics' AS metrics FROM twice"),
        "metrics\n"
    );
    let deep = format!("SELECT {} AS metrics FROM twice", ["1"; 300].join(" + "));
    let (out, said) = host.ask(&reader, "one", &[&deep]);
    assert!(out.is_empty() && said.contains("in a simpler way"), "{out}{said}");
    let (out, said) = host.ask(&plain, "one", &[&deep.replace("twice", "sold")]);
    assert!(out.is_empty() && said.contains("nested too deep"), "{out}{said}");
    // A token for other operations, or for other resources, asks no view.
    for more in [r#", "operations": ["stats"]"#, r#", "select": ["sales"]"#] {
        let narrow = host.holder("narrow", r#"{"one": "read"}"#, more);
        let (out, said) = host.ask(&narrow, "one", &["SELECT sum(units) FROM metrics.sold"]);
        assert!(out.is_empty() && said.contains("42501"), "{more}: {out}{said}");
        assert_eq!(host.reads(&narrow, "SELECT relname FROM pg_class"), "", "{more}");
    }
}

#[test]
fn s_api27_the_statements_of_the_page_work_and_those_that_it_refuses_say_what_does() {
    if !has_psql() {
        return;
    }
    let (host, plain) = host();
    let page = include_str!("../../../../docs/sql.md");
    let part = page
        .split("## Metrics views")
        .nth(1)
        .expect("the part about views");
    let part = part.split("\n## ").next().unwrap_or_default();
    let block = part.split("```").nth(1).expect("statements");
    let statements: Vec<&str> = block.lines().skip(1).collect();
    assert_eq!(statements.len(), 10, "{block}");
    for statement in statements {
        let rows = host.reads(&plain, statement);
        assert_eq!(
            rows.is_empty(),
            statement.ends_with("LIMIT 0;"),
            "{statement}: {rows}"
        );
    }
    let refused = part.lines().filter(|line| line.starts_with("| `SELECT"));
    let refused: Vec<&str> = refused.filter_map(|line| line.split('`').nth(1)).collect();
    assert_eq!(refused.len(), 5, "{part}");
    for statement in refused {
        let statement = statement
            .replace("...", "1")
            .replace("airports 1", "airports ON true");
        let (out, said) = host.ask(&plain, "one", &[&statement]);
        assert!(
            out.is_empty() && said.contains("HINT"),
            "{statement}: {out}{said}"
        );
    }
}

#[test]
fn s_api27_statements_over_a_view_answer_as_questions_over_http_do() {
    if !has_psql() {
        return;
    }
    let (host, plain) = host();
    let (seed, rounds) = share(24);
    let mut random = Random::of(seed);
    for round in 0..rounds {
        let grain = random.one(&["month", "week", "day", "quarter"]);
        let (by_origin, by_time) = (random.below(2) == 0, random.below(2) == 0);
        let (mut dimensions, mut selected) = (Vec::new(), Vec::new());
        if by_origin {
            dimensions.push(json!("origin"));
            selected.push("origin".to_owned());
        }
        if by_time {
            dimensions
                .push(json!({"name": "at", "compute": {"time_floor": {"dimension": "t", "grain": grain}}}));
            selected.push(format!("CAST(date_trunc('{grain}', t) AS DATE)"));
        }
        let measures: &[&str] = [&["units"][..], &["rows"], &["rows", "units"]][random.below(3)];
        let groups: Vec<String> = (1..=selected.len()).map(|number| number.to_string()).collect();
        selected.extend(measures.iter().map(|name| format!("sum({name})")));
        let mut sort: Vec<Value> = measures
            .iter()
            .map(|name| json!({"name": name, "desc": true}))
            .collect();
        let mut order: Vec<String> = measures.iter().map(|name| format!("sum({name}) DESC")).collect();
        for (number, dimension) in dimensions.iter().enumerate() {
            sort.push(json!({"name": dimension.get("name").unwrap_or(dimension)}));
            order.push((number + 1).to_string());
        }
        let mut query = json!({
            "metrics_view": "sold", "dimensions": dimensions, "measures": measures, "sort": sort, "limit": 1 + random.below(20),
        });
        let mut condition = String::new();
        let value = random.below(8).to_string();
        match random.below(3) {
            0 => {
                query["where"] =
                    json!({"cond": {"op": "gte", "exprs": [{"name": "origin"}, {"val": value}]}});
                condition = format!(" WHERE origin >= '{value}'");
            }
            1 => {
                query["where"] =
                    json!({"cond": {"op": "lt", "exprs": [{"name": "t"}, {"val": "2024-03-05"}]}});
                condition = " WHERE t < DATE '2024-03-05'".to_owned();
            }
            _ => {}
        }
        let grouped = match groups.is_empty() {
            true => String::new(),
            false => format!(" GROUP BY {}", groups.join(", ")),
        };
        let statement = format!(
            "SELECT {} FROM metrics.sold{condition}{grouped} ORDER BY {} LIMIT {}",
            selected.join(", "),
            order.join(", "),
            query["limit"],
        );
        let expected = host.asks(&plain, &query).replace(" 00:00:00", "");
        let place = format!("WATERSHED_SEED={seed}, round {round}: {statement}");
        assert_eq!(host.reads(&plain, &statement), expected, "{place}");
    }
}
