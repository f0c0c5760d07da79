//! News of alerts: they depend on what was so, and not on how often or when the program looked.

use std::fs;

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

const BIG: &str = "type: alert
refresh: {ref_update: true}
watermark: inherit
intervals: {duration: P1D}
data:
  metrics:
    metrics_view: days
    measures: [total]
    time_range: {iso_duration: P1D}
    having: {cond: {op: gt, exprs: [{name: total}, {val: 10}]}}
on_recover: true
notify: {file: outbox}
";

const OUTBOX: &str = "type: connector\ndriver: file\npath: outbox\n";

/// A project whose alert goes by days over a file.
fn by_days(measure: &str, alert: &str) -> Sandbox {
    let view = format!(
        "version: 1\ntype: metrics_view\nmodel: facts\ntimeseries: day\nmeasures:\n  - {{name: total, expression: \"{measure}\"}}\n"
    );
    Sandbox::with(&[
        ("watershed.yaml", ""),
        ("connectors/outbox.yaml", OUTBOX),
        (
            "sources/facts.yaml",
            "type: source\nconnector: local_file\npath: data/facts.csv\n",
        ),
        ("metrics/days.yaml", &view),
        ("alerts/big.yaml", alert),
    ])
}

/// Writes the rows of the first days of March.
fn days(project: &Sandbox, numbers: &[&str]) {
    let row = |(place, number): (usize, &&str)| format!("2024-03-{:02},{number}\n", place + 1);
    let rows: String = numbers.iter().enumerate().map(row).collect();
    project.write("data/facts.csv", &format!("day,n\n{rows}"));
}

/// The messages, by their order: what they say, and of which moment.
fn told(project: &Sandbox) -> Vec<(String, String)> {
    let Ok(folder) = fs::read_dir(project.path().join("outbox")) else {
        return Vec::new();
    };
    let message = |entry: std::io::Result<fs::DirEntry>| -> Value {
        let text = fs::read(entry.expect("it can be listed").path()).expect("it can be read");
        serde_json::from_slice(&text).expect("it is JSON")
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut messages: Vec<(String, String)> = folder
        .map(message)
        .map(|message| (text(&message["moment"]), text(&message["verdict"])))
        .collect();
    messages.sort();
    messages
}

fn story(told: &[(&str, &str)]) -> Vec<(String, String)> {
    let day = |day: &str| format!("2024-03-{day}T00:00:00Z");
    told.iter()
        .map(|(on, verdict)| (day(on), (*verdict).to_owned()))
        .collect()
}

/// N5.
#[test]
fn an_alert_by_days_tells_the_same_however_many_days_are_looked_at_in_one_go() {
    let numbers = ["1", "50", "1", "90", "1", "1"];
    let expected = story(&[
        ("03", "fail"),
        ("04", "recovered"),
        ("05", "fail"),
        ("06", "recovered"),
    ]);
    for looks in [&[3, 4, 5, 6][..], &[3, 6], &[3, 5, 6], &[3, 4, 6]] {
        let project = by_days("sum(n)", BIG);
        for days_known in looks {
            days(&project, &numbers[..*days_known]);
            project.run(0);
        }
        assert_eq!(told(&project), expected, "{looks:?}");
        project.run(0);
        assert_eq!(told(&project).len(), expected.len(), "nothing is told twice");
    }
}

/// N2, N3: rows for which it can't be asked, a view that is wrong, and a watermark that can't be read.
#[test]
fn an_alert_that_could_not_be_asked_is_asked_again_when_the_reason_is_mended() {
    let project = by_days("sum(CAST(n AS INTEGER))", BIG);
    days(&project, &["1", "x", "1"]);
    project.run(1);
    days(&project, &["1", "3", "1"]);
    project.run(0);

    project.edit("metrics/days.yaml", "CAST(n AS INTEGER)", "CAST(m AS INTEGER)");
    project.run(1);
    project.edit("metrics/days.yaml", "CAST(m AS INTEGER)", "CAST(n AS INTEGER)");
    project.run(0);

    project.write(
        "metrics/days.yaml",
        "version: 1\ntype: metrics_view\nmodel: facts\ntimeseries: day\nwatermark: max(CAST(CAST(n AS INTEGER) * INTERVAL 1 DAY + DATE '2024-03-01' AS TIMESTAMP))\n\
         measures:\n  - {name: total, expression: \"count(*)\"}\n",
    );
    days(&project, &["1", "y", "1"]);
    project.run(1);
    days(&project, &["1", "2", "1"]);
    project.run(0);
    assert_eq!(told(&project), [], "nobody wanted to be told of errors");
}

const BROKEN: &str = "type: alert
refresh: {cron: '0 0 1 1 *', run_in_dev: true}
data: {resource_status: {where_error: true}}
on_recover: true
notify: {file: outbox}
";

/// N1: it is about how the run ended, not about how it was under way.
#[test]
fn an_alert_on_failed_resources_waits_for_all_others_and_looks_again_when_they_stand_differently() {
    let failing = "-- @materialize: true\nSELECT CAST('x' || n AS INTEGER) AS v FROM slow\n";
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("connectors/outbox.yaml", OUTBOX),
        (
            "models/slow.sql",
            "-- @materialize: true\nSELECT count(*) AS n FROM range(20000000) WHERE range % 3 = 0\n",
        ),
        ("models/bad.sql", failing),
        ("alerts/broken.yaml", BROKEN),
        (
            "apis/statuses.yaml",
            "type: api\nresource_status: {where_error: true}\n",
        ),
        (
            "alerts/by_api.yaml",
            "type: alert\ndata: {api: statuses}\nnotify: {file: outbox}\n",
        ),
    ]);
    let verdicts = |code: i32| -> Vec<Value> {
        project.run(code);
        let status = project.call(&["status", "--json"]).json();
        let resources = status["resources"].as_array().expect("a list").iter();
        let alerts = resources.filter(|one| one["kind"] == "alert");
        alerts.map(|one| one["result"]["verdict"].clone()).collect()
    };
    assert_eq!(verdicts(1), ["fail", "fail"]);
    assert_eq!(verdicts(1), ["fail", "fail"]);
    project.write(
        "models/bad.sql",
        "-- @materialize: true\nSELECT n AS v FROM slow\n",
    );
    assert_eq!(verdicts(0), ["pass", "pass"]);
    project.write("models/bad.sql", failing);
    assert_eq!(verdicts(1), ["fail", "fail"]);
    let mut said: Vec<String> = told(&project).into_iter().map(|(_, verdict)| verdict).collect();
    said.sort();
    assert_eq!(said, ["fail", "fail", "fail", "fail", "recovered"]);
    // A row of what failed, and no alert among them.
    let called = project.call(&["call", "statuses", "--json"]).json();
    assert_eq!(called["rows"][0][1], json!("bad"));
    assert_eq!(called["rows"].as_array().map(Vec::len), Some(1));
}
