//! The page of numbers for Prometheus: of the HTTP API, and of the controllers of all instances.

use watershed_api::{Code, Problem};
use watershed_controller::stats::Page;

use super::service::Service;
use crate::report::metrics::UP;
use crate::service::ops::stats::add_numbers;

/// Reads the query of the page: true for families of single resources too.
///
/// # Errors
/// `bad-argument`, for all but `resources=1`.
pub(super) fn asks_for_resources(query: Option<&str>) -> Result<bool, Problem> {
    match query {
        None | Some("" | "resources=0") => Ok(false),
        Some("resources=1") => Ok(true),
        Some(other) => Err(Problem::new(
            Code::BadArgument,
            format!("`{other}` is no question of this path"),
        )
        .hint("`resources=1` adds families of single resources")),
    }
}

/// Returns the numbers of all open instances: of their controllers, of callers' statements and of SQL clients.
pub(super) async fn instances(service: &Service, has_resources: bool) -> String {
    let mut page = Page::default();
    for (name, _) in service.all() {
        let Ok(open) = service.find(&name) else {
            // Whose project can't be opened has this number alone.
            page.set_labels(&[("instance", &name)]);
            page.gauge("up", UP, 0);
            continue;
        };
        let instance = &open.instance;
        let readers = instance.slots.readers();
        page.set_labels(&[("instance", &name)]);
        page.gauge(
            "readers_running",
            "Statements of callers that run.",
            readers.running as u64,
        );
        let help = "Statements of callers that wait for a slot.";
        page.gauge("readers_waiting", help, readers.waiting as u64);
        let help = "Statements refused because too many waited.";
        page.counter("readers_refused_total", help, readers.refused);
        let project = &instance.project;
        page.set_labels(&[
            ("instance", &name),
            ("project", &project.name),
            ("environment", &project.environment),
        ]);
        add_numbers(&mut page, instance, has_resources).await;
    }
    #[cfg(feature = "otel")]
    if let Some(open) = service.all().iter().find_map(|(name, _)| service.find(name).ok()) {
        // All instances of a process share its traces.
        page.set_labels(&[]);
        open.instance.origins.add_numbers(&mut page);
    }
    #[cfg(feature = "pgwire")]
    service.sessions().add_numbers(&mut page);
    page.into_text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s_api30_single_resources_are_shown_where_they_are_asked_for() {
        assert!(asks_for_resources(Some("resources=1")).is_ok_and(|asked| asked));
        assert!(asks_for_resources(None).is_ok_and(|asked| !asked));
        assert!(asks_for_resources(Some("resource=1")).is_err());
    }
}
