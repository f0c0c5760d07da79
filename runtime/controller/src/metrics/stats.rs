//! Metrics for operators, as a value, as JSON and in the Prometheus text format.

use std::collections::BTreeMap;

use serde::Serialize;
use watershed_core::{ErrorKind, Revision, Row, Settled, Stage, Status, Timestamp, Trigger};

pub use crate::metrics::prometheus::{Page, seconds};
pub use crate::metrics::queue_depth::{QueueDepth, QueueDepths};

/// Metrics of a controller at one moment; see [`Handle::stats`](crate::Handle::stats).
///
/// ```
/// # use watershed_controller::{Context, Error, Outcome, Reconciler};
/// # struct Pages;
/// # impl Reconciler for Pages {
/// #     type Spec = Page;
/// #     type State = Page;
/// #     async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
/// #         let page = Page(context.spec().0.clone());
/// #         context.set_state(&page).await?;
/// #         Ok(Outcome::default())
/// #     }
/// # }
/// # #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
/// # struct Page(String);
/// # watershed_controller::json_message!(Page, format = 1);
/// use std::time::Duration;
/// use watershed_controller::{Controller, KindOptions, Resource};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let controller = Controller::builder().kind(KindOptions::new("page"), Pages).start().await?;
/// controller.create(Resource::declare("page", "home", &Page("hello".into()))?).await?;
/// controller.wait_until_idle(Duration::from_secs(10)).await?;
///
/// let stats = controller.stats();
/// assert_eq!((stats.resources, stats.running, stats.failed), (1, 0, 0));
/// assert!(stats.to_prometheus(&[("instance", "default")]).contains("instance=\"default\""));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Stats {
    /// Revision of the catalog that readers see.
    pub revision: Revision,
    /// Number of resources, including those with an unfinished delete.
    pub resources: u64,
    /// Number of pending resources, by the priority of their request; see [`Priority`](crate::history::Priority).
    pub pending: BTreeMap<String, u64>,
    /// Number of pending resources, by the trigger of their request.
    pub pending_by_reason: BTreeMap<String, u64>,
    /// Longest time that a resource has been pending, in milliseconds.
    pub oldest_pending_ms: u64,
    /// Number of invocations that run now.
    pub running: u64,
    /// Longest time that an invocation has been running, in milliseconds.
    pub longest_running_ms: u64,
    /// Number of running invocations that were cancelled and have not returned.
    pub stuck: u64,
    /// Number of settled resources, by the reason: `idle`, `failed`, `retrying`, `paused` and so on.
    pub settled: BTreeMap<String, u64>,
    /// Number of resources whose last run failed by itself, in any stage.
    pub failed: u64,
    /// Number of resources whose last run gave up because a ref had failed.
    pub blocked: u64,
    /// Number of resources whose reconciles are held back.
    pub paused: u64,
    /// Sum of the failures in a row of all resources.
    pub retries: u64,
    /// Counts of invocations since the controller started.
    pub invocations: Invocations,
    /// Counts and durations of commits since the controller started.
    pub commits: Commits,
    /// Time that calls waited for the loop.
    pub loop_lag: Lag,
    /// Lengths of the queues inside the controller, while this process leads.
    pub waiting: QueueDepths,
    /// Age of the lease; none if it can't expire.
    pub lease: Option<LeaseAge>,
    /// Last time at which everything settled; none before the first.
    pub last_convergence: Option<Convergence>,
}

/// Counts of invocations since the controller started.
///
/// Part of [`Stats`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Invocations {
    /// Number of invocations that the host has started.
    pub started: u64,
    /// Number of invocations that succeeded.
    pub done: u64,
    /// Number of invocations that failed or panicked, without those that gave up because a ref had failed.
    pub failed: u64,
}

/// Counts and durations of commits.
///
/// Part of [`Stats`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Commits {
    /// Number of attempts to commit.
    pub tried: u64,
    /// Number of attempts to commit that the store has not accepted.
    pub failed: u64,
    /// Duration of the last commit, in microseconds.
    pub last_us: u64,
    /// Longest duration in the last minute or two, in microseconds.
    pub longest_us: u64,
}

/// Time that calls waited for the loop.
///
/// Part of [`Stats`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Lag {
    /// Wait of the last call, in microseconds.
    pub last_us: u64,
    /// Longest wait in the last minute or two, in microseconds.
    pub longest_us: u64,
}

