//! Group commit of concurrent builds. If a commit costs more than a small build, builds that wait at the same time
//! share one transaction.
//!
//! Whoever gets the right to work makes its own build first, then those that wait, one after the other; commits, and tells
//! each of whoever asked for them.
//!
//! Invariants:
//! 1. A build is told to be made only after the commit that holds its output, its tag and its record.
//! 2. A batch is committed whole or not at all. If one of its builds fails, is cancelled or takes long, the batch is repeated
//!    without that one where a transaction is dear, else each is made apart; the one always is, in a transaction of its own.
//!    So failures are always those of a build alone.
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

/// The bounds of a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// The most builds.
    most: usize,
    /// Time after which a batch accepts no more builds.
    full: Duration,
    /// The longest duration of a build that shares a transaction, since the others wait for it.
    brief: Duration,
    /// Number of times that a batch is repeated without builds that failed.
    repeats: usize,
}

impl Bounds {
    /// Bounds where a commit costs about as much as a small build: with more, each build's share of it hardly shrinks, and
    /// the others wait longer.
    pub(crate) const OF_FILE: Self = Self {
        most: 16,
        full: Duration::from_millis(20),
        brief: Duration::from_millis(50),
        repeats: 0,
    };

    /// Bounds where a commit costs as much as ten small builds. Each repetition leaves one out at least, and few fail.
    pub(crate) const OF_LAKE: Self = Self {
        most: 256,
        full: Duration::from_secs(2),
        brief: Duration::from_secs(1),
        repeats: 8,
    };
}

/// The queue of builds for the next transaction. `H` is the type that a caller holds for its build, such as a claim.
pub(crate) struct Group<H> {
    bounds: Bounds,
    queue: Mutex<Queue<H>>,
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
    pub(crate) fn new(bounds: Bounds) -> Self {
        let (waiting, last) = (VecDeque::new(), 0);
        Self {
            bounds,
            queue: Mutex::new(Queue { waiting, last }),
        }
    }

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
        if !may_share(build, self.bounds.brief) {
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
        let mut queue = self.queue.lock().unpoisoned();
        queue.last += 1;
        let place = queue.last;
        queue.waiting.push_back((place, waiting));
    }

    /// Returns the sequence number of the last build.
    fn last(&self) -> u64 {
        self.queue.lock().unpoisoned().last
    }

    /// Removes the first build from the queue, unless it came after `last`.
    fn pop(&self, last: u64) -> Option<Waiting<H>> {
        let mut queue = self.queue.lock().unpoisoned();
        let first = queue.waiting.pop_front_if(|(place, _)| *place <= last);
        first.map(|(_, waiting)| waiting)
    }

    /// Removes the build with this tag; none if another batch has it.
    fn take(&self, tag: Tag) -> Option<Waiting<H>> {
        let mut queue = self.queue.lock().unpoisoned();
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
fn may_share(build: &Build, brief: Duration) -> bool {
    let was_brief = || build.took.is_none_or(|took| took <= brief);
    let is_brief = match build.step {
        Step::TakeBack(_) => true,
        Step::Replace => build.kind == OutputKind::View || was_brief(),
        Step::Into { .. } => false,
    };
    is_brief && build.hooks.is_empty() && build.databases.is_empty() && build.stage.is_none()
}

/// The part of a batch that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failed {
    /// The last build that was taken.
    Last,
    /// No build by itself.
    Whole,
}

/// The builds of one transaction. Their callers wait until told, or until the batch is dropped, so that no build runs
/// twice at once.
pub(crate) struct Batch<H> {
    group: Arc<Group<H>>,
    /// Tag of the caller's own build.
    own: Tag,
    /// Builds to make before those that wait: the caller's own, and those of a repetition.
    first: VecDeque<Waiting<H>>,
    taken: Vec<Waiting<H>>,
    last: u64,
    started: Instant,
    repeats: usize,
}

impl<H> Batch<H> {
    fn new(group: Arc<Group<H>>, own: Waiting<H>) -> Self {
        Self {
            repeats: group.bounds.repeats,
            group,
            own: own.build.tag,
            first: VecDeque::from([own]),
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
        let bounds = self.group.bounds;
        let next = match self.first.pop_front() {
            Some(first) => first,
            None if self.taken.len() >= bounds.most || self.started.elapsed() >= bounds.full => return None,
            None => self.group.pop(self.last)?,
        };
        // Nobody else waits for the caller's own: it may take as long as it does.
        let limit = (next.build.tag != self.own).then_some(bounds.brief);
        self.taken.push(next);
        self.taken.last().map(|taken| (taken, limit))
    }

    /// Makes the batch ready to be made once more, without builds that were cancelled, and without the last one taken if
    /// that failed. Returns false if it is not to be repeated.
    pub(crate) fn repeat(&mut self, failed: Failed) -> bool {
        if failed == Failed::Last {
            // Its caller makes it apart.
            self.taken.pop();
        }
        let Some(left) = self.repeats.checked_sub(1) else {
            return false;
        };
        self.repeats = left;
        self.taken.retain(|taken| !taken.cancel.is_cancelled());
        self.first.extend(self.taken.drain(..));
        !self.first.is_empty()
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
        let (group, cancel) = (Arc::new(Group::new(Bounds::OF_FILE)), CancellationToken::new());
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

    #[test]
    fn a_batch_is_repeated_without_builds_that_failed_or_were_cancelled_and_not_for_ever() {
        let group = Arc::new(Group::<()>::new(Bounds::OF_LAKE));
        let waiting = |n| Waiting {
            build: build(n),
            cancel: CancellationToken::new(),
            span: Span::none(),
            held: (),
            answer: oneshot::channel().0,
        };
        let names = |batch: &mut Batch<()>| {
            batch.begin();
            let mut names = Vec::new();
            while let Some((next, limit)) = batch.next() {
                names.push((next.build.name.clone(), limit.is_some()));
            }
            names
        };
        for n in 2..5 {
            group.push(waiting(n));
        }
        let mut batch = Batch::new(Arc::clone(&group), waiting(1));
        let pair = |n: u32, is_limited| (format!("t{n}"), is_limited);
        assert_eq!(
            names(&mut batch),
            [pair(1, false), pair(2, true), pair(3, true), pair(4, true)]
        );
        assert!(batch.repeat(Failed::Last));
        batch.first[0].cancel.cancel();
        group.push(waiting(5));
        assert_eq!(
            names(&mut batch),
            [pair(1, false), pair(2, true), pair(3, true), pair(5, true)]
        );
        assert!(batch.repeat(Failed::Whole));
        assert_eq!(names(&mut batch), [pair(2, true), pair(3, true), pair(5, true)]);
        for _ in 2..Bounds::OF_LAKE.repeats {
            assert!(batch.repeat(Failed::Whole));
            assert_eq!(names(&mut batch).len(), 3);
        }
        assert!(!batch.repeat(Failed::Whole));
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
        long.took = Some(Duration::from_secs(1));
        let (batches, told) = asked(&[long, build(2)], true).await;
        assert_eq!((batches, told), (vec![1], vec![false, true]));
    }

    #[tokio::test]
    async fn a_caller_that_is_gone_leaves_no_build_behind() {
        let (group, cancel) = (
            Arc::new(Group::<()>::new(Bounds::OF_FILE)),
            CancellationToken::new(),
        );
        let never = futures::future::pending::<Result<(), Failure>>();
        let build = build(1);
        let asked = group.share((&build, ()), &cancel, never, |(), _| async { Ok(()) });
        assert!(asked.now_or_never().is_none());
        assert!(group.pop(group.last()).is_none());
    }
}
