//! Random rounds of many calls on one graph, for the whole and for its three parts. Handlers fail, fail to answer, go
//! on in the background and are cancelled, and processes crash in between.
//!
//! Every operation is checked against the reference. Whatever fails, a call repeated at once does nothing, the next
//! call is due in the future, no item depends on itself, a stored graph is unchanged when read again, and an item that
//! waits for an operation waits for a running one.

use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::Value as Json;
use watershed_stategraph::{
    Blocker, Effect, Extent, Graph, Input, Item, Operation, OperationId, Operations, Options, Planner,
    Reason, Ref, Start, Status, plan,
};

use crate::life::{Life, show_places};
use crate::naive::{show, things};
use crate::parts::{draw_extent, draw_in_parts, sway};
use crate::proof::for_first_seeds;
use crate::worlds::{Drawing, draw_externals, needs_recreate, r, rng, types};

/// Behavior of handlers during a call: average numbers of operations per failure and per background operation; zero for
/// none.
#[derive(Clone, Copy, Default)]
struct Manners {
    fails: u32,
    background: u32,
}

impl Manners {
    fn are_good(self) -> bool {
        self.fails == 0 && self.background == 0
    }
}

struct Call {
    done: Vec<(Operation, Ref)>,
    status: Status,
}

fn one_in(rng: &mut SmallRng, count: u32) -> bool {
    count > 0 && rng.random_ratio(1, count)
}

impl Life {
    fn call(&mut self, rng: &mut SmallRng, extent: &Extent, manners: Manners) -> Option<Call> {
        self.begin(extent);
        let (mut current, mut operations) = (self.current.clone(), self.operations.clone());
        let (types, intended) = (types(), self.intended.clone());
        let options = Options {
            limit: rng.random_range(1..6),
            ..Options::default()
        };
        let planner = Planner::new(
            &types,
            &mut current,
            &mut operations,
            intended.as_ref(),
            extent,
            options,
        );
        let mut planner = planner.ok()?;
        self.tell(&format!("call {extent:?} at {}", self.now.0));
        let mut inputs = std::mem::take(&mut self.unnoticed);
        inputs.push(Input::Begin);
        let mut done = Vec::new();
        let mut running: Vec<Start<Json>> = Vec::new();
        loop {
            for input in std::mem::take(&mut inputs) {
                for effect in planner.step(self.now, input) {
                    self.world.relink(planner.current());
                    self.carry_out(rng, extent, manners, effect, &mut done, &mut running, &mut inputs);
                }
            }
            self.world.relink(planner.current());
            if inputs.is_empty() {
                if running.is_empty() {
                    break;
                }
                let ended = running.swap_remove(rng.random_range(0..running.len()));
                let fails = one_in(rng, manners.fails);
                inputs.push(self.end(ended.id, &ended.reference, fails));
                self.follow(extent, &ended.reference);
            }
        }
        if !planner.is_done() {
            self.blame("the call came to rest without an end");
        }
        let (_, status) = planner.into_report();
        (self.current, self.operations) = (current, operations);
        self.world
            .displaced
            .retain(|one, _| !self.world.things.contains_key(one) || self.world.running.contains_key(one));
        let displaced = &self.world.displaced;
        self.displaced_from.retain(|one, _| displaced.contains_key(one));
        self.displaced_by.retain(|one, _| displaced.contains_key(one));
        self.tell(&format!("  {status:?}"));
        Some(Call { done, status })
    }

    #[allow(clippy::too_many_arguments)]
    fn carry_out(
        &mut self,
        rng: &mut SmallRng,
        extent: &Extent,
        manners: Manners,
        effect: Effect<Json>,
        done: &mut Vec<(Operation, Ref)>,
        running: &mut Vec<Start<Json>>,
        inputs: &mut Vec<Input<Json>>,
    ) {
        match effect {
            Effect::Start(start) => {
                self.tell(&format!(
                    "  {} {}: {}",
                    start.operation, start.reference, start.reason
                ));
                self.check(extent, &start);
                self.world.start(&start);
                done.push((start.operation, start.reference.clone()));
                if one_in(rng, manners.background) {
                    self.tell("    in the background");
                    self.behind.insert(start.id, start.reference.clone());
                    inputs.push(Input::Background { id: start.id });
                } else {
                    running.push(start);
                }
            }
            Effect::Ask { reference, old, new } => {
                let answer = if one_in(rng, manners.fails * 2) {
                    self.tell(&format!("  {reference} cannot be asked about"));
                    self.world.failed.insert(reference.clone());
                    Err("cannot tell".to_owned())
                } else {
                    Ok(needs_recreate(old.value(), new.value()))
                };
                inputs.push(Input::Answered { reference, answer });
            }
            Effect::Cancel { .. } | Effect::Done => {}
            Effect::Observe { reference, .. } => self.blame(&format!("{reference} is observed")),
        }
    }

