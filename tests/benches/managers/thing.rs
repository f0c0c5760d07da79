//! A manager whose steps do nothing, and what it is measured with.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use watershed_controller::store::SqliteStore;
use watershed_controller::{Controller, Error, Limits, NewResource, Resource, Timestamp, Uid, json_message};
use watershed_managers::{
    Allowed, Desired, Done, Managed, Manager, Observation, Occurrence, Part, Policy, Stages, Step, View,
    Wanted, Wish,
};
use watershed_tests::measure::{Report, Unit};

/// The spec: parts by level.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Shape {
    /// Parts of each level below, from the top.
    pub(super) below: Vec<usize>,
}
json_message!(Shape, format = 1);

/// Nothing is observed beside the stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Nothing {}
json_message!(Nothing, format = 1);

/// The world outside: the stages that things have.
#[derive(Debug, Default)]
pub(super) struct Outside {
    stages: Mutex<BTreeMap<Uid, String>>,
    /// Looks that were made.
    pub(super) looks: AtomicU64,
    /// Looks at this name fail while it is set.
    pub(super) broken: Mutex<Option<String>>,
    /// Broken by hand.
    pub(super) is_broken: AtomicBool,
}

/// The manager.
#[derive(Clone, Default)]
pub(super) struct Thing(pub(super) Arc<Outside>);

impl Manager for Thing {
    const KIND: &'static str = "thing";
    type Spec = Shape;
    type Details = Nothing;

    fn stages(&self, _: &Shape) -> Stages {
        let stages = Stages::new(["absent", "placed", "prepared", "active", "gone"]).unwrap();
        stages.with_early("prepared").unwrap()
    }

    async fn observe(&self, view: &View<Self>) -> Result<Observation<Nothing>, Error> {
        self.0.looks.fetch_add(1, Ordering::Relaxed);
        if self.0.is_broken.load(Ordering::Relaxed)
            && self.0.broken.lock().unwrap().as_deref() == Some(view.name())
        {
            return Err(Error::permanent("broken", "it is broken"));
        }
        let stages = self.0.stages.lock().unwrap();
        Ok(match stages.get(&view.uid()) {
            Some(stage) => Observation::At(stage.as_str().into(), Nothing {}),
            None => Observation::Absent,
        })
    }

    async fn act(&self, view: &View<Self>, step: &Step) -> Result<Done, Error> {
        let mut stages = self.0.stages.lock().unwrap();
        match step.to.as_str() {
            "gone" => stages.remove(&view.uid()),
            stage => stages.insert(view.uid(), stage.to_owned()),
        };
        Ok(Done::At(step.to.clone()))
    }

    fn parts(&self, view: &View<Self>) -> Vec<Part> {
        let Some((count, below)) = view.spec().below.split_first() else {
            return Vec::new();
        };
        let shape = Shape {
            below: below.to_vec(),
        };
        let part = |number: usize| {
            let name = format!("{}.{number}", view.name());
            let part = Part::managed::<Self>(name, Desired::stage("active"), &shape);
            match view.name().contains('.') {
                true => part,
                // Those at the top come in two orders.
                false => part.in_order(u32::from(number >= count / 2)).gates_next("active"),
            }
        };
        (0..*count).map(part).collect()
    }

    fn policy(&self) -> Policy {
        Policy {
            observe_every: Duration::from_secs(24 * 3_600),
            ..Policy::default()
        }
    }
}

/// A controller over a catalog on disk.
pub(super) struct Stand {
    pub(super) folder: tempfile::TempDir,
    pub(super) thing: Thing,
    pub(super) controller: Controller,
}

impl Stand {
    pub(super) async fn new() -> Self {
        let (folder, thing) = (tempfile::tempdir().unwrap(), Thing::default());
        let controller = start(&folder, &thing).await;
        Self {
            folder,
            thing,
            controller,
        }
    }

    /// Stops in order, and starts again on the same catalog.
    pub(super) async fn restart(self) -> (Self, Duration) {
        let Self {
            folder,
            thing,
            controller,
        } = self;
        controller.shutdown(Duration::from_secs(60)).await.unwrap();
        let begun = Instant::now();
        let controller = start(&folder, &thing).await;
        let stand = Self {
            folder,
            thing,
            controller,
        };
        stand.idle().await;
        (stand, begun.elapsed())
    }

    pub(super) async fn idle(&self) {
        self.controller
            .wait_until_idle(Duration::from_secs(600))
            .await
            .unwrap();
    }
}

async fn start(folder: &tempfile::TempDir, thing: &Thing) -> Controller {
    let store = SqliteStore::open(folder.path().join("catalog.db")).await.unwrap();
    let builder = Controller::builder()
        .store(store)
        .limits(Limits::default().concurrency(20));
    Managed::new(thing.clone())
        .register(builder)
        .start()
        .await
        .unwrap()
}

/// Returns the declaration of a resource.
pub(super) fn declared(name: &str, desired: Desired, shape: Shape) -> NewResource {
    Resource::declare(Thing::KIND, name, &Wanted::new(desired, shape)).unwrap()
}

/// CPU that this process has used, in milliseconds.
pub(super) fn cpu_ms() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

/// `goals_per_s_m`
pub(super) fn goals(report: &Report) {
    const GOALS: i64 = 10_000_000;
    if !report.wants("goals_per_s_m") {
        return;
    }
    let stages = Thing::default().stages(&Shape::default());
    let desired = "active".into();
    let window = Occurrence {
        opening: Timestamp(10),
        start: Timestamp(20),
        end: Timestamp(30),
        deadline: Timestamp(40),
    };
    let wish = Wish {
        stages: &stages,
        desired: &desired,
        window: Some(&window),
        allowed: Allowed::All,
        cleanup_by: None,
    };
    let run = |_| {
        let begun = Instant::now();
        let forced = (0..GOALS)
            .filter(|now| wish.goal(Timestamp(now % 50)).force)
            .count();
        assert_eq!(forced as i64, GOALS / 5);
        GOALS as f64 / begun.elapsed().as_secs_f64() / 1e6
    };
    report.print(
        "goals_per_s_m",
        Unit::MillionsPerSecond,
        (0..5).map(run).collect(),
    );
}
