//! One simulated world: a core, a store and callers, all moved by one seed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use watershed_core::{
    AtStart, CallId, Core, Effect, Error, Input, InvocationId, Key, KindOptions, Limits, Mono, Now, OnOwned,
    OnTimedAncestor, Parents, Phase, Pool, Revision, Row, SpecVersion, Stage, StateVersion, StopReason,
    Stored, Timestamp, Uid,
};

use crate::awaited::Awaited;
use crate::model::{Catalog, Item};
use crate::returns::since;
use crate::script::{Taste, policy};
use crate::store::Store;
use crate::takeover::Stale;

/// An invocation as its start showed it.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) uid: Uid,
    pub(crate) phase: Phase,
    pub(crate) cancelled: bool,
    pub(crate) stopped: bool,
    pub(crate) names: BTreeSet<Key>,
    pub(crate) started: u64,
    pub(crate) begun: Mono,
    pub(crate) begun_wall: Timestamp,
    pub(crate) deadline: Option<Mono>,
    /// The time at which it is given up on, once it is cancelled; and whether it was.
    pub(crate) abandon_at: Option<Mono>,
    pub(crate) abandoned: bool,
    /// It was cancelled because it took too long, and for nothing else since.
    pub(crate) overdue: bool,
    /// The step by which it knows its parents: that of its start, or of its own last edit of its refs.
    pub(crate) sees_refs_of: u64,
    /// The spec version that it knows.
    pub(crate) spec_version: SpecVersion,
}

impl Run {
    /// The time at which it will have taken too long.
    pub(crate) fn deadline_to_come(&self) -> Option<Mono> {
        self.deadline.filter(|_| !self.cancelled)
    }

    /// The time at which it will be given up on.
    pub(crate) fn end_to_come(&self) -> Option<Mono> {
        self.abandon_at.filter(|_| !self.abandoned)
    }
}

/// An unfinished delete or rename.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub(crate) counts: bool,
    /// Deletes that this one waits for while they count.
    pub(crate) waits: BTreeSet<Uid>,
    /// It failed, and is tried again then.
    pub(crate) retry_at: Option<Mono>,
}

/// The drain of deletes and renames was over its limit: these were pending and start before the next one.
#[derive(Clone, Debug)]
pub(crate) struct Release {
    pub(crate) first: BTreeSet<Uid>,
    /// Released by this very input.
    pub(crate) fresh: bool,
    /// All of them have started or settled; with the next input deletes and renames hold others back again.
    pub(crate) over: bool,
    /// True if they are not known, and so neither is the begin of the next drain.
    pub(crate) unsure: bool,
}

/// The steps at which things happened to one resource.
#[derive(Clone, Default, Debug)]
pub(crate) struct Past {
    pub(crate) asked: u64,
    pub(crate) completed_start: u64,
    pub(crate) completed_seeing: u64,
    pub(crate) completed_end: u64,
    pub(crate) settled: u64,
    /// Its last completed run did nothing on purpose.
    pub(crate) passed_over: bool,
    /// The things that its last completed run left, and the spec version that it knew if that run succeeded and left it ready.
    pub(crate) left: Option<Left>,
    pub(crate) ready_as: Option<SpecVersion>,
    /// `cancel(name)` stopped it, and nothing has asked for it since.
    pub(crate) stopped: bool,
    /// Not to start before this is durable.
    pub(crate) hold: Revision,
    pub(crate) requeue: Option<Timestamp>,
    /// The end of the wait for its next run, which no setting of a clock moves.
    pub(crate) wait_over: Option<Mono>,
    /// The time at which a deferred nudge counts.
    pub(crate) nudge_at: Option<Mono>,
    /// Failures in a row. Below: when they are tried again, when waits are short again, when it is looked at.
    pub(crate) attempts: u32,
    /// Failures that its waits are as long for, also after a success that has not lasted.
    pub(crate) backed_off: u32,
    /// The time at which the transient failure came that stands, and what it said of when to come back, until its retry
    /// is due.
    pub(crate) failure: Option<(Mono, Option<Duration>)>,
    pub(crate) retry_at: Option<Mono>,
    pub(crate) forgive_at: Option<Mono>,
    pub(crate) resync_at: Option<Mono>,
    /// To be reconciled once although it is paused; asked for while it was.
    pub(crate) forced: bool,
    pub(crate) missed: bool,
    /// Since when it has waited for a run that completes; when something else than a timed request last came for it.
    pub(crate) waiting_since: Option<Mono>,
    pub(crate) disturbed: Mono,
    /// The number of the last request for it, and of the last of all that its last reconcile was for.
    pub(crate) asked_as: u64,
    pub(crate) served_to: u64,
    /// True if a run that it was owed did not come.
    pub(crate) owed_still: bool,
    /// Has settled since the start, as far as readers can tell.
    pub(crate) seen_settled_since_start: bool,
    /// Has completed or settled since the start.
    pub(crate) seen_through_since_start: bool,
}

