//! Search through every state that a number of events can lead to.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::events::Event;
use super::graphs::{Graph, graphs};
use super::shape::Renamings;
use super::world::{Check, World};

/// Number of parts of the visited states, each with its own lock, so that threads seldom meet.
const PARTS: usize = 64;

/// Counts of a completed search.
pub(super) struct Found {
    pub(super) graphs: usize,
    pub(super) states: usize,
    pub(super) transitions: u64,
}

/// A transition from one state to the next.
#[derive(Clone, Copy, Debug)]
enum Step {
    Event(Event),
    /// The invocation of this resource succeeds.
    Done(usize),
    Pass,
}

/// A world, and the end of the path that led to it.
struct Node {
    world: World,
    place: Place,
}

/// Index of the last step of a path, among the steps of all paths of a graph.
type Place = usize;

/// Paths to all states of a graph: each step knows the previous one. States still to visit are kept only as paths,
/// because worlds are a hundred times as large, and there are millions.
struct Ways(Vec<(Place, Step)>);

impl Ways {
    /// Start of all paths, before any step.
    const START: Place = usize::MAX;

    fn add(&mut self, from: Place, step: Step) -> Place {
        self.0.push((from, step));
        self.0.len() - 1
    }

    fn to(&self, mut place: Place) -> Vec<Step> {
        let mut steps = Vec::new();
        while let Some((from, step)) = self.0.get(place) {
            steps.push(*step);
            place = *from;
        }
        steps.reverse();
        steps
    }
}

struct Search {
    renamings: Renamings,
    events: u8,
    /// Least number of events that led to each shape.
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
    fn graph(&self, graph: &Graph) -> Check {
        let first = World::new(graph)?;
        let mut ways = Ways(Vec::new());
        let mut layer = vec![Ways::START];
        // Fewer events first: whoever is reached by few is not visited again by more.
        for events in 0..=self.events {
            let mut next = Vec::new();
            for place in layer {
                let world = first.again(ways.to(place))?;
                self.visit(Node { world, place }, events, &mut ways, &mut next)?;
            }
            layer = next;
        }
        Ok(())
    }

    /// Visits all states that successes alone lead to, and queues in `later` those that need another event.
    fn visit(&self, node: Node, events: u8, ways: &mut Ways, later: &mut Vec<Place>) -> Check {
        let mut at_hand = vec![node];
        while let Some(node) = at_hand.pop() {
            for step in self.steps(&node.world, events) {
                let is_event = matches!(step, Step::Event(_));
                let mut world = node.world.clone();
                self.transitions.fetch_add(1, Ordering::Relaxed);
                world
                    .take(step)
                    .map_err(|error| format!("{error}\nby {step:?} after {:?}", ways.to(node.place)))?;
                if !self.is_new(&world, events + u8::from(is_event)) {
                    continue;
                }
                let place = ways.add(node.place, step);
                if is_event {
                    later.push(place);
                } else {
                    at_hand.push(Node { world, place });
                }
            }
        }
        Ok(())
    }

    fn steps(&self, world: &World, events: u8) -> Vec<Step> {
        let mut steps: Vec<Step> = world.running.iter().map(|run| Step::Done(run.index)).collect();
        if world.waits_for_time() {
            steps.push(Step::Pass);
        }
        if events < self.events {
            steps.extend(world.events().into_iter().map(Step::Event));
        }
        steps
    }

    fn is_new(&self, world: &World, events: u8) -> bool {
        let shape = world.shape(&self.renamings);
        let part = &self.visited[shape as usize % PARTS];
        let mut part = part.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let least = part.entry(shape).or_insert(u8::MAX);
        let is_new = events < *least;
        *least = events.min(*least);
        is_new
    }
}

impl World {
    /// Returns the world after these steps, without checking it again.
    fn again(&self, steps: Vec<Step>) -> Result<Self, String> {
        let mut world = self.clone();
        world.checks = false;
        for step in steps {
            world.take(step)?;
        }
        world.checks = true;
        Ok(world)
    }

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
