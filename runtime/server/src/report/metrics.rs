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

/// Returns the page of metrics of one project in the text format.
pub(crate) fn page(
    project: &Project,
    stats: &Stats,
    entries: &[Entry],
    source: Source,
    last_success: Option<Time>,
) -> String {
    let mut page = Page::new(&[
        ("project", project.name.as_str()),
        ("environment", project.environment.as_str()),
    ]);
    let report = HealthReport::from_entries(entries);
    let health = |entry: &Entry| report.get(&entry.row).map_or(Health::Ok, |found| found.health);
    let listed: Vec<(&Entry, Health)> = entries
        .iter()
        .filter(|entry| entry.is_listed(Hidden::Leave))
        .map(|entry| (entry, health(entry)))
        .collect();
    catalog(&mut page, stats, source, last_success);
    kinds(&mut page, &listed);
    each(&mut page, listed);
    page.into_text()
}

/// The help of the metric `up`.
pub(crate) const UP: &str = "Whether a process runs the project.";

/// Writes the metrics of a catalog.
pub(crate) fn catalog(page: &mut Page, stats: &Stats, source: Source, last_success: Option<Time>) {
    let up = matches!(source, Source::Process { .. });
    page.gauge("up", UP, u64::from(up));
    if let Some(at) = last_success {
        let help = "Time when the project was last up to date without a mistake.";
        page.seconds("last_success_timestamp_seconds", help, micros(at.millis()));
    }
    stats.at_rest(page);
    if let Source::Process { dropped } = source {
        stats.write_process(page);
        page.gauge(
            "log_lines_dropped",
            "Log lines dropped because the disk was too slow.",
            dropped,
        );
    }
}

/// Writes the counts of resources by kind and health.
pub(crate) fn kinds(page: &mut Page, listed: &[(&Entry, Health)]) {
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for (entry, health) in listed {
        *counts
            .entry((entry.row.kind.as_str(), health.as_str()))
            .or_default() += 1;
    }
    let counts: Vec<_> = counts
        .into_iter()
        .map(|((kind, health), count)| (vec![("kind", kind), ("health", health)], count))
        .collect();
    page.family("kind_resources", "Resources by kind and health.", &counts);
}

/// Writes the series of single resources, of a bounded number of them.
pub(crate) fn each(page: &mut Page, mut listed: Vec<(&Entry, Health)>) {
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
