//! Pages of the service itself: instances, probes, the OpenAPI document, and documentation of codes.

use std::time::Duration;

use axum::response::Response;
use futures::future::join_all;
use uuid::Uuid;
use watershed_api::documents::Trust;
use watershed_api::http::{InstancesPage, openapi};
use watershed_api::operations::Role;
use watershed_api::{Code, Problem};
use watershed_core::Uid;

use super::answers;
use super::caller::Caller;
use super::scrape;
use super::service::{Served, Service};
use super::visibility::Visibility;

/// The documentation of all diagnostic codes.
const DIAGNOSTICS: &str = include_str!("../../../../docs/diagnostics.md");

/// Time limit in which the loop of an instance answers the liveness probe.
const LOOP_WITHIN: Duration = Duration::from_secs(5);

/// Lists the caller's instances with their states.
pub(super) async fn instances(service: &Service, caller: &Caller) -> Response {
    answers::json(&InstancesPage {
        schema: InstancesPage::SCHEMA.to_owned(),
        instances: service.entries(caller).await,
    })
}

/// Returns the OpenAPI document, with the service's path prefix.
pub(super) fn description(service: &Service) -> Response {
    let mut document = openapi::document();
    if !service.base().is_empty() {
        document["servers"] = serde_json::json!([{ "url": service.base() }]);
    }
    answers::json(&document)
}

/// Returns the documentation of a diagnostic code.
///
/// # Errors
/// `unknown-name`.
pub(super) fn problem(code: &str) -> Result<Response, Problem> {
    let unknown = || Problem::new(Code::UnknownName, format!("there is no code `{code}`"));
    let section = section(code).ok_or_else(unknown)?;
    Ok(answers::of_type(
        "text/markdown; charset=utf-8",
        section.to_owned(),
    ))
}

/// Finds the documentation of a diagnostic code; none for an unknown code.
fn section(code: &str) -> Option<&'static str> {
    let is_code = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if code.is_empty() || !code.bytes().all(is_code) {
        return None;
    }
    let heading = format!("\n### {code}\n");
    let begin = DIAGNOSTICS.find(&heading)? + 1;
    let rest = &DIAGNOSTICS[begin..];
    let end = rest[3..]
        .find("\n## ")
        .into_iter()
        .chain(rest[3..].find("\n### "))
        .min();
    Some(rest[..end.map_or(rest.len(), |end| end + 3)].trim_end())
}

/// Answers the liveness probe: live if the loop of every open instance answers in time.
///
/// # Errors
/// `unavailable`.
pub(super) async fn live(service: &Service) -> Result<Response, Problem> {
    let asked = service.all().into_iter().filter_map(|(_, served)| match served {
        Served::Open(open) => Some(async move {
            // The loop looks for a resource that does not exist: a refusal is an answer too.
            let explained = open.instance.controller().explain(Uid(Uuid::nil()));
            tokio::time::timeout(LOOP_WITHIN, explained).await.is_ok()
        }),
        Served::Opening | Served::Failed(_) => None,
    });
    if join_all(asked).await.contains(&false) {
        let message = format!("an instance did not answer within {} s", LOOP_WITHIN.as_secs());
        return Err(Problem::new(Code::Unavailable, message).hint("start the service again"));
    }
    Ok(answers::of_type("text/plain; charset=utf-8", "live\n".to_owned()))
}

