//! Fetches of an instance's files from their source, asked for by callers and by signed webhooks.

use std::sync::Arc;

use axum::body::Body;
use axum::http::Method;
use axum::http::request::Parts;
use axum::response::Response;
use watershed_api::http::Checkout;
use watershed_api::http::routes::Own;
use watershed_api::http::{Does, Route};
use watershed_api::{Code, Problem};
use watershed_callers::{Grant, Grants, Level};

use super::answers::{self, Unanswered};
use super::bearer::unauthenticated;
use super::body::read;
use super::caller::Caller;
use super::proxies::Client;
use super::service::Service;
use super::trail::Trail;
use super::words;
use crate::instance::Instance;

/// The header with the signature of a webhook.
pub(super) const SIGNATURE: &str = "x-hub-signature-256";
/// The end of the path of fetches.
const PATH: &str = "/checkout";
/// The name of a caller whose webhook is signed.
const WEBHOOK: &str = "webhook";

/// Returns true for a request that only a signature can authenticate.
pub(super) fn is_hook(parts: &Parts) -> bool {
    let below = parts.uri.path().strip_prefix("/v1/instances/");
    let instance = below.and_then(|path| path.strip_suffix(PATH));
    parts.method == Method::POST
        && parts.headers.contains_key(SIGNATURE)
        && instance.is_some_and(|name| !name.is_empty() && !name.contains('/'))
}

/// Reads a webhook and returns its caller, who may have the files fetched and nothing else.
///
/// # Errors
/// `unauthenticated`, the same for a wrong signature and for an instance that takes no webhooks.
pub(super) async fn caller_of_hook(
    service: &Service,
    route: &Route,
    parts: &Parts,
    instance: &str,
    body: Body,
) -> Result<Caller, Unanswered> {
    if !matches!(route.does, Does::Own(Own::Checkout)) || !is_hook(parts) {
        return Err(unauthenticated().into());
    }
    let body = read(body, service.gate()).await?;
    let mut given = parts.headers.get_all(SIGNATURE).iter();
    let (signature, more) = (given.next().and_then(|it| it.to_str().ok()), given.next());
    let source = service.source(instance);
    let is_signed = match (source, signature, more) {
        (Some(source), Some(signature), None) => source.is_signed(&body, signature),
        _ => false,
    };
    if is_signed {
        let grants = Grants::one(instance, Grant::new(Level::Operate));
        return Ok(Caller::with(WEBHOOK, grants));
    }
    let client = parts.extensions.get::<Client>();
    let counted = service
        .gate()
        .failed_sign_in(client.and_then(|client| client.address), service.base());
    match counted {
        Ok(()) => Err(unauthenticated().into()),
        Err(_) => Err(Problem::new(Code::Busy, "too many webhooks were signed wrongly").into()),
    }
}

/// The instance whose files are fetched.
pub(super) struct Place<'p> {
    /// The service that received the call.
    pub(super) service: &'p Service,
    /// Name of the instance.
    pub(super) name: &'p str,
    /// The open instance.
    pub(super) instance: &'p Arc<Instance>,
}

/// Fetches the files of a call's instance, and has them compiled.
///
/// # Errors
/// `wrong-state` where the files are those of a folder, `outcome-unknown` if the fetch takes too long for an answer; it goes
/// on then.
pub(super) async fn checkout(
    place: Place<'_>,
    caller: &Caller,
    trail: &Trail,
    body: Body,
) -> Result<Response, Unanswered> {
    let asked = words::body(&read(body, place.service.gate()).await?)?;
    if !asked.as_object().is_some_and(serde_json::Map::is_empty) {
        let message = "a checkout takes nothing: repository and revision are those of the configuration";
        return Err(Problem::new(Code::BadArgument, message).into());
    }
    let source = place.service.source(place.name).ok_or_else(|| {
        let message = format!("the files of `{}` come from no repository", place.name);
        Problem::new(Code::WrongState, message)
            .hint("a service fetches them with `git` in the instance's configuration")
    })?;
    trail.begin().await?;
    let instance = Arc::clone(place.instance);
    let author: Arc<str> = caller.origin().into();
    instance.origins.note(&author);
    // A caller who leaves, or an answer that takes too long, ends nothing.
    let fetching = tokio::spawn(async move {
        let fetched = source.checkout().await?;
        if fetched.is_changed {
            instance.parse_all(author).await?;
        }
        Ok::<_, Problem>(fetched)
    });
    let within = place.service.gate().limits().answer_within;
    let fetched = tokio::time::timeout(within, fetching).await.map_err(|_| {
        let message = format!(
            "there was no answer within {} s; the fetch goes on",
            within.as_secs()
        );
        Problem::new(Code::OutcomeUnknown, message)
    })?;
    let fetched = fetched.map_err(|_| Problem::new(Code::Defect, "the fetch has panicked"))??;
    Ok(answers::json(&Checkout {
        schema: Checkout::SCHEMA.to_owned(),
        commit: fetched.commit,
        is_changed: fetched.is_changed,
    }))
}

#[cfg(test)]
mod tests {
    use watershed_api::http::ROUTES;
    use watershed_api::operations::Role;

    use super::*;

    #[test]
    fn s_api46_a_signature_stands_for_a_token_at_one_path_alone() {
        let is_hook_at = |method: &str, path: &str| {
            let request = axum::http::Request::builder().method(method).uri(path);
            let (parts, ()) = request
                .header(SIGNATURE, "sha256=00")
                .body(())
                .unwrap()
                .into_parts();
            is_hook(&parts)
        };
        assert!(is_hook_at("POST", "/v1/instances/ops/checkout"));
        for (method, path) in [
            ("GET", "/v1/instances/ops/checkout"),
            ("POST", "/v1/instances/ops/files/checkout"),
            ("POST", "/v1/instances//checkout"),
            ("DELETE", "/v1/tokens/checkout"),
            ("GET", "/ui/checkout"),
            ("POST", "/v1/instances/ops/run"),
        ] {
            assert!(!is_hook_at(method, path), "{method} {path}");
        }
    }

    #[test]
    fn a_webhook_may_do_what_the_path_needs_and_its_path_is_the_only_one() {
        let own: Vec<&Route> = ROUTES.iter().filter(|route| route.path.ends_with(PATH)).collect();
        assert_eq!(own.len(), 1);
        assert_eq!(own[0].role, Role::Operate);
        assert!(matches!(own[0].does, Does::Own(Own::Checkout)));
    }
}
