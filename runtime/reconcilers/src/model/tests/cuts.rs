//! An engine that answers `Fenced` or `Unknown` at some call, before the work of the call was done or after it.
//!
//! Whatever the call: nothing is recorded that does not stand in the engine, nothing is lost, and without further faults all comes to
//! what a fresh build makes.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures::{FutureExt as _, future::BoxFuture};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use watershed_conform::Layer;
use watershed_drivers::olap::{
    Build, BuildError, Built, Check, Dropped, Failure, Guard, Olap, Output, Rename, RenameError, Renamed,
    Tag, Verdict,
};
use watershed_proto::IncrementalOutput;

use super::world::{World, table, view};

/// Calls until a fault that never comes.
const NEVER: usize = usize::MAX;

/// The call of an engine that is answered otherwise.
#[derive(Debug)]
pub(super) struct Cuts {
    failure: Failure,
    is_done: bool,
    /// Calls that are answered before it.
    left: AtomicUsize,
}

impl Cuts {
    fn new(failure: Failure, is_done: bool) -> Arc<Self> {
        let left = AtomicUsize::new(NEVER);
        Arc::new(Self {
            failure,
            is_done,
            left,
        })
    }

    fn arm(&self, call: usize) {
        self.left.store(call, Ordering::SeqCst);
    }

    /// Ends it. Returns whether the call was made.
    fn disarm(&self) -> bool {
        self.left.swap(NEVER, Ordering::SeqCst) == NEVER
    }

    fn is_due(&self) -> bool {
        let next = |left: usize| match left {
            NEVER => None,
            0 => Some(NEVER),
            left => Some(left - 1),
        };
        let before = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next);
        before == Ok(0)
    }
}

/// An engine with a [`Cuts`] in front of it.
pub(super) struct Cut {
    pub(super) inner: Arc<dyn Olap>,
    pub(super) cuts: Arc<Cuts>,
}

impl Cut {
    fn answer<'a, T: Send + 'a, E: From<Failure> + Send + 'a>(
        &'a self,
        call: BoxFuture<'a, Result<T, E>>,
    ) -> BoxFuture<'a, Result<T, E>> {
        let cuts = &self.cuts;
        async move {
            if !cuts.is_due() {
                return call.await;
            }
            if cuts.is_done {
                call.await?;
            }
            Err(cuts.failure.clone().into())
        }
        .boxed()
    }
}

impl Layer for Cut {
    fn inner(&self) -> &dyn Olap {
        &*self.inner
    }

    fn open<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<(), Failure>> {
        self.answer(self.inner.open(cancel))
    }

    fn build<'a>(
        &'a self,
        build: &'a Build,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Built, BuildError>> {
        self.answer(self.inner.build(build, cancel))
    }

    fn check<'a>(
        &'a self,
        checks: &'a [Check],
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<Verdict>, Failure>> {
        self.answer(self.inner.check(checks, cancel))
    }

    fn rename<'a>(
        &'a self,
        rename: &'a Rename,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Renamed, RenameError>> {
        self.answer(self.inner.rename(rename, cancel))
    }

    fn drop_output<'a>(
        &'a self,
        uid: Uuid,
        guard: Guard,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Dropped, Failure>> {
        self.answer(self.inner.drop_output(uid, guard, cancel))
    }

    fn retag<'a>(
        &'a self,
        from: Tag,
        to: Tag,
        record: &'a [u8],
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<bool, Failure>> {
        self.answer(self.inner.retag(from, to, record, cancel))
    }

    fn outputs<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<Vec<Output>, Failure>> {
        self.answer(self.inner.outputs(cancel))
    }
}

/// An edit that has the engine do something.
#[derive(Debug, Clone, Copy)]
enum Act {
    Build,
    Become,
    Step,
    Rename,
    Drop,
    Adopt,
}

impl Act {
    const ALL: [Self; 6] = [
        Self::Build,
        Self::Become,
        Self::Step,
        Self::Rename,
        Self::Drop,
        Self::Adopt,
    ];

