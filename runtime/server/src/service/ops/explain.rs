//! The reason why a resource is not running.

use watershed_api::documents::{Blocker, ExplainDocument, RootCause};
use watershed_api::http::actions;
use watershed_api::request::ExplainRequest;
use watershed_api::{Hint, Problem, hint};
use watershed_controller::RequestError;
use watershed_controller::resource::Target;

use crate::instance::refused;
use crate::out::Out;
use crate::report::explain::{Explanations, Inquiry};
use crate::report::names;
use crate::service::Principal;
use crate::service::place::{Place, early_end};

/// Explains why a resource is not running, or which root causes hold the project up.
pub(crate) async fn explain(
    place: &impl Place,
    _: &Principal,
    input: ExplainRequest,
    out: &Out,
) -> Result<ExplainDocument, Problem> {
    let entries = place.listing().await?.entries;
    out.sources(&entries).await;
    let about = input.name.as_deref();
    let about = about
        .map(|name| names::resolve_with_deleted(&entries, name))
        .transpose()?;
    let inquiry = Inquiry::new(place.project(), &entries, place.life());
    let mut said = Explanations::new();
    // Where nothing runs, what is stored is all that there is to know.
    if let Ok(running) = place.running() {
        for uid in inquiry.to_ask(about) {
            match running.instance.controller().explain(Target::Uid(uid)).await {
                Ok(explanation) => drop(said.insert(uid, explanation)),
                // Gone since: what was read of it is all there is.
                Err(RequestError::Refused(watershed_controller::Refusal::Unknown(_))) => {}
                Err(error) => return Err(refused(&error)),
            }
        }
    }
    let mut document = inquiry.answer(about, &said);
    let is_of_no_run = |cause: &&mut RootCause| matches!(cause.code, Blocker::NeverRun | Blocker::Stale);
    if let Some(ended) = early_end(place) {
        let reason = format!(
            "the last run ended before it could be noted, because {}",
            ended.message
        );
        for cause in document.causes.iter_mut().filter(is_of_no_run) {
            cause.message.clone_from(&reason);
            cause.hint = Some(format!("make room there, then {}", hint::operation("run", [])));
        }
    }
    for cause in &mut document.causes {
        let hint = cause.hint.as_deref().map(Hint::from);
        cause.actions = hint
            .map(|hint| actions(&hint, Some(&cause.resource)))
            .unwrap_or_default();
    }
    Ok(document)
}
