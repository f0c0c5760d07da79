//! Trees of managed resources over a world in which everything goes wrong, decided by one seed.
//!
//! A round makes random trees, edits, events, failures, restarts and takeovers on the real controller in simulated time. The
//! world checks every attempt as it begins; here is checked what holds between them, and what holds at rest.
//! `WATERSHED_MANAGERS_SEED` plays one round, `WATERSHED_MANAGERS_ROUNDS` so many from a fresh seed. Seeds that failed
//! once stand in `seeds.txt`; `WATERSHED_MANAGERS_TELL` prints the story.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use watershed_controller::{Key, Refresh, Resource, Select, Timestamp, Uid};

use super::stand::{BEGIN, Stand};
use super::world::{ATTEMPTS, Child, Node, Trouble, World, record, tell};
use crate::{
    CloudEvent, Desired, EventDoor, EventMatch, Managed, Occurrence, OnPartFailure, Rule, Timed, Wanted,
    desired_of, teardown_kind,
};

/// The most resources of one round.
const RESOURCES_MAX: usize = 20;
/// The things that happen in one round before it comes to rest.
const HAPPENINGS: usize = 40;

struct Round {
    random: SmallRng,
    /// Draws of renames, if there are any: apart from all others, so that a seed plays the same with and without them.
    renaming: Option<SmallRng>,
    stand: Stand,
    made: usize,
    /// The names of the two roots at present, and those that are there.
    names: [String; 2],
    roots: BTreeSet<String>,
    /// The parts that were seen, by their owner and the end of their name.
    parts: BTreeMap<(Uid, String), Uid>,
    windows: BTreeMap<Uid, Occurrence>,
    sent: Vec<CloudEvent>,
}

#[test]
fn trees_of_things_keep_every_rule_whatever_happens() {
    if let Ok(seed) = std::env::var("WATERSHED_MANAGERS_SEED") {
        return play(seed.parse().unwrap());
    }
    let kept = include_str!("seeds.txt")
        .lines()
        .filter(|line| !line.starts_with('#'));
    kept.for_each(|seed| play(seed.trim().parse().unwrap()));
    let (rounds, seconds) = match std::env::var("WATERSHED_MANAGERS_ROUNDS") {
        Ok(rounds) => (rounds.parse().unwrap(), u64::MAX),
        Err(_) => (
            u64::MAX,
            if std::env::var_os("WATERSHED_PROOF").is_some() {
                20
            } else {
                4
            },
        ),
    };
    let first = if rounds == u64::MAX {
        0
    } else {
        watershed_controller::Resource::fresh_uid().0.as_u64_pair().1 >> 20
    };
    let begin = Instant::now();
    let mut played = 0;
    while played < rounds && begin.elapsed().as_secs() < seconds {
        play(first + played);
        played += 1;
    }
    println!("{played} rounds from seed {first} in {:?}", begin.elapsed());
}

fn play(seed: u64) {
    play_with(seed, false);
    play_with(seed, true);
}

fn play_with(seed: u64, has_renames: bool) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let problem = runtime.block_on(async { Round::new(seed, has_renames).await.run().await.err() });
    if let Some(problem) = problem {
        panic!(
            "seed {seed}, renames {has_renames}: {problem}\nagain: WATERSHED_MANAGERS_SEED={seed} with this test"
        );
    }
}

impl Round {
    async fn new(seed: u64, has_renames: bool) -> Self {
        Self {
            random: SmallRng::seed_from_u64(seed),
            renaming: has_renames.then(|| SmallRng::seed_from_u64(!seed)),
            stand: Stand::new(World::seeded(seed)).await,
            made: 0,
            names: ["r0", "r1"].map(str::to_owned),
            roots: BTreeSet::new(),
            parts: BTreeMap::new(),
            windows: BTreeMap::new(),
            sent: Vec::new(),
        }
    }

