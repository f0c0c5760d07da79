//! One invocation for a model: look at what is wanted and what is there, decide, act.
//!
//! Each effect in the engine is one transaction with its record, and the state is written after it. So a run may be
//! cut off anywhere: the next one finds the record and writes the state.

mod act;
mod build;
mod databases;
mod dialect;
mod doubts;
mod export;
mod known_output;
mod lake;
mod objects_now;
mod partitions;
mod passed_over;
mod stager;
mod table;
mod take_back;
mod upload;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::SystemTime,
};

use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use watershed_compilers::sql::names_in;
use watershed_controller::Context;
use watershed_core::{Error, Outcome, Ref, Timestamp};
use watershed_drivers::files::{self, FileNow};
use watershed_drivers::olap::{BuildError, Failure, Fate, Hooks, OutputKind};
use watershed_outputs::{made::Reads, sessions};
use watershed_proto::{ConnectorSpec, Message, ModelSpec, ModelState};

use super::{
    KIND, ModelReconciler,
    data_tests::Tests,
    failure, freshness, hooks,
    inputs::{self, Inputs},
    objects,
    plan::{self, Again, BuildReason, Decision, Object, Triggers, Wanted, plan},
    record::{BuildId, Input, Meaning, Record, Refreshes, Shape},
    retries, schedule, statement,
    triggers::{adds_rows, has_left, on_edit, triggers},
};
use crate::{connector, refs};
use known_output::KnownOutput;

pub(super) struct Run<'a> {
    model: &'a ModelReconciler,
    context: &'a Context<ModelReconciler>,
    /// The state that this run wrote last; none if it wrote none.
    written: Mutex<Option<ModelState>>,
}

/// An end of a run without an error.
struct Done {
    outcome: Outcome,
    /// The time of the last build, from which the schedule counts.
    mark: Timestamp,
    /// The time when the rows came.
    since: Timestamp,
}

/// The rows that a build begins with.
enum Base {
    /// All rows are made.
    Nothing {
        /// The build id that it gets; if none, what stands for its kind of output.
        kept: Option<BuildId>,
        /// The fate of the rows that are there.
        replaced: Fate,
    },
    /// Rows are put into an output with this record.
    Rows(Box<Record>),
}

/// The inputs of a build.
struct Plan {
    table: String,
    shape: Shape,
    meaning: Meaning,
    inputs: Vec<Input>,
    /// A ref that has failed: what stands for it is its last good output.
    failed: Option<Ref>,
    files: Vec<FileNow>,
    /// Local files that are partitions, for which one of the others stands.
    partition_files: Vec<FileNow>,
    /// Local files whose change makes nothing out of date.
    others: Vec<FileNow>,
    made: Reads,
    /// All rows come of objects whose store was asked just now, or of a database that says that nothing changed.
    asked_store: bool,
    /// The refreshes that a build answers.
    asked: Refreshes,
    /// The full ones among those and before that let an edit through.
    approvals: u64,
    /// The time at which the files were looked at, nanoseconds since the epoch.
    looked_at_ns: i64,
}

impl Plan {
    /// Says why a model is built, with the name of the input that it is about.
    fn told(&self, reason: &BuildReason) -> String {
        let input = match reason {
            BuildReason::InputChanged(ordinal) => self.inputs.get(*ordinal),
            _ => None,
        };
        match input {
            Some(input) if input.table.starts_with(inputs::JOB) => {
                "a job that it refers to has run".to_owned()
            }
            Some(input) => format!("its input \"{}\" was built again", input.table),
            None => reason.to_string(),
        }
    }
}

impl<'a> Run<'a> {
    pub(super) fn new(model: &'a ModelReconciler, context: &'a Context<ModelReconciler>) -> Self {
        Self {
            model,
            context,
            written: Mutex::default(),
        }
    }

