//! Builds that share a transaction. A commit costs more than a small build, so those that wait at the same time are
//! committed together.
//!
//! Whoever has the right to work makes its own build first, then those that wait, one after the other; commits, and tells
//! each of whoever asked for them.
//!
//! Invariants:
//! 1. A build is told to be made only after the commit that holds its output, its tag and its record.
//! 2. A group is committed whole or not at all. If one of its builds fails, is cancelled or takes long, each is made apart,
//!    in a transaction of its own. So failures are always those of a build alone.
//! 3. Builds of one group are independent: none reads another, and their claims of owners and names are disjoint.
//! 4. A build is made in a transaction that began after it came to wait: one that began before does not see the rows of what
//!    was committed meanwhile, and those may be the ones that it reads.
//! 5. A build waits for its own transaction and for no other: only the first of a group may take long, and that is the build
//!    of whoever makes the group.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::Span;
use watershed_locks::Unpoisoned;

use super::super::build::{BuildPlan, Made, carry_out, note};
use super::super::failure::Aftermath;
use super::super::running::{Finished, Running};
use super::super::work::Work;
use super::{Claim, Company, Engine, on_blocking_thread};
use crate::crash::around;
use crate::olap::{Build, BuildError, Failure, OutputKind, Step, Tag};

/// Builds of one group: with more of them a commit's share in each becomes no smaller that is worth the wait for the others.
const MOST: usize = 16;

/// The time after which a group takes no more builds.
const FULL: Duration = Duration::from_millis(20);

/// The builds that wait for whoever has the right to work next.
#[derive(Default)]
pub(in crate::duckdb) struct Group(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    /// Each with its place among all that ever waited.
    waiting: VecDeque<(u64, Waiting)>,
    /// The place of the last one.
    last: u64,
}

/// A build that waits.
struct Waiting {
    build: Build,
    claim: Arc<Claim>,
    cancel: CancellationToken,
    /// Its caller's, for what is logged meanwhile.
    span: Span,
    /// Gets the output once it is committed, or nothing if the build is to be made apart.
    answer: oneshot::Sender<Option<Made>>,
}

impl Group {
    fn push(&self, waiting: Waiting) {
        let mut queue = self.0.lock().unpoisoned();
        queue.last += 1;
        let place = queue.last;
        queue.waiting.push_back((place, waiting));
    }

    /// Returns the place of the build that came last.
    fn last(&self) -> u64 {
        self.0.lock().unpoisoned().last
    }

    /// Takes the first build out, unless it came after `last`.
    fn pop(&self, last: u64) -> Option<Waiting> {
        let mut queue = self.0.lock().unpoisoned();
        let first = queue.waiting.pop_front_if(|(place, _)| *place <= last);
        first.map(|(_, waiting)| waiting)
    }

    /// Takes a build out, unless somebody has taken it already.
    fn take(&self, tag: Tag) -> Option<Waiting> {
        let mut queue = self.0.lock().unpoisoned();
        let at = queue.waiting.iter().position(|(_, it)| it.build.tag == tag)?;
        queue.waiting.remove(at).map(|(_, waiting)| waiting)
    }
}

/// A place in the group, given up on every way out.
struct Place<'a> {
    group: &'a Group,
    tag: Tag,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.group.take(self.tag);
    }
}

/// Returns true if a build may share its transaction: it needs nothing around it, and is not known to take long.
fn may_share(build: &Build) -> bool {
    let is_brief = match build.step {
        Step::TakeBack(_) => true,
        Step::Replace => build.kind == OutputKind::View || build.is_brief,
        Step::Into { .. } => false,
    };
    is_brief && build.hooks.is_empty() && build.databases.is_empty() && build.stage.is_none()
}

/// The builds of one transaction.
struct Taken {
    /// All that were begun. Until the transaction has ended none of their callers goes on: it would make its build beside this
    /// one.
    begun: Vec<Waiting>,
    /// The first of those, made and not committed yet.
    made: Vec<(BuildPlan, Made)>,
    aftermath: Aftermath,
}

