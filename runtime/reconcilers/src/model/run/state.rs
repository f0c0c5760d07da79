//! The state of a model during a run: as found, or as last written.

use std::sync::Mutex;

use watershed_core::Error;
use watershed_locks::Unpoisoned;
use watershed_proto::{ExportState, ModelState, TestResult};

use super::subject::Subject;
use crate::{messages::Proto, model::record::Record};

/// The stored state of the model during a run.
pub(super) struct State<'a> {
    subject: Subject<'a>,
    /// The state that the run wrote last; none before the first write.
    written: Mutex<Option<ModelState>>,
}

impl<'a> State<'a> {
    pub(super) fn new(subject: Subject<'a>) -> Self {
        Self {
            subject,
            written: Mutex::default(),
        }
    }

    /// Stores test results, and leaves the rest of the state of the last good output.
    pub(super) async fn tell_results(&self, results: Vec<TestResult>) -> Result<(), Error> {
        let known = self.subject.context.state().map(|state| state.0.clone());
        self.write(ModelState {
            test_results: results,
            ..known.unwrap_or_default()
        })
        .await
    }

    pub(super) async fn set(&self, record: &Record) -> Result<(), Error> {
        let result_home = self.subject.outputs().home().to_owned();
        self.write(ModelState {
            result_home,
            ..record.to_state()
        })
        .await
    }

    async fn write(&self, state: ModelState) -> Result<(), Error> {
        let export = self.so_far().export;
        self.write_with(state, export).await
    }

    /// Stores the state with the given record of exported files.
    pub(super) async fn write_with(
        &self,
        state: ModelState,
        export: Option<ExportState>,
    ) -> Result<(), Error> {
        let state = ModelState { export, ..state };
        if self.is_there() && self.so_far() == state {
            return Ok(());
        }
        let state = Proto(state);
        self.subject.context.set_state(&state).await?;
        *self.written.lock().unpoisoned() = Some(state.0);
        Ok(())
    }

    fn is_there(&self) -> bool {
        self.subject.context.state().is_some() || self.written.lock().unpoisoned().is_some()
    }

    /// Returns the state that the run wrote last, or else the state that it found.
    pub(super) fn so_far(&self) -> ModelState {
        let written = self.written.lock().unpoisoned().clone();
        let found = || self.subject.context.state().map(|state| state.0.clone());
        written.or_else(found).unwrap_or_default()
    }

    pub(super) async fn tell_files(&self, export: Option<ExportState>) -> Result<(), Error> {
        let state = self.so_far();
        self.write_with(state, export).await
    }
}
