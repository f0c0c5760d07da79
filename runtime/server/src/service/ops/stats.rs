//! Counts and metrics of a project: as a document, and as a page for Prometheus.

use std::path::Path;

use watershed_api::Problem;
use watershed_api::answers::PrometheusPage;
use watershed_api::documents::{ProcessStats, StatsDocument, Time};
use watershed_api::request::NoInput;
#[cfg(feature = "http")]
use watershed_controller::stats::Page;
use watershed_controller::stats::Stats;

use crate::kept::Moment;
use crate::out::Out;
use crate::report::document::Project;
use crate::report::explain::Life;
use crate::report::metrics::{self, Source};
use crate::report::{Entry, messages};
use crate::service::Principal;
use crate::service::place::Place;
#[cfg(feature = "http")]
use crate::{instance::Instance, report::Hidden};

/// Returns counts of resources and of the work done.
pub(crate) async fn stats(
    place: &impl Place,
    _: &Principal,
    _: NoInput,
    _: &Out,
) -> Result<StatsDocument, Problem> {
    let (stats, entries) = counted(place).await?;
    Ok(document(place.project(), &stats, &entries, place.life()))
}

/// Returns the same counts in Prometheus' text format.
pub(crate) async fn prometheus(
    place: &impl Place,
    _: &Principal,
    _: NoInput,
    _: &Out,
) -> Result<PrometheusPage, Problem> {
    let (stats, entries) = counted(place).await?;
    let (source, last) = match place.life() {
        Life::Live => of_process(&place.state().path(), &stats),
        Life::AtRest => (Source::Stored, Moment::Success.last(&place.state().path())),
    };
    let page = metrics::page(place.project(), &stats, &entries, source, last);
    Ok(PrometheusPage(page))
}

/// Adds the numbers of an open instance to a page, with those of single resources if they are asked for.
#[cfg(feature = "http")]
pub(crate) async fn add_numbers(page: &mut Page, instance: &Instance, has_resources: bool) {
    let stats = instance.controller().stats();
    let (source, last) = of_process(&instance.state.path(), &stats);
    metrics::catalog(page, &stats, source, last);
    let bytes = std::fs::metadata(instance.state.engine()).map_or(0, |file| file.len());
    page.gauge("engine_file_bytes", "Bytes of the engine's file.", bytes);
    let help = "Changes of the data by other processes.";
    page.counter(
        "engine_changes_by_others_total",
        help,
        instance.engine.changes_by_others(),
    );
    let projection = instance.projection().await;
    let table = projection.table();
    let slots = table.after(None).map(|(_, slot)| slot);
    let listed: Vec<_> = slots
        .filter(|slot| slot.entry.is_listed(Hidden::Leave))
        .map(|slot| (&slot.entry, slot.standing.health))
        .collect();
    metrics::kinds(page, &listed);
    if has_resources {
        metrics::each(page, listed);
    }
}

/// Returns the source of a live instance's numbers, and the time of its last success.
fn of_process(state: &Path, stats: &Stats) -> (Source, Option<Time>) {
    let dropped = crate::logs::dropped();
    (Source::Process { dropped }, last_success(state, stats))
}

async fn counted(place: &impl Place) -> Result<(Stats, Vec<Entry>), Problem> {
    let listing = place.listing().await?;
    let stats = match place.running() {
        Ok(running) => running.instance.controller().stats(),
        Err(_) => {
            let mut stats = Stats {
                revision: listing.revision,
                ..Stats::default()
            };
            for entry in &listing.entries {
                stats.add(&entry.row, &entry.status, 0);
            }
            stats
        }
    };
    Ok((stats, listing.entries))
}

/// The age at which the stored time of the last success is replaced while all is well, in milliseconds.
const OLD_MS: i64 = 60_000;

/// Returns the time of the last success: now while all is well, and the time at which this was last seen otherwise. Whoever
/// looks stores the time now and then, so that a failure does not lead back to before the last quiet days.
fn last_success(state: &Path, stats: &Stats) -> Option<Time> {
    let kept = Moment::Success.last(state);
    let rests = stats.running == 0 && stats.pending.values().sum::<u64>() == 0;
    let is_well = rests && stats.failed == 0 && stats.blocked == 0 && stats.last_convergence.is_some();
    if !is_well {
        return kept;
    }
    let now = Time::now();
    if kept.is_none_or(|kept| now.millis() - kept.millis() > OLD_MS) {
        Moment::Success.note(state, now);
    }
    Some(now)
}

fn document(project: &Project, stats: &Stats, entries: &[Entry], life: Life) -> StatsDocument {
    StatsDocument {
        schema: StatsDocument::SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        project: project.name.clone(),
        root: project.root.display().to_string(),
        environment: project.environment.clone(),
        process: (life == Life::Live).then(std::process::id),
        at: Time::now(),
        revision: stats.revision.0,
        resources: stats.resources,
        pending: stats.pending.clone(),
        pending_by_reason: stats.pending_by_reason.clone(),
        oldest_pending_ms: stats.oldest_pending_ms,
        running: stats.running,
        longest_running_ms: stats.longest_running_ms,
        stuck: stats.stuck,
        settled: stats.settled.clone(),
        failed: stats.failed,
        blocked: stats.blocked,
        paused: stats.paused,
        retries: stats.retries,
        alerts: messages::alerts(entries),
        notifications: messages::notifications(entries),
        process_stats: (life == Life::Live).then(|| process_stats(stats)),
    }
}

fn process_stats(stats: &Stats) -> ProcessStats {
    let converged = stats.last_convergence.as_ref();
    ProcessStats {
        invocations_started: stats.invocations.started,
        invocations_done: stats.invocations.done,
        invocations_failed: stats.invocations.failed,
        commits: stats.commits.tried,
        commits_failed: stats.commits.failed,
        commit_last_us: stats.commits.last_us,
        commit_longest_us: stats.commits.longest_us,
        loop_lag_last_us: stats.loop_lag.last_us,
        loop_lag_longest_us: stats.loop_lag.longest_us,
        lease_age_ms: stats.lease.as_ref().map(|lease| lease.age_ms),
        lease_term_ms: stats.lease.as_ref().map(|lease| lease.term_ms),
        last_convergence_at: converged.map(|last| Time::from_millis(last.at.0)),
        last_convergence_took_ms: converged.map(|last| last.took_ms),
        log_lines_dropped: crate::logs::dropped(),
    }
}
