//! The status of resources.

use watershed_api::documents::{Diagnostic, EndedEarly, RunDocument, Severity};
use watershed_api::request::StatusRequest;
use watershed_api::{Code, Problem, hint};

use crate::out::Out;
use crate::report::Hidden;
use crate::report::explain::Life;
use crate::report::kinds::{checks, programs};
use crate::report::messages;
use crate::service::Principal;
use crate::service::place::{Place, early_end};
use crate::service::reading::Reading;

/// Returns the state of resources: of those named, those selected, or all.
pub(crate) async fn status(
    place: &impl Place,
    _: &Principal,
    input: StatusRequest,
    _: &Out,
) -> Result<RunDocument, Problem> {
    let entries = place.listing().await?.entries;
    let reading = Reading::new(place.project(), &entries);
    let mut document = reading.status(&input.names, &input.selection, Hidden::unless(input.all))?;
    messages::show_undelivered(&mut document, &entries);
    if place.life() == Life::AtRest {
        programs::say_last_known(&mut document);
    }
    // What was under way is not in the catalog, which may look sound without it.
    if let Some(ended) = early_end(place) {
        document.diagnostics.insert(0, unnoted(&ended));
        document.exit_code = document.exit_code.max(Code::NoSpace.exit().code());
    }
    if !input.names.is_empty() {
        checks::show_in(&mut document, &entries, &place.state().programs());
    }
    Ok(document)
}

/// Returns the finding that the last process ended before it could note what it did.
fn unnoted(ended: &EndedEarly) -> Diagnostic {
    Diagnostic {
        severity: Severity::Error,
        code: Code::NoSpace.name().to_owned(),
        path: String::new(),
        line: 0,
        column: 0,
        end_line: 0,
        end_column: 0,
        message: format!(
            "the last run ended before it could be noted, because {}",
            ended.message
        ),
        hint: Some(format!("make room there, then {}", hint::operation("run", []))),
        notes: Vec::new(),
        details: None,
        resource: None,
        related: Vec::new(),
    }
}
