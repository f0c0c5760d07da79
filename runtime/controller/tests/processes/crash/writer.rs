//! The process to be killed: a controller with a few writers, each with resource names of its own.

use std::path::PathBuf;

use rand::rngs::SmallRng;
use rand::seq::IteratorRandom;
use rand::{Rng, SeedableRng};
use watershed_controller::store::SqliteStore;
use watershed_controller::{Batch, Controller, Edit, EditError, Expect, Handle, Refusal, Resource};

use super::notes::{Line, Model, Notebook, Step, apply, text};
use super::{CATALOG, FOLDER, NUMBER, SEED, TERM, number};
use crate::task::{Task, builder, key, task};

/// Number of writers in each process.
const WRITERS: usize = 4;
/// Number of resource names of each writer.
const NAMES: usize = 6;

/// Runs a process that the tests start and kill; not a test of its own.
#[test]
#[ignore = "a process that the tests start and kill"]
fn process() {
    let Ok(catalog) = std::env::var(CATALOG) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(write_for_ever(&catalog));
}

async fn write_for_ever(catalog: &str) {
    let folder = PathBuf::from(std::env::var(FOLDER).unwrap());
    let seed = number(SEED).unwrap();
    let process = number(NUMBER).unwrap();
    let controller = open(catalog).await;
    let writers: Vec<_> = (0..WRITERS)
        .map(|number| {
            let writer = Writer {
                name: format!("p{process}w{number}"),
                random: SmallRng::seed_from_u64(seed ^ (process * 64 + number as u64) << 40),
                notebook: Notebook::open(&folder, &format!("p{process}w{number}")),
                handle: controller.handle(),
                written: 0,
                seed,
            };
            tokio::spawn(writer.write_for_ever())
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
}

/// Opens a catalog. On Postgres, the controller may lead or follow.
async fn open(catalog: &str) -> Controller {
    let opened = if catalog.starts_with("postgres:") {
        builder(crate::store(catalog, TERM).await).join().await
    } else {
        builder(SqliteStore::open(catalog).await.unwrap()).start().await
    };
    opened.unwrap()
}

struct Writer {
    name: String,
    random: SmallRng,
    notebook: Notebook,
    handle: Handle,
    written: u64,
    seed: u64,
}

impl Writer {
    /// Writes until the process dies, or until the outcome of a write is unknown.
    async fn write_for_ever(mut self) {
        let mut model = self.found();
        loop {
            let steps = self.choose(&model);
            self.notebook.note(&Line::Begin(steps.clone()));
            match self.carry_out(&steps).await {
                Ok(()) => {
                    self.notebook.note(&Line::Acknowledged);
                    println!("{} acknowledged", self.name);
                    apply(&mut model, &steps);
                    assert_eq!(self.found(), model, "what was acknowledged is seen here");
                }
                // It held the catalog and lost it: nothing has changed.
                Err(EditError::Refused(Refusal::LeaseLost)) => self.notebook.note(&Line::Refused),
                Err(EditError::Refused(Refusal::OutcomeUnknown)) => return,
                Err(refused) => panic!("{steps:?}: {refused}"),
            }
        }
    }

    /// Returns the resources of this writer as the catalog has them.
    fn found(&self) -> Model {
        let mut found = Model::new();
        for number in 0..NAMES {
            let name = self.name_of(number);
            if let Ok(resource) = self.handle.get(key(&name)) {
                found.insert(name, text(&resource));
            }
        }
        found
    }

    fn name_of(&self, number: usize) -> String {
        format!("{}-{number}", self.name)
    }

    fn choose(&mut self, model: &Model) -> Vec<Step> {
        self.written += 1;
        let text = format!("{}.{}", self.seed, self.written);
        let absent: Vec<String> = (0..NAMES)
            .map(|number| self.name_of(number))
            .filter(|name| !model.contains_key(name))
            .collect();
        let absent = absent.into_iter().choose(&mut self.random);
        let present: Vec<String> = model.keys().cloned().choose_multiple(&mut self.random, 2);
        match (absent, present.as_slice(), self.random.random_range(0..10)) {
            (Some(absent), [one, ..], 0..=1) => vec![Step::Move(one.clone(), absent)],
            (Some(absent), [one, _], 2) => vec![Step::Put(absent, text), Step::Remove(one.clone())],
            (Some(absent), _, 3..=5) | (Some(absent), [], _) => vec![Step::Put(absent, text)],
            (_, [one, two], 6) => vec![Step::Put(one.clone(), text.clone()), Step::Put(two.clone(), text)],
            (None, [one, ..], 0..=3) => vec![Step::Remove(one.clone())],
            (_, [one, ..], _) => vec![Step::Put(one.clone(), text)],
            (None, [], _) => unreachable!("every name is absent or present"),
        }
    }

    async fn carry_out(&self, steps: &[Step]) -> Result<(), EditError> {
        let mut batch = Batch::default();
        for step in steps {
            let edit = match step {
                Step::Put(name, text) => self.put(name, text),
                Step::Move(from, to) => Edit::rename(key(from), to.as_str()),
                Step::Remove(name) => Edit::delete(key(name)),
            };
            batch.edits.push(edit);
        }
        self.handle.edit(batch).await.map(drop)
    }

    /// Builds an edit that creates or updates a resource. An update expects the present spec version, so that it can't
    /// be carried out twice.
    fn put(&self, name: &str, text: &str) -> Edit {
        let spec = Task::Build(text.to_owned());
        let Ok(present) = self.handle.get(key(name)) else {
            return Edit::create(task(name, &spec));
        };
        let expect = Expect {
            uid: Some(present.row.uid),
            spec_version: Some(present.row.spec_version),
        };
        Edit::update(key(name), Resource::new_spec(&spec).unwrap()).expecting(expect)
    }
}
