//! Metrics views: measures and dimensions over a table, checked by the engine.
//!
//! | module | holds |
//! |---|---|
//! | [`whole`] | the spec with what its parent gives it, and the tables that it reads |
//! | `probe` | the statements that try its fields, none of which reads a row |
//! | `check` | one look: all fields at once, and one by one only to find those that are wrong |
//!
//! A look is worth its cost only when something changed: the state keeps what was looked at (the spec's meaning and the
//! builds of the models that it reads), and while that holds the engine is not opened. A table that is nobody's
//! output here may change at any time: it is looked at unless the engine's file is as it was left.

pub mod whole;

mod check;
mod probe;

use std::sync::Arc;

use watershed_compilers::is_driver;
use watershed_controller::{Context, KindOptions, Reconciler, RetryPolicy, Select};
use watershed_core::{Error, Outcome, Parents, RefView, Work};
use watershed_outputs::{Asking, Outputs, failure, sessions};
use watershed_proto::{ConnectorSpec, MetricsViewSpec, MetricsViewState};

use crate::{away, connector, messages::Proto, model, places, refs, selector::Choosing};
use check::Check;
use whole::Whole;

/// The kind by which the controller knows metrics views.
pub const KIND: &str = "metrics_view";

/// Returns the options with which the kind is registered; `jobs` bounds the concurrent checks.
#[must_use]
pub fn options(jobs: usize) -> KindOptions {
    KindOptions::new(KIND)
        .retry(RetryPolicy::Never)
        .parents(Parents::Changed)
        .concurrency(jobs)
}

/// The reconciler of metrics views, which checks them.
pub struct MetricsViewReconciler {
    outputs: Arc<Outputs>,
    environment: String,
}

impl MetricsViewReconciler {
    /// Creates the reconciler for the engine of `outputs`; templates see `environment` as the environment's name.
    #[must_use]
    pub fn new(outputs: Arc<Outputs>, environment: impl Into<String>) -> Self {
        Self {
            outputs,
            environment: environment.into(),
        }
    }

    /// Returns true if the last check found no errors and nothing has changed since.
    fn is_proven(&self, whole: &Whole, state: Option<&MetricsViewState>) -> bool {
        let same = state.is_some_and(|state| state.proof == whole.proof && state.problems.is_empty());
        same && (!whole.streaming || self.outputs.is_as_left())
    }
}

/// Returns an error for a table of another system, which would be mistaken for a table of the engine.
fn refuse_other_engine(spec: &MetricsViewSpec, refs: &[RefView], paths: &[Arc<str>]) -> Result<(), Error> {
    let name = spec.connector.as_str();
    let declared = refs::find(refs, connector::KIND, name).and_then(refs::spec::<ConnectorSpec>);
    let is_other = match declared {
        Some(declared) => declared.driver != "duckdb" || sessions::has_file(&declared),
        None => name != "duckdb" && is_driver(name),
    };
    if !is_other || !spec.parent.is_empty() {
        return Ok(());
    }
    Err(Error {
        place: Some(places::from_spot(paths, spec.table_at.as_ref())),
        hint: Some("metrics views read tables of the project's own engine".into()),
        ..Error::permanent(
            "connector-unsupported",
            format!("reading tables of connector \"{name}\" is not supported yet"),
        )
    })
}

/// Returns the names of all models, in lower case.
fn models(context: &Context<MetricsViewReconciler>) -> Vec<String> {
    let all = context.controller().list(Select::new().with_deleted()).resources;
    let models = all.iter().filter(|one| one.row.kind.as_str() == model::KIND);
    models.map(|one| one.row.name.as_str().to_lowercase()).collect()
}

impl Reconciler for MetricsViewReconciler {
    type Spec = Proto<MetricsViewSpec>;
    type State = Proto<MetricsViewState>;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let looked = self.look(&context).await;
        looked.map_err(|error| away::run_again(&self.outputs, &context, error))
    }
}

impl MetricsViewReconciler {
    /// Checks the view, unless nothing changed since the last look.
    async fn look(&self, context: &Context<Self>) -> Result<Outcome, Error> {
        if !self.outputs.chosen().holds(context.uid()) {
            return Ok(Outcome::passed_over());
        }
        let spec = &context.spec().0;
        if let Some(fault) = &spec.fault {
            return Err(failure::from_fault(fault));
        }
        refs::check(context.refs(), self.outputs.chosen())?;
        let paths = &context.row().paths;
        refuse_other_engine(spec, context.refs(), paths)?;
        let mut whole = Whole::new(spec, context.refs(), context.refreshes())?;
        whole.depends_on(self.outputs.made().version());
        let before = context.state().map(|state| &state.0);
        if self.is_proven(&whole, before) {
            return Ok(Outcome::default());
        }
        let engine = Asking {
            outputs: &self.outputs,
            cancel: context.cancellation(),
        };
        whole.complete(&Choosing { engine, paths }).await?;
        let check = Check {
            engine,
            environment: &self.environment,
            paths,
            models: &|| models(context),
        };
        let secrets = self.outputs.secrets();
        let mut found = check
            .run(&whole)
            .await
            .map_err(|error| secrets.redact_error(error))?;
        for problem in &mut found.problems {
            problem.message = secrets.redact(&problem.message).into_owned();
            problem.hint = secrets.redact(&problem.hint).into_owned();
        }
        let error = check::error(&found.problems);
        let valid = if found.problems.is_empty() {
            Some(whole.spec)
        } else {
            before.and_then(|before| before.valid_spec.clone())
        };
        let state = Proto(MetricsViewState {
            valid_spec: valid,
            table: whole.table,
            proof: whole.proof,
            streaming: whole.streaming,
            lookups: whole.translations,
            problems: found.problems,
            types: found.types,
        });
        if context.state() != Some(&state) {
            context.set_state(&state).await?;
        }
        error.map_or(Ok(()), Err)?;
        Ok(Outcome::from_work(Work::Checked))
    }
}
