//! Meters of the HTTP API: how often each route answered with each status, and how long that took.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::Method;
use watershed_api::http::openapi::INSTANCE;
use watershed_locks::Unpoisoned as _;

/// Upper bounds of the histogram's buckets, in milliseconds: from an answer out of memory to a waited-for build.
const BOUNDS_MS: [u64; 8] = [5, 25, 100, 250, 1_000, 2_500, 10_000, 60_000];
/// The methods that have series of their own; the last one stands for all others.
const METHODS: [&str; 8] = [
    "GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "other",
];

/// The route by which an answer is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MeteredRoute {
    /// A route of an instance, by its pattern below the instance.
    Instance(&'static str),
    /// A route of the service itself.
    Service(&'static str),
    /// No route was found.
    None,
}

impl fmt::Display for MeteredRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instance(path) => write!(f, "{INSTANCE}{path}"),
            Self::Service(path) => f.write_str(path),
            Self::None => f.write_str("none"),
        }
    }
}

/// Returns a method by the name under which answers to it are counted.
pub(super) fn known(method: &Method) -> &'static str {
    let [known @ .., other] = METHODS;
    known.into_iter().find(|known| method == known).unwrap_or(other)
}

/// Meters of a service. Clones share them.
///
/// Routes are those of the table, methods and statuses those of HTTP, so that their number is bounded whatever is asked.
#[derive(Debug, Clone, Default)]
pub(super) struct Meters(Arc<Mutex<BTreeMap<Series, Taken>>>);

/// Route, method and status of answers.
type Series = (MeteredRoute, &'static str, u16);

#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    /// Number of answers in each bucket alone; the last one has those beyond all bounds.
    buckets: [u64; BOUNDS_MS.len() + 1],
    micros: u64,
}

impl Meters {
    /// Counts an answer. Costs no allocation, but for the first answer of its kind.
    pub(super) fn count(&self, method: &'static str, route: MeteredRoute, status: u16, took: Duration) {
        let key = (route, method, status);
        let millis = took.as_millis();
        let bucket = BOUNDS_MS.iter().position(|bound| millis <= u128::from(*bound));
        let mut all = self.0.lock().unpoisoned();
        let taken = all.entry(key).or_default();
        taken.buckets[bucket.unwrap_or(BOUNDS_MS.len())] += 1;
        taken.micros = taken
            .micros
            .saturating_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    /// Returns the histogram in Prometheus' text format.
    pub(super) fn page(&self) -> String {
        let name = "watershed_http_request_duration_seconds";
        let mut page = format!(
            "# HELP {name} Time from a request's head to its answer's head.\n# TYPE {name} histogram\n"
        );
        for ((route, method, status), taken) in &*self.0.lock().unpoisoned() {
            let labels = format!("method=\"{method}\",route=\"{route}\",code=\"{status}\"");
            let mut sum = 0;
            for (bound, number) in BOUNDS_MS.iter().zip(taken.buckets) {
                sum += number;
                let seconds = format!("{}.{:03}", bound / 1_000, bound % 1_000);
                // Writing to a string does not fail.
                let _ = writeln!(page, "{name}_bucket{{{labels},le=\"{seconds}\"}} {sum}");
            }
            sum += taken.buckets[BOUNDS_MS.len()];
            let seconds = format!("{}.{:06}", taken.micros / 1_000_000, taken.micros % 1_000_000);
            let _ = writeln!(page, "{name}_bucket{{{labels},le=\"+Inf\"}} {sum}");
            let _ = writeln!(page, "{name}_sum{{{labels}}} {seconds}");
            let _ = writeln!(page, "{name}_count{{{labels}}} {sum}");
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s_api30_answers_are_counted_by_route_method_and_status_and_what_is_made_up_makes_no_series() {
        let meters = Meters::default();
        for took in [1, 30, 120_000] {
            meters.count(
                "GET",
                MeteredRoute::Service("/livez"),
                200,
                Duration::from_millis(took),
            );
        }
        for made_up in 0..100 {
            let made_up = Method::from_bytes(format!("METHOD{made_up}").as_bytes()).unwrap();
            meters.count(known(&made_up), MeteredRoute::None, 404, Duration::ZERO);
        }
        let page = meters.page();
        let line = |text: &str| assert!(page.lines().any(|line| line == text), "{text}\n{page}");
        let of = "watershed_http_request_duration_seconds";
        line(&format!(
            "{of}_bucket{{method=\"GET\",route=\"/livez\",code=\"200\",le=\"0.005\"}} 1"
        ));
        line(&format!(
            "{of}_bucket{{method=\"GET\",route=\"/livez\",code=\"200\",le=\"0.100\"}} 2"
        ));
        line(&format!(
            "{of}_bucket{{method=\"GET\",route=\"/livez\",code=\"200\",le=\"+Inf\"}} 3"
        ));
        line(&format!(
            "{of}_sum{{method=\"GET\",route=\"/livez\",code=\"200\"}} 120.031000"
        ));
        line(&format!(
            "{of}_count{{method=\"other\",route=\"none\",code=\"404\"}} 100"
        ));
    }
}