/// The things that the owner of a resource looks at once a run of that has completed.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Left {
    pub(crate) state_version: StateVersion,
    pub(crate) error: Option<Error>,
    pub(crate) unready: Option<Arc<str>>,
}

/// A request for a reconcile that has not had all of its answers.
#[derive(Clone, Debug)]
pub(crate) struct Handle {
    pub(crate) asked: u64,
    /// Invocations from this one on started after it.
    pub(crate) since: u64,
    pub(crate) members: BTreeSet<Uid>,
    pub(crate) outcome: bool,
    pub(crate) settled: bool,
    pub(crate) forgotten: bool,
}

/// The answer that a call must get.
#[derive(Clone, Debug)]
pub(crate) enum Expected {
    Applied,
    Refused,
    Handle,
    Done,
    Idle,
}

pub(crate) struct Simulation {
    pub(crate) rng: SmallRng,
    pub(crate) taste: Taste,
    pub(crate) kinds: Vec<KindOptions>,
    pub(crate) limits: Limits,
    pub(crate) now: Now,
    pub(crate) step: u64,
    pub(crate) core: Core,
    pub(crate) store: Store,
    pub(crate) catalog: Catalog,
    pub(crate) running: BTreeMap<InvocationId, Run>,
    pub(crate) ops: BTreeMap<Uid, Op>,
    pub(crate) past: BTreeMap<Uid, Past>,
    pub(crate) stages: BTreeMap<Uid, Stage>,
    pub(crate) published: BTreeMap<Uid, Arc<Row>>,
    pub(crate) calls: BTreeMap<CallId, Expected>,
    pub(crate) handles: BTreeMap<CallId, Handle>,
    pub(crate) awaited: BTreeMap<CallId, Awaited>,
    pub(crate) last_invocation: u64,
    pub(crate) next_call: u64,
    pub(crate) timer: Option<Mono>,
    /// Since when a drain of deletes and renames goes on.
    pub(crate) drain: Option<Mono>,
    pub(crate) released: Option<Release>,
    /// True if it was in this step.
    pub(crate) was_released: bool,
    /// Requests so far.
    pub(crate) asks: u64,
    pub(crate) trace: Vec<String>,
    /// It is being ended; and why it has stopped.
    pub(crate) stopping: bool,
    pub(crate) stopped: Option<StopReason>,
    /// One that held the instance before and does not know that it is taken.
    pub(crate) stale: Option<Stale>,
    /// The invocations that this step must cancel, and those that it may.
    pub(crate) must_cancel: BTreeSet<Uid>,
    pub(crate) may_cancel: BTreeSet<Uid>,
    pub(crate) must_unsettle: BTreeSet<Uid>,
}

pub(crate) type Check = Result<(), String>;

pub(crate) fn ensure(holds: bool, rule: &str, detail: impl FnOnce() -> String) -> Check {
    if holds {
        Ok(())
    } else {
        Err(format!("{rule}: {}", detail()))
    }
}

fn kinds(rng: &mut SmallRng, taste: &Taste) -> Vec<KindOptions> {
    let patience = Duration::from_secs(if rng.random_bool(0.4) { 4 } else { 600 });
    let timed_patience = Duration::from_secs(if rng.random_bool(0.5) { 3 } else { 30 });
    let options = |name: &str| KindOptions {
        cancel_deadline: patience,
        timed_patience,
        ..KindOptions::new(name)
    };
    let mut changed = options("changed");
    changed.parents = Parents::Changed;
    changed.at_start = AtStart::AskIfUnsettled;
    let mut brief = options("brief");
    brief.on_timed_ancestor = OnTimedAncestor::Cancel;
    brief.requeue_interval = Duration::from_millis(if rng.random_bool(0.5) { 100 } else { 2_000 });
    brief.concurrency = rng.random_bool(0.5).then_some(1);
    brief.deadline = rng.random_bool(0.5).then_some(Duration::from_secs(7));
    brief.resync = rng.random_bool(0.3).then_some(Duration::from_secs(40));
    if taste.hasty {
        brief.resync = Some(Duration::from_micros(500));
    }
    let mut plain = options("plain");
    if rng.random_bool(0.7) {
        plain.retry = policy(rng);
    }
    plain.on_owned = match taste.owners_look {
        true => OnOwned::Changed,
        false => OnOwned::Exhausted,
    };
    if rng.random_bool(0.5) {
        let pool = Pool {
            name: "shared".into(),
            limit: rng.random_range(1..=3),
            exclusive: rng.random_bool(0.5),
        };
        (brief.pool, changed.pool) = (Some(pool.clone()), Some(pool));
    }
    let mut first = options("first");
    first.first = rng.random_bool(0.5);
    vec![plain, changed, brief, first]
}

