//! The first rows of a resource, or its spec and state.

use watershed_api::Problem;
use watershed_api::answers::Shown;
use watershed_api::request::{QueryRequest, ShowRequest};

use super::query;
use crate::out::Out;
use crate::service::Principal;
use crate::service::guesses::with_guesses;
use crate::service::place::Place;
use crate::service::reading::{Reading, Subject};

/// Shows the rows of a resource, or its spec and state if it has none.
pub(crate) async fn show(
    place: &impl Place,
    _: &Principal,
    input: ShowRequest,
    out: &Out,
) -> Result<Shown, Problem> {
    let entries = place.listing().await?.entries;
    match Reading::new(place.project(), &entries).show(&input.name)? {
        Subject::Rows { sql, about, source } => {
            let asking = place.asking(&entries).await?;
            let asked = (&*asking.opened.engine, &asking.secrets, place.options());
            out.about(with_guesses(about, source, asked).await).await;
            let statement = QueryRequest {
                limit: Some(input.limit),
                ..QueryRequest::new(sql)
            };
            let sent = query::stream(&asking, statement, out);
            let sent = query::until_closed(sent, out).await;
            asking.opened.give_back().await;
            sent.map(Shown::Rows)
        }
        Subject::Resource(document) => Ok(Shown::Resource(document)),
    }
}
