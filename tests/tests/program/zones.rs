//! Times by the clock of their zone, wherever people read them: answers of APIs, tables of alerts, sheets of reports.

use calamine::{Data, Reader as _};
use serde_json::json;

use crate::sandbox::Sandbox;

/// Half past midnight on 2 March in Tokyo, and noon.
const VISITS: &str = "-- @materialize: true
SELECT seen::TIMESTAMPTZ AS seen FROM (VALUES ('2024-03-01 15:30:00+00'), ('2024-03-02 03:00:00+00')) AS t(seen)
";

const VIEW: &str = "version: 1
type: metrics_view
model: visits
timeseries: seen
dimensions: [{column: seen}]
measures: [{name: visits, expression: count(*)}]
";

fn data(grain: &str) -> String {
    format!(
        "metrics:\n    metrics_view: visits\n    dimensions: [{{name: seen, grain: {grain}}}]\n    measures: [visits]\n    \
         time_range: {{expression: \"2024-03-02\"}}\n    time_zone: Asia/Tokyo\n"
    )
}

fn project() -> Sandbox {
    let (days, hours) = (data("day"), data("hour"));
    Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/visits.sql", VISITS),
        ("metrics/visits.yaml", VIEW),
        (
            "apis/days.yaml",
            &format!("type: api\n{}", days.replace("\n    ", "\n  ")),
        ),
        (
            "apis/hours.yaml",
            &format!("type: api\n{}", hours.replace("\n    ", "\n  ")),
        ),
        (
            "connectors/outbox.yaml",
            "type: connector\ndriver: file\npath: outbox\n",
        ),
        (
            "alerts/visited.yaml",
            &format!("type: alert\nrefresh: {{ref_update: true}}\ndata:\n  {days}notify: {{file: outbox}}\n"),
        ),
        (
            "reports/visits.yaml",
            &format!(
                "type: report\nrefresh: {{every: 1h}}\ndata:\n  {hours}export: {{format: xlsx}}\nnotify: {{file: outbox}}\n"
            ),
        ),
    ])
}

#[test]
fn times_are_shown_by_the_clock_of_the_zone_that_cut_them() {
    let project = project();
    project.run(0);

    let shown = project.call(&["call", "days"]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(
        shown.stdout.contains("│ 2024-03-02 ┆      2 │"),
        "{}",
        shown.stdout
    );
    assert!(
        shown
            .stderr
            .contains("1 row; 2024-03-02 to 2024-03-03; Asia/Tokyo"),
        "{}",
        shown.stderr
    );
    let raw = project.call(&["call", "days", "--json"]).json();
    assert_eq!(
        raw["rows"],
        json!([["2024-03-01 15:00:00", 2]]),
        "programs get universal time"
    );
    assert_eq!(raw["time_zone"], "Asia/Tokyo");
    let hours = project.call(&["call", "hours"]).stdout;
    assert!(
        hours.contains("2024-03-02 00:00") && hours.contains("2024-03-02 12:00"),
        "{hours}"
    );

    let told = project.call(&["alert", "test", "visited", "--json"]).json();
    assert_eq!(told["rows"], json!([["2024-03-02", "2"]]), "{told}");

    let file = project.path().join("visits.xlsx");
    let written = project.call(&["report", "run", "visits", "--out", &file.display().to_string()]);
    assert_eq!(written.code, Some(0), "{}", written.stderr);
    let mut book: calamine::Xlsx<_> = calamine::open_workbook(&file).expect("it is a workbook");
    let sheet = book
        .worksheet_range_at(0)
        .expect("it has a sheet")
        .expect("it can be read");
    let times: Vec<String> = sheet
        .rows()
        .skip(1)
        .map(|row| match row.first() {
            Some(Data::DateTime(time)) => {
                let (year, month, day, hour, minute, ..) = time.to_ymd_hms_milli();
                format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}")
            }
            other => panic!("no time: {other:?}"),
        })
        .collect();
    assert_eq!(times, ["2024-03-02 00:00", "2024-03-02 12:00"]);
}
