//! C12 exactly: who starts first where places are few, predicted by a scheduler that recomputes everything.
//!
//! Worlds of their own: a graph of plain resources, requests of every priority, few places, prompt commits. What starts,
//! and in which order, has to be what the naive scheduler says. The rest of the contract is left to other worlds.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use watershed_core::{
    Batch, Call, CallId, Core, Edit, Effect, Error, Input, InvocationId, Key, KindOptions, Limits, Mono,
    NewResource, Now, OnTimedAncestor, Outcome, Pool, Priority, Ref, RetryPolicy, Returned, Stored, Target,
    Timestamp, Uid, Update, Work,
};

const KINDS: [&str; 3] = ["a", "b", "c"];
const STEPS_PER_WORLD: usize = 150;

/// A resource as the naive scheduler knows it.
#[derive(Debug)]
struct Item {
    key: Key,
    parents: BTreeSet<usize>,
    pending: bool,
    /// That of the most urgent request of its own; none if only parents asked for it.
    own: Option<Priority>,
    /// Parents asked for it first, which counts as normal.
    by_parents: bool,
    /// The longest way to a leaf when it became pending.
    path_ms: u64,
    duration_ms: u64,
    running: Option<Run>,
    retry_at: Option<Mono>,
}

#[derive(Clone, Debug)]
struct Run {
    invocation: InvocationId,
    cancelled: bool,
    begun: i64,
    /// The priority of the first request of its own meanwhile, or that only parents asked for it.
    again: Option<Option<Priority>>,
}

struct SchedulerModel {
    rng: SmallRng,
    core: Core,
    now: Now,
    kinds: Vec<KindOptions>,
    places: usize,
    items: Vec<Item>,
    calls: u64,
    started: Vec<Key>,
    trace: Vec<String>,
}

fn key(index: usize) -> Key {
    Key::new(KINDS[index % KINDS.len()], format!("r{index:02}").as_str())
}

fn kinds(rng: &mut SmallRng) -> Vec<KindOptions> {
    let pool = Pool {
        name: "shared".into(),
        limit: rng.random_range(1..=2),
        exclusive: false,
    };
    let kind = |name: &&str| {
        let retry = RetryPolicy::Backoff {
            base: Duration::from_millis(700),
            cap: Duration::from_millis(700),
            attempts: 1_000,
            reset_after: Duration::ZERO,
        };
        KindOptions {
            concurrency: rng.random_bool(0.4).then(|| rng.random_range(1..=2)),
            pool: rng.random_bool(0.5).then(|| pool.clone()),
            retry,
            on_timed_ancestor: match rng.random_bool(0.5) {
                true => OnTimedAncestor::Cancel,
                false => OnTimedAncestor::Wait,
            },
            timed_patience: Duration::from_secs(1 << 30),
            ..KindOptions::new(*name)
        }
    };
    KINDS.iter().map(kind).collect()
}

