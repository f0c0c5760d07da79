//! The whole host in virtual time: one seed decides the graph, the edits and how long each run takes.
//!
//! Each resource's state is a digest of its text and of its parents' states, so at quiescence every state can be
//! computed anew from the specs alone. While runs are under way a monitor checks that none overlaps one that it reads.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::seq::IteratorRandom;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use watershed_controller::clock::TokioClock;
use watershed_controller::kind::Parents;
use watershed_controller::reconciler::RefView;
use watershed_controller::store::MemoryStore;
use watershed_controller::{
    Batch, Context, Controller, Delete, Edit, Error, Key, KindOptions, Message, NewResource, Outcome,
    Reconciler, Ref, Resource, Select, Timestamp, Uid, Update, Work, json_message,
};

use crate::task::SOON;

/// Seeds of an ordinary test run; `WATERSHED_SEEDS=from..to` asks for others.
const SEEDS: std::ops::Range<u64> = 0..60;
/// Edits of one run.
const STEPS: usize = 40;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Text {
    text: String,
    takes_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Digest(u64);

json_message!(Text, format = 1);
json_message!(Digest, format = 1);

fn digest(text: &str, parents: impl Iterator<Item = Option<u64>>) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    parents.for_each(|parent| parent.hash(&mut hasher));
    hasher.finish()
}

/// The invocations that run at this moment, and the order of those that ran.
#[derive(Debug, Default)]
struct Monitor {
    running: BTreeSet<Uid>,
    log: Vec<String>,
}

#[derive(Debug, Clone, Default)]
struct Digests(Arc<Mutex<Monitor>>);

impl Reconciler for Digests {
    type Spec = Text;
    type State = Digest;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        self.begin(&context);
        tokio::select! {
            biased;
            () = context.cancellation().cancelled() => {
                self.end(&context);
                return Ok(Outcome::default());
            }
            () = tokio::time::sleep(Duration::from_millis(context.spec().takes_ms)) => {}
        }
        self.end(&context);
        let parent = |view: &RefView| {
            view.target
                .as_ref()
                .and_then(|row| Resource::state_of::<Digest>(row).ok()?)
        };
        let parents = context
            .refs()
            .iter()
            .map(|view| parent(view).map(|state| state.0));
        let state = Digest(digest(&context.spec().text, parents));
        if context.state() == Some(&state) {
            return Ok(Outcome::default());
        }
        context
            .set_state(&state)
            .await
            .map_err(|e| Error::permanent("state", e.to_string()))?;
        Ok(Outcome::from_work(Work::Built))
    }
}

impl Digests {
    fn begin(&self, context: &Context<Self>) {
        let mut monitor = self.0.lock().unwrap();
        let overlap = context
            .refs()
            .iter()
            .filter_map(|view| view.target.as_ref())
            .find(|row| monitor.running.contains(&row.uid));
        assert!(
            overlap.is_none(),
            "{} runs while {overlap:?} does",
            context.name()
        );
        assert!(
            monitor.running.insert(context.uid()),
            "{} runs twice",
            context.name()
        );
        monitor
            .log
            .push(format!("{} {}", context.invocation(), context.name()));
    }

    fn end(&self, context: &Context<Self>) {
        self.0.lock().unwrap().running.remove(&context.uid());
    }
}

/// The specs as they should be, by name.
type Wanted = BTreeMap<String, (String, Vec<String>)>;

struct SeededHost {
    random: SmallRng,
    wanted: Wanted,
    next_uid: u128,
}

impl SeededHost {
    fn new(seed: u64) -> Self {
        Self {
            random: SmallRng::seed_from_u64(seed),
            wanted: Wanted::new(),
            next_uid: 1,
        }
    }

    fn text(&mut self) -> Text {
        Text {
            text: self.random.random::<u16>().to_string(),
            takes_ms: self.random.random_range(0..50),
        }
    }

    /// Refs to names that sort earlier, whether they are there or not, so no cycle ever comes.
    fn refs(&mut self, name: &str) -> Vec<String> {
        let number: usize = name[1..].parse().unwrap();
        let count = self.random.random_range(0..3);
        (0..number)
            .map(|n| format!("t{n:02}"))
            .choose_multiple(&mut self.random, count)
    }

