//! Visits every state that so many events can lead to.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::events::Event;
use super::graphs::graphs;
use super::shape::Renamings;
use super::world::{Check, World};

/// Parts of what was visited, so that threads seldom meet.
const PARTS: usize = 64;

/// What was visited.
pub(super) struct Found {
    pub(super) graphs: usize,
    pub(super) states: usize,
    pub(super) transitions: u64,
}

/// One thing that happens.
#[derive(Clone, Copy, Debug)]
enum Step {
    Event(Event),
    /// The invocation of this resource succeeds.
    Done(usize),
    Pass,
}

/// A world, how many events led to it, and by which steps.
struct Node {
    world: World,
    events: u8,
    way: Vec<Step>,
}

struct Search {
    renamings: Renamings,
    events: u8,
    /// By shape, the least number of events that led there.
    visited: Vec<Mutex<HashMap<u128, u8>>>,
    transitions: AtomicU64,
}

pub(super) fn search(resources: usize, events: u8) -> Found {
    let graphs = graphs(resources);
    let search = Search {
        renamings: Renamings::of(resources),
        events,
        visited: (0..PARTS).map(|_| Mutex::default()).collect(),
        transitions: AtomicU64::new(0),
    };
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(graph) = graphs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if failed.load(Ordering::Relaxed) {
                        return;
                    }
                    if let Err(error) = search.graph(graph) {
                        failed.store(true, Ordering::Relaxed);
                        panic!("graph {graph:?}: {error}");
                    }
                }
            });
        }
    });
    let states = search
        .visited
        .iter()
        .map(|part| part.lock().map_or(0, |part| part.len()));
    Found {
        graphs: graphs.len(),
        states: states.sum(),
        transitions: search.transitions.into_inner(),
    }
}

impl Search {
    fn graph(&self, graph: &Vec<u8>) -> Check {
        let mut layers: Vec<Vec<Node>> = (0..=self.events).map(|_| Vec::new()).collect();
        layers[0].push(Node {
            world: World::new(graph)?,
            events: 0,
            way: Vec::new(),
        });
        // Fewer events first: whoever is reached by few is not visited again by more.
        while let Some(node) = layers.iter_mut().find_map(Vec::pop) {
            for step in self.steps(&node) {
                let mut next = Node {
                    world: node.world.clone(),
                    events: node.events + u8::from(matches!(step, Step::Event(_))),
                    way: node.way.clone(),
                };
                next.way.push(step);
                self.transitions.fetch_add(1, Ordering::Relaxed);
                next.world
                    .take(step)
                    .map_err(|error| format!("{error}\nafter {:?}", next.way))?;
                if self.is_new(&next) {
                    layers[usize::from(next.events)].push(next);
                }
            }
        }
        Ok(())
    }

    fn steps(&self, node: &Node) -> Vec<Step> {
        let mut steps: Vec<Step> = node
            .world
            .running
            .iter()
            .map(|run| Step::Done(run.index))
            .collect();
        if node.world.waits_for_time() {
            steps.push(Step::Pass);
        }
        if node.events < self.events {
            steps.extend(node.world.events().into_iter().map(Step::Event));
        }
        steps
    }

    fn is_new(&self, node: &Node) -> bool {
        let shape = node.world.shape(&self.renamings);
        let part = &self.visited[shape as usize % PARTS];
        let mut part = part.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let least = part.entry(shape).or_insert(u8::MAX);
        let is_new = node.events < *least;
        *least = node.events.min(*least);
        is_new
    }
}

impl World {
    fn take(&mut self, step: Step) -> Check {
        match step {
            Step::Event(event) => self.happen(event),
            Step::Pass => self.pass(),
            Step::Done(index) => {
                let position = self.running.iter().position(|run| run.index == index);
                position.map_or(Ok(()), |position| self.comes_back(position, true))
            }
        }
    }
}
