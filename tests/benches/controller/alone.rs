//! The core without its host: what the figures of the controller can't go below, for one thread decides everything.
//!
//! Commits and invocations are over as soon as they are asked for, nobody reads or watches, and nothing is handed from
//! thread to thread.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use watershed_core::{
    Call, CallId, Core, Edit, Effect, Epoch, Input, Key, KindOptions, Limits, Mono, Now, Outcome, Parents,
    Returned, Revision, Row, Stored, StoredRow, Target, Timestamp, Uid, Update, Write,
};
use watershed_tests::measure::{Report, Unit};

use crate::world::{CONCURRENCY, FAN, LOOSE, Shape, batch, name};

const COUNT: usize = 100_000;
const SAMPLES: usize = 5;
/// As many inputs as the host takes at a time.
const TURN: usize = 64;

pub(crate) fn measure(report: &Report) {
    if report.wants("core_noop_100k_per_s") {
        let stored = filled(LOOSE, Parents::Completed);
        let samples = (0..SAMPLES).map(|_| {
            let started = Instant::now();
            Alone::open(stored.clone(), Parents::Completed);
            COUNT as f64 / started.elapsed().as_secs_f64()
        });
        report.print("core_noop_100k_per_s", Unit::PerSecond, samples.collect());
    }
    if report.wants("core_update_specs_100k_s") {
        let mut alone = Alone::open(filled(LOOSE, Parents::Completed), Parents::Completed);
        let samples = (1..=SAMPLES).map(|round| alone.update_all(round as u8));
        report.print("core_update_specs_100k_s", Unit::Seconds, samples.collect());
    }
    if report.wants("core_unchanged_root_fan_ms") {
        let mut alone = Alone::open(filled(FAN, Parents::Changed), Parents::Changed);
        let samples = (0..SAMPLES).map(|_| {
            let started = Instant::now();
            alone.call(Call::Reconcile(target(0)));
            alone.settle();
            started.elapsed().as_secs_f64() * 1e3
        });
        report.print(
            "core_unchanged_root_fan_ms",
            Unit::Milliseconds,
            samples.collect(),
        );
    }
}

fn target(number: usize) -> Target {
    Target::Key(Key::new("thing", name(number).as_str()))
}

/// A catalog whose resources have each run once.
fn filled(shape: Shape, parents: Parents) -> Stored {
    let none = Stored {
        revision: Revision(0),
        epoch: Epoch(1),
        rows: Vec::new(),
    };
    let mut alone = Alone::open(none, parents);
    alone.keeps = Some(HashMap::new());
    alone.call(Call::Apply(batch(0..COUNT, shape)));
    alone.settle();
    let rows = alone.keeps.take().unwrap_or_default();
    Stored {
        revision: alone.core.revision(),
        epoch: Epoch(2),
        rows: rows.into_values().map(StoredRow::from).collect(),
    }
}

struct Alone {
    core: Core,
    effects: Vec<Effect>,
    inputs: Vec<Input>,
    calls: u64,
    /// The committed rows, if they are wanted.
    keeps: Option<HashMap<Uid, Arc<Row>>>,
}

impl Alone {
    /// Everything that is in it has run when this returns.
    fn open(stored: Stored, parents: Parents) -> Self {
        let limits = Limits::default().concurrency(CONCURRENCY);
        let mut options = KindOptions::new("thing");
        options.parents = parents;
        let (core, effects) = Core::open(now(), limits, vec![options], stored).expect("it opens");
        let mut alone = Self {
            core,
            effects,
            inputs: Vec::new(),
            calls: 0,
            keeps: None,
        };
        alone.settle();
        assert!(alone.core.is_idle(), "nothing is left to do");
        alone
    }

    /// Seconds for a new spec of each resource, each committed before the next, with the run that follows.
    fn update_all(&mut self, spec: u8) -> f64 {
        let started = Instant::now();
        for number in 0..COUNT {
            let update = Update {
                spec: Some((vec![spec].into(), 0)),
                ..Update::default()
            };
            let edits = vec![Edit::update(target(number), update)];
            self.call(Call::Apply(watershed_core::Batch { edits }));
            self.settle();
        }
        started.elapsed().as_secs_f64()
    }

    fn call(&mut self, call: Call) {
        self.calls += 1;
        let id = CallId(self.calls);
        let by = None;
        self.core
            .handle(now(), Input::Call { id, by, call }, &mut self.effects);
    }

    /// Until nothing more comes of anything.
    fn settle(&mut self) {
        loop {
            self.core.flush(now(), &mut self.effects);
            self.carry_out();
            if self.inputs.is_empty() {
                return;
            }
            let rest = self.inputs.len().saturating_sub(TURN);
            for input in self.inputs.drain(rest..) {
                self.core.handle(now(), input, &mut self.effects);
            }
        }
    }

    fn carry_out(&mut self) {
        for effect in self.effects.drain(..) {
            match effect {
                Effect::Start(start) => self.inputs.push(Input::Returned {
                    invocation: start.invocation,
                    result: Returned::Done(Outcome::default()),
                }),
                Effect::Commit(commit) => {
                    if let Some(rows) = &mut self.keeps {
                        for write in commit.writes.iter() {
                            if let Write::Put(row) = write {
                                rows.insert(row.uid, Arc::clone(row));
                            }
                        }
                    }
                    self.inputs.push(Input::Committed(commit.id));
                }
                _ => {}
            }
        }
    }
}

fn now() -> Now {
    Now {
        wall: Timestamp(1_000_000),
        mono: Mono(0),
    }
}
