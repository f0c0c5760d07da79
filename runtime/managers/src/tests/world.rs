//! A stand-in for the outside: things at stages, with answers that fail, lie, hang, or come late.
//!
//! It checks by itself what holds for every attempt: recorded before it runs, within its attempts, in its window, in order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use watershed_controller::store::Epoch;
use watershed_controller::{Error, Handle, Key, Resource, Select, Timestamp, Uid, json_message};

use crate::goal::Allowed;
use crate::record::{Record, record_of};
use crate::{
    Action, Desired, DiscoveredItem, Done, EventMatch, Manager, Observation, OnPartFailure, Part, Policy,
    Stage, Stages, Step, Tries, View, desired_of, teardown_kind,
};

/// The stages of every thing here.
pub(super) const STAGES: [&str; 5] = ["absent", "prepared", "active", "done", "gone"];

/// Prints a line of the story if `WATERSHED_MANAGERS_TELL` is set.
pub(super) fn tell(line: impl FnOnce() -> String) {
    if std::env::var_os("WATERSHED_MANAGERS_TELL").is_some() {
        println!("{}", line());
    }
}

/// The place of a stage in their order.
pub(super) fn index(stage: &Stage) -> usize {
    STAGES.iter().position(|name| *name == stage.as_str()).unwrap()
}

/// The own part of one thing's spec.
#[derive(Clone, Default, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Node {
    pub(super) parts: Vec<Child>,
    /// The step to `active` has three actions, of which the last is optional.
    pub(super) pipeline: bool,
    /// Changes nothing but the spec.
    pub(super) version: u32,
}

/// A part of a thing.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Child {
    /// With a dot in front it follows the name of the owner.
    pub(super) name: String,
    pub(super) order: u32,
    pub(super) gates_next: Option<Stage>,
    pub(super) desired: Stage,
    pub(super) on_part_failure: OnPartFailure,
    pub(super) node: Node,
}

json_message!(Node, format = 1);

impl Child {
    pub(super) fn new(name: &str, order: u32, node: Node) -> Self {
        Self {
            name: name.into(),
            order,
            gates_next: Some("active".into()),
            desired: "active".into(),
            on_part_failure: OnPartFailure::Abort,
            node,
        }
    }

    /// The name of the part of an owner.
    pub(super) fn below(&self, owner: &str) -> String {
        match self.name.starts_with('.') {
            true => format!("{owner}{}", self.name),
            false => self.name.clone(),
        }
    }

    /// True for the name of this part, whatever its owner is called at present.
    pub(super) fn is_named(&self, name: &str) -> bool {
        match self.name.starts_with('.') {
            true => name.rfind('.').is_some_and(|at| name[at..] == self.name),
            false => name == self.name,
        }
    }
}

/// The answer to an attempt.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    Fail,
    Permanent,
    /// Without end.
    Hang,
    /// After so long.
    Slow(Duration),
    /// The effect is there, and the answer never comes.
    Silent,
    /// It says that it is done, and nothing is.
    Lie,
    Requeue(Duration),
    Await(Duration),
    Skip,
}

/// One attempt that began.
#[derive(Clone, Debug)]
pub(super) struct Act {
    pub(super) at: Timestamp,
    pub(super) name: String,
    pub(super) action: String,
    pub(super) attempt: u32,
    pub(super) force: bool,
}

/// The share of things that go wrong, in percent.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Trouble {
    pub(super) acts: u32,
    pub(super) looks: u32,
}

#[derive(Default)]
struct Inner {
    things: BTreeMap<Uid, usize>,
    names: BTreeMap<Uid, String>,
    /// The furthest that each has claimed since it last was gone; `gone` itself counts.
    claimed: BTreeMap<Uid, BTreeSet<usize>>,
    acts: Vec<Act>,
    answers: BTreeMap<(String, String), VecDeque<Answer>>,
    looks: BTreeMap<String, VecDeque<Observation<()>>>,
    random: Option<SmallRng>,
    trouble: Trouble,
    handle: Option<Handle>,
    wrong: Vec<String>,
    effects: BTreeMap<String, u32>,
    /// The things of which the last answer was a lie: nobody is lied to twice in a row.
    lied: BTreeSet<Uid>,
    /// The latest holder that was seen: what an earlier one is still about has no effect.
    epoch: Epoch,
}

/// The outside. Clones share it.
#[derive(Clone, Default)]
pub(super) struct World(Arc<Mutex<Inner>>);

impl World {
    pub(super) fn seeded(seed: u64) -> Self {
        let world = Self::default();
        world.lock().random = Some(SmallRng::seed_from_u64(seed));
        world
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }

    /// The controller whose catalog attempts are checked against.
    pub(super) fn watch(&self, handle: Handle) {
        let mut inner = self.lock();
        inner.handle = Some(handle);
        inner.epoch = inner.epoch.next();
    }

