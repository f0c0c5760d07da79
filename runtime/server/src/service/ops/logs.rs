//! Logs of a resource's runs, and the output of programs.

use std::path::Path;

use watershed_api::documents::{LogLine, LogsDocument, OutputLine};
use watershed_api::request::LogsRequest;
use watershed_api::{Code, Problem};
use watershed_controller::Uid;

use super::output::{Last, output};
use crate::logs::{self, LogFollower};
use crate::out::Out;
use crate::report::document::Project;
use crate::report::explain::Life;
use crate::report::{Entry, names};
use crate::service::place::Place;
use crate::service::{Principal, reading};

/// Sends the log lines of a resource's runs, or the output of a program.
pub(crate) async fn logs(
    place: &impl Place,
    _: &Principal,
    input: LogsRequest,
    out: &Out,
) -> Result<LogsDocument, Problem> {
    let entries = place.listing().await?.entries;
    if let Some(part) = input.program
        && let Some(lines) = output(place, &entries, &input, part, out).await?
    {
        // What is known of secrets is taken out of the document at its end.
        place.secrets().await;
        return Ok(document(place.project(), Vec::new(), lines));
    }
    out.sources(&entries).await;
    let uid = writer(place, &entries, &input.name).await?;
    let folder = place.state().logs();
    // Before the files are read, so that nothing is written in between.
    let mut follower = LogFollower::begin(folder.clone(), uid, place.leaving());
    let lines = last_lines(&folder, uid, Last::of(&input)).await?;
    if !input.follow || place.life() == Life::AtRest {
        return Ok(document(place.project(), lines, Vec::new()));
    }
    follower.note_told(&lines);
    out.lines(lines).await;
    loop {
        // Both arms are cancel-safe: the follower keeps its place.
        let lines = tokio::select! {
            () = out.closed() => None,
            lines = follower.next() => lines,
        };
        match lines {
            Some(lines) => out.lines(lines).await,
            None => return Ok(document(place.project(), Vec::new(), Vec::new())),
        }
    }
}

/// Returns the uid of the resource with a typed name, even if the resource is being deleted or is gone.
///
/// # Errors
/// When there is and was no such resource, or there are several.
pub(crate) async fn writer(place: &impl Place, entries: &[Entry], name: &str) -> Result<Uid, Problem> {
    let unknown = match names::resolve_with_deleted(entries, name) {
        Ok(entry) => return Ok(entry.row.uid),
        Err(unknown) => unknown,
    };
    let all = place.past(None, reading::MOST_SEARCHED).await?;
    let runs = reading::runs_of_removed(all, Some(name), unknown.clone())?;
    runs.first().map(|run| run.uid).ok_or(unknown)
}

async fn last_lines(folder: &Path, uid: Uid, last: Last) -> Result<Vec<LogLine>, Problem> {
    let mut lines = read_lines(folder, uid, last.lines()).await?;
    if let Some(since) = last.since {
        lines.retain(|line| line.at >= since);
    }
    Ok(lines)
}

/// Reads the last log lines of a resource, oldest first.
///
/// # Errors
/// When the files can't be read.
pub(crate) async fn read_lines(folder: &Path, uid: Uid, limit: usize) -> Result<Vec<LogLine>, Problem> {
    let lines = logs::read(folder, uid.0, limit).await;
    lines.map_err(|error| {
        Problem::new(
            Code::Unavailable,
            format!("can't read the logs in `{}`: {error}", folder.display()),
        )
    })
}

fn document(project: &Project, lines: Vec<LogLine>, output: Vec<OutputLine>) -> LogsDocument {
    LogsDocument {
        schema: LogsDocument::SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        project: project.name.clone(),
        root: project.root.display().to_string(),
        environment: project.environment.clone(),
        lines,
        output,
    }
}
