//! Explanations for people: the root cause first, then a way to fix it.

use anstyle::Style;
use watershed_api::documents::{
    Blocker, ExplainDocument, Explained, Health, LastRun, Phase, ResourceName, RootCause, Time,
};

use super::palette::{BAD, DIM, GOOD, HINT, STRONG, WARN};
use super::paragraph::paragraph;
use super::units::{ago, ahead, count, duration};
use super::words;

/// Width of the labels at the beginning of lines, in columns.
const LABEL: usize = 9;

/// Renders the answer of `explain`, in lines of at most `width` columns if known.
pub(crate) fn explain(document: &ExplainDocument, now: Time, width: Option<u16>) -> String {
    let mut out = match &document.resource {
        Some(resource) => headline(resource, document.live, now, width),
        None => project_lines(document),
    };
    let about = document.resource.as_ref().map(Explained::id);
    let told: Vec<&RootCause> = document
        .causes
        .iter()
        .filter(|cause| !is_said(cause, about.as_ref()))
        .collect();
    for (number, cause) in told.iter().enumerate() {
        if number > 0 {
            out.push('\n');
        }
        out.push_str(&block(cause, about.as_ref(), now, width));
    }
    if document.more > 0 {
        out.push_str(&format!("\n{DIM}and {} more{DIM:#}\n", document.more));
    }
    out
}

/// Returns true if the first line already says the cause.
fn is_said(cause: &RootCause, about: Option<&ResourceName>) -> bool {
    about == Some(&cause.resource) && matches!(cause.code, Blocker::Idle | Blocker::Runs)
}

fn headline(resource: &Explained, live: bool, now: Time, width: Option<u16>) -> String {
    // Nobody looks at processes where no process runs the project.
    let is_last_known = !live && ["job", "service", "replica"].contains(&resource.kind.as_str());
    let (what, style) = match (resource.phase, resource.health) {
        (Phase::Running, _) => ("runs now", GOOD),
        (Phase::Pending, _) => ("waits", WARN),
        (Phase::Idle, Health::Ok) if is_last_known => ("was up to date", DIM),
        (Phase::Idle, Health::Ok) => ("is up to date", GOOD),
        (Phase::Idle, Health::Failed) => ("has failed", BAD),
        (Phase::Idle, Health::Blocked) => ("is blocked", WARN),
        (Phase::Idle, Health::Unready) => ("is not ready yet", WARN),
        (Phase::Idle, Health::Paused) => ("is paused", WARN),
        (Phase::Idle, Health::NeverBuilt) => ("was not built yet", DIM),
        (Phase::Idle, Health::Stale) => ("is behind", WARN),
        (Phase::Idle, Health::Unsupported) => ("can't be run here", DIM),
    };
    let mut out = format!(
        "{STRONG}{}/{}{STRONG:#} {style}{what}{style:#}\n",
        resource.kind, resource.name
    );
    let mut line = |label: &str, text: String| out.push_str(&labelled(label, DIM, &text, DIM, width));
    if is_last_known {
        line("known", super::programs::LAST_KNOWN.to_owned());
    }
    if let Some(reason) = resource.reason {
        let causes = words::told_causes(&resource.cause).join(", ");
        line("asked", words::reason_and_causes(reason, &causes));
    }
    if let Some(chain) = chain_of(resource) {
        line("why", chain);
    }
    if let Some(run) = &resource.last_run {
        line("last run", ran(run, now));
    }
    if let Some(success) = resource.last_success_at
        && matches!(resource.health, Health::Failed | Health::Blocked | Health::Stale)
    {
        line("output", format!("last good build kept ({})", ago(success, now)));
    }
    if let Some(next) = resource.next_run_at {
        let condition = if live {
            ""
        } else {
            ", if a process runs the project then"
        };
        line("next run", ahead(next, now) + condition);
    }
    out
}

