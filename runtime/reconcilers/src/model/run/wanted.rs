//! The wanted output of a model: the inputs of a build as they are now.

use std::time::SystemTime;

use watershed_core::{Error, Ref};
use watershed_drivers::files::{self, FileNow};
use watershed_drivers::olap::Fate;
use watershed_outputs::traces::Reads;
use watershed_proto::{Message, ModelSpec};

use super::{
    databases,
    known_output::{self, KnownOutput},
    lake, objects_now,
    subject::Subject,
};
use crate::model::{
    inputs::{self, Inputs},
    objects,
    plan::{self, BuildReason, Decision, Object, Triggers, Wanted, plan},
    record::{Input, Meaning, Record, Refreshes, Shape},
    statement,
    triggers::{adds_rows, has_left, is_protected, on_edit, triggers},
};

/// The inputs of a build as they are now.
pub(super) struct Plan {
    pub(super) table: String,
    pub(super) shape: Shape,
    pub(super) meaning: Meaning,
    pub(super) inputs: Vec<Input>,
    /// The failed ref whose last good output is used, if there is one.
    pub(super) failed: Option<Ref>,
    pub(super) files: Vec<FileNow>,
    /// Local files that are partitions, represented among `files` by a single entry.
    pub(super) partition_files: Vec<FileNow>,
    /// Local files whose change does not make the model outdated.
    pub(super) others: Vec<FileNow>,
    pub(super) made: Reads,
    /// True if all rows come from object stores that were just asked for changes, or from a database that reports no
    /// change.
    pub(super) asked_store: bool,
    /// The refreshes that a build answers.
    pub(super) asked: Refreshes,
    /// The number of full refreshes, up to now, that only approved an edit.
    pub(super) approvals: u64,
    /// The time when the files were inspected, in nanoseconds since the epoch.
    pub(super) looked_at_ns: i64,
}

impl Plan {
    /// Describes why a model is built, with the name of the input concerned.
    pub(super) fn told(&self, reason: &BuildReason) -> String {
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

/// Returns the inputs that a build would have now.
pub(super) async fn plan_now(
    subject: Subject<'_>,
    inputs: Inputs,
    record: Option<&Record>,
) -> Result<Plan, Error> {
    let looked_at_ns = files::nanos(SystemTime::now());
    let seen = record.map(|record| record.files.clone()).unwrap_or_default();
    let made = subject.outputs().made().read_by_model(&subject.spec().uses);
    let patterns = inputs::patterns(subject.spec(), &made.files);
    let found = inputs::local_files(
        &subject.model.root,
        subject.outputs().sandbox(),
        (patterns, subject.spec().sql.is_some()),
        seen,
        subject.cancel(),
    )
    .await?;
    let mut files = found.files;
    let objects = match objects_now::look(subject, record).await? {
        None => lake::state(subject, record).await?,
        objects => objects,
    };
    let asked_store = objects.is_some() || databases::is_unchanged_database(subject, record).await?;
    files.extend(objects.unwrap_or_else(|| objects::remembered(record)));
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(Plan {
        asked_store,
        table: subject.table().to_owned(),
        shape: statement::shape(subject.spec()),
        meaning: subject.meaning()?,
        asked: match (&inputs.failed, record) {
            (None, _) => subject.asked(),
            // A refresh is answered with good rows.
            (Some(_), record) => record.map(|record| record.answered).unwrap_or_default(),
        },
        approvals: subject.approvals(record),
        inputs: inputs.all,
        failed: inputs.failed,
        files,
        partition_files: found.partitions,
        others: found.others,
        made,
        looked_at_ns,
    })
}

/// Returns the fate of rows that a build replaces. Rows are trashed if a later build could need them or only history
/// could restore them.
pub(super) fn fate(spec: &ModelSpec, reason: &BuildReason) -> Fate {
    match reason {
        BuildReason::ShapeChanged
        | BuildReason::DefinitionChanged
        | BuildReason::InputChanged(_)
        | BuildReason::FileChanged(_)
        | BuildReason::MadeChanged(_) => Fate::Trash,
        BuildReason::FullRefresh if adds_rows(spec) => Fate::Trash,
        BuildReason::NeverBuilt
        | BuildReason::Moved
        | BuildReason::Dropped
        | BuildReason::Replaced
        | BuildReason::Refresh
        | BuildReason::FullRefresh
        | BuildReason::Scheduled
        | BuildReason::PartitionsLeft
        | BuildReason::Unfinished => Fate::Gone,
    }
}

pub(super) async fn decide(
    subject: Subject<'_>,
    planned: &Plan,
    known_output: &KnownOutput,
) -> Result<Decision, Error> {
    let Some(record) = &known_output.record else {
        return Ok(Decision::Build(BuildReason::NeverBuilt));
    };
    let refingerprinted = refingerprint(subject, planned, record).await?;
    let object = match &known_output.object {
        None if known_output.has_moved => Object::Elsewhere,
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
    let wanted = wanted(subject, planned, record);
    let found = match known_output.orphan {
        None => plan::ExistingOutput::Own(output),
        Some(_) => plan::ExistingOutput::Orphan(output),
    };
    Ok(plan(&wanted, &found))
}

/// Returns the wanted output, given the record of the existing one.
pub(super) fn wanted<'b>(subject: Subject<'_>, plan: &'b Plan, record: &Record) -> Wanted<'b> {
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
            None => triggers(subject.spec(), record, subject.context.now()),
        },
        incremental: adds_rows(subject.spec()),
        on_edit: on_edit(subject.spec(), record),
        protected: is_protected(subject.spec(), record),
        left: has_left(record),
        asked_store: plan.asked_store,
        text_alone: statement::is_text_alone(subject.spec()),
    }
}

/// Returns the recorded definition's fingerprint by the current rules, if the record's rules differ. Rules change with
/// versions of the program and the engine.
pub(super) async fn refingerprint(
    subject: Subject<'_>,
    planned: &Plan,
    record: &Record,
) -> Result<Option<Meaning>, Error> {
    if record.meaning.version == planned.meaning.version {
        return Ok(None);
    }
    let mut definition = record.definition.clone();
    if definition.is_empty() {
        let output = known_output::look_up(subject).await?;
        let whole = output.and_then(|output| Record::decode(&output.record?));
        definition = whole.map(|whole| whole.definition).unwrap_or_default();
    }
    let then = ModelSpec::decode(definition.as_slice()).unwrap_or_default();
    Ok((statement::decisive(&then) == statement::decisive(subject.spec())).then(|| planned.meaning.clone()))
}
