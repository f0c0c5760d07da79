//! One invocation for a model: look at what is wanted and what is there, decide, act.
//!
//! Each effect in the engine is one transaction with its record, and the state is written after it. So a run may be
//! cut off anywhere: the next one finds the record and writes the state.

mod act;

use std::{collections::BTreeSet, sync::Arc, time::SystemTime};

use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use watershed_compilers::sql::names_in;
use watershed_controller::{Context, Resource};
use watershed_core::{Error, Outcome, Target};
use watershed_drivers::olap::{BuildError, Failure, Output, OutputKind};
use watershed_proto::{ConnectorSpec, Message, ModelSpec, SqlSource};

use super::{
    KIND, ModelReconciler,
    data_tests::Tests,
    failure, files, inputs,
    plan::{self, Again, Decision, FileNow, Object, Reason, Wanted, plan},
    record::{BuildId, Input, Meaning, Record, Refreshes, Shape},
    retries, statement,
};
use crate::{connector, made::Reads, messages::Proto, outputs::Found, refs};

pub(super) struct Run<'a> {
    model: &'a ModelReconciler,
    context: &'a Context<ModelReconciler>,
}

/// What is known of the output before anything is done.
#[derive(Default)]
struct Standing {
    /// Its record. A touched file's new time, and tests that were run without a build, may be in the catalog's copy
    /// alone; they are merged in.
    record: Option<Record>,
    /// The tagged object; none if the record speaks of one that is gone.
    object: Option<(String, Shape, BuildId)>,
    /// The resource of a lost catalog that it is tagged with, if it is not this one.
    orphan: Option<Uuid>,
}

/// What a build is made of.
struct Plan {
    table: String,
    shape: Shape,
    meaning: Meaning,
    inputs: Vec<Input>,
    files: Vec<FileNow>,
    made: Reads,
    /// When the files were looked at, nanoseconds since the epoch.
    looked_at_ns: i64,
}

impl Plan {
    /// Says why a model is built, with the name of the input that it is about.
    fn told(&self, reason: &Reason) -> String {
        let input = match reason {
            Reason::InputChanged(ordinal) => self.inputs.get(*ordinal),
            _ => None,
        };
        match input {
            Some(input) => format!("its input \"{}\" was built again", input.table),
            None => reason.to_string(),
        }
    }
}

impl<'a> Run<'a> {
    pub(super) fn new(model: &'a ModelReconciler, context: &'a Context<ModelReconciler>) -> Self {
        Self { model, context }
    }

    pub(super) async fn reconcile(&self) -> Result<Outcome, Error> {
        let result = self.converge().await;
        result.map_err(|error| retries::judged(self.spec(), self.tell_what_stays(error)))
    }

    async fn converge(&self) -> Result<Outcome, Error> {
        if let Some(fault) = &self.spec().fault {
            return Err(failure::of_fault(fault));
        }
        let inputs = inputs::of_refs(self.spec(), self.context.refs())?;
        self.refuse_other_database()?;
        statement::refuse_partitions(self.spec(), self.paths())?;
        let standing = self.standing().await?;
        let plan = self.plan(inputs, standing.record.as_ref()).await?;
        let decision = self.decide(&plan, &standing).await?;
        tracing::debug!(?decision, "decided");
        match decision {
            Decision::Nothing => self.keep(plan, standing).await,
            Decision::Rename { .. } => {
                let (outcome, record) = self.give_name(standing).await?;
                self.test(record).await.map(|_| outcome)
            }
            Decision::Adopt => {
                let (outcome, record) = self.adopt(plan, standing).await?;
                self.test(record).await.map(|_| outcome)
            }
            Decision::MakeViewAgain(again) => {
                let kept = (again == Again::InputRenamed)
                    .then_some(standing.record.as_ref())
                    .flatten();
                let id = kept.map(|record| record.build);
                self.context.progress("making the view again");
                self.build(plan, id, standing.orphan).await
            }
            Decision::Build(reason) => {
                let why = plan.told(&reason);
                self.context.progress(format!("building, because {why}"));
                self.build(plan, None, standing.orphan).await
            }
        }
    }

    /// Refuses SQL for a database of its own: the engine would take names there for names here.
    fn refuse_other_database(&self) -> Result<(), Error> {
        let spec = self.spec();
        if spec.input_connector == spec.output_connector || spec.sql.is_none() {
            return Ok(());
        }
        let view = refs::find(self.context.refs(), connector::KIND, &spec.input_connector);
        let other = view
            .and_then(refs::spec::<ConnectorSpec>)
            .filter(connector::has_file);
        match other {
            None => Ok(()),
            Some(_) => Err(failure::of_other_database(&spec.input_connector, self.paths())),
        }
    }