    async fn run(mut self) -> Result<(), String> {
        for root in self.names.clone() {
            self.create(&root).await;
        }
        for _ in 0..HAPPENINGS {
            self.happen().await;
            self.rename().await;
            self.check()?;
        }
        self.rest().await?;
        self.end().await
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random.random_range(0..bound)
    }

    fn node(&mut self, levels: usize) -> Node {
        let mut node = Node {
            pipeline: self.below(3) == 0,
            ..Node::default()
        };
        let parts = if levels == 0 { 0 } else { self.below(4) };
        for n in 0..parts {
            if self.made + 1 >= RESOURCES_MAX {
                break;
            }
            self.made += 1;
            let below = self.node(levels - 1);
            let order = u32::try_from(self.below(3)).unwrap();
            let mut child = Child::new(&format!(".{n}"), order, below);
            if self.below(4) == 0 {
                child.gates_next = None;
            }
            if self.below(3) == 0 {
                child.on_part_failure = OnPartFailure::Continue;
            }
            node.parts.push(child);
        }
        node
    }

    fn window(&mut self) -> Timed {
        let now = (self.stand.now().0 - BEGIN.0) / 60_000;
        let start = now + i64::try_from(self.below(60)).unwrap() - 10;
        let end = start + 1 + i64::try_from(self.below(90)).unwrap();
        let local = |minutes: i64| {
            let time = watershed_schedule::jiff::Timestamp::from_millisecond(BEGIN.0 + minutes * 60_000);
            time.unwrap().strftime("%Y-%m-%dT%H:%M").to_string()
        };
        Timed::once(local(start), local(end))
    }

    async fn create(&mut self, name: &str) {
        let node = self.node(2);
        let mut desired = Desired::stage(["active", "active", "active", "done"][self.below(4)])
            .on_event(Rule::sets(EventMatch::of("world.done"), "done"));
        if self.below(2) == 0 {
            desired = desired.within(self.window());
        }
        if self.below(3) == 0 {
            desired = desired.on_part_failure(OnPartFailure::Continue);
        }
        let things = self.stand.controller.resources::<Managed<super::world::Thing>>();
        let _ = things.apply(name, &Wanted::new(desired, node)).await;
        self.roots.insert(name.to_owned());
    }

    fn rows(&self) -> Vec<Resource> {
        self.stand
            .controller
            .list(Select::kind("thing").with_hidden())
            .resources
    }

    fn any(&mut self) -> Option<Resource> {
        let rows = self.rows();
        let at = self.below(rows.len().max(1));
        rows.into_iter().nth(at)
    }

    async fn happen(&mut self) {
        let what = self.below(17);
        tell(|| format!("{} happens {what}", self.stand.now().0 - BEGIN.0));
        match what {
            0 => self.create_or_delete().await,
            1 | 2 => self.edit().await,
            3 => {
                let trouble = Trouble {
                    acts: u32::try_from(self.below(60)).unwrap(),
                    looks: u32::try_from(self.below(40)).unwrap(),
                };
                self.stand.world.trouble(trouble);
            }
            4 => {
                let which = self.below(100);
                self.stand.world.vanish(which);
            }
            5 | 6 => self.send().await,
            7 | 8 => self.ask().await,
            9 => {
                if self.below(2) == 0 {
                    let grace = Duration::from_millis(self.below(3) as u64 * 100);
                    let _ = self.stand.controller.shutdown(grace).await;
                }
                self.stand.restart().await;
            }
            10 => {
                for _ in 0..self.below(60) {
                    tokio::task::yield_now().await;
                }
                self.stand.restart().await;
            }
            _ => {
                let most = [200, 3_000, 60_000, 1_200_000][self.below(4)];
                let millis = self.below(most) as u64;
                tokio::time::sleep(Duration::from_millis(millis)).await;
            }
        }
        for _ in 0..self.below(20) {
            tokio::task::yield_now().await;
        }
    }

    fn root(&mut self) -> String {
        let which = self.below(2);
        self.names[which].clone()
    }