    pub(super) async fn reconcile(&self) -> Result<Outcome, Error> {
        if !self.model.outputs.chosen().holds(self.context.uid()) {
            return Ok(Box::pin(self.follow_names()).await);
        }
        let result = self.converge_with_files().await;
        let schedule = schedule::from_spec(self.spec());
        let now = self.context.now();
        let next = |mark| schedule.as_ref().and_then(|it| schedule::next(it, mark, now));
        // Nothing is built when a bound is passed: whoever watches learns of it.
        let bound = |since| {
            let freshness = self.spec().freshness.as_ref()?;
            freshness::next(freshness, since, now)
        };
        match result {
            Ok(Done { outcome, mark, since }) => Ok(Outcome {
                retrigger: next(mark).into_iter().chain(bound(since)).min(),
                ..outcome
            }),
            // The next time is another chance, whatever becomes of retries.
            Err(error) => Err(Error {
                retrigger: next(now),
                ..retries::judged(self.spec(), self.tell_what_stays(error))
            }),
        }
    }

    /// Brings the output up to date, and then the files that its rows are written to.
    async fn converge_with_files(&self) -> Result<Done, Error> {
        let done = self.converge().await?;
        let outcome = Box::pin(self.write_files(done.outcome)).await?;
        Ok(Done { outcome, ..done })
    }

    async fn converge(&self) -> Result<Done, Error> {
        if let Some(fault) = &self.spec().fault {
            return Err(failure::from_fault(fault));
        }
        let inputs = inputs::from_refs(self.spec(), self.context.refs(), self.model.outputs.chosen())?;
        self.refuse_other_database()?;
        let now = self.context.now();
        let mut known_output = self.known_output().await?;
        if let Some(record) = &mut known_output.record {
            let times = schedule::fingerprint(self.spec().refresh_schedule.as_ref());
            record.count_anew(times, now);
        }
        let plan = self.plan(inputs, known_output.record.as_ref()).await?;
        let decision = self.decide(&plan, &known_output).await?;
        tracing::debug!(?decision, "decided");
        if let Some(failed) = plan.failed.clone() {
            return Err(Box::pin(self.act_on_stale(&failed, decision, plan, known_output)).await);
        }
        let (mark, since) = (known_output.mark(now), known_output.since(now));
        match decision {
            Decision::Nothing => Ok(Done {
                since,
                ..Done::at(mark, self.keep(plan, known_output).await?)
            }),
            // Beside what most runs do, a look: its future is made anew for each, and moved.
            decision => Box::pin(self.act(decision, plan, known_output)).await,
        }
    }

    /// Does what an edit needs while something that it reads has failed, and is blocked by that all the same: what reads
    /// this one, and its schedule, wait for good rows.
    async fn act_on_stale(
        &self,
        failed: &Ref,
        decision: Decision,
        plan: Plan,
        known_output: KnownOutput,
    ) -> Error {
        if !plan::is_for_edit(&decision) {
            return failure::failed_ref(failed);
        }
        match self.act(decision, plan, known_output).await {
            Ok(_) => failure::built_on_stale(failed),
            Err(error) => failure::unbuilt_on_stale(failed, error),
        }
    }

    /// Does what was decided.
    async fn act(&self, decision: Decision, plan: Plan, known_output: KnownOutput) -> Result<Done, Error> {
        let now = self.context.now();
        let mark = known_output.mark(now);
        match decision {
            Decision::Nothing => Ok(Done::at(mark, self.keep(plan, known_output).await?)),
            Decision::Accept => Ok(Done::at(mark, self.accept(plan, known_output).await?)),
            Decision::Unchanged => {
                let since = known_output.since(now);
                let outcome = self.answer(plan, known_output).await?;
                Ok(Done {
                    since,
                    ..Done::at(now, outcome)
                })
            }
            Decision::Rename { .. } => {
                let (outcome, record) = self.give_name(known_output).await?;
                self.test(record).await?;
                Ok(Done::at(mark, outcome))
            }
            Decision::Adopt => {
                let (outcome, record) = self.adopt(plan, known_output).await?;
                if adds_rows(self.spec()) {
                    // New rows may be waiting: they are put into what is its own now.
                    return Box::pin(self.converge()).await;
                }
                self.test(record).await?;
                Ok(Done::at(mark, outcome))
            }
            Decision::MakeViewAgain(again) => {
                let kept = (again == Again::InputRenamed)
                    .then_some(known_output.record.as_ref())
                    .flatten();
                let id = kept.map(|record| record.build);
                self.context.progress("making the view again");
                let base = Base::Nothing {
                    kept: id,
                    replaced: Fate::Gone,
                };
                self.build(plan, base, known_output.orphan).await
            }
            Decision::Follow(_) => {
                let outcome = self.follow(plan, known_output).await?;
                Ok(Done::at(self.context.now(), outcome))
            }
            Decision::Build(reason) => {
                let mut plan = plan;
                if let Some(done) = self.take_back(&mut plan, &known_output).await? {
                    return Ok(done);
                }
                let why = plan.told(&reason);
                self.context.progress(format!("building, because {why}"));
                let base = Base::Nothing {
                    // A view that is made by time stands for other rows than before.
                    kept: (reason == BuildReason::Scheduled).then(BuildId::fresh),
                    replaced: self.fate(&reason),
                };
                self.build_all(plan, base, known_output).await
            }
            Decision::Add(reason) => {
                let why = plan.told(&reason);
                self.context.progress(format!("adding rows, because {why}"));
                let named = self.named(known_output).await?;
                let base = Base::Rows(Box::new(named));
                self.build_all(plan, base, KnownOutput::default()).await
            }
            Decision::Hold(reason) => Err(failure::held_edit(self.name(), &reason)),
        }
    }

