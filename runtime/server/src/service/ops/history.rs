//! Past runs and transitions.

use watershed_api::Problem;
use watershed_api::documents::{HistoryDocument, Time};
use watershed_api::request::HistoryRequest;
use watershed_controller::history::HistoryRow;

use crate::out::Out;
use crate::report::names;
use crate::service::Principal;
use crate::service::place::{Place, early_end};
use crate::service::reading::{self, Reading};

/// Returns past runs and transitions of one resource, even a deleted one, or of all.
pub(crate) async fn history(
    place: &impl Place,
    _: &Principal,
    input: HistoryRequest,
    out: &Out,
) -> Result<HistoryDocument, Problem> {
    let entries = place.listing().await?.entries;
    out.sources(&entries).await;
    let name = input.name.as_deref();
    let most = most_looked_at(&input);
    let runs: Vec<HistoryRow> = match name.map(|name| names::resolve(&entries, name)).transpose() {
        Ok(None) => place.past(None, most).await?,
        Ok(Some(entry)) => place.past(Some(entry.row.uid), most).await?,
        Err(unknown) => {
            let all = place.past(None, reading::MOST_SEARCHED).await?;
            reading::runs_of_removed(all, name, unknown)?
        }
    };
    let is_cut = most == reading::MOST_SEARCHED && runs.len() >= most as usize;
    let earliest = runs
        .last()
        .filter(|_| is_cut)
        .map(|run| Time::from_millis(run.ended_at.0));
    let document = Reading::new(place.project(), &entries).history(runs, &input)?;
    Ok(HistoryDocument {
        searched_since: earliest,
        ended_early: early_end(place),
        ..document
    })
}

/// Returns the number of runs that have to be looked at. Of the newest page without a choice, one more than it tells.
fn most_looked_at(input: &HistoryRequest) -> u32 {
    let is_plain = input.from.is_none()
        && input.until.is_none()
        && input.outcomes.is_empty()
        && input.selection.is_empty()
        && input.page.is_none();
    let wanted = u32::try_from(input.limit).unwrap_or(u32::MAX).saturating_add(1);
    if is_plain {
        wanted.min(reading::MOST_SEARCHED)
    } else {
        reading::MOST_SEARCHED
    }
}