    /// A root gets its other name now and then, and its parts with it.
    async fn rename(&mut self) {
        let Some(random) = self.renaming.as_mut() else {
            return;
        };
        if random.random_range(0..8) > 0 {
            return;
        }
        let which = random.random_range(0..2);
        let before = self.names[which].clone();
        let after = match before.strip_prefix('r') {
            Some(number) => format!("s{number}"),
            None => before.replace('s', "r"),
        };
        tell(|| format!("{} {before} becomes {after}", self.stand.now().0 - BEGIN.0));
        let key = Key::new("thing", before.as_str());
        if self.roots.contains(&before) && self.stand.controller.rename(key, after.as_str()).await.is_ok() {
            self.roots.remove(&before);
            self.roots.insert(after.clone());
            self.names[which] = after;
        }
    }

    async fn create_or_delete(&mut self) {
        let root = self.root();
        tell(|| format!("  {root} is deleted: {}", self.roots.contains(&root)));
        if self.roots.remove(&root) {
            let key = Key::new("thing", root.as_str());
            let _ = self.stand.controller.delete(key).await;
        } else {
            self.made = self.rows().len();
            self.create(&root).await;
        }
    }

    async fn edit(&mut self) {
        let root = self.root();
        let Ok(found) = self.stand.controller.get(Key::new("thing", root.as_str())) else {
            return;
        };
        let mut wanted = found.spec::<Wanted<Node>>().unwrap();
        match self.below(6) {
            0 | 1 => wanted.desired.stage = ["active", "done", "prepared", "gone"][self.below(4)].into(),
            2 => wanted.desired.window = Some(self.window()),
            3 => wanted.desired.window = None,
            4 => {
                let mut node = (*wanted.spec).clone();
                node.parts.pop();
                node.version += 1;
                wanted = Wanted::new(wanted.desired, node);
            }
            _ => wanted.desired.window = Some(Timed::once("never", "ever")),
        }
        let _ = self.stand.controller.update_spec(found.row.uid, &wanted).await;
    }

    async fn send(&mut self) {
        let Some(target) = self.any() else { return };
        let event = if self.sent.is_empty() || self.below(3) > 0 {
            let kind = ["world.done", "world.result", "world.result"][self.below(3)];
            CloudEvent::new(self.sent.len().to_string(), "/sim", kind).about(target.row.name.as_str())
        } else {
            let at = self.below(self.sent.len());
            self.sent[at].clone()
        };
        let door = EventDoor::new(self.stand.controller.handle(), ["thing"]);
        let _ = door.deliver(&event).await;
        self.sent.push(event);
    }

    async fn ask(&mut self) {
        let Some(target) = self.any() else { return };
        let handle = &self.stand.controller;
        match self.random.random_range(0..5) {
            0 => drop(handle.reconcile(target.row.uid).await),
            1 => drop(handle.retry(target.row.uid).await),
            2 => drop(handle.refresh(target.row.uid, Refresh::Plain).await),
            3 => drop(handle.cancel(target.row.uid).await),
            _ => drop(handle.nudge(target.row.uid).await),
        }
    }

