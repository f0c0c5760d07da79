//! The teardown of deleted resources: a hidden resource that takes the steps to the last stage, and then deletes
//! itself.
//!
//! Deletes hold regular work back, so a delete that takes minutes must not be one. It only creates such a rest, hidden,
//! under the name of the resource and with its identity, so that things outside are found by the same mark.

use std::fmt;

use serde::{Deserialize, Serialize};
use watershed_controller::message::{DecodeError, EncodeError, Message};
use watershed_controller::{Context, Error, Key, Kind, Name, Outcome, Reconciler, RetryPolicy, Uid};

use crate::desired::{Desired, Wanted};
use crate::frame::{join, split};
use crate::manager::Manager;
use crate::pass::{Pass, Subject};
use crate::record::ManagedState;

use std::sync::Arc;
use std::time::Duration;

/// The retries of passes, in addition to the retries of steps. Each failed pass gives the time of the next pass.
pub(crate) const RETRY: RetryPolicy = RetryPolicy::Backoff {
    base: Duration::from_secs(1),
    cap: Duration::from_secs(60),
    attempts: u32::MAX,
    reset_after: Duration::ZERO,
};

/// Returns the kind for the teardown of resources of a kind.
pub fn teardown_kind(kind: &str) -> Kind {
    Kind::from(format!("{kind}_teardown").as_str())
}

/// The spec of a teardown: a deleted resource as it was.
pub struct Remains<M: Manager> {
    /// The name of the deleted resource.
    pub name: Name,
    /// The identity of the deleted resource.
    pub uid: Uid,
    /// The spec of the deleted resource.
    pub wanted: Wanted<M::Spec>,
    /// The last state of the deleted resource.
    pub kept: ManagedState<M::Details>,
}

impl<M: Manager> fmt::Debug for Remains<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remains")
            .field("name", &self.name)
            .field("uid", &self.uid)
            .finish_non_exhaustive()
    }
}

/// The first part of an encoded spec.
#[derive(Serialize, Deserialize)]
struct Head {
    name: Name,
    uid: Uid,
    /// The length of the resource's spec in bytes; its state follows.
    spec_length: usize,
}

impl<M: Manager> Message for Remains<M> {
    const FORMAT: u32 = 1;

    fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        let mut parts = self.wanted.encode()?;
        let head = Head {
            name: self.name.clone(),
            uid: self.uid,
            spec_length: parts.len(),
        };
        parts.extend(self.kept.encode()?);
        join(&head, &parts)
    }

    fn decode(format: u32, bytes: &[u8]) -> Result<Self, DecodeError> {
        if format != Self::FORMAT {
            return Err(DecodeError::unknown_format::<Self>(format));
        }
        let (head, parts) = split::<Head>(bytes)?;
        let (spec, state) = parts
            .split_at_checked(head.spec_length)
            .ok_or_else(|| DecodeError::malformed::<Self>("it is shorter than it says"))?;
        Ok(Self {
            name: head.name,
            uid: head.uid,
            wanted: Wanted::decode(Wanted::<M::Spec>::FORMAT, spec)?,
            kept: ManagedState::decode(ManagedState::<M::Details>::FORMAT, state)?,
        })
    }
}

/// The reconciler that tears down deleted resources.
pub struct Teardown<M> {
    manager: Arc<M>,
}

impl<M> Teardown<M> {
    pub(crate) fn new(manager: Arc<M>) -> Self {
        Self { manager }
    }
}

impl<M> fmt::Debug for Teardown<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Teardown").finish_non_exhaustive()
    }
}

impl<M: Manager> Reconciler for Teardown<M> {
    type Spec = Remains<M>;
    type State = ManagedState<M::Details>;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let remains = context.spec();
        let last = self.manager.stages(&remains.wanted.spec).last().clone();
        let deadline = remains.kept.record.window.map(|window| window.deadline);
        let wanted = Wanted {
            desired: Desired {
                cleanup_by: deadline
                    .into_iter()
                    .chain(remains.wanted.desired.cleanup_by)
                    .min(),
                ..Desired::stage(last.clone())
            },
            spec: Arc::clone(&remains.wanted.spec),
        };
        let subject = Subject {
            name: remains.name.clone(),
            uid: remains.uid,
            wanted,
            is_alone: true,
        };
        let mut before = remains.kept.clone();
        // Nobody tells it anything any more, nor holds what was said before.
        before.record.stage_override = None;
        before.record.failure = None;
        // Counts of another resource.
        before.record.forgotten = None;
        before.record.refreshed = 0;
        before.record.handled.clear();
        // What was under way may have had its effect.
        before.record.claimed |= before.record.current.take().is_some();
        let pass = Pass::new(&*self.manager, &context, subject, Some(before));
        let (outcome, kept) = pass.run().await;
        let outcome = outcome?;
        if kept.record.own != last || !kept.record.is_clean() || context.is_cancelled() {
            return Ok(outcome);
        }
        let controller = context.controller();
        let delete = controller.delete(context.uid());
        delete
            .await
            .map_err(|error| Error::transient("teardown", error.to_string()))?;
        // A new resource of that name looks again by itself; this is only sooner.
        let _ = controller.nudge(Key::new(M::KIND, remains.name.clone())).await;
        Ok(outcome)
    }
}
