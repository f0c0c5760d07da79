//! The model of a run, with the context that all parts of the run share.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use watershed_compilers::Scope;
use watershed_controller::Context;
use watershed_core::Error;
use watershed_drivers::olap::{NewColumns, Partitions};
use watershed_outputs::{Asking, Outputs};
use watershed_proto::{Message, ModelSpec, OnSchemaChange};

use crate::model::{
    KIND, ModelReconciler,
    data_tests::Tests,
    failure,
    record::{Meaning, Record, Refreshes},
    statement,
};

/// The default time limit of a build.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(3 * 60 * 60);

/// The model of an invocation, with the reconciler and the context.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) model: &'a ModelReconciler,
    pub(super) context: &'a Context<ModelReconciler>,
}

impl<'a> Subject<'a> {
    /// Returns the spec of the model in this invocation.
    pub(super) fn spec(self) -> &'a ModelSpec {
        &self.context.spec().0
    }

    /// Returns the spec with the plain values of its variables, which must not be stored.
    pub(super) fn opened_spec(self) -> Result<ModelSpec, Error> {
        Ok(ModelSpec {
            variables: self.model.outputs.secrets().open(&self.spec().variables)?,
            ..self.spec().clone()
        })
    }

    /// Returns the name of the model.
    pub(super) fn name(self) -> &'a str {
        self.context.name().as_str()
    }

    /// Returns the name of the model's output.
    pub(super) fn table(self) -> &'a str {
        statement::table(self.spec(), self.name())
    }

    pub(super) fn uid(self) -> Uuid {
        self.context.uid().0
    }

    pub(super) fn paths(self) -> &'a [Arc<str>] {
        &self.context.row().paths
    }

    pub(super) fn cancel(self) -> &'a CancellationToken {
        self.context.cancellation()
    }

    /// Returns the number of full refreshes that approved an edit. Unanswered refreshes count if a person approved the
    /// present definition.
    pub(super) fn approvals(self, record: Option<&Record>) -> u64 {
        let Some(record) = record else { return 0 };
        let open = self.asked().full.saturating_sub(record.answered.full);
        let is_approved = self
            .model
            .outputs
            .is_approved(self.uid(), &self.spec().encode_to_vec());
        record.approvals + if is_approved { open } else { 0 }
    }

    /// Returns the number of refreshes that were requested so far.
    pub(super) fn asked(self) -> Refreshes {
        let asked = self.context.refreshes();
        Refreshes {
            plain: asked.plain,
            full: asked.full,
        }
    }

    /// Returns the tests of the model, with templates executed.
    pub(super) fn tests(self) -> Result<Tests, Error> {
        let (environment, secrets) = (&self.model.environment, self.model.outputs.secrets());
        let tests = Tests::for_model(self.spec(), self.name(), environment, self.paths(), secrets)?;
        Ok(tests.reading(self.model.outputs.made()))
    }

    pub(super) fn meaning(self) -> Result<Meaning, Error> {
        let meaning = self.spec().output_meaning.as_ref().and_then(Meaning::from_proto);
        meaning.ok_or_else(|| {
            let message = format!("{KIND} \"{}\" has a spec without a fingerprint", self.name());
            Error::permanent("spec-incomplete", message)
        })
    }

    /// Returns the time limit for the engine's work on the model.
    pub(super) fn time_limit(self) -> Duration {
        match self.spec().timeout_seconds {
            0 => DEFAULT_TIMEOUT,
            seconds => Duration::from_secs(seconds.into()),
        }
    }

    /// Waits for work, which is cancelled at the time limit. Returns the result, and true if the limit was reached.
    pub(super) async fn within_limit<W: Future>(
        self,
        work: impl FnOnce(CancellationToken) -> W,
    ) -> (W::Output, bool) {
        let cancel = self.cancel().child_token();
        let work = work(cancel.clone());
        tokio::pin!(work);
        tokio::select! {
            biased;
            result = &mut work => (result, false),
            () = tokio::time::sleep(self.time_limit()) => {
                cancel.cancel();
                (work.await, true)
            }
        }
    }

    /// Returns the treatment of columns that only some partitions have.
    pub(super) fn columns(self) -> NewColumns {
        let output = self.spec().incremental_output.as_ref();
        output.map_or(NewColumns::Refuse, |output| {
            new_columns(output.on_schema_change())
        })
    }

    /// Returns the interface of the engine that builds outputs by partitions; an error if the engine has none.
    pub(super) fn stages(self) -> Result<&'a dyn Partitions, Error> {
        let stages = self.outputs().olap().partitions();
        stages.map_err(|failure| failure::from_failure(&failure))
    }

    /// Returns the outputs of the project's models in the engine.
    pub(super) fn outputs(self) -> &'a Outputs {
        &self.model.outputs
    }

    /// Returns the interface for queries to the engine, cancelled with this invocation.
    pub(super) fn asking(self) -> Asking<'a> {
        Asking {
            outputs: self.outputs(),
            cancel: self.cancel(),
        }
    }

    /// Returns the values that the model's templates see; the variables of `spec` must be plain values.
    pub(super) fn scope(self, spec: &ModelSpec) -> Scope {
        statement::scope(spec.variables.clone(), self.name(), &self.model.environment)
    }
}

/// Returns the treatment of new columns that the table lacks.
pub(super) fn new_columns(said: OnSchemaChange) -> NewColumns {
    match said {
        OnSchemaChange::Fail => NewColumns::Refuse,
        OnSchemaChange::Ignore => NewColumns::Leave,
        OnSchemaChange::AppendNewColumns => NewColumns::Add,
    }
}
