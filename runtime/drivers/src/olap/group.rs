//! Group commit of concurrent builds. If a commit costs more than a small build, builds that wait at the same time
//! share one transaction.
//!
//! Whoever gets the right to work makes its own build first, then those that wait, one after the other; commits, and tells
//! each of whoever asked for them.
//!
//! Invariants:
//! 1. A build is told to be made only after the commit that holds its output, its tag and its record.
//! 2. A batch is committed whole or not at all. If one of its builds fails, is cancelled or takes long, each is made apart,
//!    in a transaction of its own. So failures are always those of a build alone.
//! 3. Builds of one batch are independent: none reads another, and what their callers hold (claims of owners and names) is
//!    disjoint.
//! 4. A build is made in a transaction that began after it came to wait: one that began before does not see the rows of what
//!    was committed meanwhile, and those may be the ones that it reads.
//! 5. A build waits for its own transaction and for no other: only the first of a batch may take long, and that is the build
//!    of whoever makes the batch.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::Span;
use watershed_locks::Unpoisoned;

use super::{Build, Built, Failure, OutputKind, Step, Tag};

/// The most builds of one batch: with more, each build's share of the commit hardly shrinks, and the others wait
/// longer.
const MOST: usize = 16;

/// Time after which a batch accepts no more builds.
const FULL: Duration = Duration::from_millis(20);

/// The queue of builds for the next transaction. `H` is the type that a caller holds for its build, such as a claim.
pub(crate) struct Group<H>(Mutex<Queue<H>>);

impl<H> Default for Group<H> {
    fn default() -> Self {
        Self(Mutex::new(Queue {
            waiting: VecDeque::new(),
            last: 0,
        }))
    }
}

struct Queue<H> {
    /// Waiting builds, each with its sequence number.
    waiting: VecDeque<(u64, Waiting<H>)>,
    /// Sequence number of the last build.
    last: u64,
}

/// A waiting build.
pub(crate) struct Waiting<H> {
    pub(crate) build: Build,
    pub(crate) cancel: CancellationToken,
    /// Tracing span of the caller.
    pub(crate) span: Span,
    held: H,
    /// Channel for the result after the commit; closed if the build must run alone.
    answer: oneshot::Sender<Built>,
}

impl<H> Group<H> {
    /// Builds an output in a transaction shared with others. Returns `None` if the build must run alone.
    ///
    /// `entered` waits for the right to work, and `make` makes a batch with that. Both end early when `cancel` does.
    ///
    /// # Cancel safety
    /// Dropping the future takes the build out, unless it is being made.
    pub(crate) async fn share<T, M>(
        self: &Arc<Self>,
        (build, held): (&Build, H),
        cancel: &CancellationToken,
        entered: impl Future<Output = Result<T, Failure>>,
        make: impl FnOnce(T, Batch<H>) -> M,
    ) -> Result<Option<Built>, Failure>
    where
        M: Future<Output = Result<(), Failure>>,
    {
        if !may_share(build) {
            return Ok(None);
        }
        let (sender, mut answer) = oneshot::channel();
        let tag = build.tag;
        self.push(Waiting {
            build: build.clone(),
            cancel: cancel.clone(),
            span: Span::current(),
            held,
            answer: sender,
        });
        let _place = Place { group: self, tag };
        let entered = tokio::select! {
            biased;
            made = &mut answer => return Ok(made.ok()),
            entered = entered => entered,
        };
        match (entered, self.take(tag)) {
            (Ok(turn), Some(own)) => make(turn, Batch::new(Arc::clone(self), own)).await?,
            (Err(error), Some(_)) => return Err(error),
            // It is being made: its commit may have begun.
            (_, None) => {}
        }
        Ok(answer.await.ok())
    }

    fn push(&self, waiting: Waiting<H>) {
        let mut queue = self.0.lock().unpoisoned();
        queue.last += 1;
        let place = queue.last;
        queue.waiting.push_back((place, waiting));
    }

    /// Returns the sequence number of the last build.
    fn last(&self) -> u64 {
        self.0.lock().unpoisoned().last
    }

    /// Removes the first build from the queue, unless it came after `last`.
    fn pop(&self, last: u64) -> Option<Waiting<H>> {
        let mut queue = self.0.lock().unpoisoned();
        let first = queue.waiting.pop_front_if(|(place, _)| *place <= last);
        first.map(|(_, waiting)| waiting)
    }

    /// Removes the build with this tag; none if another batch has it.
    fn take(&self, tag: Tag) -> Option<Waiting<H>> {
        let mut queue = self.0.lock().unpoisoned();
        let at = queue.waiting.iter().position(|(_, it)| it.build.tag == tag)?;
        queue.waiting.remove(at).map(|(_, waiting)| waiting)
    }
}

/// A place in the queue, freed when dropped.
struct Place<'a, H> {
    group: &'a Group<H>,
    tag: Tag,
}

impl<H> Drop for Place<'_, H> {
    fn drop(&mut self) {
        self.group.take(self.tag);
    }
}

/// Returns true if a build may share a transaction: no hooks or databases around it, and not known to take long.
fn may_share(build: &Build) -> bool {
    let is_brief = match build.step {
        Step::TakeBack(_) => true,
        Step::Replace => build.kind == OutputKind::View || build.is_brief,
        Step::Into { .. } => false,
    };
    is_brief && build.hooks.is_empty() && build.databases.is_empty() && build.stage.is_none()
}

