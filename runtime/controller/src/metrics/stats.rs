//! Numbers for whoever operates a controller, as a value, as JSON and in Prometheus' text format.

use std::collections::BTreeMap;

use serde::Serialize;
use watershed_core::{ErrorKind, Revision, Row, Settled, Stage, Status, Timestamp, Trigger};

pub use crate::metrics::prometheus::{Page, seconds};
pub use crate::metrics::queue_depth::{QueueDepth, QueueDepths};

/// The numbers of a controller at one moment; see [`Handle::stats`](crate::Handle::stats).
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
    /// The catalog's revision.
    pub revision: Revision,
    /// All resources, deleted ones included whose delete is unfinished.
    pub resources: u64,
    /// Pending ones, by the priority of what asked for them, which says who starts first: see
    /// [`Priority`](crate::history::Priority).
    pub pending: BTreeMap<String, u64>,
    /// Pending ones, by the reason that they were asked for.
    pub pending_by_reason: BTreeMap<String, u64>,
    /// For how long the one has been pending that is so for longest.
    pub oldest_pending_ms: u64,
    /// Running invocations.
    pub running: u64,
    /// For how long the oldest of them runs.
    pub longest_running_ms: u64,
    /// Those of them that were cancelled and have not returned.
    pub stuck: u64,
    /// Settled ones, by why they are settled: `idle`, `failed`, `retrying`, `paused` and so on.
    pub settled: BTreeMap<String, u64>,
    /// Resources whose last run failed by itself, whatever they do now.
    pub failed: u64,
    /// Resources whose last run gave up because of the failure of a ref.
    pub blocked: u64,
    /// Resources whose reconciles are held back.
    pub paused: u64,
    /// Failures in a row, of all resources together.
    pub retries: u64,
    /// Invocations since the controller started.
    pub invocations: Invocations,
    /// Commits since the controller started.
    pub commits: Commits,
    /// The time that calls waited for the loop.
    pub loop_lag: Lag,
    /// The queues inside the controller, where this process holds the instance.
    pub waiting: QueueDepths,
    /// The lease, if it can run out.
    pub lease: Option<LeaseAge>,
    /// The time at which everything was last settled.
    pub last_convergence: Option<Convergence>,
}

/// Counts of invocations.
///
/// Part of [`Stats`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Invocations {
    /// Started.
    pub started: u64,
    /// Returned an outcome.
    pub done: u64,
    /// Returned an error, or panicked.
    pub failed: u64,
}

/// Counts and times of commits.
///
/// Part of [`Stats`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Commits {
    /// Tried.
    pub tried: u64,
    /// Failed; they were tried again.
    pub failed: u64,
    /// The time that the last one took, in microseconds.
    pub last_us: u64,
    /// The longest of the last minute.
    pub longest_us: u64,
}

/// The time that calls waited.
///
/// Part of [`Stats`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Lag {
    /// The last one, in microseconds.
    pub last_us: u64,
    /// The longest of the last minute.
    pub longest_us: u64,
}

/// A lease that can run out.
///
/// Part of [`Stats`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct LeaseAge {
    /// The time since it was renewed.
    pub age_ms: u64,
    /// The time that it lasts.
    pub term_ms: u64,
}

/// A time when everything had settled.
///
/// Part of [`Stats`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Convergence {
    /// The time.
    pub at: Timestamp,
    /// The time that something had been pending or running until then.
    pub took_ms: u64,
}

impl Stats {
    /// Counts one more resource, which stands as it does for so many milliseconds. For the numbers of a catalog that
    /// nobody runs.
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

    /// The numbers in Prometheus' text format, each with the given labels: `[("instance", "flights")]`.
    pub fn to_prometheus(&self, labels: &[(&str, &str)]) -> String {
        let mut page = Page::new(labels);
        self.at_rest(&mut page);
        self.write_process(&mut page);
        page.into_text()
    }

    /// Adds the numbers of the catalog, which are as true where nobody runs it.
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

    /// Adds the numbers that a process counts while it runs the catalog.
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

/// The word for why something is settled, as documents have it.
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