/// Renders the outcome of a run, its time and its duration.
pub(super) fn ran(run: &LastRun, now: Time) -> String {
    let (when, took) = (ago(run.started_at, now), duration(run.duration_ms));
    format!("{} {when}, took {took}", run.outcome.as_str())
}

/// Renders the causal chain of a resource's awaited, current or last run; none for a finished run of an unhealthy
/// resource.
///
/// Where something is wrong that comes first, and the chain is left to `history`.
fn chain_of(resource: &Explained) -> Option<String> {
    let links = match (&resource.reason, &resource.last_run) {
        (Some(_), _) => &resource.chain,
        (None, Some(run)) if resource.health == Health::Ok => &run.chain,
        _ => return None,
    };
    let tells = links.len() > 1 || links.iter().any(|link| link.origin.is_some());
    tells
        .then(|| words::chain(links))
        .filter(|chain| !chain.is_empty())
}

fn project_lines(document: &ExplainDocument) -> String {
    let name = format!(
        "{STRONG}{}{STRONG:#} ({})",
        document.project, document.environment
    );
    let number = document.causes.len() as u64 + document.more;
    if number == 0 {
        return format!("{name}: {GOOD}nothing is in the way{GOOD:#}\n");
    }
    let is_trouble = |cause: &&RootCause| !matches!(cause.code, Blocker::Runs);
    let troubles = document.causes.iter().filter(is_trouble).count() as u64 + document.more;
    match troubles {
        0 => format!("{name}: {GOOD}{}{GOOD:#}\n", runs(number)),
        troubles => format!("{name}: {WARN}{}{WARN:#}\n", count(troubles, "cause")),
    }
}

fn runs(number: u64) -> String {
    let verb = if number == 1 { "runs" } else { "run" };
    format!("{} {verb}", count(number, "resource"))
}

/// Renders one cause: the resource, the reason, the place, and the hint.
fn block(cause: &RootCause, about: Option<&ResourceName>, now: Time, width: Option<u16>) -> String {
    let style = match cause.code {
        Blocker::Failed | Blocker::OnCycle | Blocker::MissingRef | Blocker::Unreadable => BAD,
        Blocker::Idle | Blocker::Runs | Blocker::Next => GOOD,
        _ => WARN,
    };
    let whose = match about {
        Some(about) if *about == cause.resource => String::new(),
        _ => format!("{}: ", cause.resource),
    };
    let mut message = format!("{whose}{}", cause.message);
    if let Some(until) = cause.until {
        let what = match cause.code {
            Blocker::Unready | Blocker::Retrying if cause.resource.kind == "service" => "the next start is",
            Blocker::Retrying => "it is tried again",
            _ => "it is run again",
        };
        message.push_str(&format!("; {what} {}", ahead(until, now)));
    }
    let mut out = labelled("cause", style, &message, Style::new(), width);
    if let Some(error) = &cause.error {
        out.push_str(&labelled("", style, &error.message, BAD, width));
    }
    if let Some(at) = &cause.at {
        out.push_str(&labelled("at", DIM, &at.to_string(), Style::new(), width));
    }
    if cause.keeps_back > 0 {
        let kept = format!("{} from being built", count(cause.keeps_back, "resource"));
        out.push_str(&labelled("keeps", DIM, &kept, Style::new(), width));
    }
    let hint = cause.error.as_ref().and_then(|error| error.hint.as_ref());
    if let Some(hint) = hint {
        out.push_str(&labelled("hint", HINT, hint, Style::new(), width));
    }
    if let Some(next) = &cause.hint {
        out.push_str(&labelled("next", HINT, next, Style::new(), width));
    }
    out
}

pub(super) fn labelled(label: &str, style: Style, text: &str, of_text: Style, width: Option<u16>) -> String {
    let begin = format!("  {style}{label:<LABEL$}{style:#}");
    paragraph(&begin, 2 + LABEL, text, of_text, width)
}
