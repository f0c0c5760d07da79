//! Metrics of a project for Prometheus: of the catalog, of each kind, and of single resources.

use std::collections::BTreeMap;

use watershed_api::documents::{Health, Time};
use watershed_controller::stats::Stats;
use watershed_controller::stats::{Page, seconds};

use super::document::Project;
use super::health::HealthReport;
use super::{Entry, Hidden};

/// Most resources with time series of their own; failed resources come first.
const MOST_RESOURCES: usize = 1_000;

/// The source of the numbers: a running process, or storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// A process that runs the project and counts its work.
    Process {
        /// Number of log lines that were dropped.
        dropped: u64,
    },
    /// Storage alone; no process runs the project.
    Stored,
}

/// Returns the page of metrics in the text format.
pub(crate) fn page(
    project: &Project,
    stats: &Stats,
    entries: &[Entry],
    source: Source,
    last_success: Option<Time>,
) -> String {
    let labels = [
        ("project", project.name.as_str()),
        ("environment", project.environment.as_str()),
    ];
    let mut page = Page::new(&labels);
    let up = matches!(source, Source::Process { .. });
    page.gauge("up", "Whether a process runs the project.", u64::from(up));
    if let Some(at) = last_success {
        let help = "Time when the project was last up to date without a mistake.";
        page.seconds("last_success_timestamp_seconds", help, micros(at.millis()));
    }
    stats.at_rest(&mut page);
    if let Source::Process { dropped } = source {
        stats.write_process(&mut page);
        page.gauge(
            "log_lines_dropped",
            "Log lines dropped because the disk was too slow.",
            dropped,
        );
    }
    kinds(&mut page, entries);
    page.into_text()
}

/// Writes the counts of resources by kind and health, then the series of single resources.
fn kinds(page: &mut Page, entries: &[Entry]) {
    let health_report = HealthReport::from_entries(entries);
    let health = |entry: &Entry| {
        health_report
            .get(&entry.row)
            .map_or(Health::Ok, |resource_health| resource_health.health)
    };
    let mut listed: Vec<(&Entry, Health)> = entries
        .iter()
        .filter(|entry| entry.is_listed(Hidden::Leave))
        .map(|entry| (entry, health(entry)))
        .collect();
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for (entry, health) in &listed {
        *counts
            .entry((entry.row.kind.as_str(), health.as_str()))
            .or_default() += 1;
    }
    let counts: Vec<_> = counts
        .into_iter()
        .map(|((kind, health), count)| (vec![("kind", kind), ("health", health)], count))
        .collect();
    page.family("kind_resources", "Resources by kind and health.", &counts);
    let order = |(entry, health): &(&Entry, Health)| {
        let row = &entry.row;
        (
            *health != Health::Failed,
            row.kind.to_string(),
            row.name.to_string(),
        )
    };
    listed.sort_by_cached_key(order);
    listed.truncate(MOST_RESOURCES);
    each(page, &listed);
}

fn each(page: &mut Page, listed: &[(&Entry, Health)]) {
    let labels = |entry: &&Entry| {
        let row = &entry.row;
        (row.kind.to_string(), row.name.to_string())
    };
    let named: Vec<((String, String), &Entry, Health)> = listed
        .iter()
        .map(|(entry, health)| (labels(entry), *entry, *health))
        .collect();
    let family = |value: fn(&Entry, Health) -> Option<String>| {
        let sample = |((kind, name), entry, health): &'_ ((String, String), &Entry, Health)| {
            let value = value(entry, *health)?;
            Some((kind.clone(), name.clone(), value))
        };
        named.iter().filter_map(sample).collect::<Vec<_>>()
    };
    let mut tell = |name: &str, help: &str, values: &[(String, String, String)]| {
        let samples: Vec<_> = values
            .iter()
            .map(|(kind, name, value)| (vec![("kind", kind.as_str()), ("name", name.as_str())], value))
            .collect();
        page.family(name, help, &samples);
    };
    let failed = family(|_, health| Some(u64::from(health == Health::Failed).to_string()));
    tell(
        "resource_failed",
        "Whether the last run of a resource failed by itself.",
        &failed,
    );
    let succeeded = family(|entry, _| Some(seconds(micros(entry.row.last_success?.0))));
    let help = "Time when a run of a resource last succeeded.";
    tell("resource_last_success_timestamp_seconds", help, &succeeded);
    let took = family(|entry, _| {
        let run = entry.row.last_run.as_ref()?;
        let took = run.ended_at.0.saturating_sub(run.started_at.0);
        Some(seconds(micros(took)))
    });
    tell(
        "resource_last_run_duration_seconds",
        "Duration of the last run of a resource.",
        &took,
    );
}

fn micros(millis: i64) -> u64 {
    u64::try_from(millis).unwrap_or(0).saturating_mul(1_000)
}