impl Engine {
    /// Makes an output in a transaction that it shares with others. Returns `None` if it is to be made apart.
    ///
    /// # Cancel safety
    /// Dropping the future interrupts the build unless its commit has begun.
    pub(in crate::duckdb) async fn build_in_group(
        &self,
        build: &Build,
        claim: &Arc<Claim>,
        cancel: &CancellationToken,
    ) -> Result<Option<Made>, Failure> {
        if !may_share(build) {
            return Ok(None);
        }
        let cancel = cancel.child_token();
        let _dropped = cancel.clone().drop_guard();
        let (sender, mut answer) = oneshot::channel();
        let (group, tag) = (self.group(), build.tag);
        group.push(Waiting {
            build: build.clone(),
            claim: Arc::clone(claim),
            cancel: cancel.clone(),
            span: Span::current(),
            answer: sender,
        });
        let _place = Place { group, tag };
        let entered = async {
            let turn = self.enter_to_build(&cancel).await?;
            Ok::<_, Failure>((turn, self.enter(&cancel, Company::Others).await?))
        };
        let held = tokio::select! {
            biased;
            made = &mut answer => return Ok(made.ok().flatten()),
            held = entered => held,
        };
        match held {
            Ok(held) => {
                let engine = self.clone();
                on_blocking_thread(move || {
                    let _held = held;
                    if let Some(own) = engine.group().take(tag) {
                        engine.build_waiting(own);
                    }
                })
                .await?;
            }
            Err(error) if group.take(tag).is_some() => return Err(error),
            // It is being made: its commit may have begun.
            Err(_) => {}
        }
        Ok(answer.await.ok().flatten())
    }

    /// Makes a build, and those that wait with it, and tells whoever asked for them.
    fn build_waiting(&self, first: Waiting) {
        let connection = match self.checkout() {
            Ok(connection) => connection,
            Err(error) => {
                // Each learns on its own why nothing can be made.
                tracing::debug!(%error, "no connection for a group of builds");
                return;
            }
        };
        let whole = Work::uninterrupted(&connection);
        let mut taken = Taken {
            begun: Vec::new(),
            made: Vec::new(),
            aftermath: Aftermath::Usable,
        };
        // Before the transaction begins.
        let last = self.group().last();
        let made = whole.transaction(around!("build"), || {
            self.make_each(&whole, first, last, &mut taken)
        });
        match made {
            Ok(()) => {
                let made = taken.begun.drain(..).zip(taken.made.drain(..));
                made.for_each(|(waiting, made)| self.tell(waiting, made));
            }
            Err(error) => {
                tracing::debug!(%error, builds = taken.begun.len(), "each build of a group is made apart");
            }
        }
        match whole.aftermath().max(taken.aftermath) {
            Aftermath::Usable => self.check_in(connection),
            Aftermath::Spent => {}
            Aftermath::Broken => self.declare_broken(),
        }
    }

    /// Makes builds one after the other, until none waits of those up to `last`, or the group is full.
    fn make_each(
        &self,
        whole: &Work<'_>,
        first: Waiting,
        last: u64,
        taken: &mut Taken,
    ) -> Result<(), BuildError> {
        let connection = whole.connection();
        let started = Instant::now();
        let mut next = Some(first);
        while let Some(waiting) = next {
            // Nobody else waits for the first: it may take as long as it does.
            let limit = (!taken.made.is_empty()).then_some(Build::BRIEF);
            taken.begun.push(waiting);
            let Some(waiting) = taken.begun.last() else { break };
            let running = Running::start(&waiting.cancel, limit);
            let _finished = Finished(&running);
            let work = Work::new(connection, &running);
            running.arm(connection.interrupt());
            let made = waiting.span.in_scope(|| self.make(&work, &waiting.build));
            running.disarm();
            taken.aftermath = taken.aftermath.max(work.aftermath());
            taken.made.push(made?);
            let is_full = taken.made.len() == MOST || started.elapsed() >= FULL;
            next = if is_full { None } else { self.group().pop(last) };
        }
        note(whole, &mut taken.made)?;
        match taken.begun.iter().any(|waiting| waiting.cancel.is_cancelled()) {
            true => Err(Failure::Interrupted.into()),
            false => Ok(()),
        }
    }

    fn make(&self, work: &Work<'_>, build: &Build) -> Result<(BuildPlan, Made), BuildError> {
        let started = Instant::now();
        let plan = BuildPlan::new(&self.names(), build, self.keeps_trash())?;
        let mut made = carry_out(work, &plan, build)?;
        made.took = started.elapsed();
        Ok((plan, made))
    }

    /// Takes note of a committed build and tells whoever asked for it.
    fn tell(&self, waiting: Waiting, (plan, made): (BuildPlan, Made)) {
        self.apply(plan.edits(&waiting.build, &made));
        // Its owner and names are free before its caller goes on.
        drop(waiting.claim);
        // Nobody may be there any more: the output is made all the same.
        let _ = waiting.answer.send(Some(made));
    }
}
