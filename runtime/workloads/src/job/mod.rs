//! Jobs: the kind that runs a program once to completion (rule W8).
//!
//! A run is inside one invocation that waits for the process, so its refs don't change meanwhile. Another invocation may
//! find the process still there: it adopts it if it is of the same run.

mod cancel;
mod ending;
mod moments;
mod pass;
mod record;
mod start;

use std::sync::Arc;
use std::time::Duration;

use watershed_controller::{Context, Error, KindOptions, Outcome, Reconciler, Resource};
use watershed_core::{Row, Work};

use self::pass::Pass;
pub use self::record::{JobRecord, JobStage, JobStop};

use crate::backend::Then;
use crate::message::Job;
use crate::policy::run_key::RunKey;
use crate::program::Program;
use crate::refs;
use crate::replica::backend_error;
use crate::shared::{self, Shared};

/// Kind under which the catalog stores jobs.
pub const KIND: &str = "job";

/// Time limit for a cancelled run to order the stop of its process.
const CANCEL: Duration = Duration::from_secs(60);

/// Returns the options of the kind, with the most concurrent runs.
pub(crate) fn options(at_once: usize) -> KindOptions {
    shared::options(KIND).concurrency(at_once).cancel_deadline(CANCEL)
}

/// Reconciler of jobs, which runs each program to completion.
pub struct JobReconciler {
    pub(crate) shared: Arc<Shared>,
}

impl Reconciler for JobReconciler {
    type Spec = Job;
    type State = JobRecord;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        if self.shared.passes_over(context.uid()) {
            return Ok(Outcome::passed_over());
        }
        let spec = &context.spec().0;
        if let Some(fault) = &spec.fault {
            return Err(refs::from_fault(fault));
        }
        refs::check(context.refs())?;
        let program = program(&context);
        let backend = self
            .shared
            .backends
            .for_program(&program, context.epoch().0)
            .map_err(|error| backend_error(&error))?;
        match self.shared.listed(&context, backend.name()).await {
            Ok(true) => {}
            Ok(false) => return Ok(Outcome::passed_over()),
            Err(error) => return Err(backend_error(&error)),
        }
        Pass::new(&self.shared, &context, program, backend).run().await
    }

    /// Orders the stop; the backend then ends the process and forgets the start.
    async fn delete(&self, context: Context<Self>) -> Result<Outcome, Error> {
        self.shared.cancels.forget(context.uid());
        let uid = context.uid().to_string();
        let Some(record) = context.state().filter(|record| record.counter > 0) else {
            self.shared.observations.remove(&uid);
            return Ok(Outcome::unchanged());
        };
        let backend = self
            .shared
            .backends
            .for_program(&program(&context), context.epoch().0)
            .map_err(|error| backend_error(&error))?;
        if record.is_open && record.stop.is_none() {
            // Should the delete be taken back, the end that it orders is nobody's failure (rule W3).
            let record = JobRecord {
                stop: Some(JobStop::Replace),
                ..record.clone()
            };
            shared::store(&context, &record).await?;
        }
        let stop = pass::stop_order(&context, record, Then::ForgetWithOutput)?;
        self.shared.project.remove_earlier_output(&stop.id);
        let stopped = backend.stop(stop).await;
        if stopped.map_err(|error| backend_error(&error))?.is_none() {
            // Its end was counted and forgotten, its output kept.
            self.shared.project.remove_output(&uid);
        }
        self.shared.ports.give_back(&record.ports);
        self.shared.observations.remove(&uid);
        Ok(Outcome::from_work(Work::Dropped))
    }
}

/// Returns the key of a job's last finished run, successful or not; none before the first.
fn last_run(row: &Row) -> Option<RunKey> {
    Resource::state_of::<JobRecord>(row).ok().flatten()?.finished
}

fn program(context: &Context<JobReconciler>) -> Program {
    let spec = &context.spec().0;
    Program::from_spec(&spec.program.clone().unwrap_or_default(), &spec.variables)
}