    /// What a build would be made of now.
    async fn plan(&self, inputs: Vec<Input>, record: Option<&Record>) -> Result<Plan, Error> {
        let looked_at_ns = files::nanos(SystemTime::now());
        let seen = record.map(|record| record.files.clone()).unwrap_or_default();
        let made = self.model.outputs.made().read_by_model(&self.spec().uses);
        let patterns = inputs::patterns(self.spec(), &made.files);
        let files = inputs::local_files(
            &self.model.root,
            self.model.outputs.sandbox(),
            patterns,
            seen,
            self.cancel(),
        )
        .await?;
        Ok(Plan {
            table: self.table().to_owned(),
            shape: statement::shape(self.spec()),
            meaning: self.meaning()?,
            inputs,
            files,
            made,
            looked_at_ns,
        })
    }

    async fn decide(&self, wanted: &Plan, standing: &Standing) -> Result<Decision, Error> {
        let Some(record) = &standing.record else {
            return Ok(Decision::Build(Reason::NeverBuilt));
        };
        let refingerprinted = self.refingerprint(wanted, record).await?;
        let object = match &standing.object {
            None => Object::Missing,
            Some((table, shape, build)) => Object::Standing {
                table,
                shape: *shape,
                build: *build,
            },
        };
        let output = plan::Output {
            record,
            refingerprinted: refingerprinted.as_ref(),
            object,
        };
        let wanted = Wanted {
            table: &wanted.table,
            shape: wanted.shape,
            meaning: &wanted.meaning,
            inputs: &wanted.inputs,
            files: &wanted.files,
            made: &wanted.made.inputs,
            asked: self.asked(),
        };
        let found = match standing.orphan {
            None => plan::Found::Own(output),
            Some(_) => plan::Found::Orphan(output),
        };
        Ok(plan(&wanted, &found))
    }

    /// The recorded definition by today's rules, if the record's are others. Rules change with versions of the
    /// program and of the engine; a definition whose text did not change means what it meant.
    async fn refingerprint(&self, wanted: &Plan, record: &Record) -> Result<Option<Meaning>, Error> {
        if record.meaning.version == wanted.meaning.version {
            return Ok(None);
        }
        let mut definition = record.definition.clone();
        if definition.is_empty() {
            let output = self.look_up().await?;
            let whole = output.and_then(|output| Record::decode(&output.record?));
            definition = whole.map(|whole| whole.definition).unwrap_or_default();
        }
        let then = ModelSpec::decode(definition.as_slice()).unwrap_or_default();
        Ok((text_of(&then) == text_of(self.spec())).then(|| wanted.meaning.clone()))
    }
}

/// What is there.
impl Run<'_> {
    async fn standing(&self) -> Result<Standing, Error> {
        let copy = self
            .context
            .state()
            .and_then(|state| Record::from_state(&state.0));
        let found = self.model.outputs.find(self.uid(), self.cancel()).await;
        let output = match (found.map_err(|failure| failure::of_failure(&failure))?, &copy) {
            (Found::AsLeft, Some(record)) => {
                let object = Some((record.table.clone(), record.shape, record.build));
                return Ok(Standing {
                    record: copy,
                    object,
                    orphan: None,
                });
            }
            (Found::AsLeft, None) => self.look_up().await?,
            (Found::Listed(output), _) => output,
        };
        match output {
            Some(output) => Ok(Standing::of_output(&output, copy)),
            None if copy.is_some() => Ok(Standing {
                record: copy,
                ..Standing::default()
            }),
            None => self.orphan().await,
        }
    }

    /// An output of this name whose resource no catalog knows any more.
    async fn orphan(&self) -> Result<Standing, Error> {
        let Some(output) = self.standing_at_name().await? else {
            return Ok(Standing::default());
        };
        if self.owner(output.tag.uid).is_some() {
            return Ok(Standing::default());
        }
        let orphan = Some(output.tag.uid);
        Ok(Standing {
            orphan,
            ..Standing::of_output(&output, None)
        })
    }

    async fn look_up(&self) -> Result<Option<Output>, Error> {
        let found = self.model.outputs.look_up(self.uid(), self.cancel()).await;
        found.map_err(|failure| failure::of_failure(&failure))
    }

    async fn standing_at_name(&self) -> Result<Option<Output>, Error> {
        let found = self.model.outputs.standing_at(self.table(), self.cancel()).await;
        found.map_err(|failure| failure::of_failure(&failure))
    }

    /// The resource with a uid, also one whose delete is unfinished.
    fn owner(&self, uid: Uuid) -> Option<Resource> {
        self.context
            .controller()
            .get(Target::Uid(watershed_core::Uid(uid)))
            .ok()
    }

    /// Refuses to take the name of another model's output. One that is on its way to another name is no obstacle:
    /// the engine moves it out of the way.
    async fn refuse_shared_output(&self) -> Result<(), Error> {
        let Some(output) = self
            .standing_at_name()
            .await?
            .filter(|output| output.tag.uid != self.uid())
        else {
            return Ok(());
        };
        let Some(other) = self
            .owner(output.tag.uid)
            .filter(|other| !other.marks.is_deleted())
        else {
            return Ok(());
        };
        let Ok(Proto(spec)) = other.spec::<Proto<ModelSpec>>() else {
            return Ok(());
        };
        if statement::table(&spec, other.name.as_str()).eq_ignore_ascii_case(self.table()) {
            return Err(failure::of_shared_output(self.table(), other.name.as_str()));
        }
        Ok(())
    }
}

