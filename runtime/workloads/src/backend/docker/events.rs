//! Forwarding of the engine's events as news (rule W2).
//!
//! The stream is begun anew after 1 to 30 s when it ends. What was missed meanwhile is found by a listing, and by the
//! engine itself, which repeats the events since the last one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bollard::models::EventMessage;
use bollard::query_parameters::EventsOptions;
use futures::StreamExt;
use tokio::time::sleep;
use watershed_core::Timestamp;

use super::engine::Failed;
use super::label::{Mark, start_of};
use super::observe::{Life, filters};
use super::place::{Place, now};
use super::stopping;
use crate::backend::News;

/// First and longest delay before the event stream is reopened.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

/// Actions of events that change an observation.
const ACTIONS: [&str; 3] = ["start", "die", "destroy"];

/// Forwards events until dropped. `epoch` is the epoch of the backend.
pub(super) async fn pass_on(place: Arc<Place>, epoch: u64) {
    let mut is_used = place.is_used.subscribe();
    // Without a container of ours the engine is left alone.
    if is_used.wait_for(|is_used| *is_used).await.is_err() {
        return;
    }
    let mut pause = PAUSES[0];
    let mut since = now();
    loop {
        let began = now();
        match follow(&place, epoch, &mut since).await {
            Ok(()) => {}
            Err(Failed::Unreachable(message)) => tracing::debug!(message, "the engine's events have ended"),
            Err(failed) => tracing::warn!(?failed, "the engine's events can't be followed"),
        }
        let lasted = now().0.saturating_sub(began.0);
        let is_stable = u128::try_from(lasted).is_ok_and(|ms| ms > PAUSES[1].as_millis());
        pause = if is_stable { PAUSES[0] } else { pause };
        sleep(pause).await;
        pause = (pause * 2).min(PAUSES[1]);
    }
}

/// Forwards events until their stream ends.
async fn follow(place: &Arc<Place>, epoch: u64, since: &mut Timestamp) -> Result<(), Failed> {
    let client = place.engine.client().await?;
    take_over(place, epoch).await?;
    // Whatever happened before the events that follow.
    place.tell(News::Missed);
    let mut filters = filters(&place.folder, None);
    filters.extend(HashMap::from([
        ("type".to_owned(), vec!["container".to_owned()]),
        ("event".to_owned(), ACTIONS.map(str::to_owned).to_vec()),
    ]));
    let options = EventsOptions {
        since: Some(seconds(*since)),
        filters: Some(filters),
        ..EventsOptions::default()
    };
    let mut events = client.events(Some(options));
    while let Some(event) = events.next().await {
        let event = event.map_err(|error| place.engine.failed(error))?;
        *since = event
            .time_nano
            .map_or(*since, |nanos| Timestamp(nanos / 1_000_000));
        tell(place, event).await;
    }
    Ok(())
}

/// Continues what earlier programs left: ordered stops, and containers that were never started.
async fn take_over(place: &Arc<Place>, epoch: u64) -> Result<(), Failed> {
    let listed = place.containers(None).await?;
    for one in listed
        .iter()
        .filter(|one| one.life == Life::Made && one.labels.epoch < epoch)
    {
        // Not by force: should it begin meanwhile, it is a start like any other.
        if let Err(failed) = place.remove(&one.container, false).await {
            tracing::debug!(?failed, start = %one.labels.start, "a container that was never started is left");
        }
    }
    for (one, order) in stopping::left_over(place, &listed) {
        stopping::resume(place, &one, order);
    }
    Ok(())
}

/// Forwards an event. The cause of an end is queried, since the event has only the exit code.
async fn tell(place: &Place, event: EventMessage) {
    let Some(actor) = event.actor else { return };
    let attributes = actor.attributes.unwrap_or_default();
    let Some(id) = start_of(&attributes) else { return };
    let name = attributes.get("name").map(String::as_str).unwrap_or_default();
    let mark = Mark::read(name);
    if mark == Mark::Kept {
        return;
    }
    if event.action.as_deref() == Some("die")
        && let Some(container) = actor.id
        && let Ok(Some(details)) = place.ask_details(&container, now()).await
        && let Some((end, at)) = details.ended
    {
        let was_stopped = mark != Mark::None;
        return place.tell(News::Ended {
            id,
            end,
            at,
            was_stopped,
        });
    }
    place.tell(News::Changed(id));
}

/// Formats a time in the engine's form: seconds with a fraction.
fn seconds(time: Timestamp) -> String {
    format!("{}.{:03}", time.0.div_euclid(1_000), time.0.rem_euclid(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_with_a_fraction() {
        assert_eq!(seconds(Timestamp(1_767_225_600_042)), "1767225600.042");
        assert_eq!(seconds(Timestamp(0)), "0.000");
    }
}