    pub(super) fn trouble(&self, trouble: Trouble) {
        self.lock().trouble = trouble;
    }

    pub(super) fn answer(&self, name: &str, action: &str, answers: &[Answer]) {
        let key = (name.to_owned(), action.to_owned());
        self.lock()
            .answers
            .entry(key)
            .or_default()
            .extend(answers.iter().cloned());
    }

    pub(super) fn show(&self, name: &str, looks: &[Observation<()>]) {
        self.lock()
            .looks
            .entry(name.to_owned())
            .or_default()
            .extend(looks.iter().cloned());
    }

    pub(super) fn acts(&self) -> Vec<Act> {
        self.lock().acts.clone()
    }

    /// The actions of a thing in the order in which attempts began.
    pub(super) fn actions(&self, name: &str) -> Vec<String> {
        let acts = self.acts().into_iter();
        acts.filter(|act| act.name == name)
            .map(|act| act.action)
            .collect()
    }

    /// Returns the number of times that an action of a thing had its effect.
    pub(super) fn effects(&self, key: &str) -> u32 {
        self.lock().effects.get(key).copied().unwrap_or_default()
    }

    pub(super) fn stage(&self, uid: Uid) -> Option<&'static str> {
        self.lock().things.get(&uid).map(|at| STAGES[*at])
    }

    pub(super) fn set(&self, uid: Uid, stage: Option<&str>) {
        let mut inner = self.lock();
        match stage {
            Some(stage) => inner.things.insert(uid, index(&stage.into())),
            None => inner.things.remove(&uid),
        };
    }

    pub(super) fn vanish(&self, which: usize) {
        let mut inner = self.lock();
        let mut keys: Vec<Uid> = inner.things.keys().copied().collect();
        keys.sort_by_key(|uid| inner.names.get(uid).cloned());
        if !keys.is_empty() {
            let _ = inner.things.remove(&keys[which % keys.len()]);
        }
    }

    pub(super) fn left(&self) -> Vec<String> {
        let inner = self.lock();
        let name = |uid: &Uid| inner.names.get(uid).cloned().unwrap_or_default();
        inner
            .things
            .iter()
            .map(|(uid, at)| format!("{} {}", name(uid), STAGES[*at]))
            .collect()
    }

    pub(super) fn wrong(&self) -> Vec<String> {
        self.lock().wrong.clone()
    }

    fn may_lie(&self, uid: Uid) -> bool {
        self.lock().lied.insert(uid)
    }

    fn draw(&self, looks: bool) -> Option<u32> {
        let mut inner = self.lock();
        let bound = if looks {
            inner.trouble.looks
        } else {
            inner.trouble.acts
        };
        let random = inner.random.as_mut()?;
        let hit = random.random_range(0..100) < bound;
        let sort = random.random_range(0..1_000_000);
        hit.then_some(sort)
    }

    fn effect(&self, view: &View<Thing>, to: &Stage) {
        let (uid, name, action) = (view.uid(), view.name(), view.action());
        let mut inner = self.lock();
        tell(|| {
            format!(
                "    effect {name} {action} under {} of {}",
                view.epoch(),
                inner.epoch
            )
        });
        if view.epoch() < inner.epoch {
            return;
        }
        *inner.effects.entry(format!("{name} {action}")).or_default() += 1;
        inner.names.insert(uid, name.to_owned());
        if to.as_str() == "gone" {
            inner.things.remove(&uid);
        } else if action == to.as_str() || action == "boot" {
            inner.things.insert(uid, index(to));
        }
    }

    fn claim(&self, uid: Uid, stage: usize) {
        let mut inner = self.lock();
        let claimed = inner.claimed.entry(uid).or_default();
        if stage == 1 {
            claimed.remove(&4);
        }
        if stage == 4 {
            claimed.clear();
        }
        claimed.insert(stage);
    }

    /// Checks the rules that hold for every attempt at its beginning.
    fn begin(&self, view: &View<Thing>, step: &Step) {
        let problems = self.problems(view, step);
        let mut inner = self.lock();
        tell(|| {
            let (name, stage, action, attempt) = (view.name(), view.stage(), view.action(), view.attempt());
            let at = view.now().0 - super::stand::BEGIN.0;
            format!(
                "{at} {name} {stage} -> {action}, attempt {attempt} force {}",
                view.force()
            )
        });
        inner.wrong.extend(problems);
        inner.acts.push(Act {
            at: view.now(),
            name: view.name().to_owned(),
            action: view.action().to_owned(),
            attempt: view.attempt(),
            force: view.force(),
        });
    }

    fn problems(&self, view: &View<Thing>, step: &Step) -> Vec<String> {
        let Some(handle) = self
            .lock()
            .handle
            .clone()
            .filter(|handle| handle.stopped().is_none())
        else {
            return Vec::new();
        };
        let mut problems = Vec::new();
        let mut say = |what: &str| {
            problems.push(format!(
                "{what}: {} {} attempt {} at {:?}",
                view.name(),
                view.action(),
                view.attempt(),
                view.now()
            ));
        };
        let live = handle.get(view.uid()).ok();
        let left = handle.get(Key::new(teardown_kind("thing"), view.name())).ok();
        let is_recorded = |found: &Option<Resource>| {
            let record = found
                .as_ref()
                .and_then(|row| record_of(row.row.state.as_deref()?).ok());
            record.and_then(|record| record.current).is_some_and(|current| {
                current.under_way
                    && current.action == view.action()
                    && current.to == step.to
                    && current.attempts.count + 1 == view.attempt()
            })
        };
        if !is_recorded(&live) && !is_recorded(&left) {
            say("no record before the step");
        }
        if view.attempt() > ATTEMPTS && !view.force() {
            say("too many attempts");
        }
        let up = step.to.as_str() != "gone";
        let record = live
            .as_ref()
            .and_then(|row| record_of(row.row.state.as_deref()?).ok());
        let is_over = |at: Option<Timestamp>| at.is_some_and(|at| at <= view.now());
        if up && is_over(record.and_then(|record| record.window).map(|window| window.end)) {
            say("a step after the end of the window");
        }
        if let Some(row) = live.filter(|row| !row.row.intents.is_deleted()) {
            let desired = desired_of(&row.row.spec).unwrap();
            if up && is_over(desired.cleanup_by) {
                say("a step after the cleanup deadline");
            }
            if up && index(&step.to) > 1 && desired.allowed != Allowed::All {
                say("beyond what is allowed");
            }
            if let Some(owner) = row.row.owner.and_then(|uid| handle.get(uid).ok()) {
                if up && index(&step.to) > 1 && !self.gates_are_open(&owner, view.name(), &handle) {
                    say("a gate was ignored");
                }
                let is_ordered =
                    desired.allowed == Allowed::Gone && !view.force() && desired.stage.as_str() != "gone";
                if !up
                    && is_ordered
                    && !owner.row.intents.is_deleted()
                    && !self.later_are_gone(&owner, view.name(), &handle)
                {
                    say("torn down before what comes later");
                }
            }
        }
        problems
    }

    fn gates_are_open(&self, owner: &Resource, name: &str, handle: &Handle) -> bool {
        let children = owner.spec::<crate::Wanted<Node>>().unwrap().spec.parts.clone();
        let Some(own) = children.iter().find(|child| child.is_named(name)) else {
            return true;
        };
        let before = children.iter().filter(|child| child.order < own.order);
        let mut gates = before.filter_map(|child| Some((child, child.gates_next.as_ref()?)));
        gates.all(|(child, gate)| {
            // By its own word, or by what was seen or heard of it.
            let has_been = |stage: usize| stage >= index(gate);
            let Some(found) = part(owner, child, handle) else {
                return false;
            };
            let claimed = self
                .lock()
                .claimed
                .get(&found.row.uid)
                .is_some_and(|all| all.iter().any(|at| has_been(*at)));
            let seen = record(&found);
            claimed
                || seen.is_some_and(|record| record.transitions.iter().any(|one| has_been(index(&one.to))))
        })
    }

    fn later_are_gone(&self, owner: &Resource, name: &str, handle: &Handle) -> bool {
        let children = owner.spec::<crate::Wanted<Node>>().unwrap().spec.parts.clone();
        let Some(own) = children.iter().find(|child| child.is_named(name)) else {
            return true;
        };
        let mut later = children.iter().filter(|child| child.order > own.order);
        later.all(|child| {
            let found = part(owner, child, handle);
            let inner = self.lock();
            found.is_none_or(|row| {
                !inner.things.contains_key(&row.row.uid) || inner.lied.contains(&row.row.uid)
            })
        })
    }
}