impl Simulation {
    pub(crate) fn new(seed: u64) -> Result<Self, String> {
        let mut rng = SmallRng::seed_from_u64(seed);
        let taste = Taste::draw(seed, &mut rng);
        let kinds = kinds(&mut rng, &taste);
        let limits = Limits::default()
            .concurrency(rng.random_range(1..=6))
            .drain_limit(Duration::from_secs(if rng.random_bool(0.2) { 3 } else { 60 }))
            .starvation_slack(Duration::ZERO)
            .unregistered_kinds();
        let now = Now {
            wall: Timestamp(1_000_000),
            mono: Mono(0),
        };
        let mut store = Store::default();
        let stored = store.reopen();
        let (core, effects) =
            Core::open(now, limits, kinds.clone(), stored).map_err(|error| error.to_string())?;
        let mut world = Self {
            rng,
            taste,
            kinds,
            limits,
            now,
            step: 1,
            core,
            store,
            catalog: Catalog::default(),
            running: BTreeMap::new(),
            ops: BTreeMap::new(),
            past: BTreeMap::new(),
            stages: BTreeMap::new(),
            published: BTreeMap::new(),
            calls: BTreeMap::new(),
            handles: BTreeMap::new(),
            awaited: BTreeMap::new(),
            last_invocation: 0,
            next_call: 1,
            timer: None,
            drain: None,
            released: None,
            was_released: false,
            asks: 0,
            trace: Vec::new(),
            stopping: false,
            stopped: None,
            stale: None,
            must_cancel: BTreeSet::new(),
            may_cancel: BTreeSet::new(),
            must_unsettle: BTreeSet::new(),
        };
        world.carry_out(effects)?;
        Ok(world)
    }

    pub(crate) fn options(&self, uid: Uid) -> Option<&KindOptions> {
        let kind = &self.catalog.items.get(&uid)?.key.kind;
        self.kinds.iter().find(|options| options.kind == *kind)
    }

    pub(crate) fn is_supported(&self, item: &Item) -> bool {
        self.kinds.iter().any(|options| options.kind == item.key.kind)
    }

    /// Resources that readers have not heard of are pending: they wait for the commit that creates them.
    pub(crate) fn is_unsettled(&self, uid: Uid) -> bool {
        !matches!(self.stages.get(&uid), Some(Stage::Settled(_)))
    }

    pub(crate) fn run_of(&self, uid: Uid) -> Option<&Run> {
        self.active().find(|run| run.uid == uid)
    }

    /// Invocations that are not abandoned.
    pub(crate) fn active(&self) -> impl Iterator<Item = &Run> {
        self.running.values().filter(|run| !run.abandoned)
    }

    pub(crate) fn is_durable(&self) -> bool {
        self.store.in_flight.is_none() && self.store.revision == self.core.revision()
    }

    pub(crate) fn past(&mut self, uid: Uid) -> &mut Past {
        self.past.entry(uid).or_default()
    }

    /// Hands one input in and carries out what comes of it.
    pub(crate) fn input(&mut self, input: Input) -> Check {
        self.trace
            .push(format!("{} {:?} {input:?}", self.step, self.now.mono));
        self.age_ops();
        self.free_kept_out();
        let waiting = self.waiting_for_names();
        self.owe_what_has_its_name(&waiting);
        let mut effects = Vec::new();
        self.core.handle(self.now, input, &mut effects);
        self.carry_out(effects)?;
        self.note_free_names(&waiting);
        Ok(())
    }

    pub(crate) fn carry_out(&mut self, mut effects: Vec<Effect>) -> Check {
        self.core.flush(self.now, &mut effects);
        for effect in effects {
            self.take(effect)?;
        }
        self.free_kept_out();
        self.follow_drain();
        self.note_waiting();
        let findings = self.core.check_consistency();
        ensure(findings.is_empty(), "consistency", || {
            let told: Vec<String> = findings.iter().map(ToString::to_string).collect();
            told.join("; ")
        })
    }

    fn take(&mut self, effect: Effect) -> Check {
        match effect {
            Effect::Start(start) => self.take_start(&start),
            Effect::Cancel { invocation, .. } => self.take_cancel(invocation),
            Effect::Timer(at) => {
                self.timer = at;
                Ok(())
            }
            Effect::Commit(commit) => self.take_commit(commit),
            Effect::Answer { call, answer } => self.take_answer(call, &answer),
            Effect::Publish(publish) => self.take_publish(publish),
            Effect::Stopped { reason, .. } if self.stopping => {
                self.stopped = Some(reason);
                Ok(())
            }
            Effect::Stopped { .. } => Err("it stopped by itself".into()),
        }
    }

