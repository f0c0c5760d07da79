//! Migrations: SQL that runs once per version, before anything else.
//!
//! What was run is recorded in the engine, in the transaction that ran it. So a crash neither repeats nor skips it, and
//! the state is a copy. So is what it left in the engine for everybody (see [`made`](crate::made)): an input of the models
//! that read it.

use std::sync::Arc;

use uuid::Uuid;
use watershed_compilers::{Scope, render_text, sql::Statements};
use watershed_controller::{Context, KindOptions, Reconciler, RetryPolicy, Select};
use watershed_core::{Error, ErrorKind, Outcome, Stage, Target, Work};
use watershed_drivers::olap::{Failure, Left, Migration, Thing};
use watershed_outputs::{Outputs, failure, traces::Made};
use watershed_proto::{MadeThing, Message, MigrationSpec, MigrationState};

use crate::{away, messages::Proto, metrics_view, model, places, refs};

/// The kind by which the controller knows migrations.
pub const KIND: &str = "migration";

/// Nudges the models that use a changed object of a migration, models that failed or were running before, and all
/// metrics views.
async fn ask_readers(context: &Context<MigrationReconciler>, made: &Made) {
    let controller = context.controller();
    for resource in controller.list(Select::new().with_deleted()).resources {
        let by_itself = |error: &Arc<Error>| !matches!(error.kind, ErrorKind::Dependency(_));
        let failed = resource.row.error.as_ref().is_some_and(by_itself);
        let runs = matches!(resource.status.stage, Stage::Running { .. });
        let asks = match resource.row.kind.as_str() {
            model::KIND => failed || runs || model::reads_other(&resource.row, made),
            metrics_view::KIND => true,
            _ => false,
        };
        if asks {
            // One that is gone by now needs no look; a controller that ends looks at nothing.
            let _ = controller.nudge(Target::Uid(resource.row.uid)).await;
        }
    }
}

/// The largest number of versions that run at once; a larger difference is likely a typing error.
const MOST_VERSIONS: u32 = 100;

/// Returns the options with which the kind is registered.
#[must_use]
pub fn options() -> KindOptions {
    KindOptions::new(KIND).retry(RetryPolicy::Never).first()
}

/// The reconciler of migrations, which runs them.
pub struct MigrationReconciler {
    outputs: Arc<Outputs>,
    environment: String,
}

impl MigrationReconciler {
    /// Creates the reconciler for the engine of `outputs`; templates see `environment` as the environment's name.
    #[must_use]
    pub fn new(outputs: Arc<Outputs>, environment: impl Into<String>) -> Self {
        Self {
            outputs,
            environment: environment.into(),
        }
    }

    /// Returns the state of the last run, if it is known.
    async fn last(&self, context: &Context<Self>, proof: &str) -> Result<Option<MigrationState>, Error> {
        let copy = context.state().map(|state| state.0.clone());
        if copy.is_some() && self.outputs.is_as_left() {
            return Ok(copy);
        }
        let found = async {
            let migrations = self.outputs.olap().migrations()?;
            migrations
                .last(context.uid().0, proof, context.cancellation())
                .await
        };
        let found = found.await;
        let found = found.map_err(|failure| failure::from_failure(&failure))?;
        Ok(found.map(|found| state_of(found.version, found.proof, found.left)))
    }

    fn sql(&self, spec: &MigrationSpec, version: u32, paths: &[Arc<str>]) -> Result<String, Error> {
        let source = spec.sql.clone().unwrap_or_default();
        if !source.templated {
            return Ok(source.text);
        }
        let scope = Scope {
            environment: self.environment.clone(),
            variables: self.outputs.secrets().open(&spec.variables)?,
            version: Some(version),
            ..Scope::default()
        };
        render_text(&source.text, &scope).map_err(|error| Error {
            place: Some(places::from_source(paths, &source, &source.text, None)),
            ..failure::from_render(&error)
        })
    }
}