/// The part of an owner, under the name that it has at present.
fn part(owner: &Resource, child: &Child, handle: &Handle) -> Option<Resource> {
    let all = handle.list(Select::kind("thing").with_hidden()).resources;
    let is_it =
        |row: &Resource| row.row.owner == Some(owner.row.uid) && child.is_named(row.row.name.as_str());
    all.into_iter().find(is_it)
}

/// The attempts of each step.
pub(super) const ATTEMPTS: u32 = 4;
/// The timeout of each attempt.
pub(super) const TIMEOUT: Duration = Duration::from_secs(20);

/// The manager of the world.
pub(super) struct Thing(pub(super) World);

impl Manager for Thing {
    const KIND: &'static str = "thing";
    type Spec = Node;
    type Details = ();

    fn stages(&self, _: &Node) -> Stages {
        Stages::new(STAGES).unwrap().with_early("prepared").unwrap()
    }

    async fn observe(&self, view: &View<Self>) -> Result<Observation<()>, Error> {
        let shown = self
            .0
            .lock()
            .looks
            .get_mut(view.name())
            .and_then(VecDeque::pop_front);
        if let Some(shown) = shown {
            return Ok(shown);
        }
        if let Some(sort) = self.0.draw(true) {
            match sort % 4 {
                0 => return Ok(Observation::Unclear("fog".into())),
                1 => return Err(Error::transient("net", "no answer")),
                2 => tokio::time::sleep(Duration::from_millis(sort.into())).await,
                _ if self.0.may_lie(view.uid()) => return Ok(Observation::Absent),
                _ => {}
            }
        }
        self.0.lock().lied.remove(&view.uid());
        let found = self.0.lock().things.get(&view.uid()).copied();
        Ok(match found {
            Some(stage) => {
                self.0.claim(view.uid(), stage);
                Observation::at(STAGES[stage], ())
            }
            None => Observation::Absent,
        })
    }