/// Age and term of a lease that can expire.
///
/// Part of [`Stats`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct LeaseAge {
    /// Time since the last renewal, in milliseconds.
    pub age_ms: u64,
    /// Time that a renewal lasts, in milliseconds.
    pub term_ms: u64,
}

/// The last time at which everything settled.
///
/// Part of [`Stats`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Convergence {
    /// Time at which the last resource settled.
    pub at: Timestamp,
    /// Length of the unsettled period before that, in milliseconds.
    pub took_ms: u64,
}

impl Stats {
    /// Counts one more resource, whose status is `age_ms` old. For the metrics of a catalog that no process runs.
    pub fn add(&mut self, row: &Row, status: &Status, age_ms: i64) {
        self.resources += 1;
        match &row.error {
            Some(error) if matches!(error.kind, ErrorKind::Dependency(_)) => self.blocked += 1,
            Some(_) => self.failed += 1,
            None => {}
        }
        self.paused += u64::from(row.paused);
        let waits = matches!(&row.error, Some(error) if matches!(error.kind, ErrorKind::Dependency(_)));
        self.retries += if waits { 0 } else { u64::from(row.attempts) };
        let age_ms = u64::try_from(age_ms).unwrap_or(0);
        match &status.stage {
            Stage::Settled(why) => *entry(&mut self.settled, &word(why)) += 1,
            Stage::Pending => {
                let why = status.reason.as_ref().map(|reason| reason.trigger);
                let priority = status.reason.as_ref().map(|reason| reason.priority().as_str());
                *entry(&mut self.pending, priority.unwrap_or("unknown")) += 1;
                *entry(
                    &mut self.pending_by_reason,
                    why.map_or("unknown", Trigger::as_str),
                ) += 1;
                self.oldest_pending_ms = self.oldest_pending_ms.max(age_ms);
            }
            Stage::Running { cancelled, .. } => {
                self.running += 1;
                self.stuck += u64::from(*cancelled);
                self.longest_running_ms = self.longest_running_ms.max(age_ms);
            }
        }
    }

    /// Formats the metrics in the Prometheus text format, each with these labels: `[("instance", "flights")]`.
    pub fn to_prometheus(&self, labels: &[(&str, &str)]) -> String {
        let mut page = Page::new(labels);
        self.at_rest(&mut page);
        self.write_process(&mut page);
        page.into_text()
    }

    /// Adds the metrics of the catalog, which are valid even if no process runs it.
    pub fn at_rest(&self, page: &mut Page) {
        page.gauge("resources", "Resources of the catalog.", self.resources);
        page.by(
            "pending",
            "Pending resources by the priority of what asked for them.",
            "priority",
            &self.pending,
        );
        page.by(
            "pending_by_reason",
            "Pending resources by reason.",
            "reason",
            &self.pending_by_reason,
        );
        page.seconds(
            "oldest_pending_seconds",
            "How long one has been pending.",
            self.oldest_pending_ms * 1_000,
        );
        page.gauge("running", "Running invocations.", self.running);
        page.seconds(
            "longest_running_seconds",
            "How long one has been running.",
            self.longest_running_ms * 1_000,
        );
        page.gauge(
            "stuck",
            "Cancelled invocations that have not returned.",
            self.stuck,
        );
        page.by(
            "settled",
            "Settled resources by why they are.",
            "why",
            &self.settled,
        );
        page.gauge(
            "failed",
            "Resources whose last run failed by itself.",
            self.failed,
        );
        page.gauge(
            "blocked",
            "Resources not built because of the failure of another.",
            self.blocked,
        );
        page.gauge("paused", "Paused resources.", self.paused);
        page.gauge("retries", "Failures in a row, of all resources.", self.retries);
    }