impl Reconciler for MigrationReconciler {
    type Spec = Proto<MigrationSpec>;
    type State = Proto<MigrationState>;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let done = self.run(&context).await;
        let redact = |error| self.outputs.secrets().redact_error(error);
        done.map_err(|error| away::run_again(&self.outputs, &context, redact(error)))
    }

    /// Removes the migration's record and drops its functions, which hold no data; all other effects stay.
    async fn delete(&self, context: Context<Self>) -> Result<Outcome, Error> {
        if context.state().is_none() && self.outputs.is_as_left() {
            return Ok(Outcome::default());
        }
        let forgotten = async {
            let migrations = self.outputs.olap().migrations()?;
            migrations.forget(context.uid().0, context.cancellation()).await
        };
        let forgotten = forgotten.await;
        let forgotten = forgotten.map_err(|failure| failure::from_failure(&failure))?;
        if self.outputs.made().forget(context.uid().0) || forgotten {
            ask_readers(&context, self.outputs.made()).await;
        }
        match forgotten {
            true => Ok(Outcome::from_work(Work::Dropped)),
            false => Ok(Outcome::default()),
        }
    }
}

impl MigrationReconciler {
    async fn run(&self, context: &Context<Self>) -> Result<Outcome, Error> {
        let spec = &context.spec().0;
        if let Some(state) = context.state() {
            self.outputs.made().learn(context.uid().0, &state.0);
        }
        if !self.outputs.chosen().holds(context.uid()) {
            return Ok(Outcome::passed_over());
        }
        if let Some(fault) = &spec.fault {
            return Err(failure::from_fault(fault));
        }
        refs::check(context.refs(), self.outputs.chosen())?;
        if !spec.driver.is_empty() {
            return Err(other_system(spec, &context.row().paths));
        }
        let proof = proof(spec);
        let mut last = self.last(context, &proof).await?;
        let mut done = false;
        for version in wanted(spec.version, last.as_ref(), &proof)? {
            let sql = self.sql(spec, version, &context.row().paths)?;
            context.progress(format!("version {version}"));
            let replaces = version == 0 && last.is_some();
            let migration = migration(context, version, &proof, sql, replaces);
            let run = self.outputs.migrate(&migration, context.cancellation()).await;
            let left = run.map_err(|failure| self.placed(context, &failure, &migration.sql))?;
            last = Some(state_of(version, proof.clone(), left));
            done = true;
        }
        let state = Proto(MigrationState {
            version: spec.version,
            proof,
            ..last.unwrap_or_default()
        });
        // Published before it is stored: whoever looks from now on reads what is there now.
        self.outputs.made().learn(context.uid().0, &state.0);
        let is_new = context.state() != Some(&state);
        if is_new {
            context.set_state(&state).await?;
        }
        if done {
            ask_readers(context, self.outputs.made()).await;
        }
        let work = match (done, is_new) {
            (true, _) => Work::Built,
            (false, true) => Work::Checked,
            (false, false) => Work::None,
        };
        Ok(Outcome::from_work(work))
    }

    fn placed(&self, context: &Context<Self>, failure: &Failure, sent: &str) -> Error {
        let Failure::Sql(error) = failure else {
            return failure::from_failure(failure);
        };
        let source = context.spec().0.sql.clone().unwrap_or_default();
        let paths = &context.row().paths;
        let own = paths.iter().any(|path| **path == *source.path);
        let at = if own {
            places::source::in_file(&source, &source.path, sent, error.offset)
        } else {
            places::from_source(paths, &source, sent, error.offset)
        };
        Error {
            place: Some(at),
            ..failure::from_sql(error)
        }
    }
}

