//! Periodic looks at managed resources, at the interval that each file sets.
//!
//! A look is a nudge: a resource that is as it was writes nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use watershed_controller::watch::Watch;
use watershed_controller::{Event, Handle, Resource, Select, Uid};
use watershed_core::Row;

use super::{KIND, Spec};

/// The schedule of looks at one resource.
struct Look {
    spec_version: u64,
    every: Duration,
    at: Instant,
}

/// The schedules of looks, by resource.
#[derive(Default)]
struct Looks(BTreeMap<Uid, Look>);

/// Nudges each managed resource at the interval that its file sets, until `leaving` is cancelled.
pub async fn look_after(handle: Handle, leaving: CancellationToken) {
    tokio::select! {
        () = leaving.cancelled() => {}
        () = look_for_ever(&handle) => {}
    }
}

/// Nudges managed resources at their intervals until the controller stops.
async fn look_for_ever(handle: &Handle) {
    let mut looks = Looks::default();
    let mut watch = looks.list(handle);
    loop {
        for uid in looks.due(Instant::now()) {
            // One that is gone needs no look.
            let _ = handle.nudge(uid).await;
        }
        let next = looks.0.values().map(|look| look.at).min();
        // No event is lost where the clock is first.
        let event = tokio::select! {
            () = until(next) => continue,
            event = watch.next() => event,
        };
        match event {
            Some(Event::Changed(changes)) => {
                changes.rows.iter().for_each(|row| looks.take(row));
                for removed in &changes.removed {
                    looks.0.remove(&removed.uid);
                }
            }
            Some(Event::Status(_)) => {}
            Some(Event::Lagged) => watch = looks.list(handle),
            None => return,
        }
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

impl Looks {
    /// Loads all managed resources, and returns a watch of later changes.
    fn list(&mut self, handle: &Handle) -> Watch {
        let listing = handle.list(Select::kind(KIND));
        let uids: Vec<Uid> = listing.resources.iter().map(Resource::uid).collect();
        self.0.retain(|uid, _| uids.contains(uid));
        listing.resources.iter().for_each(|found| self.take(&found.row));
        handle.watch(listing.revision)
    }

    /// Adds or updates the schedule of a resource, or removes it if the resource is being deleted.
    fn take(&mut self, row: &Row) {
        if row.kind.as_str() != KIND {
            return;
        }
        let spec_version = row.spec_version.0;
        let is_known = self
            .0
            .get(&row.uid)
            .is_some_and(|look| look.spec_version == spec_version);
        if is_known && !row.intents.is_deleted() {
            return;
        }
        self.0.remove(&row.uid);
        let spec = Resource::spec_of::<Spec>(row)
            .ok()
            .filter(|_| !row.intents.is_deleted());
        let every = spec.map(|wanted| Duration::from_millis(wanted.spec.0.observe_every_ms));
        if let Some(every) = every.filter(|every| !every.is_zero()) {
            let look = Look {
                spec_version,
                every,
                at: Instant::now() + every,
            };
            self.0.insert(row.uid, look);
        }
    }

    /// Returns the resources whose look is due, and schedules their next look.
    fn due(&mut self, now: Instant) -> Vec<Uid> {
        let due = self.0.iter_mut().filter(|(_, look)| look.at <= now);
        due.map(|(uid, look)| {
            look.at = now + look.every;
            *uid
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use watershed_controller::{Controller, Key};
    use watershed_managers::{Desired, Wanted};
    use watershed_proto::ManagedSpec;

    use super::*;
    use crate::messages::Proto;

    fn every(ms: u64) -> Spec {
        let spec = ManagedSpec {
            observe_every_ms: ms,
            ..ManagedSpec::default()
        };
        Wanted::new(Desired::stage("active"), Proto(spec))
    }

    fn known(looks: &Looks) -> Vec<u64> {
        let every = looks.0.values().map(|look| look.every.as_millis());
        every.map(|ms| u64::try_from(ms).unwrap()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_is_edited_or_goes_while_it_runs_is_known_at_once() {
        let controller = Controller::builder().passive_kind(KIND).start().await.unwrap();
        let create = |name: &str, ms| Resource::declare(KIND, name, &every(ms)).unwrap();
        controller.create(create("a", 1_000)).await.unwrap();
        let mut looks = Looks::default();
        let mut watch = looks.list(&controller.handle());
        assert_eq!(known(&looks), [1_000]);
        controller.create(create("b", 2_000)).await.unwrap();
        let a = controller.get(Key::new(KIND, "a")).unwrap().uid();
        controller.update_spec(a, &every(3_000)).await.unwrap();
        while known(&looks) != [3_000, 2_000] {
            if let Some(Event::Changed(changes)) = watch.next().await {
                changes.rows.iter().for_each(|row| looks.take(row));
            }
        }
        assert!(
            looks
                .due(Instant::now() + Duration::from_millis(1_999))
                .is_empty()
        );
        assert_eq!(looks.due(Instant::now() + Duration::from_millis(2_000)).len(), 1);
        controller.delete(a).await.unwrap();
        looks.list(&controller.handle());
        assert_eq!(known(&looks), [2_000]);
    }
}
