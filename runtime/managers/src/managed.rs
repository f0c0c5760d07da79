//! The loop, in the form of a kind of the controller.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use watershed_controller::kind::{OnOwned, Parents};
use watershed_controller::{
    Builder, Context, Error, Key, KindOptions, Outcome, Reconciler, Resource, Uid, Work,
};

use crate::deliver::EVENT_KIND;
use crate::desired::Wanted;
use crate::discover::Discovery;
use crate::manager::Manager;
use crate::pass::{Pass, Subject};
use crate::record::{ManagedState, Record};
use crate::teardown::{RETRY, Remains, Teardown, teardown_kind};

/// The default limit on resources of a kind that are worked on at the same time; see [`Managed::at_once`].
pub const AT_ONCE: usize = 10;
/// The longest time until a new resource checks again whether an earlier one of its name is gone. Usually it is
/// notified sooner.
const HELD_AGAIN: Duration = Duration::from_secs(1);

/// The largest number of levels of owners to follow.
const LEVELS_MAX: usize = 32;

/// A manager that the loop drives: a kind for [`Builder`].
///
/// See [`Manager`] for an example.
pub struct Managed<M> {
    manager: Arc<M>,
    at_once: usize,
}

impl<M> fmt::Debug for Managed<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Managed")
            .field("at_once", &self.at_once)
            .finish_non_exhaustive()
    }
}

impl<M: Manager> Managed<M> {
    /// Returns a manager in the loop, with the default limits.
    pub fn new(manager: M) -> Self {
        Self {
            manager: Arc::new(manager),
            at_once: AT_ONCE,
        }
    }

    /// Returns the kind with another limit on resources that are worked on at the same time.
    #[must_use]
    pub fn at_once(mut self, most: usize) -> Self {
        self.at_once = most;
        self
    }

    /// Returns the controller's options for the kind.
    pub fn options(&self) -> KindOptions {
        let mut options = KindOptions::new(M::KIND);
        options = options.concurrency(self.at_once);
        options = options.parents(Parents::Changed);
        options = options.on_owned(OnOwned::Changed);
        options = options.retry(RETRY);
        options = options.resync(self.manager.policy().observe_every);
        options
    }

    /// Returns the search for orphans of the kind, which the host runs in addition to the controller.
    pub fn discovery(&self) -> Discovery<M> {
        Discovery::new(Arc::clone(&self.manager))
    }

    /// Registers the kind, the kind for teardown of its deleted resources, and the kind of events.
    #[must_use]
    pub fn register(self, builder: Builder) -> Builder {
        let builder = self.register_beside(builder);
        builder.kind(self.options(), self)
    }

    /// Registers the kinds for teardown and events only, for a host that registers the main kind itself, such as in a
    /// wrapper.
    #[must_use]
    pub fn register_beside(&self, builder: Builder) -> Builder {
        let mut options = KindOptions::new(teardown_kind(M::KIND));
        options = options.concurrency(self.at_once);
        options = options.retry(RETRY);
        options = options.resync(self.manager.policy().observe_every);
        let teardown = Teardown::new(Arc::clone(&self.manager));
        let builder = builder.passive_kind(EVENT_KIND);
        builder.kind(options, teardown)
    }
}

impl<M: Manager> Reconciler for Managed<M> {
    type Spec = Wanted<M::Spec>;
    type State = ManagedState<M::Details>;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        if !self.manager.chooses(root_of(&context)) {
            return Ok(Outcome::passed_over());
        }
        let remains = Key::new(teardown_kind(M::KIND), context.name().clone());
        let remains = context.controller().get(remains).ok();
        if remains.is_some_and(|remains| !has_moved_here(&context, &remains)) {
            return self.hold(&context).await;
        }
        let subject = Subject {
            name: context.name().clone(),
            uid: context.uid(),
            wanted: context.spec().clone(),
            is_alone: false,
        };
        let (outcome, _) = Pass::new(&*self.manager, &context, subject, None).run().await;
        outcome
    }

    async fn delete(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let Some(kept) = context.state().filter(|kept| !kept.record.is_clean()) else {
            return Ok(Outcome::unchanged());
        };
        let remains = Remains::<M> {
            name: context.name().clone(),
            uid: context.uid(),
            wanted: context.spec().clone(),
            kept: kept.clone(),
        };
        let failed = |message: String| Error::transient("teardown", message);
        let kind = teardown_kind(M::KIND);
        let mut new = Resource::declare(kind.as_str(), context.name().as_str(), &remains)
            .map_err(|error| failed(error.to_string()))?;
        new.hidden = true;
        let controller = context.controller();
        match controller.get(Key::new(kind, context.name().clone())) {
            // It was created by a run that did not live to say so.
            Ok(found) if found.row.spec == new.spec => {}
            // What is left of an earlier one goes first.
            Ok(_) => {
                return Err(failed(format!(
                    "\"{}\" is being torn down already",
                    context.name()
                )));
            }
            Err(_) => {
                let created = controller.create(new).await;
                created.map_err(|error| failed(error.to_string()))?;
            }
        }
        Ok(Outcome::from_work(Work::Dropped))
    }
}

impl<M: Manager> Managed<M> {
    /// Keeps a resource absent while an earlier one of the same name is torn down.
    async fn hold(&self, context: &Context<Self>) -> Result<Outcome, Error> {
        let stages = self.manager.stages(&context.spec().spec);
        // One that was deleted and created again has left what it knew to its teardown.
        if context.state().is_some_and(|kept| !kept.record.is_clean()) {
            let kept = ManagedState {
                record: Record::fresh(&stages),
                details: None,
            };
            context.set_state(&kept).await?;
        }
        let outcome = Outcome::unchanged().requeue_after(HELD_AGAIN);
        Ok(outcome.unready("an earlier one of its name is being torn down"))
    }
}

/// Returns true if the resource was renamed to the name of another one that is being torn down. Since it exists outside
/// already, it need not wait.
fn has_moved_here<M: Manager>(context: &Context<Managed<M>>, remains: &Resource) -> bool {
    let is_another = || {
        let torn_down = remains.spec::<Remains<M>>().ok();
        torn_down.is_some_and(|torn_down| torn_down.uid != context.uid())
    };
    context.state().is_some_and(|kept| !kept.record.is_clean()) && is_another()
}

/// Returns the topmost owner of a resource; the resource itself if it has no owner of this kind.
fn root_of<M: Manager>(context: &Context<Managed<M>>) -> Uid {
    let (mut root, mut owner) = (context.uid(), context.row().owner);
    for _ in 0..LEVELS_MAX {
        let found = owner.and_then(|owner| context.controller().get(owner).ok());
        let Some(found) = found.filter(|found| found.row.kind.as_str() == M::KIND) else {
            break;
        };
        (root, owner) = (found.row.uid, found.row.owner);
    }
    root
}