/// What is wanted, and how errors are told.
impl Run<'_> {
    fn spec(&self) -> &ModelSpec {
        &self.context.spec().0
    }

    /// The spec with the values of its variables, which is not to be stored.
    fn opened_spec(&self) -> Result<ModelSpec, Error> {
        Ok(ModelSpec {
            variables: self.model.outputs.secrets().open(&self.spec().variables)?,
            ..self.spec().clone()
        })
    }

    fn name(&self) -> &str {
        self.context.name().as_str()
    }

    fn table(&self) -> &str {
        statement::table(self.spec(), self.name())
    }

    fn uid(&self) -> Uuid {
        self.context.uid().0
    }

    fn paths(&self) -> &[Arc<str>] {
        &self.context.row().paths
    }

    fn cancel(&self) -> &CancellationToken {
        self.context.cancellation()
    }

    fn asked(&self) -> Refreshes {
        let asked = self.context.refreshes();
        Refreshes {
            plain: asked.plain,
            full: asked.full,
        }
    }

    /// Its tests, templates executed.
    fn tests(&self) -> Result<Tests, Error> {
        let (environment, secrets) = (&self.model.environment, self.model.outputs.secrets());
        let mut tests = Tests::of(self.spec(), self.name(), environment, self.paths(), secrets)?;
        // Tests that read what migrations made are run again when that changes.
        let names: BTreeSet<String> = tests
            .checks
            .iter()
            .flat_map(|check| names_in(&check.sql))
            .collect();
        let made = self.model.outputs.made();
        let reads = made.read_by_names(names.iter().map(String::as_str));
        tests.digest.extend(reads.inputs.into_values().flatten());
        Ok(tests)
    }

    fn meaning(&self) -> Result<Meaning, Error> {
        let meaning = self.spec().output_meaning.as_ref().and_then(Meaning::from_proto);
        meaning.ok_or_else(|| {
            let message = format!("{KIND} \"{}\" has a spec without a fingerprint", self.name());
            Error::permanent("spec-incomplete", message)
        })
    }

    fn placed(&self, error: &BuildError, sent: &str) -> Error {
        let about_sql = matches!(error, BuildError::Failed(Failure::Sql(_)));
        let data = failure::data_place(error, &self.model.root);
        let (error, offset) = failure::of_build(error);
        let of_statement = || statement::place_of(self.spec(), self.paths(), sent, offset);
        // Where a row of data is wrong, the statement is not.
        let place = data.or_else(|| about_sql.then(of_statement).flatten());
        Error {
            place: place.or_else(|| error.place.clone()),
            ..error
        }
    }

    /// Says that the last good output is still there, if one is.
    fn tell_what_stays(&self, error: Error) -> Error {
        let last = self
            .context
            .state()
            .and_then(|state| Record::from_state(&state.0));
        let Some(last) = last else { return error };
        let stays = format!("the {} of the last good build stays", kind(last.shape));
        let hint = error
            .hint
            .as_ref()
            .map_or_else(|| stays.clone(), |hint| format!("{hint} ({stays})"));
        Error {
            hint: Some(hint.into()),
            ..error
        }
    }
}

impl Standing {
    fn of_output(output: &Output, copy: Option<Record>) -> Self {
        let build = BuildId(output.tag.build);
        let object = Some((output.name.clone(), shape(output.kind), build));
        let record = output.record.as_deref().and_then(Record::decode).map(|record| {
            let copy = copy.filter(|copy| copy.build == record.build);
            let took_ms = copy.as_ref().map_or(record.took_ms, |copy| copy.took_ms);
            // Tests are run again without a build, so what the catalog says of them is newer.
            let (files, tests, results) = match copy {
                Some(copy) => (copy.files, copy.tests, copy.results),
                None => (record.files.clone(), record.tests.clone(), Vec::new()),
            };
            Record {
                rows: output.rows,
                files,
                tests,
                results,
                took_ms,
                ..record
            }
        });
        Self {
            record,
            object,
            orphan: None,
        }
    }
}

pub(super) fn kind(shape: Shape) -> OutputKind {
    match shape {
        Shape::View => OutputKind::View,
        Shape::Table => OutputKind::Table,
    }
}

fn shape(kind: OutputKind) -> Shape {
    match kind {
        OutputKind::View => Shape::View,
        OutputKind::Table => Shape::Table,
    }
}

/// What of a spec decides what the output holds, as text: no fingerprints, places or faults.
fn text_of(spec: &ModelSpec) -> ModelSpec {
    let sql = spec.sql.as_ref().map(|sql| SqlSource {
        text: sql.text.clone(),
        ..SqlSource::default()
    });
    ModelSpec {
        sql,
        meaning: None,
        output_meaning: None,
        fault: None,
        ..spec.clone()
    }
}
