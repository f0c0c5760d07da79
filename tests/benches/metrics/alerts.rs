//! A thousand alerts of one project.

use std::time::Instant;

use watershed_controller::{Key, Refresh};
use watershed_tests::measure::{Report, Unit};

use super::instance::{DEADLINE, opened};

/// The alerts.
const ALERTS: usize = 1_000;

/// Evaluations that fill a history.
const HISTORY: usize = 25;

pub(super) async fn measure(report: &Report) {
    if !report.wants("alerts_1000_s") && !report.wants("alert_idle_bytes") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut files = vec![("watershed.yaml".to_owned(), String::new())];
    let alert = "type: alert\nrefresh: {disable: true}\ndata: {sql: SELECT 1 AS x WHERE false}\nnotify: {file: archive}\n";
    files.extend((0..ALERTS).map(|number| (format!("alerts/a{number}.yaml"), alert.to_owned())));
    files.push((
        "connectors/archive.yaml".to_owned(),
        "type: connector\ndriver: file\npath: told\n".to_owned(),
    ));
    let instance = opened(&folder.path().join("shop"), &files).await;
    let (mut took, before) = (Vec::new(), rss_bytes());
    for _ in 0..HISTORY {
        let begun = Instant::now();
        for number in 0..ALERTS {
            let key = Key::new("alert", format!("a{number}").as_str());
            instance.controller().refresh(key, Refresh::Plain).await.unwrap();
        }
        instance.controller().wait_until_idle(DEADLINE).await.unwrap();
        took.push(begun.elapsed().as_secs_f64());
    }
    let added = rss_bytes().saturating_sub(before) as f64 / ALERTS as f64;
    took.truncate(5);
    report.print("alerts_1000_s", Unit::Seconds, took);
    report.print("alert_idle_bytes", Unit::Bytes, vec![added]);
    instance.close(DEADLINE).await.unwrap();
}

/// The memory of this process.
pub(super) fn rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    let kib: u64 = line.trim().strip_suffix(" kB").unwrap().trim().parse().unwrap();
    kib * 1024
}
