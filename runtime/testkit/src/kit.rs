//! The kit: the reconciler under test, its world, and the extent of a check.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use watershed_core::{Kind, KindOptions};

use crate::given::Givens;
use crate::outside::Outside;
use crate::roll::Roll;
use crate::sight::Sight;
use watershed_controller::Builder;
use watershed_controller::Handle;
use watershed_controller::Message;
use watershed_controller::Reconciler;

/// Default number of steps of a check: a fraction of a second.
const STEPS: u64 = 10_000;

/// A test kit for a reconciler; see the [module](super).
///
/// Each seed is a play of its own: a few resources are created, edited, renamed and deleted while their invocations
/// are cancelled, dropped and killed, all in simulated time, under the real controller. At the end everything comes to
/// rest, and three things must hold. What is there is what the same specs come to from scratch, in a fresh outside.
/// Running everything once more changes nothing. Deleting everything leaves nothing.
///
/// The [module](super) has an example, [`Report`] another.
pub struct Kit<O: Outside, R: Reconciler> {
    pub(super) fresh: Box<dyn Fn() -> O>,
    pub(super) reconciler: Box<dyn Fn(&O) -> R>,
    pub(super) spec: Box<MakeSpec<R>>,
    pub(super) options: KindOptions,
    pub(super) givens: Vec<Givens>,
    pub(super) beside: Box<Beside<O>>,
    pub(super) started: Box<Started<O>>,
    pub(super) state: Option<Box<Counts<R>>>,
    pub(super) cancel_within: Duration,
    pub(super) rest_after: Duration,
    /// Results of plays from scratch, by wanted resources.
    pub(super) scratches: RefCell<HashMap<String, Rc<Sight<O::Seen>>>>,
    pub(super) is_chained: bool,
    pub(super) is_fenced: bool,
    pub(super) steps: u64,
}

/// A function that registers further kinds, over an outside.
type Beside<O> = dyn Fn(&O, Builder) -> Builder;

/// A function that is called with each started process.
type Started<O> = dyn Fn(&O, Handle);

/// A function that generates a spec.
type MakeSpec<R> = dyn Fn(&mut Roll) -> <R as Reconciler>::Spec;

/// A function that returns the part of a state that is compared, as text.
type Counts<R> = dyn Fn(&<R as Reconciler>::State) -> String;

impl<O: Outside, R: Reconciler> fmt::Debug for Kit<O, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kit")
            .field("options", &self.options)
            .field("steps", &self.steps)
            .finish_non_exhaustive()
    }
}

/// Set-up of a test.
impl<O: Outside, R: Reconciler> Kit<O, R> {
    /// Creates a kit for the reconciler that `reconciler` makes over an outside, anew for each process of a play.
    /// `spec` generates specs: prefer few different ones, and only valid ones.
    pub fn new(
        fresh: impl Fn() -> O + 'static,
        reconciler: impl Fn(&O) -> R + 'static,
        spec: impl Fn(&mut Roll) -> R::Spec + 'static,
    ) -> Self {
        Self {
            fresh: Box::new(fresh),
            reconciler: Box::new(reconciler),
            spec: Box::new(spec),
            options: KindOptions::new("thing"),
            givens: Vec::new(),
            beside: Box::new(|_, builder| builder),
            started: Box::new(|_, _| {}),
            state: None,
            cancel_within: Duration::from_secs(10),
            rest_after: Duration::ZERO,
            scratches: RefCell::default(),
            is_chained: false,
            is_fenced: false,
            steps: STEPS,
        }
    }

    /// Sets the options of the kind, as you register it; `thing` with every default unless set.
    #[must_use]
    pub fn options(mut self, options: impl Into<KindOptions>) -> Self {
        self.options = options.into();
        self.changed()
    }

    /// Lets the resources read resources of this kind, whose states `state` generates. The kit creates, changes, fails
    /// and deletes them.
    #[must_use]
    pub fn reads<M: Message>(
        mut self,
        kind: impl Into<Kind>,
        state: impl Fn(&mut Roll) -> M + 'static,
    ) -> Self {
        self.givens.push(Givens::new(kind.into(), state));
        self.changed()
    }

    /// Registers further kinds, to which the reconciler delegates work. Their invocations are interrupted only by the
    /// end of a process.
    #[must_use]
    pub fn beside(mut self, register: impl Fn(&O, Builder) -> Builder + 'static) -> Self {
        self.beside = Box::new(register);
        self.changed()
    }

    /// Calls a function with the handle of each started process, for background work that nudges the kinds. That work
    /// must end with its process by itself.
    #[must_use]
    pub fn started(mut self, tell: impl Fn(&O, Handle) + 'static) -> Self {
        self.started = Box::new(tell);
        self.changed()
    }

    /// Lets the resources read each other.
    #[must_use]
    pub fn chained(mut self) -> Self {
        self.is_chained = true;
        self
    }

    /// Also plays processes that freeze for longer than their lease and then continue: for kinds on a store whose
    /// leases expire (Postgres) that pass on [`Context::epoch`](watershed_controller::Context::epoch).
    #[must_use]
    pub fn fenced(mut self) -> Self {
        self.is_fenced = true;
        self
    }

    /// Sets the part of a state that must not depend on the history, as text; all of it by default.
    #[must_use]
    pub fn state(mut self, counts: impl Fn(&R::State) -> String + 'static) -> Self {
        self.state = Some(Box::new(counts));
        self.changed()
    }

    /// Sets the time that an invocation may take to return after its cancel; 10 s unless set, as long as a dropped
    /// controller waits.
    #[must_use]
    pub fn cancel_within(mut self, within: Duration) -> Self {
        self.cancel_within = within;
        self
    }

    /// Sets the time that passes before the end of a play counts as at rest: for kinds that are nudged after events
    /// outside, with regular looks as a fallback. None unless set.
    #[must_use]
    pub fn rest_after(mut self, time: Duration) -> Self {
        self.rest_after = time;
        self.changed()
    }

    /// Discards the results of the previous set-up.
    fn changed(self) -> Self {
        self.scratches.borrow_mut().clear();
        self
    }

    /// Sets the minimum number of steps of a check; `WATERSHED_TESTKIT_STEPS` overrides it. A step is one change of the
    /// world, or one poll of an invocation.
    #[must_use]
    pub fn steps(mut self, steps: u64) -> Self {
        self.steps = steps;
        self
    }
}
