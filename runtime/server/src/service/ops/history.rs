//! Past runs.

use watershed_api::Problem;
use watershed_api::documents::HistoryDocument;
use watershed_api::request::HistoryRequest;
use watershed_controller::history::HistoryRow;

use crate::out::Out;
use crate::report::names;
use crate::service::Principal;
use crate::service::place::{Place, early_end};
use crate::service::reading::{self, Reading};

/// Tells of past runs and transitions: of one resource, also of one that is gone, or of all.
pub(crate) async fn history(
    place: &impl Place,
    _: &Principal,
    input: HistoryRequest,
    out: &Out,
) -> Result<HistoryDocument, Problem> {
    let entries = place.listing().await?.entries;
    out.sources(&entries).await;
    let (name, limit) = (input.name.as_deref(), input.limit);
    let most = u32::try_from(limit).unwrap_or(u32::MAX);
    let runs: Vec<HistoryRow> = match name.map(|name| names::resolve(&entries, name)).transpose() {
        Ok(None) => place.past(None, most).await?,
        Ok(Some(entry)) => place.past(Some(entry.row.uid), most).await?,
        Err(unknown) => {
            let all = place.past(None, reading::MOST_SEARCHED).await?;
            reading::runs_of_removed(all, name, unknown)?
        }
    };
    let document = Reading::new(place.project(), &entries).history(runs, name, limit);
    Ok(HistoryDocument {
        ended_early: early_end(place),
        ..document
    })
}
