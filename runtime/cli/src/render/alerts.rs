//! Alerts, reports and messages in one line each: the last verdict, the messages sent, the last file.

use serde_json::Value;
use watershed_api::documents::{ResourceDocument, Time};

use super::units::{ago, count};

/// Returns an alert, report or message in a few words; empty for other kinds.
pub(crate) fn glance(resource: &ResourceDocument, now: Time) -> String {
    let Some(result) = &resource.result else {
        return String::new();
    };
    match resource.kind.as_str() {
        "alert" => alert(result, now),
        "report" => report(result, now),
        "notification" => text(&result["standing"]),
        _ => String::new(),
    }
}

fn alert(result: &Value, now: Time) -> String {
    let mut said = text(&result["verdict"]);
    match (undelivered(result), told(result)) {
        (Some(undelivered), _) => said.push_str(&undelivered),
        (None, Some(at)) => said.push_str(&format!(", told {}", ago(at, now))),
        (None, None) => {}
    }
    let until = text(&result["snoozed_until"]);
    if !until.is_empty() {
        said.push_str(&format!(", snoozed until {until}"));
    }
    said
}

/// Returns the time of the last evaluation that people were told of; none if they never were. With intervals, that of the
/// verdict is the end of an interval, which may be years ago.
fn told(result: &Value) -> Option<Time> {
    let at = time(&result["told"]["at"])?;
    let evaluations = result["history"].as_array().into_iter().flatten();
    let with_messages = evaluations.filter(|one| one["told"].as_array().is_some_and(|told| !told.is_empty()));
    let last = with_messages
        .filter_map(|one| time(&one["at"]))
        .max_by_key(|at| at.millis());
    Some(last.unwrap_or(at))
}

/// Returns what has not arrived of the last messages; none if all have.
fn undelivered(result: &Value) -> Option<String> {
    let number = |word: &str| result["undelivered"][word].as_u64().unwrap_or_default();
    let messages = |number: u64| count(number, "message");
    match (number("dead"), number("waiting")) {
        (0, 0) => None,
        (0, waiting) => Some(format!(", {} not delivered yet", messages(waiting))),
        (dead, _) => Some(format!(", {} not delivered", messages(dead))),
    }
}

fn report(result: &Value, now: Time) -> String {
    let last = &result["history"][0];
    let Some(at) = time(&last["at"]) else {
        return "not made yet".to_owned();
    };
    let rows = last["rows"]
        .as_u64()
        .map(|rows| format!("{}, ", count(rows, "row")));
    format!(
        "{}{}, {}{}",
        rows.unwrap_or_default(),
        text(&last["file"]),
        ago(at, now),
        undelivered(result).unwrap_or_default()
    )
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn time(value: &Value) -> Option<Time> {
    serde_json::from_value(value.clone()).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn verdicts_and_files_are_told_in_a_line() {
        let now = Time::from_millis(1_709_300_000_000);
        let at = serde_json::to_value(Time::from_millis(1_709_299_880_000)).unwrap_or_default();
        let failed = json!({"verdict": "fail", "told": {"at": at}, "snoozed_until": null});
        assert_eq!(alert(&failed, now), "fail, told 2 min ago");
        let refused =
            json!({"verdict": "fail", "told": {"at": at}, "undelivered": {"waiting": 1, "dead": 2}});
        assert_eq!(alert(&refused, now), "fail, 2 messages not delivered");
        let of_interval = json!({
            "verdict": "fail",
            "told": {"at": "2020-01-01T00:00:00Z"},
            "history": [{"at": at, "told": ["a"]}, {"at": "2024-01-01T00:00:00Z", "told": []}],
        });
        assert_eq!(alert(&of_interval, now), "fail, told 2 min ago");
        let snoozed = json!({"verdict": "pass", "told": null, "snoozed_until": "2024-03-02T00:00:00Z"});
        assert_eq!(alert(&snoozed, now), "pass, snoozed until 2024-03-02T00:00:00Z");
        let made = json!({"history": [{"at": at, "rows": 1200, "file": "weekly.xlsx"}]});
        assert_eq!(report(&made, now), "1,200 rows, weekly.xlsx, 2 min ago");
        assert_eq!(report(&json!({"history": []}), now), "not made yet");
    }
}
