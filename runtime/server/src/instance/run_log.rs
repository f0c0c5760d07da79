//! The log of what an instance does, for a process that serves many and shows none of them.

use watershed_api::documents::{Diagnostic, Event, Severity};

use super::Instance;
use super::observer::Observer;
use crate::report::Hidden;
use crate::report::problems::ReportedProblems;

/// The target of the log lines, by which a filter chooses them.
const TARGET: &str = "watershed::runs";

/// Logs mistakes and failures as warnings, what was done and what is mended as information, until the controller of an
/// instance has stopped. Cancel-safe: nothing is lost but log lines.
pub async fn log_runs(instance: &Instance) {
    let (before, revision) = (&instance.found.entries, instance.found.revision);
    let handle = instance.controller.handle();
    let mut observer = Observer::new(handle, before, revision, Hidden::Leave);
    let mut told = ReportedProblems::default();
    while let Some(events) = observer.next().await {
        for event in events {
            log_run(instance.name(), &event);
        }
        let problems = observer.take_problems().into_iter();
        for found in problems.filter_map(|problem| told.news(problem)) {
            log_problem(instance.name(), &found);
        }
        // What fails at its next time again is told again.
        if observer.is_settled() {
            told = ReportedProblems::default();
        }
    }
}

fn log_run(project: &str, event: &Event) {
    let Event::ResourceFinished {
        resource,
        work,
        run,
        about,
        ..
    } = event
    else {
        return;
    };
    let took_ms = run.duration_ms;
    if work.changes_outputs() {
        tracing::info!(target: TARGET, project, %resource, work = work.as_str(), took_ms, "done");
    } else if about.fixed {
        tracing::info!(target: TARGET, project, %resource, took_ms, "mended");
    }
}

fn log_problem(project: &str, found: &Diagnostic) {
    if found.severity != Severity::Error {
        return;
    }
    let (code, path, line) = (&found.code, &found.path, found.line);
    let resource = found.resource.as_ref().map(ToString::to_string);
    let resource = resource.unwrap_or_default();
    tracing::warn!(target: TARGET, project, resource, code, path, line, "{}", found.message);
}
