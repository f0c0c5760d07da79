//! Eight threads of create, get, update, delete, list and watch against a sequential model.
//!
//! Each name is written by one thread, so the order of its writes is known: write `n` leaves either the number `n`
//! or nothing. All threads read all names. A read that began after write `a` was acknowledged, and ended before write
//! `b` was begun, must show what one of the writes from `a` to `b - 1` left.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use watershed_controller::resource::Row;
use watershed_controller::store::{MemoryStore, SqliteStore, Store};
use watershed_controller::{Event, Handle, Resource, Select, Uid};

use crate::task::{Task, key, start, task};

const THREADS: usize = 8;
/// Names of each thread: few, so that reads meet writes.
const NAMES: usize = 3;
const DEADLINE: Duration = Duration::from_secs(60);

/// The model of one name.
#[derive(Debug, Default)]
struct Model {
    begun: AtomicU64,
    acknowledged: AtomicU64,
    /// The presence of the resource after each write. Write 0 is that it never was.
    left: Mutex<Vec<bool>>,
}

impl Model {
    fn begin(&self, there: bool) -> u64 {
        let mut left = self.left.lock().unwrap();
        if left.is_empty() {
            left.push(false);
        }
        left.push(there);
        let number = left.len() as u64 - 1;
        self.begun.store(number, Ordering::SeqCst);
        number
    }

    /// Checks one read, begun when `acknowledged` was the last acknowledged write.
    fn check(&self, name: &str, acknowledged: u64, found: Option<u64>) {
        let begun = self.begun.load(Ordering::SeqCst);
        let left = self.left.lock().unwrap();
        let fits = match found {
            Some(number) => (acknowledged..=begun).contains(&number),
            None => (acknowledged..=begun).any(|n| !left.get(n as usize).copied().unwrap_or(false)),
        };
        assert!(
            fits,
            "{name}: read {found:?}, expected what a write from {acknowledged} to {begun} left"
        );
    }
}

type Models = Arc<BTreeMap<String, Model>>;

fn number(resource: &Resource) -> u64 {
    match resource.spec::<Task>().unwrap() {
        Task::Build(text) => text.parse().unwrap(),
        other => panic!("{other:?}"),
    }
}

async fn write(handle: &Handle, models: &Models, name: &str, random: &mut SmallRng) {
    let model = &models[name];
    let is_there = model.left.lock().unwrap().last().copied().unwrap_or(false);
    let there = !is_there || random.random_range(0..3) > 0;
    let number = model.begin(there);
    let spec = Task::Build(number.to_string());
    let written = match (is_there, there) {
        (false, _) => handle.create(task(name, &spec)).await,
        (true, true) => handle.update_spec(key(name), &spec).await,
        (true, false) => handle.delete(key(name)).await,
    };
    written.unwrap();
    model.acknowledged.store(number, Ordering::SeqCst);
}

fn read(handle: &Handle, models: &Models, random: &mut SmallRng) {
    if random.random_range(0..4) > 0 {
        let name = models.keys().nth(random.random_range(0..models.len())).unwrap();
        let acknowledged = models[name].acknowledged.load(Ordering::SeqCst);
        let found = handle.get(key(name)).ok();
        models[name].check(name, acknowledged, found.as_ref().map(number));
        return;
    }
    let acknowledged: Vec<u64> = models
        .values()
        .map(|model| model.acknowledged.load(Ordering::SeqCst))
        .collect();
    let listing = handle.list(Select::all());
    let live = listing
        .resources
        .iter()
        .filter(|resource| !resource.row.intents.is_deleted());
    let found: BTreeMap<String, u64> = live
        .map(|resource| (resource.row.name.to_string(), number(resource)))
        .collect();
    for ((name, model), acknowledged) in models.iter().zip(acknowledged) {
        model.check(name, acknowledged, found.get(name).copied());
    }
}

/// Follows the catalog until it is told that all is written and has seen the last revision.
async fn follow(handle: Handle, done: Arc<AtomicU64>) -> BTreeMap<Uid, Arc<Row>> {
    'listing: loop {
        let listing = handle.list(Select::all());
        let (mut rows, mut reached) = (BTreeMap::new(), listing.revision);
        rows.extend(
            listing
                .resources
                .into_iter()
                .map(|resource| (resource.row.uid, resource.row)),
        );
        let mut watch = handle.watch(listing.revision);
        loop {
            let last = done.load(Ordering::SeqCst);
            if last > 0 && reached.0 >= last {
                return rows;
            }
            match tokio::time::timeout(Duration::from_millis(50), watch.next()).await {
                Ok(Some(Event::Changed(changes))) => {
                    assert!(changes.revision > reached, "revisions rise");
                    reached = changes.revision;
                    rows.extend(changes.rows.into_iter().map(|row| (row.uid, row)));
                    changes
                        .removed
                        .iter()
                        .for_each(|removed| drop(rows.remove(&removed.uid)));
                }
                Ok(Some(Event::Status(_))) | Err(_) => {}
                Ok(Some(Event::Lagged) | None) => continue 'listing,
            }
        }
    }
}

async fn eight_threads(store: impl Store, writes: usize) {
    let controller = start(store).await;
    let names = (0..THREADS * NAMES).map(|number| (format!("n{number:02}"), Model::default()));
    let (models, done): (Models, _) = (Arc::new(names.collect()), Arc::new(AtomicU64::new(0)));
    let follower = tokio::spawn(follow(controller.handle(), Arc::clone(&done)));
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (handle, models, runtime) = (
                controller.handle(),
                Arc::clone(&models),
                tokio::runtime::Handle::current(),
            );
            std::thread::spawn(move || {
                let random = &mut SmallRng::seed_from_u64(thread as u64);
                for _ in 0..writes {
                    let name = format!("n{:02}", thread * NAMES + random.random_range(0..NAMES));
                    runtime.block_on(write(&handle, &models, &name, random));
                    for _ in 0..8 {
                        read(&handle, &models, random);
                    }
                }
            })
        })
        .collect();
    tokio::task::spawn_blocking(move || threads.into_iter().for_each(|thread| thread.join().unwrap()))
        .await
        .unwrap();
    controller.wait_until_idle(DEADLINE).await.unwrap();
    let listing = controller.list(Select::all());
    done.store(listing.revision.0, Ordering::SeqCst);
    let now: BTreeMap<_, _> = listing
        .resources
        .into_iter()
        .map(|resource| (resource.row.uid, resource.row))
        .collect();
    assert_eq!(follower.await.unwrap(), now);
    controller.shutdown(DEADLINE).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_in_memory_see_every_acknowledged_write_or_a_later_one() {
    eight_threads(MemoryStore::new(), 150).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_over_sqlite_see_every_acknowledged_write_or_a_later_one() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("catalog.db")).await.unwrap();
    eight_threads(store, 40).await;
}
