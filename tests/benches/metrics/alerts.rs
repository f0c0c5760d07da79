//! Alerts by the thousand: how long they take, and what one holds that does nothing.

use std::path::Path;
use std::time::Instant;

use watershed::Instance;
use watershed_controller::{Key, Refresh};
use watershed_tests::measure::{Report, Unit};

use super::held;
use super::instance::{DEADLINE, opened};

/// The alerts.
const ALERTS: usize = 1_000;

/// The alerts of the smaller project with which the larger one is compared.
const FEW: usize = 100;

/// Evaluations that fill a history.
const HISTORY: usize = 25;

/// A question without rows.
const PASSES: &str = "SELECT 1 AS x WHERE false";

/// A question with more rows than an entry of a history keeps.
const FAILS: &str = "SELECT i AS flight, 'late' AS why FROM range(11) t(i)";

pub(super) async fn measure(report: &Report) {
    if report.wants("alerts_1000_s") {
        let folder = tempfile::tempdir().unwrap();
        let instance = project(folder.path(), ALERTS, PASSES).await;
        let mut took = Vec::new();
        for _ in 0..5 {
            let begun = Instant::now();
            evaluate(&instance, ALERTS).await;
            took.push(begun.elapsed().as_secs_f64());
        }
        report.print("alerts_1000_s", Unit::Seconds, took);
        instance.close(DEADLINE).await.unwrap();
    }
    if report.wants("alert_idle_bytes") {
        // What any project holds is in both.
        let more = held_by(ALERTS).await - held_by(FEW).await;
        let each = more as f64 / (ALERTS - FEW) as f64;
        report.print("alert_idle_bytes", Unit::Bytes, vec![each]);
    }
}

/// Returns the bytes that a project holds whose alerts have full histories, each entry with as many rows as it keeps.
async fn held_by(alerts: usize) -> isize {
    let folder = tempfile::tempdir().unwrap();
    held::begin();
    let instance = project(folder.path(), alerts, FAILS).await;
    for _ in 0..HISTORY {
        evaluate(&instance, alerts).await;
    }
    let held = held::now();
    held::end();
    instance.close(DEADLINE).await.unwrap();
    held
}

async fn project(folder: &Path, alerts: usize, sql: &str) -> Instance {
    let mut files = vec![("watershed.yaml".to_owned(), String::new())];
    let alert = format!(
        "type: alert\nrefresh: {{disable: true}}\ndata: {{sql: \"{sql}\"}}\non_fail: false\nnotify: {{file: archive}}\n"
    );
    files.extend((0..alerts).map(|number| (format!("alerts/a{number}.yaml"), alert.clone())));
    files.push((
        "connectors/archive.yaml".to_owned(),
        "type: connector\ndriver: file\npath: told\n".to_owned(),
    ));
    opened(&folder.join("shop"), &files).await
}

/// Asks for all alerts at once and waits until they are evaluated.
async fn evaluate(instance: &Instance, alerts: usize) {
    for number in 0..alerts {
        let key = Key::new("alert", format!("a{number}").as_str());
        instance.controller().refresh(key, Refresh::Plain).await.unwrap();
    }
    instance.controller().wait_until_idle(DEADLINE).await.unwrap();
}