    /// Adds the metrics that a process counts while it runs the catalog.
    pub fn write_process(&self, page: &mut Page) {
        page.counter(
            "invocations_started_total",
            "Invocations started.",
            self.invocations.started,
        );
        page.counter(
            "invocations_done_total",
            "Invocations that succeeded.",
            self.invocations.done,
        );
        page.counter(
            "invocations_failed_total",
            "Invocations that failed.",
            self.invocations.failed,
        );
        page.counter("commits_total", "Commits tried.", self.commits.tried);
        page.counter(
            "commits_failed_total",
            "Commits that failed.",
            self.commits.failed,
        );
        page.seconds(
            "commit_last_seconds",
            "How long the last commit took.",
            self.commits.last_us,
        );
        page.seconds(
            "commit_longest_seconds",
            "The longest commit of the last minute.",
            self.commits.longest_us,
        );
        page.seconds(
            "loop_lag_last_seconds",
            "How long the last call waited.",
            self.loop_lag.last_us,
        );
        page.seconds(
            "loop_lag_longest_seconds",
            "The longest such wait of the last minute.",
            self.loop_lag.longest_us,
        );
        let queues = self.waiting.queues();
        let lengths = |length: fn(QueueDepth) -> u64| {
            let named = queues
                .iter()
                .map(|(name, queue)| (name.to_string(), length(*queue)));
            named.collect::<BTreeMap<_, _>>()
        };
        page.by(
            "waiting",
            "What waits inside the controller, by queue.",
            "queue",
            &lengths(|queue| queue.now),
        );
        page.by(
            "waiting_most",
            "The longest that a queue has been.",
            "queue",
            &lengths(|queue| queue.most),
        );
        page.gauge(
            "watched_bytes",
            "Bytes held for those who watch.",
            self.waiting.watched_bytes,
        );
        if let Some(lease) = &self.lease {
            page.seconds(
                "lease_age_seconds",
                "How long ago the lease was renewed.",
                lease.age_ms * 1_000,
            );
            page.seconds(
                "lease_term_seconds",
                "How long a lease lasts.",
                lease.term_ms * 1_000,
            );
        }
        if let Some(last) = &self.last_convergence {
            let at = u64::try_from(last.at.0).unwrap_or(0);
            let help = "Time when everything was last settled.";
            page.seconds(
                "last_convergence_timestamp_seconds",
                help,
                at.saturating_mul(1_000),
            );
            let help = "Time that something had been pending or running until then.";
            page.seconds("last_convergence_duration_seconds", help, last.took_ms * 1_000);
        }
    }
}

/// Returns the name of a reason for being settled, as used in documents.
fn word(why: &Settled) -> String {
    if *why == Settled::Idle {
        return "idle".to_owned();
    }
    match serde_json::to_value(why) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(serde_json::Value::Object(fields)) => fields.keys().next().cloned().unwrap_or_default(),
        _ => String::new(),
    }
}

fn entry<'a>(counts: &'a mut BTreeMap<String, u64>, word: &str) -> &'a mut u64 {
    if !counts.contains_key(word) {
        counts.insert(word.to_owned(), 0);
    }
    counts.get_mut(word).expect("it was inserted")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_format_has_each_number_with_its_labels() {
        let stats = Stats {
            resources: 3,
            pending: BTreeMap::from([("normal".to_owned(), 2)]),
            ..Stats::default()
        };
        let text = stats.to_prometheus(&[("instance", "a \"b\"\n")]);
        assert!(text.contains("# TYPE watershed_resources gauge\n"));
        assert!(
            text.contains("\nwatershed_resources{instance=\"a \\\"b\\\"\\n\"} 3\n"),
            "{text}"
        );
        assert!(text.contains("watershed_pending{instance=\"a \\\"b\\\"\\n\",priority=\"normal\"} 2\n"));
        assert!(stats.to_prometheus(&[]).contains("\nwatershed_resources 3\n"));
        let stats = Stats {
            waiting: QueueDepths {
                calls: QueueDepth { now: 1, most: 7 },
                ..QueueDepths::default()
            },
            ..Stats::default()
        };
        let text = stats.to_prometheus(&[]);
        assert!(
            text.contains("\nwatershed_oldest_pending_seconds 0.000\n"),
            "{text}"
        );
        for line in ["waiting{queue=\"calls\"} 1", "waiting_most{queue=\"calls\"} 7"] {
            assert!(text.contains(&format!("\nwatershed_{line}\n")), "{text}");
        }
    }

    #[test]
    fn every_word_for_a_settled_resource_is_one_word() {
        let reference = watershed_core::Ref::completed("thing", "a");
        for (why, expected) in [
            (Settled::Idle, "idle"),
            (Settled::OnCycle, "on_cycle"),
            (Settled::WaitingForRef(reference), "waiting_for_ref"),
        ] {
            assert_eq!(word(&why), expected);
        }
    }
}
