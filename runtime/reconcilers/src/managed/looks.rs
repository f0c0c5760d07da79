//! Looks at managed resources that nothing else asks for, each as often as its file says.
//!
//! A look is a nudge: a resource that is as it was writes nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use watershed_controller::{Handle, Resource, Select, Uid};

use super::{KIND, Spec};

/// The longest time between two listings: a new resource is known after that.
const LIST_EVERY: Duration = Duration::from_secs(10);

/// A resource with the time of its next look.
struct Look {
    spec_version: u64,
    every: Duration,
    at: Instant,
}

/// Has each managed resource looked at, as often as its file says, until `leaving` is cancelled.
pub async fn look_after(handle: Handle, leaving: CancellationToken) {
    tokio::select! {
        () = leaving.cancelled() => {}
        () = look_for_ever(&handle) => {}
    }
}

async fn look_for_ever(handle: &Handle) {
    let mut looks: BTreeMap<Uid, Look> = BTreeMap::new();
    loop {
        let now = Instant::now();
        list(handle, &mut looks, now);
        for (uid, look) in &mut looks {
            if look.at <= now {
                look.at = now + look.every;
                // One that is gone needs no look.
                let _ = handle.nudge(*uid).await;
            }
        }
        let next = looks.values().map(|look| look.at).min();
        let listing = now + LIST_EVERY;
        sleep_until(next.map_or(listing, |next| next.min(listing))).await;
    }
}

/// Takes up new resources and edits, and lets go of what is gone.
fn list(handle: &Handle, looks: &mut BTreeMap<Uid, Look>, now: Instant) {
    let mut found = BTreeMap::new();
    for resource in handle.list(Select::kind(KIND)).resources {
        let (uid, spec_version) = (resource.row.uid, resource.row.spec_version.0);
        let known = looks
            .remove(&uid)
            .filter(|look| look.spec_version == spec_version);
        let look = known.or_else(|| {
            let spec = Resource::spec_of::<Spec>(&resource.row).ok()?.spec;
            let every = Duration::from_millis(spec.0.observe_every_ms);
            (!every.is_zero()).then(|| Look {
                spec_version,
                every,
                at: now + every,
            })
        });
        found.extend(look.map(|look| (uid, look)));
    }
    *looks = found;
}
