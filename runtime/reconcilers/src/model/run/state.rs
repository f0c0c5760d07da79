//! The state of a model, as a run found it and as it wrote it since.

use std::sync::Mutex;

use watershed_core::Error;
use watershed_locks::Unpoisoned;
use watershed_proto::{ExportState, ModelState, TestResult};

use super::subject::Subject;
use crate::{messages::Proto, model::record::Record};

/// The state of the model of a run.
pub(super) struct State<'a> {
    subject: Subject<'a>,
    /// The state that this run wrote last; none if it wrote none.
    written: Mutex<Option<ModelState>>,
}

impl<'a> State<'a> {
    pub(super) fn new(subject: Subject<'a>) -> Self {
        Self {
            subject,
            written: Mutex::default(),
        }
    }

    /// Keeps what tests came to beside what is known of the last good output.
    pub(super) async fn tell_results(&self, results: Vec<TestResult>) -> Result<(), Error> {
        let known = self.subject.context.state().map(|state| state.0.clone());
        self.write(ModelState {
            test_results: results,
            ..known.unwrap_or_default()
        })
        .await
    }

    pub(super) async fn set(&self, record: &Record) -> Result<(), Error> {
        self.write(record.to_state()).await
    }

    async fn write(&self, state: ModelState) -> Result<(), Error> {
        let export = self.so_far().export;
        self.write_with(state, export).await
    }

    /// Writes the state with what is known of the files that were written.
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

    /// The state as this run found it, or as it wrote it since.
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