    /// The process dies, and another one takes up what is durable.
    pub(crate) fn restart(&mut self) -> Check {
        self.restart_beside().map(drop)
    }

    /// Another one takes up what is durable; gives back the one before.
    pub(crate) fn restart_beside(&mut self) -> Result<Core, String> {
        self.trace.push(format!("{} restart", self.step));
        let mut stored = self.store.reopen();
        let resting = lay_to_rest(&mut stored);
        // What was asked of the core that ended may be lost with it.
        self.must_unsettle.clear();
        self.running.clear();
        self.calls.clear();
        self.handles.clear();
        self.awaited.clear();
        self.stages.clear();
        self.past.clear();
        self.ops.clear();
        (self.drain, self.released, self.timer) = (None, None, None);
        self.last_invocation = 0;
        // The order of the deletes is that of their stored revisions, which commits are checked to agree with.
        self.catalog = Catalog {
            items: BTreeMap::new(),
            deletes: self.store.revision.0,
        };
        for (uid, row) in &self.store.rows {
            let mut item = Item::from_row(row);
            item.deleted_at = row.intents.deletion.map_or(0, |deletion| deletion.revision.0);
            self.catalog.items.insert(*uid, item);
            let past = self.past.entry(*uid).or_default();
            past.attempts = row.attempts;
            let seen = row.last_run.as_ref().and_then(|last| last.seen.as_ref());
            past.left = seen.map(|_| Left {
                state_version: row
                    .last_run
                    .as_ref()
                    .map_or(StateVersion(0), |last| last.state_version),
                // That of a cycle goes before it runs again.
                error: row
                    .error
                    .as_deref()
                    .filter(|error| &*error.code != "cycle")
                    .cloned(),
                unready: row.unready.clone(),
            });
            let failed = row.last_run.as_ref().is_some_and(|last| last.failed);
            let is_ready = !failed && row.unready.is_none();
            past.ready_as = seen.filter(|_| is_ready).map(|seen| seen.spec_version);
            past.requeue = row
                .next_reconcile
                .filter(|at| !row.intents.is_deleted() && *at > self.now.wall);
            let length = row.last_run.as_ref().and_then(|last| last.requeue_after);
            past.wait_over = past.requeue.zip(length).map(|(at, length)| {
                let over = at.min(self.now.wall.after(length));
                self.now.mono.after(since(over, self.now.wall))
            });
        }
        self.published = self.store.rows.clone();
        for (uid, item) in &self.catalog.items {
            if item.is_marked() && self.is_supported(item) {
                let op = Op {
                    counts: true,
                    waits: BTreeSet::new(),
                    retry_at: None,
                };
                self.ops.insert(*uid, op);
            }
        }
        let all: Vec<Uid> = self.catalog.items.keys().copied().collect();
        for uid in all {
            let asks = self
                .options(uid)
                .is_some_and(|options| options.at_start == AtStart::AskAlways);
            // What was not ready gets another look, or what waits for that would wait for ever.
            let was_unready = self.store.rows[&uid].unready.is_some();
            let is_sound = self.catalog.is_live(uid) && self.options(uid).is_some();
            if (asks && !resting.contains(&uid)) || (was_unready && is_sound) {
                self.note_asked(uid);
            }
            if self.catalog.is_live(uid) {
                self.note_resync(uid);
            }
            self.owe(uid);
        }
        let (core, effects) = Core::open(self.now, self.limits, self.kinds.clone(), stored)
            .map_err(|error| error.to_string())?;
        let before = std::mem::replace(&mut self.core, core);
        self.carry_out(effects)?;
        Ok(before)
    }

    /// A request of its own came for this resource in this step.
    pub(crate) fn note_asked(&mut self, uid: Uid) {
        self.owe(uid);
        for run in self.running.values_mut().filter(|run| run.uid == uid) {
            run.stopped = false;
        }
        let step = self.step;
        let past = self.past(uid);
        (past.asked, past.stopped) = (step, false);
    }
}

/// Lets a third of the rows rest at this start unless they are unsettled, others each time; none that others wait for. Returns
/// which.
fn lay_to_rest(stored: &mut Stored) -> BTreeSet<Uid> {
    let epoch = u128::from(stored.epoch.0);
    let mut resting = BTreeSet::new();
    for entry in &mut stored.rows {
        entry.may_rest = entry.row.kind.as_str() != "first" && (entry.row.uid.0.as_u128() + epoch) % 3 == 0;
        resting.extend(entry.may_rest.then_some(entry.row.uid));
    }
    resting
}