    fn edit(&mut self) -> Edit {
        let name = format!("t{:02}", self.random.random_range(0..15));
        let key = Key::new("text", name.as_str());
        let text = self.text();
        if !self.wanted.contains_key(&name) {
            let refs = self.refs(&name);
            self.wanted
                .insert(name.clone(), (text.text.clone(), refs.clone()));
            self.next_uid += 1;
            let uid = Uid(Uuid::from_u128(self.next_uid));
            let new = NewResource::new(uid, "text", name.as_str(), text.encode().unwrap());
            return Edit::create(new.with_refs(as_refs(&refs)));
        }
        match self.random.random_range(0..4) {
            0 => {
                self.wanted.remove(&name);
                Edit::delete(key)
            }
            1 => {
                let refs = self.refs(&name);
                self.wanted.get_mut(&name).unwrap().1 = refs.clone();
                Edit::update(
                    key,
                    Update {
                        refs: Some(as_refs(&refs).into()),
                        ..Update::default()
                    },
                )
            }
            _ => {
                self.wanted.get_mut(&name).unwrap().0 = text.text.clone();
                Edit::update(key, Resource::new_spec(&text).unwrap())
            }
        }
    }
}

fn as_refs(names: &[String]) -> Vec<Ref> {
    names
        .iter()
        .map(|name| Ref::completed("text", name.as_str()))
        .collect()
}

fn expected(wanted: &Wanted) -> BTreeMap<String, u64> {
    let mut states: BTreeMap<String, u64> = BTreeMap::new();
    for (name, (text, refs)) in wanted {
        let state = digest(text, refs.iter().map(|parent| states.get(parent).copied()));
        states.insert(name.clone(), state);
    }
    states
}

async fn run(seed: u64) -> Vec<String> {
    let (mut world, reconciler, store) = (SeededHost::new(seed), Digests::default(), MemoryStore::new());
    let mut controller = start(&store, &reconciler, seed).await;
    for _ in 0..STEPS {
        let edit = world.edit();
        controller
            .edit(Batch::from(edit))
            .await
            .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        match world.random.random_range(0..10) {
            0 => controller.wait_until_idle(SOON).await.unwrap(),
            1 => {
                controller.shutdown(SOON).await.unwrap();
                controller = start(&store, &reconciler, seed).await;
            }
            2..6 => tokio::time::sleep(Duration::from_millis(world.random.random_range(0..60))).await,
            _ => {}
        }
    }
    controller
        .wait_until_idle(SOON)
        .await
        .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    let found = controller
        .list(Select::all())
        .resources
        .into_iter()
        .map(|resource| {
            let state = resource
                .state::<Digest>()
                .unwrap()
                .unwrap_or_else(|| panic!("seed {seed}: no state"));
            (resource.row.name.to_string(), state.0)
        });
    assert_eq!(
        found.collect::<BTreeMap<_, _>>(),
        expected(&world.wanted),
        "seed {seed}"
    );
    controller.shutdown(SOON).await.unwrap();
    std::mem::take(&mut reconciler.0.lock().unwrap().log)
}

async fn start(store: &MemoryStore, reconciler: &Digests, seed: u64) -> Controller {
    let mut options = KindOptions::new("text");
    if seed % 2 == 1 {
        options = options.parents(Parents::Changed);
    }
    let builder = Controller::builder()
        .store(store.clone())
        .clock(TokioClock::starting_at(Timestamp(0)));
    builder.kind(options, reconciler.clone()).start().await.unwrap()
}

fn in_virtual_time(seed: u64) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(run(seed))
}

#[test]
fn the_host_converges_and_never_overlaps_a_run_with_one_that_it_reads() {
    let range = std::env::var("WATERSHED_SEEDS").ok().and_then(|text| {
        let (from, to) = text.split_once("..")?;
        Some(from.parse().ok()?..to.parse().ok()?)
    });
    for seed in range.unwrap_or(SEEDS) {
        in_virtual_time(seed);
    }
}

#[test]
fn one_seed_gives_one_trace() {
    for seed in 1_000..1_010 {
        assert_eq!(in_virtual_time(seed), in_virtual_time(seed), "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_forced_delete_gives_up_on_the_reconciler_and_says_so() {
    let controller = start(&MemoryStore::new(), &Digests::default(), 0).await;
    let text = Text {
        text: "x".into(),
        takes_ms: 3_600_000,
    };
    let uid = Uid(Uuid::from_u128(1));
    let new = NewResource::new(uid, "text", "long", text.encode().unwrap());
    controller.create(new).await.unwrap();
    controller.delete_with(uid, Delete::Forced).await.unwrap();
    assert!(controller.get(uid).is_err());
    controller.wait_until_idle(SOON).await.unwrap();
}
