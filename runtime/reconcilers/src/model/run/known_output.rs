//! The situation that a run finds: the model's output, the record beside it, and other owners of its name.

use uuid::Uuid;
use watershed_compilers::Code;
use watershed_controller::Resource;
use watershed_core::{Error, Target, Timestamp};
use watershed_drivers::olap::{Guard, Location, Output, OutputKind};
use watershed_outputs::Lookup;
use watershed_proto::{Fault, ModelSpec};

use super::subject::Subject;
use crate::{
    messages::Proto,
    model::{
        failure, freshness,
        record::{BuildId, Record, Shape},
        statement,
    },
};

/// The output as known before the run changes anything.
#[derive(Default)]
pub(super) struct KnownOutput {
    /// The record of the output, merged with the catalog's copy, which alone may have new times of files and results of
    /// tests.
    pub(super) record: Option<Record>,
    /// The tagged object; none if the recorded object no longer exists.
    pub(super) object: Option<(String, Shape, BuildId)>,
    /// The resource of a lost catalog whose tag the output carries, if there is one.
    pub(super) orphan: Option<Uuid>,
    /// True if the output was made in another place, and models are built here now.
    pub(super) has_moved: bool,
}

pub(super) async fn find(subject: Subject<'_>) -> Result<KnownOutput, Error> {
    let state = subject.context.state();
    let copy = state.and_then(|state| Record::from_state(&state.0));
    let has_moved = is_elsewhere(subject);
    let found = subject.outputs().find(subject.uid(), subject.cancel()).await;
    let output = match (found.map_err(|failure| failure::from_failure(&failure))?, &copy) {
        (Lookup::AsLeft, Some(record)) if !has_moved => {
            let object = Some((record.location.name.clone(), record.shape, record.tagged));
            return Ok(KnownOutput {
                record: copy,
                object,
                ..KnownOutput::default()
            });
        }
        (Lookup::AsLeft, _) => look_up(subject).await?,
        (Lookup::Listed(output), _) => output,
    };
    match output {
        Some(output) => {
            let elsewhere = copy.as_ref().filter(|_| has_moved).map(|copy| copy.answered);
            let mut known = KnownOutput::from_output(&output, copy);
            if let (Some(record), Some(answered)) = (&mut known.record, elsewhere) {
                record.answered = record.answered.or_later(answered);
            }
            Ok(known)
        }
        None if copy.is_some() => Ok(KnownOutput {
            record: copy,
            has_moved,
            ..KnownOutput::default()
        }),
        None => orphan(subject).await,
    }
}

/// Returns true if the catalog's copy of the record speaks of an output in another place than that which models are built in.
pub(super) fn is_elsewhere(subject: Subject<'_>) -> bool {
    let state = subject.context.state();
    state.is_some_and(|state| state.0.result_home != subject.outputs().home())
}

/// Returns an output of the same name whose resource no catalog knows.
async fn orphan(subject: Subject<'_>) -> Result<KnownOutput, Error> {
    let Some(output) = standing_at_name(subject).await? else {
        return Ok(KnownOutput::default());
    };
    if owner(subject, output.tag.uid).is_some() {
        return Ok(KnownOutput::default());
    }
    let orphan = Some(output.tag.uid);
    Ok(KnownOutput {
        orphan,
        ..KnownOutput::from_output(&output, None)
    })
}

pub(super) async fn look_up(subject: Subject<'_>) -> Result<Option<Output>, Error> {
    let found = subject.outputs().look_up(subject.uid(), subject.cancel()).await;
    found.map_err(|failure| failure::from_failure(&failure))
}

async fn standing_at_name(subject: Subject<'_>) -> Result<Option<Output>, Error> {
    let found = subject
        .outputs()
        .standing_at(&Location::named(subject.table()), subject.cancel())
        .await;
    found.map_err(|failure| failure::from_failure(&failure))
}

/// Returns the resource of a uid, including one that is being deleted.
pub(super) fn owner(subject: Subject<'_>, uid: Uuid) -> Option<Resource> {
    subject
        .context
        .controller()
        .get(Target::Uid(watershed_core::Uid(uid)))
        .ok()
}