    /// Builds the output, by partitions if it has some.
    async fn build_all(&self, plan: Plan, base: Base, known_output: KnownOutput) -> Result<Done, Error> {
        match &self.spec().partitions {
            Some(_) => self.build_partitions(plan, base, known_output).await,
            None => self.build(plan, base, known_output.orphan).await,
        }
    }

    /// The record of the output, which has its name now.
    async fn named(&self, known_output: KnownOutput) -> Result<Record, Error> {
        let gone = || Error::transient("output-missing", "the output is gone");
        let record = known_output.record.clone().ok_or_else(gone)?;
        match &known_output.object {
            Some((table, ..)) if table != self.table() => {
                let (_, renamed) = self.give_name(known_output).await?;
                renamed.ok_or_else(gone)
            }
            _ => Ok(record),
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
            .filter(sessions::has_file);
        match other {
            None => Ok(()),
            Some(_) => Err(failure::other_database(&spec.input_connector, self.paths())),
        }
    }

    /// Returns the inputs that a build would have now.
    async fn plan(&self, inputs: Inputs, record: Option<&Record>) -> Result<Plan, Error> {
        let looked_at_ns = files::nanos(SystemTime::now());
        let seen = record.map(|record| record.files.clone()).unwrap_or_default();
        let made = self.model.outputs.made().read_by_model(&self.spec().uses);
        let patterns = inputs::patterns(self.spec(), &made.files);
        let found = inputs::local_files(
            &self.model.root,
            self.model.outputs.sandbox(),
            patterns,
            seen,
            self.cancel(),
        )
        .await?;
        let mut files = found.files;
        let objects = match self.objects(record).await? {
            None => self.lake(record).await?,
            objects => objects,
        };
        let asked_store = objects.is_some() || self.is_unchanged_database(record).await?;
        files.extend(objects.unwrap_or_else(|| objects::remembered(record)));
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Plan {
            asked_store,
            table: self.table().to_owned(),
            shape: statement::shape(self.spec()),
            meaning: self.meaning()?,
            asked: match (&inputs.failed, record) {
                (None, _) => self.asked(),
                // A refresh is answered with good rows.
                (Some(_), record) => record.map(|record| record.answered).unwrap_or_default(),
            },
            approvals: self.approvals(record),
            inputs: inputs.all,
            failed: inputs.failed,
            files,
            partition_files: found.partitions,
            others: found.others,
            made,
            looked_at_ns,
        })
    }

    /// The fate of the rows that a build takes the place of: what a later one would make just so again is kept, and what
    /// only history could bring back.
    fn fate(&self, reason: &BuildReason) -> Fate {
        match reason {
            BuildReason::ShapeChanged
            | BuildReason::DefinitionChanged
            | BuildReason::InputChanged(_)
            | BuildReason::FileChanged(_)
            | BuildReason::MadeChanged(_) => Fate::Trash,
            BuildReason::FullRefresh if adds_rows(self.spec()) => Fate::Trash,
            BuildReason::NeverBuilt
            | BuildReason::Dropped
            | BuildReason::Replaced
            | BuildReason::Refresh
            | BuildReason::FullRefresh
            | BuildReason::Scheduled
            | BuildReason::PartitionsLeft
            | BuildReason::Unfinished => Fate::Gone,
        }
    }

