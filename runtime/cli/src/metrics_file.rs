//! The file that `run --metrics-file` writes for the node exporter.

use std::path::Path;
use std::time::Duration;

use watershed_api::Exit;
use watershed_api::documents::Time;
use watershed_api::operations::ops;
use watershed_api::request::NoInput;
use watershed_controller::stats::Page;

use super::args::Shared;
use super::ask::output;
use super::failure::Failure;
use super::project::Location;
use watershed::program::Readers;

/// Writes the metrics of the project after a run, and the run's own, to a file. A relative path starts from `here`.
///
/// # Errors
/// When the project can't be looked at, or the file can't be written; what stood there stays.
pub(super) fn write(
    shared: &Shared,
    location: &Location,
    here: &Path,
    file: &Path,
    exit: Exit,
    took: Duration,
) -> Result<(), Failure> {
    let mut text = super::block_on(numbers(shared, location))?;
    text.push_str(&run_metrics(location, exit, took));
    watershed::program::replace(&here.join(file), &text, Readers::All).map_err(|error| Failure {
        exit: Exit::NotNow,
        error: anyhow::Error::new(error).context(format!("can't write `{}`", file.display())),
        hint: None,
    })
}

/// Returns the page of `stats --format prometheus`; empty where nothing was ever run.
async fn numbers(shared: &Shared, location: &Location) -> Result<String, Failure> {
    if !location.state.exists() {
        return Ok(String::new());
    }
    let page = output::<ops::Prometheus>(shared, location, NoInput {}).await?;
    Ok(page.0)
}

/// Returns the metrics of the run itself.
fn run_metrics(location: &Location, exit: Exit, took: Duration) -> String {
    let name = location
        .root
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let labels = [
        ("project", name.as_deref().unwrap_or_default()),
        ("environment", location.environment.as_str()),
    ];
    let mut page = Page::new(&labels);
    page.gauge(
        "run_exit_code",
        "Exit code of the last `watershed run`.",
        u64::from(exit.code()),
    );
    let ended = u64::try_from(Time::now().millis()).unwrap_or(0);
    let help = "Time when the last `watershed run` ended.";
    page.seconds("run_timestamp_seconds", help, ended.saturating_mul(1_000));
    let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    page.seconds(
        "run_duration_seconds",
        "Duration of the last `watershed run`.",
        took,
    );
    page.into_text()
}