/// The builds of one transaction. Their callers wait until told, or until the batch is dropped, so that no build runs
/// twice at once.
pub(crate) struct Batch<H> {
    group: Arc<Group<H>>,
    own: Option<Waiting<H>>,
    taken: Vec<Waiting<H>>,
    last: u64,
    started: Instant,
}

impl<H> Batch<H> {
    fn new(group: Arc<Group<H>>, own: Waiting<H>) -> Self {
        Self {
            group,
            own: Some(own),
            taken: Vec::new(),
            last: 0,
            started: Instant::now(),
        }
    }

    /// Admits all builds waiting now. Must be called right before the transaction begins.
    pub(crate) fn begin(&mut self) {
        (self.last, self.started) = (self.group.last(), Instant::now());
    }

    /// Returns the next build with its time limit: the caller's own first, then builds admitted at the beginning, while
    /// the batch is brief.
    pub(crate) fn next(&mut self) -> Option<(&Waiting<H>, Option<Duration>)> {
        let (next, limit) = match self.own.take() {
            // Nobody else waits for the first: it may take as long as it does.
            Some(own) => (own, None),
            None if self.taken.len() == MOST || self.started.elapsed() >= FULL => return None,
            None => (self.group.pop(self.last)?, Some(Build::BRIEF)),
        };
        self.taken.push(next);
        self.taken.last().map(|taken| (taken, limit))
    }

    /// Returns the number of builds taken so far.
    pub(crate) fn len(&self) -> usize {
        self.taken.len()
    }

    /// Returns true if the caller of any taken build has cancelled it.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.taken.iter().any(|taken| taken.cancel.is_cancelled())
    }

    /// Returns the builds taken so far.
    pub(crate) fn builds(&self) -> impl Iterator<Item = &Build> {
        self.taken.iter().map(|taken| &taken.build)
    }

    /// Sends the results of the committed builds to their callers.
    pub(crate) fn tell(self, made: impl IntoIterator<Item = Built>) {
        for (waiting, built) in self.taken.into_iter().zip(made) {
            // Its owner and names are free before its caller goes on.
            drop(waiting.held);
            // Nobody may be there any more: the output is made all the same.
            let _ = waiting.answer.send(built);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use futures::future::join_all;
    use uuid::Uuid;

    use super::*;

    fn build(n: u128) -> Build {
        let tag = Tag {
            uid: Uuid::from_u128(n),
            build: Uuid::from_u128(n),
        };
        Build::of_statement(tag, Vec::new(), OutputKind::Table, format!("t{n}"), "")
    }

    fn built(build: &Build) -> Built {
        Built {
            rows: None,
            tag: build.tag,
            record: Vec::new(),
            attempts: 1,
            took: Duration::ZERO,
            verdicts: Vec::new(),
        }
    }

    /// Runs all builds of a batch, and records their number.
    fn make(batch: &mut Batch<()>, batches: &Mutex<Vec<usize>>) {
        batch.begin();
        while batch.next().is_some() {}
        batches.lock().unpoisoned().push(batch.len());
    }

    /// Submits builds that all wait before the first may start. Returns the sizes of the batches, and for each build
    /// true if its caller was told.
    async fn asked(builds: &[Build], commits: bool) -> (Vec<usize>, Vec<bool>) {
        let (group, cancel) = (Arc::new(Group::default()), CancellationToken::new());
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let batches = Mutex::new(Vec::new());
        let ask = |build| {
            let entered = async { Ok(gate.acquire().await) };
            let make = |_held, mut batch: Batch<()>| {
                make(&mut batch, &batches);
                if commits {
                    let all: Vec<Built> = batch.builds().map(built).collect();
                    batch.tell(all);
                }
                async { Ok(()) }
            };
            group.share((build, ()), &cancel, entered, make).boxed_local()
        };
        let all = join_all(builds.iter().map(ask));
        let (ends, ()) = futures::join!(all, async { gate.add_permits(1) });
        let told = ends.into_iter().map(|end| end.unwrap().is_some()).collect();
        (batches.into_inner().unpoisoned(), told)
    }

    #[tokio::test]
    async fn those_that_wait_share_a_batch_of_bounded_size() {
        let builds: Vec<Build> = (1..=20).map(build).collect();
        let (batches, told) = asked(&builds, true).await;
        // A machine that is busy ends one sooner.
        assert!(batches.iter().all(|size| *size <= 16), "{batches:?}");
        assert_eq!((batches.iter().sum(), told), (20, vec![true; 20]));
    }

    #[tokio::test]
    async fn nobody_is_told_where_a_batch_is_not_committed() {
        let builds: Vec<Build> = (1..=3).map(build).collect();
        let (batches, told) = asked(&builds, false).await;
        assert_eq!((batches, told), (vec![3], vec![false; 3]));
    }

    #[tokio::test]
    async fn what_may_take_long_shares_nothing() {
        let mut long = build(1);
        long.is_brief = false;
        let (batches, told) = asked(&[long, build(2)], true).await;
        assert_eq!((batches, told), (vec![1], vec![false, true]));
    }

    #[tokio::test]
    async fn a_caller_that_is_gone_leaves_no_build_behind() {
        let (group, cancel) = (Arc::new(Group::<()>::default()), CancellationToken::new());
        let never = futures::future::pending::<Result<(), Failure>>();
        let build = build(1);
        let asked = group.share((&build, ()), &cancel, never, |(), _| async { Ok(()) });
        assert!(asked.now_or_never().is_none());
        assert!(group.pop(group.last()).is_none());
    }
}