    /// Checks the rules that hold at any time.
    fn check(&mut self) -> Result<(), String> {
        if let Some(wrong) = self.stand.world.wrong().into_iter().next() {
            return Err(wrong);
        }
        let now = self.stand.now();
        let left = Select::kind(teardown_kind("thing")).with_hidden();
        let is_torn_down = !self.stand.controller.list(left).resources.is_empty();
        for row in self.rows() {
            self.check_identity(&row)?;
            let Some(record) = record(&row) else { continue };
            let there = self.stand.world.stage(row.row.uid);
            // What is torn down under an identity is known to the teardown alone.
            if record.is_clean() && there.is_some() && !is_torn_down {
                return Err(format!(
                    "nothing is known of {}, which is {there:?}",
                    row.row.name
                ));
            }
            let attempts = record
                .current
                .as_ref()
                .map_or(0, |current| current.attempts.count);
            let is_forced = record.current.as_ref().is_some_and(|current| current.force);
            if attempts > ATTEMPTS && !is_forced {
                return Err(format!("{} has had {attempts} attempts", row.row.name));
            }
            let handled: BTreeSet<Uid> = record.handled.iter().copied().collect();
            if handled.len() != record.handled.len() {
                return Err(format!("an event counted twice for {}", row.row.name));
            }
            if record.goal.as_str() != "gone" && record.window.is_some_and(|window| window.end <= now) {
                let last = row.row.last_run.as_ref().map_or(Timestamp(0), |run| run.ended_at);
                if record.window.is_some_and(|window| window.end < last) && row.row.error.is_none() {
                    return Err(format!(
                        "the goal of {} after its end is {}",
                        row.row.name, record.goal
                    ));
                }
            }
            if let Some(window) = record.window {
                let before = self.windows.insert(row.row.uid, window);
                if before.is_some_and(|before| window.end < before.end && now < before.deadline) {
                    return Err(format!("the end of {} moved back", row.row.name));
                }
            } else {
                self.windows.remove(&row.row.uid);
            }
        }
        Ok(())
    }

    /// Checks that a part is the one that its owner has always had, whatever they are called.
    fn check_identity(&mut self, row: &Resource) -> Result<(), String> {
        let Some((owner, end)) = row.row.owner.zip(row.row.name.as_str().rsplit('.').next()) else {
            return Ok(());
        };
        let uid = *self.parts.entry((owner, end.to_owned())).or_insert(row.row.uid);
        match uid == row.row.uid {
            true => Ok(()),
            false => Err(format!("{} is another one than before", row.row.name)),
        }
    }

    /// Everything is mended and tried again, and all windows are over.
    async fn rest(&mut self) -> Result<(), String> {
        self.stand.world.trouble(Trouble::default());
        // Whoever was stopped by a cancel goes on.
        for row in self.rows() {
            let _ = self.stand.controller.reconcile(row.row.uid).await;
        }
        for _ in 0..8 {
            tokio::time::sleep(Duration::from_secs(1200)).await;
            let left = Select::kind(teardown_kind("thing")).with_hidden();
            let left = self.stand.controller.list(left).resources;
            for row in self
                .rows()
                .iter()
                .chain(&left)
                .filter(|row| row.row.error.is_some())
            {
                let _ = self.stand.controller.retry(row.row.uid).await;
            }
            self.check()?;
        }
        tokio::time::sleep(Duration::from_secs(4 * 3600)).await;
        self.stand.idle().await;
        self.check()?;
        self.check_rest()?;
        // A run that fails leaves its error anew, so of what has failed nothing is said.
        let fine = |rows: Vec<Resource>| -> BTreeMap<_, _> {
            let fine = rows.into_iter().filter(|row| row.row.error.is_none());
            fine.map(|row| (row.row.name.to_string(), row.row.revision))
                .collect()
        };
        let before = fine(self.rows());
        for row in self.rows() {
            let _ = self.stand.controller.nudge(row.row.uid).await;
        }
        tokio::time::sleep(Duration::from_secs(3600)).await;
        self.stand.idle().await;
        let after = fine(self.rows());
        if before != after {
            return Err(format!("what is converged wrote: {before:?} became {after:?}"));
        }
        Ok(())
    }

    fn check_rest(&self) -> Result<(), String> {
        let (rows, now) = (self.rows(), self.stand.now());
        for row in &rows {
            let Some(record) = record(row) else {
                return Err(format!("{} was never looked at", row.row.name));
            };
            let is_refused = row
                .row
                .error
                .as_ref()
                .is_some_and(|error| &*error.code == "bad-window");
            let has_arrived = record.own == record.goal;
            if !has_arrived && !is_refused {
                let error = row.row.error.as_ref().map(|error| error.message.clone());
                return Err(format!(
                    "{} rests at {} with the goal {}: {error:?}, unready {:?}",
                    row.row.name, record.own, record.goal, row.row.unready
                ));
            }
            let there = self.stand.world.stage(row.row.uid);
            let expected = Some(record.own.as_str()).filter(|_| !record.stages.is_nothing(&record.own));
            // Of a pipeline that was cut short the thing may show more.
            if there != expected && record.current.is_none() {
                return Err(format!("{} says {expected:?} and is {there:?}", row.row.name));
            }
            if record.window.is_some_and(|window| window.deadline <= now) && there.is_some() {
                return Err(format!("{} outlived its deadline", row.row.name));
            }
            self.check_parts(row, &rows)?;
        }
        Ok(())
    }

