//! The status of resources.

use watershed_api::Problem;
use watershed_api::documents::RunDocument;
use watershed_api::request::StatusRequest;

use crate::out::Out;
use crate::report::Hidden;
use crate::report::explain::Life;
use crate::report::kinds::{checks, programs};
use crate::service::Principal;
use crate::service::place::Place;
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
    if place.life() == Life::AtRest {
        programs::say_last_known(&mut document);
    }
    if !input.names.is_empty() {
        checks::show_in(&mut document, &entries, &place.state().programs());
    }
    Ok(document)
}
