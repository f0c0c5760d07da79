//! Questions to metrics views from the command line: for the owner, and for users whose rules differ.

use std::fs;

use serde_json::{Value, json};

use crate::going::Going;
use crate::sandbox::{Said, Sandbox};

const VIEW: &str = "version: 1
type: metrics_view
model: orders
timeseries: at
smallest_time_grain: hour
dimensions:
  - column: country
  - {name: customer, column: customer}
measures:
  - {name: amount, expression: sum(amount), format_preset: currency_usd}
  - {name: orders, expression: count(*)}
  - {name: mean, expression: amount / orders, requires: [amount, orders]}
security:
  access: \"'{{ .user.domain }}' = 'example.org'\"
  row_filter: country IN ({{ .user.countries }})
  exclude:
    - {if: 'NOT {{ .user.admin }}', names: [customer]}
";

const ORDERS: &str = "-- @materialize: true
SELECT * FROM (VALUES
  ('no', 'Kari', 10, TIMESTAMP '2024-03-01 10:00:00'),
  ('no', 'Ola', 30, TIMESTAMP '2024-03-02 03:30:00'),
  ('dk', 'Bo', 5, TIMESTAMP '2024-03-02 10:00:00'),
  ('it''s', 'Eve', 100, TIMESTAMP '2024-03-03 10:00:00')
) AS t(country, customer, amount, \"at\")
";

const MANIFEST: &str = "mock_users:
  - {email: head@example.org, admin: true, countries: ['no', dk]}
  - {email: clerk@example.org, countries: [\"it's\"]}
  - {email: guest@elsewhere.org, countries: ['no']}
  - {email: lost@example.org}
";

fn project() -> Sandbox {
    let project = Sandbox::with(&[
        ("watershed.yaml", MANIFEST),
        ("models/orders.sql", ORDERS),
        ("metrics/sales.yaml", VIEW),
    ]);
    project.run(0);
    project
}

fn asked(project: &Sandbox, arguments: &[&str]) -> Said {
    let all: Vec<&str> = ["metrics", "sales"].iter().chain(arguments).copied().collect();
    project.call(&all)
}

fn rows(said: &Said) -> Value {
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    said.json()["rows"].clone()
}

#[test]
fn measures_are_asked_for_by_dimensions_times_and_conditions() {
    let project = project();
    let by_country = ["-d", "country", "-m", "amount,mean", "-s=-amount", "--json"];
    let found = asked(&project, &by_country);
    let expected = json!([["it's", 100, 100.0], ["no", 40, 20.0], ["dk", 5, 5.0]]);
    assert_eq!(rows(&found), expected);

    let text = asked(&project, &["-d", "country", "-m", "amount", "--totals"]).stdout;
    assert!(text.contains("$145"), "the format of the measure: {text}");
    assert!(text.contains("total"), "{text}");

    let days = [
        "-d",
        "at:day",
        "-m",
        "orders",
        "--time-range",
        "2024-03-01 to 2024-03-04",
    ];
    let plain = asked(&project, &[&days[..], &["--json"]].concat());
    let expected = json!([
        ["2024-03-01 00:00:00", 1],
        ["2024-03-02 00:00:00", 2],
        ["2024-03-03 00:00:00", 1]
    ]);
    assert_eq!(rows(&plain), expected);
    let zone = asked(
        &project,
        &[&days[..], &["--time-zone", "America/New_York"]].concat(),
    )
    .stdout;
    assert!(
        zone.contains("2024-03-01 ┆      2"),
        "the order of half past three is of the day before: {zone}"
    );

    let condition = "country NOT IN ('dk') AND customer LIKE 'K%' OR country = 'it''s'";
    let found = asked(
        &project,
        &["-d", "country", "-m", "amount", "--where", condition, "--json"],
    );
    assert_eq!(rows(&found), json!([["it's", 100], ["no", 10]]));
    let found = asked(
        &project,
        &[
            "-d",
            "country",
            "-m",
            "amount",
            "--having",
            "amount >= 40",
            "--json",
        ],
    );
    assert_eq!(rows(&found), json!([["it's", 100], ["no", 40]]));

    let compared = [
        "-m",
        "amount",
        "--time-range",
        "2024-03-02 to 2024-03-03",
        "--compare",
        "previous",
        "--json",
    ];
    assert_eq!(rows(&asked(&project, &compared)), json!([[35, 10, 2.5]]));
    let pivot = [
        "-d",
        "country,at:day",
        "-m",
        "orders",
        "--pivot",
        "country",
        "--format",
        "csv",
    ];
    let csv = asked(&project, &pivot).stdout;
    assert!(csv.starts_with("at,dk_orders,it's_orders,no_orders\n"), "{csv}");
}

#[test]
fn a_user_sees_the_rows_and_fields_that_rules_leave() {
    let project = project();
    let user = |user: &str, more: &[&str]| {
        let asked_by = ["-m", "amount,orders", "--as", user, "--json"];
        asked(&project, &[&asked_by[..], more].concat())
    };
    assert_eq!(rows(&user("head@example.org", &[])), json!([[45, 3]]));
    assert_eq!(rows(&user("clerk@example.org", &[])), json!([[100, 1]]));
    let nobody = rows(&user("lost@example.org", &[]));
    assert_eq!(
        nobody,
        json!([[null, 0]]),
        "an attribute that is missing matches nothing"
    );
    let by_customer = rows(&user("head@example.org", &["-d", "customer"]));
    assert_eq!(by_customer.as_array().map(Vec::len), Some(3));

    let hidden = user("clerk@example.org", &["-d", "customer"]);
    assert_eq!(hidden.code, Some(2), "{}", hidden.stdout);
    assert!(hidden.stderr.contains("customer"), "{}", hidden.stderr);
    let guest = user("guest@elsewhere.org", &[]);
    assert!(guest.stderr.contains("may not be seen"), "{}", guest.stderr);
    let hostile = "{\"email\": \"a@example.org\", \"countries\": [\"no') OR true --\"]}";
    assert_eq!(
        rows(&user(hostile, &[])),
        json!([[null, 0]]),
        "attributes are values"
    );
    let unknown = user("clark@example.org", &[]);
    assert_eq!(unknown.code, Some(2));
    assert!(
        unknown.stderr.contains("did you mean `clerk@example.org`?"),
        "{}",
        unknown.stderr
    );

    let sql = asked(&project, &["-m", "amount", "--as", "clerk@example.org", "--sql"]).stdout;
    assert!(sql.contains("country IN ('it''s')"), "{sql}");
    let file = project.path().join("sales.csv");
    let out = [
        "-d",
        "country",
        "-m",
        "amount",
        "--as",
        "head@example.org",
        "--out",
        "sales.csv",
    ];
    assert_eq!(asked(&project, &out).code, Some(0));
    let written = fs::read_to_string(&file).expect("the file was written");
    assert_eq!(written, "country,amount\ndk,5\nno,40\n");
}

#[test]
fn no_row_filter_opens_what_another_layer_closes() {
    let project = project();
    project.write(
        "metrics/wide.yaml",
        "version: 1\ntype: metrics_view\nparent: sales\n\
         security: {access: true, row_filter: \"{{ if .user.wide }}false) OR (true{{ else }}true{{ end }}\"}\n",
    );
    project.run(0);
    let user = r#"{"email": "clerk@example.org", "countries": ["it's"], "wide": true}"#;
    let asked = || project.call(&["metrics", "wide", "-m", "orders", "--json", "--as", user]);
    let refused = asked();
    assert_eq!(refused.code, Some(1), "{}", refused.stdout);
    assert!(
        refused.stderr.contains("is not one expression alone"),
        "{}",
        refused.stderr
    );
    project.write(
        "metrics/wide.yaml",
        "version: 1\ntype: metrics_view\nparent: sales\n\
         security: {access: true, row_filter: \"{{ if .user.wide }}(false) OR (true){{ else }}true{{ end }}\"}\n",
    );
    project.run(0);
    assert_eq!(rows(&asked()), json!([[1]]), "the parent's rows alone");
}

#[test]
fn a_file_has_all_rows_however_many_there_are() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "models/ids.sql",
            "-- @materialize: true\nSELECT range AS id FROM range(1000001)",
        ),
        (
            "metrics/all.yaml",
            "version: 1\ntype: metrics_view\nmodel: ids\ndimensions: [{column: id}]\n\
             measures: [{name: n, expression: count(*)}]\n",
        ),
    ]);
    project.run(0);
    let said = project.call(&["metrics", "all", "-d", "id", "-m", "n", "--out", "rows.csv"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let written = fs::read_to_string(project.path().join("rows.csv")).expect("the file was written");
    assert_eq!(
        written.lines().count(),
        1_000_002,
        "its rows, and the names of columns"
    );
}

#[test]
fn the_times_of_an_answer_are_told_and_how_to_find_some_where_there_are_none() {
    let project = project();
    let told = |range: &str| {
        let said = asked(
            &project,
            &[
                "-m",
                "amount",
                "-d",
                "country",
                "--time-range",
                range,
                "--time-zone",
                "Europe/Oslo",
            ],
        );
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        said.stderr
    };
    let days = told("2024-03-01 to 2024-03-03");
    assert!(days.contains("2024-03-01 to 2024-03-03; Europe/Oslo"), "{days}");
    assert!(!days.contains("hint"), "{days}");
    let none = told("7D");
    assert!(
        none.contains("hint") && none.contains("`7D as of latest`"),
        "{none}"
    );
    assert!(!told("7D as of latest").contains("hint"));
    assert!(!told("P7D").contains("hint"));
}

#[test]
fn mistakes_are_told_with_their_place() {
    let project = project();
    for (arguments, said) in [
        (&["-m", "amounts"][..], "did you mean \"amount\"?"),
        (
            &["-m", "amount", "--where", "amount > 5"],
            "\"amount\" is a measure, not a dimension",
        ),
        (&["-m", "amount", "--where", "upper(country) = 'NO'"], "--where"),
        (&["-m", "amount", "--time-range", "yesterdayish"], "time_range"),
        (&["-m", "amount", "--time-zone", "Mars/Olympus"], "time_zone"),
        (&["-m", "amount", "--at", "noon"], "`noon` is no time"),
        (&["-m", "amount", "--out", "sales.doc"], ".csv"),
        (
            &["-m", "amount", "--totals", "--out", "sales.csv"],
            "neither totals nor a pivot",
        ),
    ] {
        let answer = asked(&project, arguments);
        assert_eq!(answer.code, Some(2), "{arguments:?}: {}", answer.stderr);
        assert!(answer.stderr.contains(said), "{arguments:?}: {}", answer.stderr);
    }
    for (arguments, said) in [
        (&["metrics", "sales"][..], "one of: amount, orders, mean"),
        (&["metrics"], "one of: sales"),
        (
            &["metrics", "orders", "-m", "amount"],
            "`orders` is of the kind `model`",
        ),
        (&["metrics", "zzz", "-m", "amount"], "one of: `sales`"),
    ] {
        let answer = project.call(arguments);
        assert_eq!(answer.code, Some(2), "{arguments:?}: {}", answer.stderr);
        assert!(answer.stderr.contains(said), "{arguments:?}: {}", answer.stderr);
    }
    let unknown = project.call(&["metrics", "sale", "-m", "amount"]);
    assert!(unknown.stderr.contains("sales"), "{}", unknown.stderr);
}

#[test]
fn a_project_that_goes_on_answers_as_one_at_rest() {
    let project = project();
    let question = [
        "-d",
        "country",
        "-m",
        "amount,mean",
        "--as",
        "head@example.org",
        "--json",
    ];
    let at_rest = asked(&project, &question).stdout;
    let going = Going::settled(&project);
    assert_eq!(asked(&project, &question).stdout, at_rest);
    drop(going);
}

#[test]
fn the_flights_are_shown_to_those_whose_airports_they_are() {
    let project = Sandbox::from_project("flights");
    project.run(0);
    let airports = |user: &str| {
        let said = project.call(&[
            "metrics",
            "departures",
            "-d",
            "origin",
            "-m",
            "flights",
            "--as",
            user,
            "--json",
        ]);
        rows(&said)
    };
    assert_eq!(airports("desk@jfk.example.org"), json!([["JFK", 111279]]));
    assert_eq!(
        airports("head@airports.example.org").as_array().map(Vec::len),
        Some(3)
    );
}