    fn check(&mut self, extent: &Extent, start: &Start<Json>) {
        if let Some(objection) = self.world.objection(start) {
            self.blame(&format!("{} {}: {objection}", start.operation, start.reference));
        }
        let item = start.reference.base();
        if self.is_inside(extent, &item) || !self.is_part(extent) {
            return;
        }
        match (start.operation, &start.new) {
            // Its replacement stays.
            (Operation::Delete, _) if start.reason == Reason::Replaced => {}
            (Operation::Delete, _) if !start.reference.is_alias() => {
                if let Some(thing) = self.world.things.get(&item).cloned() {
                    let path = self.current.group_of(&item).cloned().unwrap_or_default();
                    self.displaced_from.insert(item.clone(), path);
                    self.displaced_by.insert(item.clone(), extent.clone());
                    let wanted = self.world.wanted.get(&item).cloned();
                    self.world.displaced.insert(item, wanted.unwrap_or(thing));
                }
            }
            (Operation::Create | Operation::Modify, Some(new)) => {
                let known = self
                    .world
                    .things
                    .get(&item)
                    .or_else(|| self.world.displaced.get(&item));
                if known.is_none_or(|known| known.value != *new.value()) {
                    self.blame(&format!("S9: {} {item} is outside", start.operation));
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, id: OperationId, reference: &Ref, fails: bool) -> Input<Json> {
        self.tell(&format!(
            "  {} {reference}",
            if fails { "failed" } else { "done" }
        ));
        self.world.end_of(reference, !fails);
        if let Some(one) = self.world.on_cycle() {
            self.blame(&format!("S10: {one} depends on itself"));
        }
        let result = if fails {
            Err(format!("operation {} failed", id.0))
        } else {
            Ok(())
        };
        Input::Ended { id, result }
    }

    /// Lets time pass: ends or cancels some background operations, or loses all in a crash.
    fn let_pass(&mut self, rng: &mut SmallRng) {
        if rng.random_ratio(1, 12) {
            self.tell("crash");
            let unnoticed = std::mem::take(&mut self.unnoticed);
            if unnoticed.is_empty() {
                for (_, reference) in std::mem::take(&mut self.behind) {
                    self.world.end_of(&reference, false);
                }
                self.operations = Operations::default();
            } else {
                self.unnoticed = unnoticed;
            }
        }
        let behind: Vec<(OperationId, Ref)> = self.behind.clone().into_iter().collect();
        for (id, reference) in behind {
            let fails = rng.random_ratio(1, 4);
            let is_cancelled = rng.random_bool(0.2);
            if is_cancelled {
                self.unnoticed.push(Input::Cancel(vec![id]));
            }
            if is_cancelled || rng.random_bool(0.6) {
                self.behind.remove(&id);
                let ended = self.end(id, &reference, fails || is_cancelled);
                self.unnoticed.push(ended);
            }
        }
        self.now = self
            .now
            .after_ms([0, 300, 1_000, 2_500, 20_000][rng.random_range(0..5)]);
    }

    /// Checks the rules for the status that each call returns.
    fn check_status(&self, call: &Call) {
        if call.status.next.is_some_and(|next| next <= self.now) {
            self.blame("S5: the next call is due already");
        }
        for (reference, held) in &call.status.held {
            if let Blocker::Running(other) = held {
                let under_way = |one: &Ref| self.operations.on(one).is_some();
                if !under_way(other) && !under_way(&other.alias()) {
                    self.blame(&format!("{reference} waits for {other}, which has no operation"));
                }
            }
        }
    }

    /// Stores the graph, and checks that it is unchanged when read again.
    fn store(&mut self) {
        let stored = serde_json::to_string(&self.current).unwrap();
        let read: Graph<Json> = serde_json::from_str(&stored).unwrap();
        if read != self.current || read.fingerprint() != self.current.fingerprint() {
            self.blame("S1: what is read is not what was stored");
        }
    }

    fn planned(&self, extent: &Extent) -> Option<Vec<(Operation, Ref)>> {
        let mut answer = |_: &Ref, old: &Json, new: &Json| Ok(needs_recreate(old, new));
        let (types, intended) = (&self.types, self.intended.as_ref());
        let plan = plan(
            types,
            &self.current,
            &self.operations,
            intended,
            extent,
            self.now,
            &mut answer,
        );
        let operations = plan.ok()?.operations.into_iter();
        Some(operations.map(|one| (one.operation, one.reference)).collect())
    }

    /// Makes a call, and a second one that must have nothing to do.
    fn call_twice(&mut self, rng: &mut SmallRng, extent: &Extent, manners: Manners) {
        let is_quiet = self.unnoticed.is_empty();
        let planned = self.planned(extent);
        let Some(call) = self.call(rng, extent, manners) else {
            return;
        };
        self.check_status(&call);
        let is_alone = self.operations.is_empty() && *extent == Extent::Everything;
        if let Some(away) = self.world.left_away().filter(|_| manners.are_good() && is_alone) {
            self.blame(&away);
        }
        if manners.are_good() && is_quiet {
            let (mut planned, mut done) = (planned.unwrap_or_default(), call.done.clone());
            planned.sort();
            done.sort();
            if planned != done {
                self.blame(&format!("S11: planned {planned:?}"));
            }
        }
        self.store();
        if let Some(again) = self.call(rng, extent, Manners::default()) {
            if !again.done.is_empty() {
                self.blame("S2: a second call does something");
            }
            self.check_status(&again);
        }
    }

    /// Ends all operations successfully, and checks that the graph comes to rest in the state that the reference
    /// expects.
    fn settle(&mut self, rng: &mut SmallRng) {
        for (id, reference) in std::mem::take(&mut self.behind) {
            let ended = self.end(id, &reference, false);
            self.unnoticed.push(ended);
        }
        for _ in 0..6 {
            self.call_twice(rng, &Extent::Everything, Manners::default());
            self.now = self.now.after_ms(100_000);
        }
        let before = self.current.clone();
        let last = self.call(rng, &Extent::Everything, Manners::default());
        if last.is_none_or(|last| !last.done.is_empty()) || before != self.current {
            self.blame("S5: it does not come to rest");
        }
        // One that is never tried again may be left over, and what is left alone may lean on others.
        let is_left =
            |item: &Item<Json>| item.failure().is_some() || self.world.stuck().contains(item.reference());
        if self.current.items().any(is_left) {
            return;
        }
        if things(&self.current) != self.world.end() || self.world.things != self.world.end() {
            self.blame(&format!(
                "S2: the end is not the reference's\n{}",
                show(&self.world.end())
            ));
        }
        let groups = |graph: &Graph<Json>| graph.groups().cloned().collect::<Vec<_>>();
        if groups(&self.current) != self.intended.as_ref().map(groups).unwrap_or_default() {
            self.blame("S9: groups are left over, or not described");
        }
    }
}

/// Relation of successive intents.
#[derive(Clone, Copy, PartialEq)]
enum Intents {
    /// Each intent is drawn anew.
    Drawn,
    /// Each intent differs little from a common base.
    Swaying,
}

fn round(seed: u64, intents: Intents) {
    let mut rng = rng(seed);
    let drawing = Drawing {
        items: rng.random_range(2..=9),
        features: true,
    };
    let kinds = ["t", "t", "t", "t", "t", "n", "y", "e"];
    let kind = |rng: &mut SmallRng| kinds[rng.random_range(0..kinds.len())];
    let refs: Vec<Ref> = (0..drawing.items)
        .map(|at| r(&format!("{}/{at:02}", kind(&mut rng))))
        .collect();
    let mut life = Life::new();
    let is_calm = rng.random_bool(0.3);
    let mut base: Option<Graph<Json>> = None;
    for _ in 0..rng.random_range(3..12) {
        if life.intended.is_none() || rng.random_bool(0.4) {
            let known = base.take().filter(|_| intents == Intents::Swaying);
            let known = known.unwrap_or_else(|| draw_in_parts(&mut rng, &refs, &drawing));
            let intended = match intents {
                Intents::Drawn => known,
                Intents::Swaying => sway(&mut rng, base.insert(known)),
            };
            life.intended = (!rng.random_ratio(1, 20)).then_some(intended);
            let wanted = life.intended.as_ref().map(show_places);
            life.tell(&format!("intended\n{}", wanted.unwrap_or_default()));
        }
        if rng.random_bool(0.3) {
            draw_externals(&mut rng, &refs, &mut life.current);
        }
        let manners = match rng.random_range(0..4) {
            0 => Manners::default(),
            _ if is_calm => Manners::default(),
            1 => Manners {
                fails: 3,
                background: 0,
            },
            _ => Manners {
                fails: 4,
                background: 3,
            },
        };
        let extent = draw_extent(&mut rng, &refs);
        life.call_twice(&mut rng, &extent, manners);
        // Taken back before anything is tried again.
        if let Some(base) = base
            .clone()
            .filter(|_| intents == Intents::Swaying && rng.random_bool(0.4))
        {
            life.tell("intended as at first");
            life.intended = Some(base);
            life.call_twice(&mut rng, &Extent::Everything, Manners::default());
        }
        life.let_pass(&mut rng);
    }
    life.settle(&mut rng);
}

#[test]
fn s9_whatever_fails_calls_about_parts_keep_every_rule() {
    for_first_seeds("parts", 200, |seed| round(seed, Intents::Drawn));
}

#[test]
fn s4_what_an_intent_began_the_next_one_takes_back() {
    for_first_seeds("swaying", 200, |seed| round(seed, Intents::Swaying));
}