    async fn decide(&self, wanted: &Plan, known_output: &KnownOutput) -> Result<Decision, Error> {
        let Some(record) = &known_output.record else {
            return Ok(Decision::Build(BuildReason::NeverBuilt));
        };
        let refingerprinted = self.refingerprint(wanted, record).await?;
        let object = match &known_output.object {
            None => Object::Missing,
            Some((table, shape, build)) => Object::Present {
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
        let wanted = self.wanted(wanted, record);
        let found = match known_output.orphan {
            None => plan::ExistingOutput::Own(output),
            Some(_) => plan::ExistingOutput::Orphan(output),
        };
        Ok(plan(&wanted, &found))
    }

    /// Returns what is wanted, for an output with this record.
    fn wanted<'b>(&self, plan: &'b Plan, record: &Record) -> Wanted<'b> {
        Wanted {
            table: &plan.table,
            shape: plan.shape,
            meaning: &plan.meaning,
            inputs: &plan.inputs,
            files: &plan.files,
            made: &plan.made.inputs,
            asked: plan.asked,
            triggers: match plan.failed {
                Some(_) => Triggers::NONE,
                None => triggers(self.spec(), record, self.context.now()),
            },
            incremental: adds_rows(self.spec()),
            on_edit: on_edit(self.spec(), record),
            left: has_left(record),
            asked_store: plan.asked_store,
            text_alone: statement::is_text_alone(self.spec()),
        }
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
        Ok((statement::decisive(&then) == statement::decisive(self.spec())).then(|| wanted.meaning.clone()))
    }
}

/// Wanted outputs, and errors.
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

    /// Returns the full refreshes so far that let an edit through: those that are still to be answered are such if a person let this very
    /// definition through.
    fn approvals(&self, record: Option<&Record>) -> u64 {
        let Some(record) = record else { return 0 };
        let open = self.asked().full.saturating_sub(record.answered.full);
        let is_approved = self
            .model
            .outputs
            .is_approved(self.uid(), &self.spec().encode_to_vec());
        record.approvals + if is_approved { open } else { 0 }
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
        let mut tests = Tests::for_model(self.spec(), self.name(), environment, self.paths(), secrets)?;
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

    /// The error of a build that was sent with these statements.
    fn placed(&self, error: &BuildError, sent: &str, hooks: &Hooks) -> Error {
        match error {
            BuildError::Before(hook) => return hooks::before_failed(self.spec(), self.paths(), hooks, hook),
            BuildError::After { hook, build: None } => {
                return hooks::after_failed(self.spec(), self.paths(), hooks, hook);
            }
            BuildError::After {
                hook,
                build: Some(build),
            } => return hooks::joined(self.placed(build, sent, hooks), hook),
            BuildError::Order(error) => return hooks::order_failed(self.spec(), self.paths(), error),
            _ => {}
        }
        let about_sql = matches!(error, BuildError::Failed(Failure::Sql(_)));
        let data = failure::data_place(error, &self.model.root);
        let (error, offset) = failure::from_build(error);
        let of_statement = || statement::place_of(self.spec(), self.paths(), sent, offset);
        // Where a row of data is wrong, the statement is not.
        let about_sql = about_sql && !databases::is_sent_on(self.spec());
        let of_encoding = self.place_of_encoding(&error, sent);
        let place = of_encoding
            .or(data)
            .or_else(|| about_sql.then(of_statement).flatten());
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
        let speaks_of_rows =
            [failure::PARTITIONS_CODE, failure::STALE_INPUT, hooks::AFTER_CODE].contains(&&*error.code);
        let Some(last) = last.filter(|_| !speaks_of_rows) else {
            return error;
        };
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

impl Done {
    fn at(mark: Timestamp, outcome: Outcome) -> Self {
        Self {
            outcome,
            mark,
            since: mark,
        }
    }
}

pub(super) fn kind(shape: Shape) -> OutputKind {
    match shape {
        Shape::View => OutputKind::View,
        Shape::Table => OutputKind::Table,
    }
}
