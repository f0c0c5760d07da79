//! A core with a store that commits at once, checked by the naive reference.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::events::Event;
use super::graphs::Graph;
use super::model::{Item, Model, NODES_MAX, SPARE, bits};
use crate::{
    Batch, Call, CallId, Core, Edit, Effect, Epoch, Error, Input, InvocationId, Key, KindOptions, Limits,
    Mono, NewResource, Now, Outcome, Phase, Publish, Ref, Returned, Settled, Stage, Start, Stored, Target,
    Timestamp, Uid, Update,
};

/// Wait that is long enough for every retry of a delete or rename.
const PATIENCE: Duration = Duration::from_secs(600);

/// Stage of a resource as readers see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stands {
    Unknown,
    Unsettled,
    Resting,
    OnCycle,
    Retrying,
    WaitingForName,
    Cancelled,
    Otherwise,
}

/// An invocation that has not returned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) invocation: InvocationId,
    pub(super) index: usize,
    pub(super) phase: Phase,
    pub(super) cancelled: bool,
    /// Time at which the invocation began, as a count of inputs.
    pub(super) began: u32,
    /// Names of the resource when the invocation began, as bits.
    pub(super) names: u8,
}

/// Times of a resource's events, as counts of inputs.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Past {
    pub(super) asked: u32,
    pub(super) began: u32,
    pub(super) ended: u32,
    /// True if a caller cancelled the resource, and nothing has requested it since.
    pub(super) stopped: bool,
}

pub(super) type Check = Result<(), String>;

pub(super) fn ensure(holds: bool, detail: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(detail()) }
}

#[derive(Clone)]
pub(super) struct World {
    pub(super) core: Core,
    pub(super) count: usize,
    pub(super) model: Model,
    pub(super) running: Vec<Run>,
    pub(super) past: [Past; NODES_MAX],
    pub(super) stands: [Stands; NODES_MAX],
    pub(super) uids: [Option<Uid>; NODES_MAX],
    now: Now,
    /// Number of inputs so far.
    pub(super) clock: u32,
    /// Resources that the current input must cancel, as bits.
    pub(super) must_cancel: u8,
    /// Resources that the current input may cancel, as bits.
    may_cancel: u8,
    next_uid: u128,
    /// True if the rules are checked after each input.
    pub(super) checks: bool,
}

pub(super) fn name(number: u8) -> &'static str {
    ["n0", "n1", "n2", "n3", "x"][number as usize]
}

fn key(number: u8) -> Key {
    Key::new("k", name(number))
}

pub(super) fn number(name: &crate::Name) -> u8 {
    match name.as_str().as_bytes() {
        [b'n', digit] => digit - b'0',
        _ => SPARE,
    }
}

impl World {
    /// Creates a world whose graph was just created: no invocation has returned yet.
    pub(super) fn new(graph: &Graph) -> Result<Self, String> {
        let now = Now {
            wall: Timestamp(1_000_000),
            mono: Mono(1_000),
        };
        let stored = Stored {
            epoch: Epoch(1),
            ..Stored::default()
        };
        let kinds = vec![KindOptions::new("k")];
        let (core, _) =
            Core::open(now, Limits::default(), kinds, stored).map_err(|error| error.to_string())?;
        let mut world = Self {
            core,
            count: graph.len(),
            model: Model::default(),
            running: Vec::new(),
            past: [Past::default(); NODES_MAX],
            stands: [Stands::Unknown; NODES_MAX],
            uids: [None; NODES_MAX],
            now,
            clock: 0,
            must_cancel: 0,
            may_cancel: 0,
            next_uid: 1,
            checks: true,
        };
        let mut edits = Vec::new();
        for (index, refs) in graph.iter().enumerate() {
            world.model.items[index] = Some(Item::new(index as u8, *refs));
            edits.push(world.create(index, *refs));
        }
        world.begin();
        world.request(world.model.with_descendants((1 << graph.len()) - 1));
        world.apply(edits)?;
        Ok(world)
    }

    fn create(&mut self, index: usize, refs: u8) -> Edit {
        let uid = match self.uids[index] {
            // Taken up again.
            Some(uid) => uid,
            None => {
                self.next_uid += 1;
                Uid(Uuid::from_u128(self.next_uid))
            }
        };
        self.uids[index] = Some(uid);
        let fresh = Uid(Uuid::from_u128(self.next_uid + 1_000));
        let uid = if self.core.graph().find(uid).is_some() {
            fresh
        } else {
            uid
        };
        Edit::create(NewResource::new(uid, "k", name(index as u8), *b"spec").with_refs(refs_of(refs)))
    }