    async fn perform(self, world: &mut World) {
        match self {
            Self::Build => world.declare("a", &table("select 2 as x", &[])).await,
            Self::Become => world.declare("a", &view("select 2 as x", &[])).await,
            Self::Step => world.refresh("rows").await,
            Self::Rename => world.rename("a", "b").await,
            Self::Drop => world.delete("a").await,
            Self::Adopt => world.lose_catalog().await,
        }
        if let Self::Adopt = self {
            prepare(world).await;
        }
    }

    /// The outputs in the engine when all is done, each with its rows.
    fn expected(self) -> &'static [&'static str] {
        match self {
            Self::Build | Self::Become => &["a 2", "rows 1"],
            Self::Step => &["a 1", "rows 1 1"],
            Self::Rename => &["b 1", "rows 1"],
            Self::Drop => &["rows 1"],
            Self::Adopt => &["a 1", "rows 1"],
        }
    }
}

/// Declares a table, and one that a refresh adds a row to.
async fn prepare(world: &World) {
    let rows = table("select 1 as x", &[]).incremental(IncrementalOutput::default());
    let models = [("a", table("select 1 as x", &[])), ("rows", rows)];
    world.create_all(&models).await;
}

async fn found(world: &World) -> Vec<String> {
    let mut found = Vec::new();
    for name in world.objects().await {
        let rows = world.rows(&format!("select x from {name}")).await;
        found.push(format!("{name} {}", rows.join(" ")));
    }
    found
}

/// Holds what the catalog says of outputs against those that stand in the engine, or stood there.
async fn assert_stand(world: &World, stood: &[Output], what: &str) {
    let outputs = world.outputs().await;
    for claim in world.claims() {
        let mut all = outputs.iter().chain(stood);
        let stands = all.any(|output| output.tag == claim.tag && output.kind == claim.kind);
        assert!(stands, "{what}: {claim:?} is recorded, and {outputs:?} stand");
    }
}

/// Cuts the engine off at each call of an act in turn. Returns the number of calls.
async fn cut_each(act: Act, failure: &Failure, is_done: bool) -> usize {
    for call in 0.. {
        let cuts = Cuts::new(failure.clone(), is_done);
        let mut world = World::with_cuts(&cuts).await;
        prepare(&world).await;
        world.settle().await;
        let before = world.outputs().await;
        cuts.arm(call);
        act.perform(&mut world).await;
        let is_lost = world.settled_or_lost().await;
        let was_cut = cuts.disarm();
        let what = format!("{act:?}, {failure:?}, done: {is_done}, call {call}");
        assert_eq!(is_lost, was_cut && *failure == Failure::Fenced, "{what}");
        // Of an owner that is fenced off the catalog may speak of what stood before.
        let stood = if is_lost { before } else { Vec::new() };
        assert_stand(&world, &stood, &what).await;
        if is_lost {
            world.crash().await;
        }
        world.retry_all().await;
        assert_stand(&world, &[], &what).await;
        // What a failed delete left is tried again, now or later.
        world.crash().await;
        world.works().await;
        assert_eq!(found(&world).await, act.expected(), "{what}");
        world.crash().await;
        assert_eq!(world.works().await, [""; 0], "{what}");
        if !was_cut {
            return call;
        }
    }
    unreachable!("an act ends")
}

async fn cut_all(failure: Failure) {
    for act in Act::ALL {
        for is_done in [false, true] {
            let calls = cut_each(act, &failure, is_done).await;
            assert!(calls > 0, "{act:?} asks the engine for something");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_is_fenced_off_at_any_call_loses_its_lease_and_records_nothing() {
    cut_all(Failure::Fenced).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_of_which_no_end_was_told_is_looked_up_and_done_once() {
    let message = "the connection was cut".to_owned();
    cut_all(Failure::Unknown { message }).await;
}