impl SchedulerModel {
    fn new(seed: u64) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        let kinds = kinds(&mut rng);
        let places = rng.random_range(1..=3);
        let limits = Limits::default()
            .concurrency(places)
            .promote_after(Duration::from_secs(1 << 30));
        let now = Now {
            wall: Timestamp(1_000_000),
            mono: Mono(0),
        };
        let opened = Core::open(now, limits, kinds.clone(), Stored::default());
        let (core, _) = opened.expect("an empty catalog");
        let mut world = Self {
            rng,
            core,
            now,
            kinds,
            places,
            items: Vec::new(),
            calls: 0,
            started: Vec::new(),
            trace: vec![format!("the world of seed {seed}")],
        };
        world.fill();
        world
    }

    /// Every resource reads some of those before it.
    fn fill(&mut self) {
        let count = self.rng.random_range(3..=14);
        let density = self.rng.random_range(0.05..0.5);
        let mut edits = Vec::new();
        for index in 0..count {
            let parents: BTreeSet<usize> = (0..index).filter(|_| self.rng.random_bool(density)).collect();
            let refs: Vec<Ref> = parents
                .iter()
                .map(|parent| Ref::completed(key(*parent).kind, key(*parent).name))
                .collect();
            let uid = Uid(uuid::Uuid::from_u128(index as u128 + 1));
            let new = NewResource::new(uid, key(index).kind, key(index).name, &b"0"[..]).with_refs(refs);
            edits.push(Edit::create(new));
            self.items.push(Item {
                key: key(index),
                parents,
                pending: true,
                own: Some(Priority::Requested),
                by_parents: false,
                path_ms: 0,
                duration_ms: 0,
                running: None,
                retry_at: None,
            });
        }
        self.call(Call::Apply(Batch { edits }));
    }

    fn children(&self, of: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.items.len()).filter(move |other| self.items[*other].parents.contains(&of))
    }

    /// Those that its way leads to, itself not among them.
    fn below(&self, of: usize) -> BTreeSet<usize> {
        let (mut found, mut open) = (BTreeSet::new(), vec![of]);
        while let Some(next) = open.pop() {
            open.extend(self.children(next).filter(|child| found.insert(*child)));
        }
        found
    }

    fn above(&self, of: usize) -> BTreeSet<usize> {
        (0..self.items.len())
            .filter(|other| self.below(*other).contains(&of))
            .collect()
    }

    fn is_unsettled(&self, index: usize) -> bool {
        self.items[index].pending || self.items[index].running.is_some()
    }

    /// A request of this priority: what it makes pending and cancels.
    fn ask(&mut self, index: usize, priority: Priority) {
        let cancels = priority == Priority::Requested;
        if self.is_unsettled(index) {
            self.ask_unsettled(index, priority, cancels);
        } else {
            self.become_pending(index, Some(priority));
        }
        for below in self.below(index) {
            let consents = self.options(below).on_timed_ancestor == OnTimedAncestor::Cancel;
            if let Some(run) = &mut self.items[below].running {
                run.again.get_or_insert(None);
                run.cancelled |= cancels || consents;
            } else if !self.items[below].pending {
                self.become_pending(below, None);
            }
        }
        self.measure_ways(index);
    }

    fn become_pending(&mut self, index: usize, own: Option<Priority>) {
        let item = &mut self.items[index];
        (item.pending, item.own, item.path_ms) = (true, own, u64::MAX);
        item.by_parents = own.is_none();
    }

    fn ask_unsettled(&mut self, index: usize, priority: Priority, cancels: bool) {
        let item = &mut self.items[index];
        if let Some(run) = &mut item.running {
            if run.again.is_none_or(|again| again.is_none()) {
                run.again = Some(Some(priority));
            }
            run.cancelled |= cancels;
            return;
        }
        item.own = Some(item.own.map_or(priority, |own| own.min(priority)));
    }

    /// The longest ways of what has just become pending: what is below is measured first.
    fn measure_ways(&mut self, index: usize) {
        let mut fresh = self.below(index);
        fresh.insert(index);
        // Whatever is read stands before what reads it.
        for index in fresh.into_iter().rev() {
            if self.items[index].path_ms == u64::MAX {
                let below = self.children(index).map(|child| self.items[child].path_ms);
                self.items[index].path_ms = below.max().unwrap_or(0) + self.items[index].duration_ms;
            }
        }
    }

    fn has_room(&self, index: usize) -> bool {
        let options = self.options(index);
        let running = |of: &dyn Fn(usize) -> bool| {
            let running = |index: &usize| self.items[*index].running.is_some() && of(*index);
            (0..self.items.len()).filter(running).count()
        };
        let of_kind = running(&|other| self.items[other].key.kind == options.kind);
        let pools: Vec<&Pool> = self.kinds.iter().filter_map(|it| it.pool.as_ref()).collect();
        let limit = pools.iter().map(|pool| pool.limit).min().unwrap_or(usize::MAX);
        let pooled = |other: usize| self.options(other).pool.is_some();
        running(&|_| true) < self.places
            && options.concurrency.is_none_or(|limit| of_kind < limit)
            && (options.pool.is_none() || running(&pooled) < limit)
    }

    fn options(&self, index: usize) -> &KindOptions {
        let of = |options: &&KindOptions| options.kind == self.items[index].key.kind;
        self.kinds.iter().find(of).expect("a kind")
    }

    fn is_ready(&self, index: usize) -> bool {
        self.items[index].pending
            && self
                .above(index)
                .into_iter()
                .all(|above| !self.is_unsettled(above))
            && self
                .below(index)
                .into_iter()
                .all(|below| self.items[below].running.is_none())
    }

    /// That of its requests, or of a request for something that waits for it.
    fn priority(&self, index: usize) -> Priority {
        let by_parents = self.items[index].by_parents;
        let mut priority = if by_parents {
            Priority::Normal
        } else {
            Priority::Background
        };
        let (mut seen, mut open) = (BTreeSet::from([index]), vec![index]);
        while let Some(next) = open.pop() {
            priority = self.items[next].own.map_or(priority, |own| own.min(priority));
            let children = self.children(next).filter(|child| self.items[*child].pending);
            open.extend(children.filter(|child| seen.insert(*child)));
        }
        priority
    }

    /// Everything that starts now, in order.
    fn predict(&mut self) -> Vec<usize> {
        let mut started = Vec::new();
        loop {
            let ready = (0..self.items.len()).filter(|index| self.is_ready(*index) && self.has_room(*index));
            let rank = |index: &usize| {
                let item = &self.items[*index];
                (
                    self.priority(*index),
                    std::cmp::Reverse(item.path_ms),
                    item.key.clone(),
                )
            };
            let Some(first) = ready.min_by_key(rank) else {
                return started;
            };
            let begun = self.now.wall.0;
            let item = &mut self.items[first];
            item.pending = false;
            item.running = Some(Run {
                invocation: InvocationId(0),
                cancelled: false,
                begun,
                again: None,
            });
            started.push(first);
        }
    }

    /// Hands an input in, commits at once, and compares what started.
    fn input(&mut self, input: Input) {
        self.trace.push(format!("{:?} {input:?}", self.now.mono));
        let mut inputs = vec![input];
        let mut started = Vec::new();
        while let Some(input) = inputs.pop() {
            let mut effects = Vec::new();
            self.core.handle(self.now, input, &mut effects);
            self.core.flush(self.now, &mut effects);
            for effect in effects {
                match effect {
                    Effect::Start(start) => started.push((start.resource.key(), start.invocation)),
                    Effect::Commit(commit) => inputs.push(Input::Committed(commit.id)),
                    _ => {}
                }
            }
        }
        let expected = self.predict();
        let keys: Vec<&Key> = started.iter().map(|(key, _)| key).collect();
        let wanted: Vec<&Key> = expected.iter().map(|index| &self.items[*index].key).collect();
        assert_eq!(keys, wanted, "{}\n{}", self.trace.join("\n"), self.told());
        for (index, (key, invocation)) in expected.into_iter().zip(started) {
            self.trace.push(format!("    start {key} {invocation:?}"));
            self.started.push(key);
            if let Some(run) = &mut self.items[index].running {
                run.invocation = invocation;
            }
        }
    }

    fn told(&self) -> String {
        let told = self.items.iter().map(|item| format!("{item:?}"));
        told.collect::<Vec<_>>().join("\n")
    }

    fn call(&mut self, call: Call) {
        self.calls += 1;
        let id = CallId(self.calls);
        self.input(Input::Call { id, by: None, call });
    }

    fn any(&mut self) -> (usize, Target) {
        let index = self.rng.random_range(0..self.items.len());
        (index, Target::Key(self.items[index].key.clone()))
    }

    fn advance(&mut self) {
        match self.rng.random_range(0..10) {
            0 => {
                let (index, target) = self.any();
                self.ask(index, Priority::Requested);
                self.call(Call::Reconcile(target));
            }
            1 => self.edit(),
            2 => {
                let (index, target) = self.any();
                self.ask(index, Priority::Normal);
                self.call(Call::Nudge(target));
            }
            3 => self.pass(Duration::from_millis(self.rng.clone().random_range(1..900))),
            _ => self.complete(),
        }
    }

    fn edit(&mut self) {
        let (index, target) = self.any();
        let spec = self.rng.random::<u64>().to_le_bytes();
        let update = Update {
            spec: Some((spec.as_slice().into(), 1)),
            ..Update::default()
        };
        self.ask(index, Priority::Requested);
        let Target::Key(key) = target else { return };
        self.call(Call::Apply(Edit::update(key, update).into()));
    }

    fn pass(&mut self, wait: Duration) {
        self.now.mono = self.now.mono.after(wait);
        self.now.wall = self.now.wall.after(wait);
        let mut due: Vec<(Mono, Key, usize)> = Vec::new();
        for index in 0..self.items.len() {
            if let Some(at) = self.items[index].retry_at.take_if(|at| *at <= self.now.mono) {
                due.push((at, self.items[index].key.clone(), index));
            }
        }
        due.sort();
        for (_, _, index) in due {
            // One that runs already tries again by that.
            let runs = self.items[index].running.as_ref();
            if runs.is_none_or(|run| run.cancelled) {
                self.ask(index, Priority::Background);
            }
        }
        self.input(Input::Time);
    }

    fn complete(&mut self) {
        let running: Vec<usize> = (0..self.items.len())
            .filter(|index| self.items[*index].running.is_some())
            .collect();
        if running.is_empty() {
            return;
        }
        let index = running[self.rng.random_range(0..running.len())];
        let Some(run) = self.items[index].running.take() else {
            return;
        };
        let fails = self.rng.random_bool(0.15);
        let (now, wall) = (self.now.mono, self.now.wall.0);
        let item = &mut self.items[index];
        if run.cancelled {
            // Whatever cancelled it asked for it.
            let own = run.again.flatten();
            (item.pending, item.own, item.by_parents) = (true, own, own.is_none());
        } else {
            item.duration_ms = (wall - run.begun).max(0) as u64;
            item.retry_at = fails.then(|| now.after(Duration::from_millis(700)));
            if let Some(own) = run.again {
                (item.pending, item.own, item.by_parents) = (true, own, own.is_none());
            }
        }
        let result = match fails {
            true => Returned::Failed(Error::transient("flaky", "it did not work this time")),
            false => Returned::Done(Outcome::from_work(Work::Checked)),
        };
        self.input(Input::Returned {
            invocation: run.invocation,
            result,
        });
    }
}

#[test]
fn what_starts_first_is_what_a_naive_scheduler_starts() {
    let budget = crate::Budget::of_this_run();
    let first = crate::first_seed(budget);
    println!("worlds from seed {first} on");
    let mut orders: BTreeMap<usize, u64> = BTreeMap::new();
    let steps = |seed: u64| (seed - first) * STEPS_PER_WORLD as u64;
    for seed in (first..).take_while(|seed| budget.allows_more(steps(*seed))) {
        let mut world = SchedulerModel::new(seed);
        for _ in 0..STEPS_PER_WORLD {
            world.advance();
        }
        *orders.entry(world.places).or_default() += world.started.len() as u64;
    }
    println!("starts by the number of places: {orders:?}");
    assert!(!orders.is_empty(), "not one world was visited");
}