    fn begin(&mut self) {
        self.clock += 1;
        (self.must_cancel, self.may_cancel) = (0, 0);
    }

    fn request(&mut self, asked: u8) {
        for index in bits(asked) {
            self.past[index].asked = self.clock;
            self.past[index].stopped = false;
        }
    }

    /// Lists the possible events that count against the bound of the search.
    pub(super) fn events(&self) -> Vec<Event> {
        let mut events = self.model.edits(self.count);
        let unsettled =
            |index: &usize| self.model.is_live(*index) && self.stands[*index] == Stands::Unsettled;
        events.extend((0..self.count).filter(unsettled).map(Event::Cancel));
        let failing = self.running.iter().filter(|run| !run.cancelled);
        events.extend(failing.map(|run| Event::Fail(run.index)));
        events
    }

    pub(super) fn happen(&mut self, event: Event) -> Check {
        if let Event::Fail(index) = event {
            let position = self.running.iter().position(|run| run.index == index);
            return position.map_or(Ok(()), |position| self.comes_back(position, false));
        }
        self.begin();
        if let Event::Cancel(index) = event {
            (self.must_cancel, self.may_cancel) = (1 << index, 1 << index);
            self.past[index].stopped = true;
            let uid = self.uids[index].ok_or("it has no uid")?;
            return self.call(Call::Cancel(Target::Uid(uid)));
        }
        let of = |index: usize| {
            self.uids[index]
                .map(Target::Uid)
                .unwrap_or(Target::Key(key(SPARE)))
        };
        let edits = match event {
            Event::Edit(index) => {
                let spec = format!("spec {}", self.clock);
                let update = Update {
                    spec: Some((spec.as_bytes().into(), 1)),
                    ..Update::default()
                };
                vec![Edit::update(of(index), update)]
            }
            Event::Toggle(index, name) => {
                let refs = self.model.items[index].map_or(0, |item| item.refs) ^ 1 << name;
                let update = Update {
                    refs: Some(refs_of(refs).into()),
                    ..Update::default()
                };
                vec![Edit::update(of(index), update)]
            }
            Event::Rename(index, to) => vec![Edit::rename(of(index), name(to))],
            Event::Swap(one, other) => {
                let present = |index: usize| self.model.items[index].map_or(SPARE, |item| item.name);
                vec![
                    Edit::rename(of(one), name(present(other))),
                    Edit::rename(of(other), name(present(one))),
                ]
            }
            Event::Delete(index) => vec![Edit::delete(of(index))],
            Event::Create(index) => vec![self.create(index, 0)],
            Event::Cancel(_) | Event::Fail(_) => return Ok(()),
        };
        let touched = match event {
            Event::Delete(index) | Event::Create(index) => 1 << index,
            _ => 0,
        };
        let cycles = self.model.on_cycles();
        let asked = self.model.edit(event);
        self.request(asked);
        if let Event::Delete(index) | Event::Create(index) = event {
            self.past[index].stopped = false;
        }
        let entered = self.model.on_cycles() & !cycles;
        self.must_cancel = self.model.with_descendants(asked | entered) | touched;
        self.may_cancel = self.must_cancel;
        self.apply(edits)
    }

    fn apply(&mut self, edits: Vec<Edit>) -> Check {
        self.call(Call::Apply(Batch { edits }))
    }

    fn call(&mut self, call: Call) -> Check {
        self.input(Input::Call {
            id: CallId(u64::from(self.clock)),
            by: None,
            call,
        })
    }

    /// Lets the invocation at this position return, with success if `done`.
    pub(super) fn comes_back(&mut self, position: usize, done: bool) -> Check {
        self.begin();
        let run = self.running.remove(position);
        let deleting = self.model.items[run.index].is_some_and(|item| item.deleted);
        let ask = match (run.phase, run.cancelled, done) {
            (Phase::Reconcile, true, _) => 0,
            (Phase::Delete, true, _) if deleting && self.past[run.index].stopped => {
                self.model.op_failed(run.index);
                0
            }
            (Phase::Rename, true, _) if !deleting && self.past[run.index].stopped => {
                self.model.op_failed(run.index);
                0
            }
            (_, true, _) => 0,
            (Phase::Delete, false, true) => {
                self.model.removed(run.index);
                (self.uids[run.index], self.stands[run.index]) = (None, Stands::Unknown);
                self.past[run.index] = Past::default();
                0
            }
            (Phase::Rename, false, true) => {
                self.model.renamed(run.index);
                1 << run.index
            }
            (Phase::Delete | Phase::Rename, false, false) => {
                self.model.op_failed(run.index);
                0
            }
            (Phase::Reconcile, false, _) => {
                let past = &mut self.past[run.index];
                (past.began, past.ended) = (run.began, self.clock);
                0
            }
        };
        self.request(ask);
        let result = if done {
            Returned::Done(Outcome::default())
        } else {
            Returned::Failed(Error::permanent("broken", "it does not work"))
        };
        self.input(Input::Returned {
            invocation: run.invocation,
            result,
        })
    }

