//! Cancellation of jobs' runs by people.
//!
//! A run is cancelled for another one, which adopts its process, or because a person wants it to stop. It can't tell which.
//! What comes of its job after it tells: nothing asks for a job that was cancelled by a person.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use watershed_controller::Context;
use watershed_controller::resource::{Settled, Stage, Target};

use super::JobReconciler;
use crate::shared::Shared;

/// Interval between two checks of a run that is about to return.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Watches a run that is returning. If the controller settles it as cancelled, marks its start, so that the next run
/// stops the process.
pub(super) fn follow(shared: &Arc<Shared>, context: &Context<JobReconciler>, counter: u64) {
    // That of the invocation takes no calls once it has returned.
    let Some(handle) = shared.probes.handle.get().cloned() else {
        return;
    };
    let shared = Arc::clone(shared);
    let (uid, mine) = (context.uid(), context.invocation());
    tokio::spawn(async move {
        loop {
            let Ok(job) = handle.get(uid) else { return };
            match job.status.stage {
                Stage::Running { invocation, .. } if invocation == mine => sleep(LOOK_EVERY).await,
                Stage::Settled(Settled::Cancelled) => {
                    shared.cancels.add(uid, counter);
                    // A controller that ends looks at nothing.
                    let _ = handle.nudge(Target::Uid(uid)).await;
                    return;
                }
                _ => return,
            }
        }
    });
}
