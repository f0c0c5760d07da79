//! Questions that resources ask, end to end: APIs with arguments and policies, reports in files, alerts by intervals.

use std::fs;

use serde_json::{Value, json};

use crate::sandbox::{Said, Sandbox};

const VIEW: &str = "version: 1
type: metrics_view
model: late
timeseries: day
smallest_time_grain: day
security:
  access: true
  row_filter: \"{{ if .user.admin }}true{{ else }}origin IN ({{ .user.airports }}){{ end }}\"
dimensions:
  - {name: origin, column: origin}
  - {name: flight, column: flight}
measures:
  - {name: flights, expression: count(*)}
  - {name: delay, expression: avg(delay), format_d3: '.1f'}
";

const ALERT: &str = "type: alert
display_name: Bad days
refresh: {ref_update: true}
watermark: inherit
intervals: {duration: P1D}
data:
  metrics:
    metrics_view: delays
    dimensions: [origin]
    measures: [delay]
    time_range: {iso_duration: P1D}
    having: {cond: {op: gt, exprs: [{name: delay}, {val: 30}]}}
for: {user_email: head@example.org}
on_recover: true
notify: {file: archive}
";

const REPORT: &str = "type: report
display_name: Late flights
refresh: {ref_update: true}
data: {sql: \"SELECT flight, delay FROM late WHERE delay > {{ .env.least }} ORDER BY 1\"}
export: {format: csv}
notify: {file: archive}
";

const BY_ORIGIN: &str = "type: api
sql: |
  SELECT flight, delay FROM late WHERE origin = '{{ .args.origin }}' ORDER BY {{ .args.by | default \"delay\" }}
  LIMIT {{ .args.limit | default 10 }}
";

const MEANS: &str = "type: api
metrics_sql: SELECT origin, flights, delay FROM delays ORDER BY origin
security:
  access: \"'{{ .user.domain }}' = 'example.org'\"
";

pub(crate) fn project() -> Sandbox {
    let project = Sandbox::with(&[
        (
            "watershed.yaml",
            "mock_users:\n  - {email: head@example.org, admin: true}\n  - {email: desk@example.org, airports: [JFK]}\n\
             env: {least: 10}\n",
        ),
        (
            "connectors/archive.yaml",
            "type: connector\ndriver: file\npath: told\n",
        ),
        ("metrics/delays.yaml", VIEW),
        ("apis/by_origin.yaml", BY_ORIGIN),
        ("apis/means.yaml", MEANS),
        (
            "apis/from_jfk.yaml",
            "type: api\napi: by_origin\nargs: {origin: JFK, limit: 1}\n",
        ),
    ]);
    days(&project, &[("2024-03-01", 10), ("2024-03-02", 50)]);
    project
}

/// Writes the model: on each day a flight from each of two airports, the second one late by ten minutes more.
fn days(project: &Sandbox, days: &[(&str, u32)]) {
    let rows: Vec<String> = days
        .iter()
        .flat_map(|(day, delay)| {
            [("JFK", *delay, "=1+1"), ("LGA", delay + 10, "UA2")]
                .map(|(origin, delay, flight)| format!("(DATE '{day}', '{origin}', '{flight}', {delay})"))
        })
        .collect();
    let rows = rows.join(", ");
    let sql = format!("SELECT * FROM (VALUES {rows}) AS t(day, origin, flight, delay)");
    project.write("models/late.sql", &format!("-- @materialize: true\n{sql}\n"));
}

pub(crate) fn rows(called: &Said) -> Value {
    assert_eq!(called.code, Some(0), "{}", called.stderr);
    called.json()["rows"].clone()
}

/// The messages in the folder of the connector `archive`, by moment and title.
fn archived(project: &Sandbox) -> Vec<Value> {
    let Ok(folder) = fs::read_dir(project.path().join("told")) else {
        return Vec::new();
    };
    let mut messages: Vec<Value> = folder
        .map(|entry| {
            let text = fs::read(entry.expect("it can be listed").path()).expect("it can be read");
            serde_json::from_slice(&text).expect("it is JSON")
        })
        .collect();
    messages.sort_by_key(|message| message["moment"].to_string());
    messages
}

fn titles(project: &Sandbox) -> Vec<String> {
    let messages = archived(project);
    messages
        .iter()
        .map(|message| message["title"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// Q25.
#[test]
fn an_api_takes_arguments_as_values_and_fixed_ones_first() {
    let project = project();
    project.run(0);
    let called = |args: &[&str]| project.call(&[&["call"], args, &["--json"]].concat());
    let both = json!([["=1+1", 10], ["=1+1", 50]]);
    assert_eq!(rows(&called(&["by_origin", "--arg", "origin=JFK"])), both);
    let one = json!([["UA2", 20]]);
    assert_eq!(
        rows(&called(&["by_origin", "-a", "origin=LGA", "-a", "limit=1"])),
        one
    );
    assert_eq!(
        rows(&called(&["from_jfk", "-a", "origin=LGA", "-a", "by=flight"])),
        json!([["=1+1", 10]])
    );
    let hostile = called(&["by_origin", "-a", "origin=' OR true --"]);
    assert_eq!(rows(&hostile), json!([]));
    let refused = called(&["by_origin", "-a", "origin=JFK", "-a", "limit=1; DROP TABLE late"]);
    assert_eq!(refused.code, Some(1), "{}", refused.stdout);
    assert!(
        refused.stderr.contains("neither a number nor a word"),
        "{}",
        refused.stderr
    );
    let misspelt = project.call(&["call", "by_origin", "-a", "orign=JFK"]);
    assert_eq!(misspelt.code, Some(2));
    assert!(
        misspelt.stderr.contains("did you mean `origin`?"),
        "{}",
        misspelt.stderr
    );
    let without = called(&["by_origin"]);
    assert_eq!(rows(&without), json!([]));
    assert_eq!(without.json()["missing_arguments"], json!(["origin"]));
    assert_eq!(called(&["from_jfk"]).json()["missing_arguments"], Value::Null);
    let sql = project.call(&["call", "by_origin", "-a", "origin=a'b", "--sql"]);
    assert!(sql.stdout.contains("origin = 'a''b'"), "{}", sql.stdout);
    let unknown = project.call(&["call", "by_orign"]);
    assert_eq!(unknown.code, Some(2));
    assert!(
        unknown.stderr.contains("did you mean `by_origin`?"),
        "{}",
        unknown.stderr
    );
}

/// Q14, Q25.
#[test]
fn an_api_over_metrics_shows_each_caller_their_rows_and_others_nothing() {
    let project = project();
    project.run(0);
    let called = |user: &str| project.call(&["call", "means", "--as", user, "--json"]);
    let all = json!([["JFK", 2, 30.0], ["LGA", 2, 40.0]]);
    assert_eq!(rows(&project.call(&["call", "means", "--json"])), all);
    assert_eq!(rows(&called("head@example.org")), all);
    assert_eq!(rows(&called("desk@example.org")), json!([["JFK", 2, 30.0]]));
    let stranger = called("{\"email\": \"a@example.com\"}");
    assert_eq!(stranger.code, Some(2), "{}", stranger.stdout);
    assert!(
        stranger.stderr.contains("not open to this user"),
        "{}",
        stranger.stderr
    );
    assert_eq!(
        stranger.json()["error"]["code"],
        "not-allowed",
        "{}",
        stranger.stdout
    );
}

/// Q25.
#[test]
fn apis_that_call_one_another_are_a_cycle_and_never_answer() {
    let project = project();
    project.write("apis/a.yaml", "type: api\napi: b\n");
    project.write("apis/b.yaml", "type: api\napi: a\n");
    let said = project.call(&["run"]);
    assert_eq!(said.code, Some(1), "{}", said.stdout);
    assert!(said.stderr.contains("cycl"), "{}", said.stderr);
    let called = project.call(&["call", "a"]);
    assert_eq!(called.code, Some(1), "{}", called.stdout);
    assert!(
        called.stderr.contains("APIs call one another"),
        "{}",
        called.stderr
    );
}

/// N2, N3, N5: the newest interval first, then each that closes, and one message for those that failed together.
#[test]
fn a_name_that_the_view_does_not_have_is_told_before_anybody_asks() {
    let project = project();
    let asks = |measure: &str| format!("metrics: {{metrics_view: delays, measures: [{measure}]}}\n");
    project.write("apis/mistyped.yaml", &format!("type: api\n{}", asks("dely")));
    project.write(
        "apis/in_sql.yaml",
        "type: api\nmetrics_sql: SELECT orign, flights FROM delays\n",
    );
    project.write(
        "reports/mistyped.yaml",
        &format!(
            "type: report\nrefresh: {{every: 24h}}\ndata:\n  {}export: {{format: csv}}\nnotify: {{file: archive}}\n",
            asks("delay, flihgts")
        ),
    );
    let ran = project.call(&["run"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    for told in [
        "measures[0]: unknown measure \"dely\"",
        "did you mean \"delay\"?",
        "dimensions[0]: unknown dimension \"orign\"",
        "did you mean \"origin\"?",
        "measures[1]: unknown measure \"flihgts\"",
        "did you mean \"flights\"?",
    ] {
        assert!(ran.stderr.contains(told), "{told}\n{}", ran.stderr);
    }
}

#[test]
fn an_alert_by_intervals_looks_at_each_day_once_and_tells_of_each_change_once() {
    let project = project();
    project.write("alerts/bad_days.yaml", ALERT);
    project.run(0);
    assert_eq!(
        titles(&project),
        Vec::<String>::new(),
        "the first of March was fine"
    );
    let first = [("2024-03-01", 10), ("2024-03-02", 50)];
    days(
        &project,
        &[
            &first[..],
            &[("2024-03-03", 60), ("2024-03-04", 5), ("2024-03-05", 5)],
        ]
        .concat(),
    );
    project.run(0);
    let messages = archived(&project);
    let [message, recovered] = messages.as_slice() else {
        panic!("a failure of two days, and the day that passed: {messages:?}");
    };
    assert_eq!(recovered["title"], "Bad days: has recovered");
    assert_eq!(recovered["moment"], "2024-03-05T00:00:00Z");
    assert_eq!(message["title"], "Bad days: 2 rows");
    assert_eq!(
        message["moment"], "2024-03-04T00:00:00Z",
        "the day that failed last"
    );
    assert_eq!(
        message["facts"][1],
        json!({"label": "failed intervals", "value": "2"})
    );
    assert_eq!(
        message["table"]["rows"],
        json!([["JFK", "60.0"], ["LGA", "70.0"]])
    );
    let shown = project.call(&["show", "alert/bad_days", "--json"]).json();
    let history = shown["state"]["history"].as_array().expect("there is a history");
    let story: Vec<String> = history
        .iter()
        .map(|entry| format!("{} {}", entry["moment"], entry["verdict"]).replace('"', ""))
        .collect();
    assert_eq!(
        story,
        [
            "2024-03-05T00:00:00.000Z pass",
            "2024-03-04T00:00:00.000Z fail",
            "2024-03-03T00:00:00.000Z fail",
            "2024-03-02T00:00:00.000Z pass",
        ]
    );
    project.run(0);
    assert_eq!(archived(&project).len(), 2, "no day is looked at twice");
}

/// N5.
#[test]
fn nobody_is_told_of_a_snoozed_alert_until_its_end() {
    let project = project();
    let alert = "type: alert\nrefresh: {ref_update: true}\ndata: {sql: SELECT * FROM late WHERE delay > 55}\n\
        on_recover: true\nnotify: {file: archive}\n";
    project.write("alerts/late.yaml", alert);
    days(&project, &[("2024-03-01", 10)]);
    project.run(0);
    let snoozed = project.call(&["alert", "snooze", "late", "--for", "8h"]);
    assert_eq!(snoozed.code, Some(0), "{}", snoozed.stderr);
    days(&project, &[("2024-03-01", 60)]);
    project.run(0);
    let status = project.call(&["show", "alert/late", "--json"]).json();
    assert_eq!(status["state"]["verdict"], "fail", "it is evaluated all the same");
    assert!(status["state"]["snoozed_until"].is_string(), "{status}");
    assert!(titles(&project).is_empty());
    // An edit of the file leaves the snooze.
    project.write(
        "alerts/late.yaml",
        &format!("{alert}description: Flights that were late\n"),
    );
    project.run(0);
    assert!(titles(&project).is_empty());
    project.call(&["alert", "snooze", "late", "--end"]);
    project.run(0);
    assert_eq!(titles(&project), ["late: 2 rows"], "it is told at the end");
    let shown = project.call(&["show", "alert/late"]).stdout;
    for text in [
        "alert/late  ok",
        "fail, told",
        "Flights that were late",
        "alerts/late.yaml",
        "model/late",
        "SELECT * FROM late WHERE delay > 55",
    ] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    let history = project.call(&["history", "alert/late"]).stdout;
    assert!(history.contains("pass → fail"), "{history}");
    assert!(history.contains("2 rows, 1 message"), "{history}");
    let entries = project.call(&["history", "alert/late", "--json"]).json()["transitions"].clone();
    assert_eq!(
        entries[0]["messages"].as_array().map(Vec::len),
        Some(1),
        "{entries}"
    );
    // Of all resources, an evaluation that found nothing new is none of the news.
    let all = project.call(&["history"]).stdout;
    assert_eq!(
        (
            all.matches("evaluated").count(),
            history.matches("evaluated").count()
        ),
        (2, 3),
        "{all}{history}"
    );
}

#[test]
fn trying_an_alert_out_stores_nothing_and_says_that_it_is_a_test() {
    let project = project();
    project.write("alerts/bad_days.yaml", ALERT);
    project.run(0);
    let before = project.call(&["show", "alert/bad_days", "--json"]).stdout;
    let args = ["alert", "test", "bad_days", "--at", "2024-03-03", "--exit-code"];
    let tested = project.call(&args);
    assert_eq!(tested.code, Some(5), "{}{}", tested.stdout, tested.stderr);
    assert!(tested.stdout.contains("fail, 2 rows"), "{}", tested.stdout);
    assert!(
        tested.stdout.contains("would tell connector \"archive\""),
        "{}",
        tested.stdout
    );
    assert!(archived(&project).is_empty());
    let sent = project.call(&[
        "alert",
        "test",
        "bad_days",
        "--at",
        "2024-03-03",
        "--send",
        "--json",
    ]);
    assert_eq!(sent.json()["receivers"][0]["delivered"], true, "{}", sent.stdout);
    assert_eq!(archived(&project)[0]["is_test"], true);
    assert_eq!(project.call(&["show", "alert/bad_days", "--json"]).stdout, before);
    let passes = project.call(&["alert", "test", "bad_days", "--exit-code"]);
    assert_eq!(passes.code, Some(0), "{}", passes.stdout);
}

/// N10, N11.
#[test]
fn a_report_is_a_file_that_goes_with_a_message_and_is_sent_on_request() {
    let project = project();
    project.write("reports/late.yaml", REPORT);
    project.run(0);
    assert!(archived(&project).is_empty(), "a new report waits for its time");
    let sent = project.call(&["report", "run", "late", "--send"]);
    assert_eq!(sent.code, Some(0), "{}{}", sent.stdout, sent.stderr);
    let told = |words: &[&str]| {
        let mut lines = sent.stdout.lines();
        lines.any(|line| words.iter().all(|word| line.contains(word)))
    };
    assert!(told(&["built", "report", "late", "row"]), "{}", sent.stdout);
    assert!(
        told(&["sent", "message", "Late flights", "archive"]),
        "{}",
        sent.stdout
    );
    assert!(told(&["1 built"]), "{}", sent.stdout);
    let history = project.call(&["history", "report/late"]).stdout;
    assert!(
        history.contains("made") && history.contains("1 message, late-"),
        "{history}"
    );
    let shown = project.call(&["show", "api/by_origin"]).stdout;
    assert!(shown.contains("limit (optional), origin"), "{shown}");
    let messages = archived(&project);
    let [message] = messages.as_slice() else {
        panic!("one message: {messages:?}");
    };
    assert_eq!(message["title"], "Late flights");
    let attachment = &message["attachment"];
    let path = attachment["path"].as_str().expect("it has a path");
    let content = fs::read(path).expect("the file is there");
    assert_eq!(attachment["hash"], blake3::hash(&content).to_hex().as_str());
    assert_eq!(attachment["media_type"], "text/csv");
    assert_eq!(
        String::from_utf8_lossy(&content),
        "flight,delay\n'=1+1,50\nUA2,20\nUA2,60\n",
        "nothing in it is run by a spreadsheet"
    );
    let out = project.path().join("late.xlsx");
    let written = project.call(&["report", "run", "late", "--out", &out.display().to_string()]);
    assert_eq!(written.code, Some(0), "{}", written.stderr);
    assert!(
        fs::read(&out).expect("it is there").starts_with(b"PK"),
        "a workbook"
    );
    let shown = project.call(&["report", "run", "late", "--json"]);
    assert_eq!(rows(&shown), json!([["=1+1", 50], ["UA2", 20], ["UA2", 60]]));
    // Another value of a variable is another question, which is no reason to send it.
    let edited = project.call(&["run", "-e", "least=30"]);
    assert_eq!(edited.code, Some(0), "{}", edited.stderr);
    assert_eq!(archived(&project).len(), 1);
    days(&project, &[("2024-03-01", 20)]);
    project.run(0);
    assert_eq!(archived(&project).len(), 2, "new rows are");
}

/// N6, N10: the program dies after each step, and each message arrives with a whole file, by its key never twice.
#[test]
fn a_report_that_is_due_arrives_whenever_the_program_dies() {
    let project = project();
    project.write("reports/late.yaml", REPORT);
    project.run(0);
    days(&project, &[("2024-03-01", 20)]);
    let mut deaths = 0;
    let points = ["drivers::export::before", "drivers::export::after"];
    let points = points.iter().chain(watershed_delivery::CRASH_POINTS);
    for point in watershed_controller::store::CRASH_POINTS.iter().chain(points) {
        for visits in 0..4 {
            deaths += u32::from(project.dies_at(point, visits));
        }
    }
    assert!(deaths > 0, "the points are passed");
    project.run(0);
    let messages = archived(&project);
    assert_eq!(messages.len(), 1, "{messages:?}");
    let attachment = &messages[0]["attachment"];
    let content = fs::read(attachment["path"].as_str().expect("it has a path")).expect("the file is there");
    assert_eq!(attachment["hash"], blake3::hash(&content).to_hex().as_str());
    assert_eq!(
        String::from_utf8_lossy(&content),
        "flight,delay\n'=1+1,20\nUA2,30\n"
    );
}

/// N6: what was due before a report's file is deleted still arrives.
#[test]
fn a_report_that_is_due_when_it_is_deleted_arrives() {
    for (point, due) in [
        ("message-evaluated", 0),
        ("message-recorded", 1),
        ("message-created", 1),
        ("message-begun", 1),
    ] {
        let project = project();
        project.write("reports/late.yaml", REPORT);
        project.run(0);
        days(&project, &[("2024-03-01", 20)]);
        assert!(project.dies_at(point, 0), "{point}");
        project.remove("reports/late.yaml");
        project.expect_run(0, point);
        assert_eq!(archived(&project).len(), due, "{point}");
    }
}

#[test]
fn what_can_t_be_asked_fails_with_its_reason_and_tells_nobody() {
    let project = project();
    project.write(
        "reports/broken.yaml",
        "type: report\nrefresh: {ref_update: true}\ndata: {metrics: {metrics_view: delays, measures: [nothing]}}\n\
         export: {format: csv}\nnotify: {file: archive}\n",
    );
    project.write(
        "alerts/unknown.yaml",
        "type: alert\ndata: {metrics: {metrics_view: delays, measures: [flights]}}\nfor: {user_email: who@example.org}\n\
         notify: {file: archive}\n",
    );
    let said = project.call(&["run"]);
    assert_eq!(said.code, Some(1), "{}", said.stdout);
    assert!(said.stderr.contains("who@example.org"), "{}", said.stderr);
    let sent = project.call(&["report", "run", "broken", "--send"]);
    assert_eq!(sent.code, Some(1), "{}", sent.stdout);
    assert!(sent.stderr.contains("nothing"), "{}", sent.stderr);
    assert!(archived(&project).is_empty());
}

/// N2, N10: a file for each day that has closed, each in a message of its own.
#[test]
fn a_report_by_intervals_is_made_for_each_day_once() {
    let project = project();
    project.write(
        "reports/daily.yaml",
        "type: report\nrefresh: {ref_update: true}\nwatermark: inherit\nintervals: {duration: P1D}\n\
         data: {metrics: {metrics_view: delays, dimensions: [origin], measures: [delay], time_range: {iso_duration: P1D}}}\n\
         for: {user_email: desk@example.org}\nexport: {format: csv, include_header: true}\nnotify: {file: archive}\n",
    );
    project.run(0);
    days(
        &project,
        &[("2024-03-01", 10), ("2024-03-02", 50), ("2024-03-03", 60)],
    );
    project.run(0);
    let sent = |place: usize| {
        let message = &archived(&project)[place];
        let path = message["attachment"]["path"]
            .as_str()
            .expect("it has a path")
            .to_owned();
        fs::read_to_string(path).expect("the file is there")
    };
    assert_eq!(archived(&project).len(), 1, "the newest day that has closed");
    assert_eq!(
        sent(0),
        "daily\n\"3 March 2024, 00:00 (UTC)\"\norigin,delay\nJFK,50.0\n",
        "of one airport"
    );
    let all = [
        ("2024-03-01", 10),
        ("2024-03-02", 50),
        ("2024-03-03", 60),
        ("2024-03-04", 1),
        ("2024-03-05", 2),
    ];
    days(&project, &all);
    project.run(0);
    project.run(0);
    assert_eq!(archived(&project).len(), 3);
    assert_eq!(
        sent(1),
        "daily\n\"4 March 2024, 00:00 (UTC)\"\norigin,delay\nJFK,60.0\n"
    );
    assert_eq!(
        sent(2),
        "daily\n\"5 March 2024, 00:00 (UTC)\"\norigin,delay\nJFK,1.0\n"
    );
}
