//! The graph of resources.

use watershed_api::Problem;
use watershed_api::documents::GraphDocument;
use watershed_api::request::GraphRequest;

use crate::out::Out;
use crate::report::Hidden;
use crate::service::Principal;
use crate::service::place::Place;
use crate::service::reading::Reading;

/// Returns the graph of resources and their refs: around one resource, of the selected ones, or of all.
pub(crate) async fn graph(
    place: &impl Place,
    _: &Principal,
    input: GraphRequest,
    out: &Out,
) -> Result<GraphDocument, Problem> {
    let entries = place.listing().await?.entries;
    out.sources(&entries).await;
    let reading = Reading::new(place.project(), &entries);
    reading.graph(input.name.as_deref(), &input.selection, Hidden::unless(input.all))
}
