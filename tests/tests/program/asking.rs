//! Questions by hand, end to end: statements that are shown, other times, users who see nothing, names for people.

use serde_json::json;

use crate::questions::{project, rows};
use crate::sandbox::Said;

/// Q18: the statement that runs is for the owner, and for nobody who looks over a shoulder.
#[test]
fn a_statement_is_shown_with_names_of_variables_and_with_values_to_the_owner_alone() {
    let project = project();
    project.write(".env", "API_KEY=plainsecret4711\n");
    project.write(
        "apis/keyed.yaml",
        "type: api\nsql: SELECT length('{{ .env.API_KEY }}') AS n FROM late\n",
    );
    project.write(
        "metrics/keyed.yaml",
        "version: 1\ntype: metrics_view\nmodel: late\ntimeseries: day\nmeasures:\n\
         \x20 - {name: n, expression: \"count(*) FILTER (flight <> '{{ .env.API_KEY }}')\"}\n",
    );
    project.run(0);
    for asked in [
        &["call", "keyed", "--sql"][..],
        &["metrics", "keyed", "-m", "n", "--sql"],
    ] {
        for form in [&[][..], &["--json"]] {
            let said = project.call(&[asked, form].concat());
            assert_eq!(said.code, Some(0), "{}", said.stderr);
            assert!(said.stdout.contains("[API_KEY]"), "{}", said.stdout);
            assert!(!said.stdout.contains("plainsecret4711"), "{}", said.stdout);
        }
        let whole = project.call(&[asked, &["--show-values"]].concat());
        assert!(whole.stdout.contains("'plainsecret4711'"), "{}", whole.stdout);
        let other = project.call(&[asked, &["--show-values", "--as", "{}"]].concat());
        assert_eq!(other.code, Some(2), "{}", other.stdout);
        assert!(!other.stdout.contains("plainsecret4711"), "{}", other.stdout);
    }
}

/// Q7: `--at` moves the present, the latest time and the watermark, whoever asks.
#[test]
fn a_question_at_another_time_is_about_the_data_of_that_time() {
    let project = project();
    project.write(
        "apis/last_day.yaml",
        "type: api\nmetrics: {metrics_view: delays, dimensions: [day], measures: [flights], time_range: P1D}\n",
    );
    project.write(
        "alerts/last_day.yaml",
        "type: alert\ndata: {metrics: {metrics_view: delays, dimensions: [day], measures: [flights], time_range: P1D}}\n\
         for: {user_email: head@example.org}\nnotify: {file: archive}\n",
    );
    project.run(0);
    let at = "2024-03-01T12:00:00Z";
    let of = |said: Said| rows(&said)[0][0].clone();
    let asked = [
        "metrics",
        "delays",
        "-d",
        "day",
        "-m",
        "flights",
        "--time-range",
        "P1D",
    ];
    assert_eq!(
        of(project.call(&[&asked[..], &["--json"]].concat())),
        "2024-03-02"
    );
    let moved = project.call(&[&asked[..], &["--at", at, "--json"]].concat());
    assert_eq!(of(moved), "2024-03-01");
    assert_eq!(
        of(project.call(&["call", "last_day", "--at", at, "--json"])),
        "2024-03-01"
    );
    assert_eq!(
        of(project.call(&["alert", "test", "last_day", "--at", at, "--json"])),
        "2024-03-01"
    );
}

/// Q7: nothing that a user may see is no mistake of theirs.
#[test]
fn a_user_who_sees_no_row_gets_an_empty_answer() {
    let project = project();
    project.run(0);
    let asked = [
        "metrics",
        "delays",
        "-d",
        "origin",
        "-m",
        "flights",
        "--time-range",
        "P7D",
    ];
    let user = "{\"email\": \"a@example.org\", \"airports\": [\"EWR\"]}";
    let said = project.call(&[&asked[..], &["--as", user, "--json"]].concat());
    assert_eq!(rows(&said), json!([]));
}

/// Q21: names for people stand wherever people read, and programs find values by the others.
#[test]
fn columns_have_their_names_for_people_where_a_question_wants_them() {
    let project = project();
    project.write(
        "query.json",
        r#"{"metrics_view": "delays", "measures": ["flights", "delay"], "use_display_names": true, "where": {}, "sort": []}"#,
    );
    project.write(
        "apis/for_people.yaml",
        "type: api\nmetrics: {metrics_view: delays, measures: [flights], use_display_names: true, where: {}, sort: []}\n",
    );
    project.run(0);
    let asked = |form: &str| project.call(&["metrics", "--query", "query.json", "--format", form]);
    assert!(asked("csv").stdout.starts_with("Flights,Delay\n"));
    assert!(asked("table").stdout.contains("Flights"));
    assert!(asked("jsonl").stdout.contains("\"flights\""));
    let document = asked("json").json();
    assert_eq!(document["columns"][0]["name"], "flights");
    assert_eq!(document["columns"][0]["display_name"], "Flights");
    let called = project.call(&["call", "for_people", "--format", "csv"]);
    assert!(
        called.stdout.starts_with("Flights\n"),
        "{}{}",
        called.stdout,
        called.stderr
    );
}