    /// Checks that parts are where their owner wants them, unless something has failed or was told otherwise.
    fn check_parts(&self, row: &Resource, rows: &[Resource]) -> Result<(), String> {
        let (Some(own), Ok(wanted)) = (record(row), row.spec::<Wanted<Node>>()) else {
            return Ok(());
        };
        if row.row.error.is_some() || own.failure.is_some() {
            return Ok(());
        }
        for child in &wanted.spec.parts {
            let name = child.below(row.row.name.as_str());
            let found = rows.iter().find(|other| other.row.name.as_str() == name);
            let part = found.and_then(record);
            let is_gone = part.as_ref().is_none_or(|part| part.stages.is_nothing(&part.own));
            let is_wanted = !own.stages.is_nothing(&own.goal);
            if !is_wanted && !is_gone {
                return Err(format!("{name} is there, and {} is {}", row.row.name, own.own));
            }
            let is_free = part
                .as_ref()
                .is_some_and(|part| part.stage_override.is_none() && part.failure.is_none());
            let desired = found.and_then(|found| desired_of(&found.row.spec).ok());
            let allowed = desired.as_ref().map(|desired| desired.allowed);
            if is_wanted && own.goal.as_str() != "prepared" && is_free && allowed != Some(crate::Allowed::All)
            {
                let gates = self.closed_gates(row, &wanted.spec, child, rows);
                if gates.is_empty() {
                    return Err(format!("{name} is allowed {allowed:?} only"));
                }
            }
        }
        Ok(())
    }

    /// The parts in front of one that have not come as far as their gates.
    fn closed_gates<'a>(
        &self,
        owner: &Resource,
        node: &'a Node,
        child: &Child,
        rows: &[Resource],
    ) -> Vec<&'a str> {
        let before = node
            .parts
            .iter()
            .filter(|other| other.order < child.order && other.gates_next.is_some());
        let is_closed = |other: &&Child| {
            let found = rows
                .iter()
                .find(|row| row.row.name.as_str() == other.below(owner.row.name.as_str()))
                .and_then(record);
            found.is_none_or(|record| record.stages.is_before(&record.stage, &"active".into()))
        };
        before
            .filter(is_closed)
            .map(|other| other.name.as_str())
            .collect()
    }

    /// Everything is deleted, and nothing is left.
    async fn end(self) -> Result<(), String> {
        for root in self.rows().iter().filter(|row| row.row.owner.is_none()) {
            let deleted = self.stand.controller.delete(root.row.uid).await;
            deleted.map_err(|error| error.to_string())?;
        }
        tokio::time::sleep(Duration::from_secs(3600)).await;
        self.stand.idle().await;
        let left = self.stand.world.left();
        for row in self
            .stand
            .controller
            .list(Select::new().with_hidden().with_deleted())
            .resources
        {
            tell(|| {
                format!(
                    "in the end {} with {:?}, error {:?}, {:?}",
                    row.key(),
                    record(&row),
                    row.row.error,
                    row.status
                )
            });
        }
        if !left.is_empty() {
            return Err(format!("left after all was deleted: {left:?}"));
        }
        let rows = self
            .stand
            .controller
            .list(Select::new().with_hidden().with_deleted())
            .resources;
        let kind = teardown_kind("thing");
        let stuck = rows
            .iter()
            .find(|row| row.row.kind == kind || row.row.kind.as_str() == "thing");
        stuck.map_or(Ok(()), |row| {
            Err(format!("{} is still in the catalog", row.key()))
        })
    }
}
