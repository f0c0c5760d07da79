//! A small host for unit tests: drives the core by hand and records the effects.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use uuid::Uuid;

use crate::{
    Answer, Batch, Call, CallId, Commit, CommitError, Core, Edit, Effect, Epoch, Error, HistoryRow, Input,
    InvocationId, Key, KindOptions, Limits, Mono, NewResource, NoOpRun, Now, Outcome, Phase, Ref, Returned,
    Revision, Row, Stage, Start, StopReason, Stored, StoredRow, Target, Timestamp, Uid, Unreturned, Update,
    Work, Write,
};

/// Tells whether commits succeed at once or are answered by hand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Store {
    Prompt,
    ByHand,
}

pub(crate) struct Bench {
    pub(crate) core: Core,
    pub(crate) now: Now,
    pub(crate) store: Store,
    /// Invocations that have not returned, by the name of their resource.
    pub(crate) running: Vec<Start>,
    /// Starts since the last call of `starts`, as `phase name`.
    log: Vec<String>,
    pub(crate) cancelled: Vec<InvocationId>,
    pub(crate) answers: HashMap<CallId, Vec<Answer>>,
    pub(crate) commits: Vec<Commit>,
    pub(crate) history: Vec<HistoryRow>,
    pub(crate) rows: BTreeMap<Uid, std::sync::Arc<Row>>,
    pub(crate) durable: Revision,
    pub(crate) published: BTreeMap<Uid, std::sync::Arc<Row>>,
    pub(crate) stages: BTreeMap<Uid, Stage>,
    /// Published no-op runs, oldest first.
    pub(crate) no_ops: Vec<std::sync::Arc<NoOpRun>>,
    pub(crate) timer: Option<Mono>,
    pub(crate) stopped: Option<(StopReason, Vec<Unreturned>)>,
    /// True to leave out the consistency checks, which cost more than the inputs.
    pub(crate) unchecked: bool,
    kinds: Vec<KindOptions>,
    limits: Limits,
    next_call: u64,
    next_uid: u128,
    epoch: u64,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(vec![KindOptions::new("k")], Limits::default())
    }

    /// Creates a host with a concurrency limit.
    pub(crate) fn with_concurrency(concurrency: usize) -> Self {
        let limits = Limits {
            concurrency,
            ..Limits::default()
        };
        Self::with(vec![KindOptions::new("k")], limits)
    }

    /// Creates a host in which "b" still runs below "a" after a timed request for "a".
    pub(crate) fn with_one_below() -> Self {
        let mut bench = Self::new();
        bench.settled(&[("a", &[]), ("b", &["a"])]);
        bench.reconcile("b");
        bench.call(Call::Nudge(target("a")));
        bench
    }

    /// Creates a host in which "a" waits for its name, still held by "b" after a failed rename.
    pub(crate) fn with_a_held_name() -> Self {
        let mut bench = Self::new();
        bench.settled(&[("a", &[])]);
        bench.rename("a", "b");
        bench.fail("b");
        bench.finish_all();
        bench.create(&[("a", &[])]);
        bench
    }

    pub(crate) fn with(kinds: Vec<KindOptions>, limits: Limits) -> Self {
        let now = Now {
            wall: Timestamp(1_000_000),
            mono: Mono(1_000),
        };
        let stored = Stored {
            epoch: Epoch(1),
            ..Stored::default()
        };
        let (core, effects) = Core::open(now, limits, kinds.clone(), stored).expect("an empty catalog");
        let mut bench = Self {
            core,
            now,
            store: Store::Prompt,
            running: Vec::new(),
            log: Vec::new(),
            cancelled: Vec::new(),
            answers: HashMap::new(),
            commits: Vec::new(),
            history: Vec::new(),
            rows: BTreeMap::new(),
            durable: Revision(0),
            published: BTreeMap::new(),
            stages: BTreeMap::new(),
            no_ops: Vec::new(),
            timer: None,
            stopped: None,
            unchecked: false,
            kinds,
            limits,
            next_call: 1,
            next_uid: 1,
            epoch: 1,
        };
        bench.carry_out(effects);
        bench
    }

    /// Restarts: drops the process, and opens the durable catalog again.
    pub(crate) fn restart(&mut self) {
        self.restart_from(|stored| stored);
    }

    pub(crate) fn restart_with(&mut self, unreadable: impl Fn(&Row) -> Option<Error>) {
        self.restart_from(|stored| StoredRow {
            unreadable: unreadable(&stored.row),
            ..stored
        });
    }

    pub(crate) fn restart_from(&mut self, judged: impl Fn(StoredRow) -> StoredRow) {
        self.epoch += 1;
        let rows = self.rows.values().map(|row| judged(row.clone().into()));
        let stored = Stored {
            revision: self.durable,
            epoch: Epoch(self.epoch),
            rows: rows.collect(),
        };
        self.running.clear();
        self.cancelled.clear();
        self.log.clear();
        self.commits.clear();
        self.stages.clear();
        self.published = self.rows.clone();
        let (core, effects) =
            Core::open(self.now, self.limits, self.kinds.clone(), stored).expect("a catalog that was stored");
        self.core = core;
        self.carry_out(effects);
    }

    pub(crate) fn register(&mut self, kinds: Vec<KindOptions>) {
        self.kinds = kinds;
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        let mut effects = effects;
        loop {
            self.core.flush(self.now, &mut effects);
            if effects.is_empty() {
                break;
            }
            let mut inputs = Vec::new();
            for effect in effects.drain(..) {
                self.take(effect, &mut inputs);
            }
            for input in inputs {
                self.core.handle(self.now, input, &mut effects);
            }
            self.check();
        }
    }

    fn check(&self) {
        if !self.unchecked {
            assert_eq!(self.core.check_consistency(), []);
        }
    }

    fn take(&mut self, effect: Effect, inputs: &mut Vec<Input>) {
        match effect {
            Effect::Start(start) => {
                let phase = match start.phase {
                    Phase::Reconcile => "",
                    Phase::Rename => "rename ",
                    Phase::Delete => "delete ",
                };
                self.log.push(format!("{phase}{}", start.resource.name));
                self.running.push(*start);
            }
            Effect::Cancel { invocation, .. } => self.cancelled.push(invocation),
            Effect::Timer(at) => self.timer = at,
            Effect::Commit(commit) if self.store == Store::Prompt => {
                inputs.push(Input::Committed(commit.id));
                self.keep(&commit);
            }
            Effect::Commit(commit) => self.commits.push(commit),
            Effect::Answer { call, answer } => self.answers.entry(call).or_default().push(answer),
            Effect::Publish(publish) => {
                for row in publish.rows {
                    self.published.insert(row.uid, row);
                }
                for removed in publish.removed {
                    self.published.remove(&removed.uid);
                }
                for update in publish.statuses {
                    assert!(
                        self.published.contains_key(&update.uid),
                        "a status of nothing known"
                    );
                    self.stages.insert(update.uid, update.status.stage);
                    let row = &self.published[&update.uid];
                    self.no_ops.extend(update.no_op.filter(|run| !run.is_in(row)));
                }
            }
            Effect::Stopped { reason, unreturned } => self.stopped = Some((reason, unreturned)),
        }
    }

    fn keep(&mut self, commit: &Commit) {
        for write in commit.writes.iter() {
            match write {
                Write::Put(row) => self.rows.insert(row.uid, row.clone()),
                Write::Remove(uid) => self.rows.remove(uid),
            };
        }
        self.history.extend(commit.history.iter().cloned());
        self.durable = commit.revision;
    }

    pub(crate) fn input(&mut self, input: Input) {
        let mut effects = Vec::new();
        self.core.handle(self.now, input, &mut effects);
        self.check();
        self.carry_out(effects);
    }

    /// Reports the oldest unanswered commit as durable.
    pub(crate) fn commit(&mut self) {
        let commit = self.commits.remove(0);
        self.keep(&commit);
        self.input(Input::Committed(commit.id));
    }

    pub(crate) fn fail_commit(&mut self, error: CommitError) {
        let commit = self.commits.remove(0);
        self.input(Input::CommitFailed {
            commit: commit.id,
            error,
        });
    }

    pub(crate) fn call(&mut self, call: Call) -> CallId {
        self.call_by(None, call)
    }

    pub(crate) fn call_by(&mut self, by: Option<InvocationId>, call: Call) -> CallId {
        let id = CallId(self.next_call);
        self.next_call += 1;
        self.input(Input::Call { id, by, call });
        id
    }

    /// Writes the state of the resource that an invocation runs for.
    pub(crate) fn write_state(&mut self, by: InvocationId, state: &str) -> CallId {
        let state = state.as_bytes().into();
        let write = Call::WriteState {
            state,
            expected: None,
        };
        self.call_by(Some(by), write)
    }

    pub(crate) fn apply(&mut self, edits: Vec<Edit>) -> CallId {
        self.call(Call::Apply(Batch { edits }))
    }

    pub(crate) fn new_resource(&mut self, name: &str, parents: &[&str]) -> NewResource {
        self.new_of("k", name, parents)
    }

    pub(crate) fn new_of(&mut self, kind: &str, name: &str, parents: &[&str]) -> NewResource {
        let uid = Uid(Uuid::from_u128(self.next_uid));
        self.next_uid += 1;
        let refs: Vec<Ref> = parents
            .iter()
            .map(|parent| Ref::completed("k", *parent))
            .collect();
        NewResource::new(uid, kind, name, name.as_bytes()).with_refs(refs)
    }

    /// Creates resources in one batch, each with the names of its parents.
    pub(crate) fn create(&mut self, resources: &[(&str, &[&str])]) {
        let edits: Vec<Edit> = resources
            .iter()
            .map(|(name, parents)| Edit::create(self.new_resource(name, parents)))
            .collect();
        self.apply(edits);
    }

    /// Creates resources and lets all of their invocations succeed.
    pub(crate) fn settled(&mut self, resources: &[(&str, &[&str])]) {
        self.create(resources);
        self.finish_all();
        self.log.clear();
    }

    /// Takes the starts since the last call.
    pub(crate) fn starts(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    pub(crate) fn running(&self, name: &str) -> Start {
        let found = self
            .running
            .iter()
            .find(|start| *start.resource.name.as_str() == *name);
        found.unwrap_or_else(|| panic!("\"{name}\" does not run")).clone()
    }

    pub(crate) fn is_running(&self, name: &str) -> bool {
        self.running
            .iter()
            .any(|start| *start.resource.name.as_str() == *name)
    }

    pub(crate) fn is_cancelled(&self, name: &str) -> bool {
        self.cancelled.contains(&self.running(name).invocation)
    }

    pub(crate) fn finish(&mut self, name: &str) {
        self.returns(name, Returned::Done(Outcome::from_work(Work::Built)));
    }

    pub(crate) fn finish_at(&mut self, name: &str, retrigger: Option<i64>) {
        let retrigger = retrigger.map(Timestamp);
        self.returns(
            name,
            Returned::Done(Outcome {
                work: Work::Built,
                retrigger,
                ..Outcome::default()
            }),
        );
    }

    pub(crate) fn fail(&mut self, name: &str) {
        self.returns(
            name,
            Returned::Failed(Error::permanent("broken", "it does not work")),
        );
    }

    pub(crate) fn returns(&mut self, name: &str, result: Returned) {
        let invocation = self.running(name).invocation;
        self.running.retain(|start| start.invocation != invocation);
        self.input(Input::Returned { invocation, result });
    }

    /// Lets all invocations succeed in the order of starts, until none runs; returns the starts.
    pub(crate) fn finish_all(&mut self) -> Vec<String> {
        while !self.running.is_empty() {
            let invocation = self.running.remove(0).invocation;
            let result = Returned::Done(Outcome::default());
            self.input(Input::Returned { invocation, result });
        }
        self.starts()
    }

    pub(crate) fn edit_spec(&mut self, name: &str, spec: &str) -> CallId {
        let update = Update {
            spec: Some((spec.as_bytes().into(), 1)),
            ..Update::default()
        };
        self.apply(vec![Edit::update(Key::new("k", name), update)])
    }

    pub(crate) fn edit_refs(&mut self, name: &str, parents: &[&str]) -> CallId {
        self.apply(vec![refs_edit(name, parents)])
    }

    pub(crate) fn rename(&mut self, from: &str, to: &str) -> CallId {
        self.apply(vec![Edit::rename(Key::new("k", from), to)])
    }

    pub(crate) fn delete(&mut self, name: &str) -> CallId {
        self.apply(vec![Edit::delete(Key::new("k", name))])
    }

    pub(crate) fn reconcile(&mut self, name: &str) -> CallId {
        self.call(Call::Reconcile(target(name)))
    }

    pub(crate) fn answers_to(&self, call: CallId) -> Vec<Answer> {
        self.answers.get(&call).cloned().unwrap_or_default()
    }

    pub(crate) fn answer_to(&self, call: CallId) -> Option<Answer> {
        self.answers_to(call).pop()
    }

    /// Returns the published row of the live resource with that name.
    pub(crate) fn row(&self, name: &str) -> std::sync::Arc<Row> {
        let name = crate::Name::from(name);
        let found = self
            .published
            .values()
            .find(|row| row.name == name && !row.intents.is_deleted());
        found.unwrap_or_else(|| panic!("no \"{name}\" is known")).clone()
    }

    pub(crate) fn stage(&self, name: &str) -> Stage {
        self.stages.get(&self.row(name).uid).cloned().expect("a stage")
    }

    pub(crate) fn pass(&mut self, wait: Duration) {
        self.now.mono = self.now.mono.after(wait);
        self.now.wall = self.now.wall.after(wait);
        self.input(Input::Time);
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.core.is_idle()
    }
}

pub(crate) fn target(name: &str) -> Target {
    Target::Key(Key::new("k", name))
}

pub(crate) fn refs_edit(name: &str, parents: &[&str]) -> Edit {
    let refs: Vec<Ref> = parents
        .iter()
        .map(|parent| Ref::completed("k", *parent))
        .collect();
    Edit::update(
        Key::new("k", name),
        Update {
            refs: Some(refs.into()),
            ..Update::default()
        },
    )
}