/// Returns the statements to run, with the metadata to store for the created objects.
fn migration(
    context: &Context<MigrationReconciler>,
    version: u32,
    proof: &str,
    sql: String,
    replaces: bool,
) -> Migration {
    let statements = Statements::read(&sql);
    let definitions = statements.definitions.into_iter().map(|(name, definition)| {
        let thing = MadeThing {
            version: definition.digest.to_vec(),
            names: definition.names.into_iter().collect(),
            files: definition.files,
            ..MadeThing::default()
        };
        (name, thing.encode_to_vec())
    });
    Migration {
        uid: context.uid().0,
        version,
        run: Uuid::now_v7(),
        proof: proof.to_owned(),
        definitions: definitions.collect(),
        mentions: statements.mentions,
        replaces,
        sql,
    }
}

fn state_of(version: u32, proof: String, left: Left) -> MigrationState {
    MigrationState {
        version,
        proof,
        made: left.things.into_iter().map(made).collect(),
        settings: left.settings,
    }
}

/// Returns an object with its version: that of the definition, or of the run for objects with rows or of unknown
/// origin.
fn made(thing: Thing) -> MadeThing {
    let definition = thing
        .definition
        .filter(|_| thing.kind.is_definition())
        .and_then(|bytes| MadeThing::decode(bytes.as_slice()).ok());
    MadeThing {
        kind: thing.kind.as_str().to_owned(),
        name: thing.name,
        ..definition.unwrap_or_else(|| MadeThing {
            version: thing.run.as_bytes().to_vec(),
            ..MadeThing::default()
        })
    }
}

/// Returns the error of a migration that is for another system and can't run in the engine.
fn other_system(spec: &MigrationSpec, paths: &[Arc<str>]) -> Error {
    let source = spec.sql.clone().unwrap_or_default();
    Error {
        place: Some(places::from_source(paths, &source, &source.text, None)),
        ..Error::permanent(
            "connector-unsupported",
            format!(
                "running SQL on connector \"{}\" is not supported yet",
                spec.connector
            ),
        )
    }
}

/// Returns a hash of the SQL and of the variables that it reads.
fn proof(spec: &MigrationSpec) -> String {
    let mut hasher = blake3::Hasher::new();
    let text = spec.sql.as_ref().map(|sql| sql.text.as_str()).unwrap_or_default();
    hasher.update(text.as_bytes());
    for (name, value) in &spec.variables {
        hasher
            .update(name.as_bytes())
            .update(b"=")
            .update(value.as_bytes());
    }
    hasher.finalize().to_hex().as_str()[..32].to_owned()
}

/// Returns the versions that remain to be run. An edited migration runs again for its current version.
fn wanted(
    version: u32,
    last: Option<&MigrationState>,
    proof: &str,
) -> Result<std::ops::RangeInclusive<u32>, Error> {
    let from = match last {
        None => 0,
        Some(last) if last.version < version => last.version + 1,
        Some(last) if last.proof != proof => version,
        Some(_) => version + 1,
    };
    if version.saturating_sub(from) > MOST_VERSIONS {
        let message =
            format!("versions {from} to {version} are to be run, more than {MOST_VERSIONS} at once");
        return Err(Error::permanent("too-many-versions", message));
    }
    Ok(from..=version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_is_run_once_and_an_edited_text_again() {
        let last = |version| MigrationState {
            version,
            proof: "p".into(),
            ..MigrationState::default()
        };
        let run = |version, last: Option<&MigrationState>, proof| {
            wanted(version, last, proof).map(|versions| versions.collect::<Vec<_>>())
        };
        assert_eq!(run(0, None, "p").unwrap(), [0]);
        assert_eq!(run(2, None, "p").unwrap(), [0, 1, 2]);
        assert_eq!(run(2, Some(&last(2)), "p").unwrap(), [] as [u32; 0]);
        assert_eq!(run(3, Some(&last(1)), "p").unwrap(), [2, 3]);
        assert_eq!(run(2, Some(&last(2)), "q").unwrap(), [2]);
        assert_eq!(run(1, Some(&last(2)), "p").unwrap(), [] as [u32; 0]);
        assert!(run(200, None, "p").is_err());
    }
}