/// Returns an error if another model owns the output of the same name. Outputs that are about to be renamed, or whose
/// model lost the name, are no obstacle, as the engine moves them away.
pub(super) async fn refuse_shared_output(subject: Subject<'_>) -> Result<(), Error> {
    let Some(output) = standing_at_name(subject)
        .await?
        .filter(|output| output.tag.uid != subject.uid())
    else {
        return Ok(());
    };
    let Some(other) = owner(subject, output.tag.uid).filter(|other| !other.row.intents.is_deleted()) else {
        return Ok(());
    };
    let Ok(Proto(spec)) = other.spec::<Proto<ModelSpec>>() else {
        return Ok(());
    };
    let lost = |fault: &Fault| fault.code == Code::OutputShared.as_str();
    if spec.fault.as_ref().is_some_and(lost) {
        return Ok(());
    }
    if statement::table(&spec, other.row.name.as_str()).eq_ignore_ascii_case(subject.table()) {
        return Err(failure::shared_output(subject.table(), other.row.name.as_str()));
    }
    Ok(())
}

/// Drops the output of a lost catalog that has been replaced.
pub(super) async fn drop_orphan(subject: Subject<'_>, orphan: Uuid) -> Result<(), Error> {
    let outputs = subject.outputs();
    let dropped = outputs.drop_output(orphan, Guard::Free, subject.cancel()).await;
    dropped
        .map(drop)
        .map_err(|failure| failure::from_failure(&failure))
}

impl KnownOutput {
    /// Returns the time from which the schedule counts.
    pub(super) fn mark(&self, now: Timestamp) -> Timestamp {
        self.record
            .as_ref()
            .map_or(Timestamp(0), |record| record.mark(now))
    }

    /// Returns the time when the present rows came.
    pub(super) fn since(&self, now: Timestamp) -> Timestamp {
        self.record
            .as_ref()
            .map_or(Timestamp(0), |record| freshness::since(record, now))
    }

    fn from_output(output: &Output, copy: Option<Record>) -> Self {
        let build = BuildId(output.tag.build);
        let object = Some((output.location.name.clone(), shape(output.kind), build));
        let record = output.record.as_deref().and_then(Record::decode).map(|record| {
            let copy = copy.filter(|copy| copy.tagged == record.tagged);
            let record = match &copy {
                // That a view stands for other rows since it was made is known to the catalog alone.
                Some(copy) if copy.build != record.build => Record {
                    build: copy.build,
                    inputs: copy.inputs.clone(),
                    made: copy.made.clone(),
                    built_at_ms: copy.built_at_ms,
                    ..record
                },
                _ => record,
            };
            let took_ms = copy.as_ref().map_or(record.took_ms, |copy| copy.took_ms);
            let total_ms = copy.as_ref().map_or(record.total_ms, |copy| copy.total_ms);
            let stale_input = copy.as_ref().map_or(record.stale_input, |copy| copy.stale_input);
            // A question to a store that found nothing new, and what was answered in another place, are known to the catalog
            // alone.
            let answered = copy
                .as_ref()
                .map_or(record.answered, |copy| record.answered.or_later(copy.answered));
            let asked = copy.as_ref().map(|copy| copy.asked_at_ms).filter(|at| *at > 0);
            let asked_at_ms = asked.unwrap_or(record.asked_at_ms);
            let (schedule, counts_from_ms) = match &copy {
                Some(copy) => (copy.schedule.clone(), copy.counts_from_ms),
                None => (record.schedule.clone(), record.counts_from_ms),
            };
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
                total_ms,
                stale_input,
                answered,
                asked_at_ms,
                schedule,
                counts_from_ms,
                ..record
            }
        });
        Self {
            record,
            object,
            ..Self::default()
        }
    }
}

fn shape(kind: OutputKind) -> Shape {
    match kind {
        OutputKind::View => Shape::View,
        OutputKind::Table => Shape::Table,
    }
}
