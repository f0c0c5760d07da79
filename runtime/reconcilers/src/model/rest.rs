//! Models that may rest: nothing they depend on can change without the controller's knowledge.
//!
//! Most models of most projects are one statement over other models. Where such a one is settled and the engine's file is as it was
//! left, its run would find nothing to do, so it is not run.

use watershed_controller::Resource;
use watershed_core::Row;
use watershed_outputs::{Outputs, traces::Made};
use watershed_proto::{ModelSpec, ModelState};

use super::{KIND, schedule, source};
use crate::messages::Proto;

/// Returns true if a settled model may rest while its output exists.
pub(super) fn may_rest(spec: &ModelSpec, state: &ModelState, made: &Made) -> bool {
    is_plain(spec) && is_complete(state) && has_same_surroundings(spec, state, made)
}

/// Returns true if a settled resource of a running instance may rest: it is a model whose output is known to exist.
#[must_use]
pub fn rests(row: &Row, outputs: &Outputs) -> bool {
    if row.kind.as_str() != KIND || !outputs.chosen().holds(row.uid) {
        return false;
    }
    let spec = Resource::spec_of::<Proto<ModelSpec>>(row);
    let state = Resource::state_of::<Proto<ModelState>>(row);
    match (spec, state) {
        (Ok(spec), Ok(Some(state))) => may_rest(&spec.0, &state.0, outputs.made()),
        _ => false,
    }
}

/// Returns true if a model only reads other models, depends on no time, and has no tests, partitions or exports.
fn is_plain(spec: &ModelSpec) -> bool {
    let reads_models_alone =
        spec.sql.is_some() && spec.local_files.is_empty() && source::database(spec).is_none();
    let has_no_times = schedule::from_spec(spec).is_none() && spec.freshness.is_none();
    let is_output_alone = spec.tests.is_empty()
        && spec.partitions.is_none()
        && spec.incremental_state.is_none()
        && spec.export.is_none();
    spec.fault.is_none() && reads_models_alone && has_no_times && is_output_alone
}

/// Returns true if the last build left no work to do.
fn is_complete(state: &ModelState) -> bool {
    let is_built = !state.build_id.is_empty() && state.output_meaning.is_some();
    is_built && state.local_files.is_empty() && !state.unfinished && !state.stale_input
}

/// Returns true if the objects of migrations and connectors that the model reads have not changed since its last build.
fn has_same_surroundings(spec: &ModelSpec, state: &ModelState, made: &Made) -> bool {
    let reads = made.read_by_model(&spec.uses);
    let then = &state.made_inputs;
    let is_same =
        |(name, version): (&String, &[u8; 16])| then.get(name).is_some_and(|then| then.as_slice() == version);
    state.made_files.is_empty()
        && reads.files.is_empty()
        && reads.inputs.len() == then.len()
        && reads.inputs.iter().all(is_same)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use watershed_proto::{
        DataResolver, Fault, FileExport, Fingerprint, Freshness, LocalFileState, LocalFiles, ModelTest,
        Schedule, SqlSource,
    };

    use super::*;

    fn settled() -> (ModelSpec, ModelState) {
        let spec = ModelSpec {
            sql: Some(SqlSource::default()),
            input_connector: "duckdb".into(),
            output_connector: "duckdb".into(),
            refresh_schedule: Some(Schedule {
                ref_update: true,
                ..Schedule::default()
            }),
            ..ModelSpec::default()
        };
        let state = ModelState {
            build_id: "some".into(),
            output_meaning: Some(Fingerprint::default()),
            ..ModelState::default()
        };
        (spec, state)
    }

    #[test]
    fn a_model_over_models_alone_rests() {
        let (spec, state) = settled();
        assert!(may_rest(&spec, &state, &Made::default()));
    }

    #[test]
    fn what_may_change_without_the_controller_is_looked_at() {
        let hourly = Schedule {
            ticker_seconds: 3_600,
            ..Schedule::default()
        };
        let disturb: [&dyn Fn(&mut ModelSpec); 10] = [
            &|spec| spec.sql = None,
            &|spec| spec.local_files.push(LocalFiles::default()),
            &|spec| spec.input_driver = "postgres".into(),
            &|spec| spec.refresh_schedule = Some(hourly.clone()),
            &|spec| spec.freshness = Some(Freshness::default()),
            &|spec| spec.tests.push(ModelTest::default()),
            &|spec| spec.partitions = Some(DataResolver::default()),
            &|spec| spec.incremental_state = Some(DataResolver::default()),
            &|spec| spec.export = Some(FileExport::default()),
            &|spec| spec.fault = Some(Fault::default()),
        ];
        for (number, disturb) in disturb.into_iter().enumerate() {
            let (mut spec, state) = settled();
            disturb(&mut spec);
            assert!(!may_rest(&spec, &state, &Made::default()), "case {number}");
        }
    }

    #[test]
    fn what_is_not_finished_is_looked_at() {
        let disturb: [fn(&mut ModelState); 7] = [
            |state| state.build_id.clear(),
            |state| state.output_meaning = None,
            |state| state.unfinished = true,
            |state| state.stale_input = true,
            |state| {
                drop(
                    state
                        .local_files
                        .insert("x.csv".into(), LocalFileState::default()),
                )
            },
            |state| state.made_files.push("x.csv".into()),
            |state| state.made_inputs = BTreeMap::from([("dollars".to_owned(), vec![1; 16])]),
        ];
        for (number, disturb) in disturb.into_iter().enumerate() {
            let (spec, mut state) = settled();
            disturb(&mut state);
            assert!(!may_rest(&spec, &state, &Made::default()), "case {number}");
        }
    }

    #[test]
    fn what_reads_another_version_of_what_a_connector_begins_with_is_looked_at() {
        let (spec, mut state) = settled();
        let made = Made::default();
        made.begin_with([("duckdb", [1; 16])].into_iter());
        assert!(!may_rest(&spec, &state, &made));
        let reads = made.read_by_model(&[]).inputs.into_iter();
        state.made_inputs = reads.map(|(name, version)| (name, version.to_vec())).collect();
        assert!(may_rest(&spec, &state, &made));
        made.begin_with([("duckdb", [2; 16])].into_iter());
        assert!(!may_rest(&spec, &state, &made));
    }
}