    /// Returns true if nothing runs, and a delete or rename waits for its retry.
    pub(super) fn waits_for_time(&self) -> bool {
        self.running.is_empty() && self.model.items.iter().flatten().any(|item| item.is_marked())
    }

    pub(super) fn pass(&mut self) -> Check {
        self.begin();
        self.now.mono = self.now.mono.after(PATIENCE);
        // A rename is tried again by a request; what is below runs after it.
        self.input(Input::Time)
    }

    fn input(&mut self, input: Input) -> Check {
        let mut effects = Vec::new();
        self.core.handle(self.now, input, &mut effects);
        loop {
            self.core.flush(self.now, &mut effects);
            if effects.is_empty() {
                break;
            }
            let mut commit = None;
            for effect in std::mem::take(&mut effects) {
                match effect {
                    Effect::Start(start) => self.started(&start)?,
                    Effect::Cancel { invocation, .. } => self.cancelled(invocation)?,
                    Effect::Publish(publish) => self.published(publish),
                    Effect::Commit(one) => commit = Some(one.id),
                    Effect::Stopped { .. } => return Err("it stopped".into()),
                    Effect::Answer {
                        answer: crate::Answer::Refused(refusal),
                        ..
                    } => return Err(format!("refused: {refusal}")),
                    Effect::Answer { .. } | Effect::Timer(_) => {}
                }
            }
            if let Some(commit) = commit {
                self.core.handle(self.now, Input::Committed(commit), &mut effects);
            }
        }
        if self.checks { self.check() } else { Ok(()) }
    }

    fn index_of(&self, uid: Uid) -> Option<usize> {
        self.uids.iter().position(|known| *known == Some(uid))
    }

    fn started(&mut self, start: &Start) -> Check {
        let index = self
            .index_of(start.resource.uid)
            .ok_or("something unknown started")?;
        let item = self.model.items[index].ok_or("what is gone started")?;
        for run in &self.running {
            ensure(run.index != index && run.names & item.names() == 0, || {
                format!("C1: {index} starts beside {run:?}")
            })?;
        }
        let spec_seen =
            number(&start.resource.name) == item.name && mask_of(&start.resource.refs) == item.refs;
        ensure(spec_seen, || {
            format!("snapshot: {index} sees {:?}, not {item:?}", start.resource)
        })?;
        self.running.push(Run {
            invocation: start.invocation,
            index,
            phase: start.phase,
            cancelled: false,
            began: self.clock,
            names: item.names(),
        });
        Ok(())
    }

    fn cancelled(&mut self, invocation: InvocationId) -> Check {
        let run = self.running.iter_mut().find(|run| run.invocation == invocation);
        let run = run.ok_or("C4: a cancel of nothing")?;
        ensure(!run.cancelled, || "C4: cancelled twice".into())?;
        run.cancelled = true;
        let may = self.may_cancel & (1 << run.index) != 0;
        ensure(may, || format!("C4: {} was cancelled for nothing", run.index))
    }

    fn published(&mut self, publish: Publish) {
        for update in publish.statuses {
            let Some(index) = self.index_of(update.uid) else {
                continue;
            };
            self.stands[index] = match update.status.stage {
                Stage::Pending | Stage::Running { .. } => Stands::Unsettled,
                Stage::Settled(Settled::Idle | Settled::Failed) => Stands::Resting,
                Stage::Settled(Settled::OnCycle) => Stands::OnCycle,
                Stage::Settled(Settled::Retrying) => Stands::Retrying,
                Stage::Settled(Settled::WaitingForName { .. }) => Stands::WaitingForName,
                Stage::Settled(Settled::Cancelled) => Stands::Cancelled,
                Stage::Settled(_) => Stands::Otherwise,
            };
        }
    }
}

fn refs_of(mask: u8) -> Vec<Ref> {
    bits(mask)
        .map(|number| Ref::completed("k", name(number as u8)))
        .collect()
}

pub(super) fn mask_of(refs: &Arc<[Ref]>) -> u8 {
    refs.iter()
        .fold(0, |mask, reference| mask | 1 << number(&reference.name))
}