/// Answers the readiness probe: ready if each instance is open or has failed, and the service is not stopping.
/// `is_verbose` adds each instance with its failure, which needs a role on all instances, as names do.
///
/// # Errors
/// `stopping`, `unavailable` while an instance is being opened, and `not-allowed`.
pub(super) fn ready(
    service: &Service,
    caller: Option<&Caller>,
    is_verbose: bool,
) -> Result<Response, Problem> {
    let everywhere = caller.and_then(|caller| caller.grants().everywhere());
    if is_verbose && everywhere.is_none() {
        let message = "`verbose` needs a role on all instances";
        return Err(Problem::new(Code::NotAllowed, message).hint("an admin of the service gives roles"));
    }
    if service.stopping().is_cancelled() {
        return Err(Problem::new(Code::Stopping, "the service is about to stop"));
    }
    let all = service.all();
    let mut opening = all.iter().filter(|(_, served)| matches!(served, Served::Opening));
    if let Some((name, _)) = opening.next() {
        let message = match (everywhere, opening.count()) {
            (None, _) => "instances are being opened".to_owned(),
            (_, 0) => format!("the instance `{name}` is being opened"),
            (_, more) => format!("the instance `{name}` and {more} more are being opened"),
        };
        return Err(Problem::new(Code::Unavailable, message));
    }
    let mut page = "ready\n".to_owned();
    for (name, served) in all.iter().filter(|_| is_verbose) {
        page.push_str(&match served {
            Served::Failed(problem) => {
                let visibility = everywhere.map(Visibility::of);
                let problem = visibility.map(|visibility| visibility.problem(problem.clone()));
                let message = problem.map(|problem| problem.message).unwrap_or_default();
                format!("{name}: failed: {message}\n")
            }
            Served::Open(open) => {
                let trust = open.instance.trust();
                let is_edited = trust == Trust::Full && open.instance.allows_remote_edit();
                let edited = if is_edited { ", remote edit" } else { "" };
                format!("{name}: open, {}{edited}\n", trust.as_str())
            }
            Served::Opening => format!("{name}: being opened\n"),
        });
    }
    Ok(answers::of_type("text/plain; charset=utf-8", page))
}

/// Returns counts of the service itself, in Prometheus' text format.
///
/// # Errors
/// `not-allowed`, without the role `read` on all instances.
pub(super) async fn metrics(
    service: &Service,
    caller: &Caller,
    query: Option<&str>,
) -> Result<Response, Problem> {
    if !caller.roles().contains(&Role::Read) {
        let problem = Problem::new(Code::NotAllowed, "this needs the role `read` on all instances");
        return Err(problem.hint("an admin of the service gives roles"));
    }
    let has_resources = scrape::asks_for_resources(query)?;
    let mut page =
        "# HELP watershed_http_refused_total Requests, connections and streams that passed a limit.\n\
                    # TYPE watershed_http_refused_total counter\n"
            .to_owned();
    for (limit, number) in service.gate().counts() {
        page.push_str(&format!(
            "watershed_http_refused_total{{limit=\"{limit}\"}} {number}\n"
        ));
    }
    page.push_str(&service.meters().page());
    page.push_str(&scrape::instances(service, has_resources).await);
    Ok(answers::of_type("text/plain; version=0.0.4; charset=utf-8", page))
}

/// Returns the home page of a program that was built without the console.
#[cfg(not(feature = "console"))]
pub(super) fn welcome(service: &Service, caller: &Caller) -> Response {
    let base = service.base();
    let instances: Vec<String> = service
        .all()
        .iter()
        .filter(|(name, _)| caller.on(name).is_some())
        .map(|(name, _)| format!("{base}/v1/instances/{name}/resources"))
        .collect();
    let page = format!(
        "Watershed answers here.\n\n\
         The projects:        {base}/v1/instances\n\
         All paths, OpenAPI:  {base}/openapi.json\n\
         Their resources:\n  {}\n\n\
         This program was built without the console, the pages for people.\n\
         Released packages have it, and docs/console.md says how to build it.\n",
        instances.join("\n  ")
    );
    answers::of_type("text/plain; charset=utf-8", page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_a_problem_has_its_section() {
        for code in Code::all() {
            let section = section(code.name());
            assert!(section.is_some_and(|text| text.starts_with("### ")), "{code}");
        }
        for wrong in ["", "nonsense", "../code", "unknown-name\n", "\n"] {
            assert!(section(wrong).is_none(), "{wrong:?}");
        }
    }
}