    fn next(&self, view: &View<Self>, goal: &Stage) -> Option<Step> {
        let step = view.step_towards(goal)?;
        if !view.spec().pipeline || step.to.as_str() != "active" {
            return Some(step);
        }
        let actions = [
            Action::new("boot"),
            Action::new("greet").after(["boot"]),
            Action::new("log").optional(),
        ];
        Some(Step::pipeline("active", actions))
    }

    async fn act(&self, view: &View<Self>, step: &Step) -> Result<Done, Error> {
        self.0.begin(view, step);
        let key = (view.name().to_owned(), view.action().to_owned());
        let scripted = self.0.lock().answers.get_mut(&key).and_then(VecDeque::pop_front);
        let drawn = || {
            self.0.draw(false).map(|sort| {
                let wait = Duration::from_millis(u64::from(sort % 30_000));
                match sort % 11 {
                    0..=2 => Answer::Fail,
                    3 => Answer::Permanent,
                    4 => Answer::Hang,
                    5 | 6 => Answer::Slow(wait),
                    7 => Answer::Silent,
                    8 => Answer::Lie,
                    9 => Answer::Requeue(wait),
                    _ => Answer::Await(wait),
                }
            })
        };
        let effect = || self.0.effect(view, &step.to);
        match scripted.or_else(drawn) {
            Some(Answer::Fail) => return Err(Error::transient("busy", "no capacity")),
            Some(Answer::Permanent) => {
                return Err(Error::permanent("broken", "it is broken"));
            }
            Some(Answer::Hang) => std::future::pending::<()>().await,
            Some(Answer::Silent) => {
                effect();
                std::future::pending::<()>().await;
            }
            Some(Answer::Slow(wait)) => tokio::time::sleep(wait).await,
            Some(Answer::Requeue(wait)) => return Ok(Done::RequeueAfter(wait)),
            Some(Answer::Await(wait)) => {
                let event = EventMatch::of("world.result");
                return Ok(Done::Await {
                    event,
                    until: view.now().after(wait),
                });
            }
            Some(Answer::Lie) if self.0.may_lie(view.uid()) => {
                self.0.claim(view.uid(), index(&step.to));
                return Ok(Done::At(step.to.clone()));
            }
            Some(Answer::Skip) => {
                effect();
                return Ok(Done::Skipped("it was there".into()));
            }
            Some(Answer::Lie) | None => {}
        }
        effect();
        self.0.claim(view.uid(), index(&step.to));
        Ok(Done::At(step.to.clone()))
    }

    fn parts(&self, view: &View<Self>) -> Vec<Part> {
        let part = |child: &Child| {
            let desired = Desired::stage(child.desired.clone())
                .on_part_failure(child.on_part_failure)
                .on_event(crate::Rule::sets(EventMatch::of("world.done"), "done"));
            let name = child.below(view.name());
            let part = Part::managed::<Thing>(name, desired, &child.node).in_order(child.order);
            match &child.gates_next {
                Some(gate) => part.gates_next(gate.clone()),
                None => part,
            }
        };
        view.spec().parts.iter().map(part).collect()
    }

    async fn discover(&self) -> Result<Vec<DiscoveredItem>, Error> {
        let inner = self.0.lock();
        let found = |uid: &Uid| DiscoveredItem {
            name: inner.names.get(uid).cloned().unwrap_or_default(),
            uid: Some(*uid),
        };
        Ok(inner.things.keys().map(found).collect())
    }

    fn policy(&self) -> Policy {
        let tries = Tries {
            timeout: TIMEOUT,
            attempts: ATTEMPTS,
            ..Tries::default()
        };
        Policy {
            tries,
            ..Policy::default()
        }
    }
}

/// The record of a resource as it is committed.
pub(super) fn record(resource: &Resource) -> Option<Record> {
    record_of(resource.row.state.as_deref()?).ok()
}
