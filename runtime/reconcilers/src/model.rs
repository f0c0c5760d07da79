//! Models: queries whose results are views or tables of the engine. Sources are models too.
//!
//! | module | holds |
//! |---|---|
//! | [`data_tests`] | rows that must not be there, and what was found |
//! | [`plan`](mod@plan) | whether to build: one pure decision |
//! | [`record`] | what the engine records beside an output |
//! | `contents` | what of them no rows are made of |
//! | [`pattern`] | which paths these may have, for whoever watches |
//! | `fit` | whether an output of the trash is what is wanted |
//! | [`forecast`] | the same decision without a run, for `plan` |
//! | `export` | the files that its rows are written to, and whose they are |
//! | [`freshness`] | how old the rows may become |
//! | [`retries`] | when a failed build is tried again |
//! | `schedule`, `counting` | when it is built again by time, and from which time on that counts |
//! | `partitions` | the list of a model's partitions, and which are to be built |
//! | `state` | what an incremental build leaves for the next |
//! | `upload` | the objects that its rows are written to, and whose they are |
//! | [`statement`] | the statement, name and shape that a spec asks for |
//! | [`sample`] | the part of a source that is read |
//! | `run` | one reconcile: look, decide, act |
//!
//! The record in the engine is written in the transaction that makes the output, so it is what really happened; the
//! state in the catalog is a copy of it. A run that finds them different, as after a crash, believes the engine.

pub mod columns;
mod contents;
mod counting;
pub mod data_tests;
pub mod due;
mod export;
pub(crate) mod fit;
pub mod forecast;
pub mod freshness;
mod guesses;
mod hooks;
pub mod pattern;
pub mod plan;
pub mod record;
pub mod rest;
pub mod retries;
pub mod statement;

pub(crate) mod failure;
pub use contents::refuse_files_of_statement;
pub use export::damaged as damaged_files;
pub use failure::{HELD_CODE, STALE_INPUT};
pub use guesses::Guesses;
pub(crate) use inputs::{build_of, refuse_left_out};
mod inputs;
mod lake;
mod objects;
pub(crate) mod partitions;
mod run;
pub mod sample;
pub(crate) mod schedule;
mod source;
mod state;
mod triggers;
mod upload;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use watershed_controller::resource::Row;
use watershed_controller::{Context, KindOptions, Reconciler, Resource, RetryPolicy};
use watershed_core::{Error, Nudging, Outcome, Parents, Uid};
use watershed_drivers::olap::Tag;
use watershed_outputs::{Claim, Outputs, traces::Made};
use watershed_proto::{Message, ModelSpec, ModelState};

use crate::messages::Proto;
use record::Record;
use run::Run;
use sample::Sample;

/// The kind by which the controller knows models.
pub const KIND: &str = "model";

/// The debouncing of nudges, since a data file that is being written changes many times and each build reads all of it.
const NUDGING: Nudging = Nudging {
    interval: Duration::from_millis(200),
    longest_wait: Duration::from_secs(5),
};

/// Returns the options with which the kind is registered; `jobs` bounds the concurrent builds.
#[must_use]
pub fn options(jobs: usize) -> KindOptions {
    KindOptions::new(KIND)
        .retry(RetryPolicy::Never)
        .parents(Parents::Changed)
        .concurrency(jobs)
        .nudging(NUDGING)
}

/// Returns the output that a model's state records; none for other kinds and for models that were never built.
#[must_use]
pub fn claim(row: &Row) -> Option<Claim> {
    if row.kind.as_str() != KIND {
        return None;
    }
    let state = Resource::state_of::<Proto<ModelState>>(row).ok().flatten()?;
    let record = Record::from_state(&state.0)?;
    Some(Claim {
        tag: Tag {
            uid: row.uid.0,
            build: record.tagged.0,
        },
        kind: run::kind(record.shape),
        home: state.0.result_home,
        location: record.location,
    })
}

/// Returns true if objects of migrations or connectors that a model reads have changed since its build.
pub(crate) fn reads_other(row: &Row, made: &Made) -> bool {
    let state = Resource::state_of::<Proto<ModelState>>(row).ok().flatten();
    let Some(record) = state.and_then(|state| Record::from_state(&state.0)) else {
        return false;
    };
    let Ok(spec) = ModelSpec::decode(row.spec.as_ref()) else {
        return false;
    };
    made.read_by_model(&spec.uses) != record.made
}

/// The reconciler of models, which builds them.
pub struct ModelReconciler {
    outputs: Arc<Outputs>,
    root: Arc<Path>,
    environment: String,
    /// The part of every source to read, if not all; outputs outside the engine are then not written.
    sample: Option<Sample>,
    /// The folder for files that are completed before they are moved elsewhere; created on first use.
    parts: PathBuf,
}

impl ModelReconciler {
    /// Creates the reconciler for the engine of `outputs` and local files below `root`; templates see `environment` as
    /// the environment's name.
    #[must_use]
    pub fn new(outputs: Arc<Outputs>, root: &Path, environment: impl Into<String>) -> Self {
        Self {
            outputs,
            root: root.into(),
            environment: environment.into(),
            sample: None,
            parts: root.join(".watershed").join("parts"),
        }
    }

    /// Sets the folder for files that are completed before they are moved elsewhere.
    #[must_use]
    pub fn with_parts(mut self, parts: impl Into<PathBuf>) -> Self {
        self.parts = parts.into();
        self
    }

    /// Sets the part of every source to read.
    #[must_use]
    pub fn with_sample(mut self, sample: Option<Sample>) -> Self {
        self.sample = sample;
        self
    }
}

impl Reconciler for ModelReconciler {
    type Spec = Proto<ModelSpec>;
    type State = Proto<ModelState>;

    fn may_rest(&self, uid: Uid, spec: &Self::Spec, state: Option<&Self::State>) -> bool {
        let outputs = &self.outputs;
        let may_rest = |state: &Proto<ModelState>| rest::may_rest(&spec.0, &state.0, outputs.made());
        outputs.chosen().holds(uid) && state.is_some_and(may_rest) && outputs.is_as_left()
    }

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let done = Run::new(self, &context).reconcile().await;
        done.map_err(|error| self.outputs.secrets().redact_error(error))
    }

    async fn rename(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let done = Box::pin(Run::new(self, &context).rename()).await;
        done.map_err(|error| self.outputs.secrets().redact_error(error))
    }

    async fn delete(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let done = Box::pin(Run::new(self, &context).delete()).await;
        done.map_err(|error| self.outputs.secrets().redact_error(error))
    }
}

#[cfg(test)]
mod tests;
