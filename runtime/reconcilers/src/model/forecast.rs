//! The decision about a model without a run: what a build would do, given the catalog alone.
//!
//! The output is taken to stand as the catalog says. What was dropped or replaced by hand is seen by a run only.

use std::{path::Path, sync::Arc};

use tokio_util::sync::CancellationToken;
use watershed_core::{Error, RefView, Row, Timestamp};
use watershed_drivers::sandbox::Sandbox;
use watershed_proto::{Message, ModelSpec, ModelState, OutputKind};

use super::{
    failure, inputs,
    plan::{self, Again, Decision, ExistingOutput, Object, Output, Wanted, plan},
    record::{BuildId, Meaning, Record, Refreshes, Shape},
    statement,
    triggers::{adds_rows, has_left, on_edit, triggers},
};
use crate::{chosen::Chosen, made::Made};

/// The surroundings of a forecast.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The project's folder.
    pub root: &'a Arc<Path>,
    /// The folders that the project is confined to.
    pub sandbox: Option<&'a Sandbox>,
    /// The time of the run.
    pub now: Timestamp,
    /// Ends the forecast.
    pub cancel: &'a CancellationToken,
}

/// The surroundings of the forecast of a model.
pub(crate) struct Sky<'a> {
    pub(crate) view: &'a View<'a>,
    /// The traces of migrations and connectors.
    pub(crate) made: &'a Made,
    /// The resources that the run is for.
    pub(crate) chosen: &'a Chosen,
}

/// A model after the run that is foreseen.
pub(crate) struct Foreseen {
    pub(crate) decision: Decision,
    /// Its state then, as far as others read it.
    pub(crate) state: ModelState,
    /// The time that its last build took, if there was one.
    pub(crate) took_ms: Option<u64>,
    /// Its spec.
    pub(crate) spec: ModelSpec,
}

/// Returns what a run would decide about a model.
///
/// # Errors
/// What the run would fail with before it builds.
pub(crate) async fn foresee(sky: &Sky<'_>, row: &Row, refs: &[RefView]) -> Result<Foreseen, Error> {
    let spec = ModelSpec::decode(row.spec.as_ref()).unwrap_or_default();
    if let Some(fault) = &spec.fault {
        return Err(failure::from_fault(fault));
    }
    let reads = inputs::from_refs(&spec, refs, sky.chosen)?;
    let state = row
        .state
        .as_deref()
        .and_then(|state| ModelState::decode(state).ok());
    let record = state.as_ref().and_then(Record::from_state);
    let made = sky.made.read_by_model(&spec.uses);
    let seen = record
        .as_ref()
        .map(|record| record.files.clone())
        .unwrap_or_default();
    let patterns = inputs::patterns(&spec, &made.files);
    let files = inputs::local_files(sky.view.root, sky.view.sandbox, patterns, seen, sky.view.cancel).await?;
    let meaning = spec.output_meaning.as_ref().and_then(Meaning::from_proto);
    let meaning =
        meaning.ok_or_else(|| Error::permanent("spec-incomplete", "a spec without a fingerprint"))?;
    let table = statement::table(&spec, row.name.as_str());
    let decision = match &record {
        None => Decision::Build(plan::BuildReason::NeverBuilt),
        Some(record) => {
            // What is told by another version's rules is not compared here: the run knows the text.
            let same_rules = record.meaning.version == meaning.version;
            let output = Output {
                record,
                refingerprinted: (!same_rules).then_some(&meaning),
                object: Object::Present {
                    table: &record.table,
                    shape: record.shape,
                    build: record.build,
                },
            };
            let wanted = Wanted {
                table,
                shape: statement::shape(&spec),
                meaning: &meaning,
                inputs: &reads,
                files: &files,
                made: &made.inputs,
                asked: Refreshes {
                    plain: row.refreshes.plain,
                    full: row.refreshes.full,
                },
                triggers: triggers(&spec, record, sky.view.now),
                incremental: adds_rows(&spec),
                on_edit: on_edit(&spec, record),
                left: has_left(record),
            };
            plan(&wanted, &ExistingOutput::Own(output))
        }
    };
    let keeps = matches!(
        decision,
        Decision::Nothing
            | Decision::Rename { .. }
            | Decision::Accept
            | Decision::MakeViewAgain(Again::InputRenamed)
    );
    let kept = record.as_ref().filter(|_| keeps).map(|record| record.build);
    let took_ms = record.as_ref().map(|record| record.took_ms);
    let kind = match statement::shape(&spec) {
        Shape::Table => OutputKind::Table,
        Shape::View => OutputKind::View,
    };
    // As others read it: the name of the output, and which build it is.
    let state = ModelState {
        result_table: table.to_owned(),
        result_kind: kind.into(),
        build_id: kept.unwrap_or_else(BuildId::fresh).to_string(),
        output_meaning: Some(meaning.to_proto()),
        ..state.unwrap_or_default()
    };
    Ok(Foreseen {
        decision,
        state,
        took_ms,
        spec,
    })
}
