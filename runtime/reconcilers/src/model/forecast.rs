//! The forecast for one model: the decision a run would make, computed from the catalog alone.
//!
//! The output is taken to stand as the catalog says, and what the trash gives back instead of a build is looked up there. So is
//! what stands in a place that models are built in again. What was dropped or replaced by hand is seen by a run only.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use watershed_core::{Error, Ref, RefView, Row, Timestamp, Uid};
use watershed_drivers::files;
use watershed_drivers::{
    olap::{self, Olap, Trashed},
    sandbox::Sandbox,
};
use watershed_outputs::{secrets::Secrets, selection::Chosen, traces::Made};
use watershed_proto::{Message, ModelSpec, ModelState, OutputKind};

use super::{
    columns::Columns,
    data_tests::Tests,
    export, failure,
    fit::{self, Candidate, Fit},
    inputs::{self, Inputs},
    objects,
    plan::{self, Again, BuildReason, Decision, ExistingOutput, Object, Output, Triggers, Wanted, plan},
    record::{BuildId, Meaning, Record, Refreshes, Shape},
    statement,
    triggers::{adds_rows, has_left, is_protected, on_edit, triggers},
};

/// The longest wait of a forecast for the engine's file, which another program may hold.
const LONGEST_READ: Duration = Duration::from_secs(2);

/// The inputs of a forecast.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The folder of the project.
    pub root: &'a Arc<Path>,
    /// The folders that the project may access; none without confinement.
    pub sandbox: Option<&'a Sandbox>,
    /// The time of the run.
    pub now: Timestamp,
    /// The name of the run's environment.
    pub environment: &'a str,
    /// The values of variables, for paths of exported files.
    pub secrets: &'a Secrets,
    /// The token that cancels the forecast.
    pub cancel: &'a CancellationToken,
    /// The engine, whose trash is read when something would be built; none if it does not exist yet.
    pub olap: Option<&'a dyn Olap>,
    /// The place that models are built in, as [`Olap::home`] tells it; none if it is not known.
    pub home: Option<&'a str>,
}

/// The inputs that the forecasts of all models share.
pub(crate) struct Sky<'a> {
    pub(crate) view: &'a View<'a>,
    /// The objects that migrations and connectors created in the engine.
    pub(crate) made: &'a Made,
    /// The selection of resources that the run is for.
    pub(crate) chosen: &'a Chosen,
    /// The resources that exist after the run.
    pub(crate) owners: HashSet<Uid>,
    /// The contents of the trash, read on first use.
    trash: OnceCell<Vec<Trashed>>,
    /// The records of the outputs in the engine, read on first use.
    standing: OnceCell<HashMap<Uuid, Record>>,
}

/// The forecast for a model.
pub(crate) struct Foreseen {
    pub(crate) decision: Decision,
    /// The state after the run, as far as dependents read it.
    pub(crate) state: ModelState,
    /// The use of a trashed output, if one is restored.
    pub(crate) restored: Option<Fit>,
    /// The path to which rows are exported though nothing is built, if any.
    pub(crate) writes: Option<String>,
    /// The time that the last build took, in milliseconds; none before the first.
    pub(crate) took_ms: Option<u64>,
    /// The spec of the model.
    pub(crate) spec: ModelSpec,
    /// The failed ref whose last good output the model is built from, if there is one.
    pub(crate) failed: Option<Ref>,
    /// True if the output stays as it is, and the model's tests are not those that it passed.
    pub(crate) has_other_tests: bool,
}

/// Returns the decision that a run would make about a model.
///
/// # Errors
/// What the run would fail with before it builds.
pub(crate) async fn foresee(sky: &Sky<'_>, row: &Row, refs: &[RefView]) -> Result<Foreseen, Error> {
    let spec = ModelSpec::decode(row.spec.as_ref()).unwrap_or_default();
    if let Some(fault) = &spec.fault {
        return Err(failure::from_fault(fault));
    }
    let Inputs { all: reads, failed } = inputs::from_refs(&spec, refs, sky.chosen)?;
    let state = row
        .state
        .as_deref()
        .and_then(|state| ModelState::decode(state).ok());
    let record = state.as_ref().and_then(Record::from_state);
    let home = state.as_ref().map(|state| state.result_home.as_str());
    let is_elsewhere = record.is_some() && sky.view.home.is_some_and(|now| home != Some(now));
    let standing = match is_elsewhere {
        true => sky.standing(row.uid.0).await,
        false => None,
    };
    let has_moved = is_elsewhere && standing.is_none();
    let answered = record.as_ref().map(|record| record.answered);
    let standing = standing.map(|standing| Record {
        answered: answered.map_or(standing.answered, |answered| standing.answered.or_later(answered)),
        ..standing
    });
    let record = standing.or(record);
    let made = sky.made.read_by_model(&spec.uses);
    let seen = record
        .as_ref()
        .map(|record| record.files.clone())
        .unwrap_or_default();
    let patterns = inputs::patterns(&spec, &made.files);
    let patterns = (patterns, spec.sql.is_some());
    let found = inputs::local_files(sky.view.root, sky.view.sandbox, patterns, seen, sky.view.cancel).await?;
    let mut files = found.files;
    files.extend(objects::remembered(record.as_ref()));
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let meaning = spec.output_meaning.as_ref().and_then(Meaning::from_proto);
    let meaning =
        meaning.ok_or_else(|| Error::permanent("spec-incomplete", "a spec without a fingerprint"))?;
    let table = statement::table(&spec, row.name.as_str());
    let asked = Refreshes {
        plain: row.refreshes.plain,
        full: row.refreshes.full,
    };
    let wanted = |record: &Record| Wanted {
        table,
        shape: statement::shape(&spec),
        meaning: &meaning,
        inputs: &reads,
        files: &files,
        made: &made.inputs,
        asked: match failed {
            Some(_) => record.answered,
            None => asked,
        },
        triggers: match failed {
            Some(_) => Triggers::NONE,
            None => triggers(&spec, record, sky.view.now),
        },
        incremental: adds_rows(&spec),
        on_edit: on_edit(&spec, record),
        protected: is_protected(&spec, record),
        left: has_left(record),
        // A plan asks no store: it says what is built if there is something new.
        asked_store: false,
        text_alone: statement::is_text_alone(&spec),
    };
    // What is told by another version's rules is not compared here: the run knows the text.
    let refingerprinted = |record: &Record| (record.meaning.version != meaning.version).then_some(&meaning);
    let decision = match &record {
        None => Decision::Build(BuildReason::NeverBuilt),
        Some(record) => {
            let output = Output {
                record,
                refingerprinted: refingerprinted(record),
                object: match has_moved {
                    true => Object::Elsewhere,
                    false => Object::Present {
                        table: &record.location.name,
                        shape: record.shape,
                        build: record.tagged,
                    },
                },
            };
            plan(&wanted(record), &ExistingOutput::Own(output))
        }
    };
    if let Some(failed) = failed.as_ref().filter(|_| !plan::is_for_edit(&decision)) {
        return Err(failure::failed_ref(failed));
    }
    let of_trash = match (&decision, statement::shape(&spec)) {
        (Decision::Build(_), Shape::Table) => sky.in_trash(row.uid.0, table).await,
        _ => Vec::new(),
    };
    let known = match of_trash.is_empty() {
        true => Vec::new(),
        false => {
            let now_ns = files::nanos(SystemTime::now());
            inputs::with_contents(sky.view.root, files.clone(), now_ns, sky.view.cancel).await?
        }
    };
    let approvals = record.as_ref().map_or(0, |record| record.approvals);
    let restored = of_trash.into_iter().find_map(|(trashed, is_own, has_owner)| {
        let record = fit::record(trashed, is_own, has_owner)?;
        let candidate = Candidate {
            record: &record,
            refingerprinted: refingerprinted(&record),
            build: BuildId(trashed.tag.build),
            is_own,
            due: triggers(&spec, &record, sky.view.now).due,
        };
        let wanted = Wanted {
            files: &known,
            ..wanted(&record)
        };
        let fit = fit::fit(&wanted, &candidate, approvals)?;
        Some((fit, record))
    });
    let keeps = matches!(
        decision,
        Decision::Nothing
            | Decision::Rename { .. }
            | Decision::Accept
            | Decision::MakeViewAgain(Again::InputRenamed)
    );
    let kept = match &restored {
        Some((Fit::Same, record)) => Some(record.build),
        _ if keeps => record.as_ref().map(|record| record.build),
        // What is recorded of its files is not told here.
        _ if statement::shape(&spec) == Shape::View && files.is_empty() => {
            Some(BuildId::for_view(&meaning, &reads, &[], &made, asked))
        }
        _ => None,
    };
    // Whatever is built may come to have others.
    let columns = match &restored {
        Some((Fit::Same, record)) => record.columns,
        _ if keeps || matches!(decision, Decision::Follow(_)) => record.as_ref().and_then(|it| it.columns),
        _ => None,
    };
    let took_ms = record.as_ref().map(|record| record.took_ms);
    let kind = match statement::shape(&spec) {
        Shape::Table => OutputKind::Table,
        Shape::View => OutputKind::View,
    };
    let writes = match (&decision, &state, &spec.export) {
        (Decision::Nothing, Some(state), Some(export)) => {
            let variables = sky.view.secrets.open(&spec.variables)?;
            let scope = statement::scope(variables, row.name.as_str(), sky.view.environment);
            export::due(export, state, &scope, (sky.view.root, sky.view.sandbox))?
        }
        _ => None,
    };
    let has_other_tests = match (&decision, &record) {
        (Decision::Nothing, Some(record)) => {
            let (name, secrets) = (row.name.as_str(), sky.view.secrets);
            let tests = Tests::for_model(&spec, name, sky.view.environment, &row.paths, secrets)?;
            !tests.reading(sky.made).passed_for(record)
        }
        _ => false,
    };
    // As others read it: the name of the output, which build it is, and its columns.
    let state = ModelState {
        result_table: table.to_owned(),
        result_kind: kind.into(),
        build_id: kept.unwrap_or_else(BuildId::fresh).to_string(),
        output_meaning: Some(meaning.to_proto()),
        columns: Columns::to_bytes(columns),
        ..state.unwrap_or_default()
    };
    Ok(Foreseen {
        decision,
        state,
        writes,
        took_ms,
        restored: restored.map(|(fit, _)| fit),
        spec,
        failed,
        has_other_tests,
    })
}

impl<'a> Sky<'a> {
    pub(crate) fn new(view: &'a View<'a>, made: &'a Made, chosen: &'a Chosen) -> Self {
        Self {
            view,
            made,
            chosen,
            owners: HashSet::new(),
            trash: OnceCell::new(),
            standing: OnceCell::new(),
        }
    }

    /// Returns the record of a resource's output that stands in the engine, whatever the catalog says.
    async fn standing(&self, uid: Uuid) -> Option<Record> {
        let records = self.standing.get_or_init(|| self.read_outputs()).await;
        records.get(&uid).cloned()
    }

    /// Reads the records of all outputs; empty if they can't be read in time.
    async fn read_outputs(&self) -> HashMap<Uuid, Record> {
        let Some(olap) = self.view.olap else {
            return HashMap::new();
        };
        let cancel = self.view.cancel.child_token();
        let outputs = match tokio::time::timeout(LONGEST_READ, olap.outputs(&cancel)).await {
            Ok(Ok(outputs)) => outputs,
            Ok(Err(failure)) => {
                tracing::debug!(%failure, "the outputs were not read");
                Vec::new()
            }
            Err(_) => Vec::new(),
        };
        let record = |output: olap::Output| {
            let record = Record::decode(output.record.as_deref()?)?;
            let rows = output.rows;
            Some((output.tag.uid, Record { rows, ..record }))
        };
        outputs.into_iter().filter_map(record).collect()
    }

    /// Returns the trashed outputs that a resource may take, latest first, each with true if it is the resource's own
    /// and true if it has an owner.
    async fn in_trash(&self, uid: Uuid, name: &str) -> Vec<(&Trashed, bool, bool)> {
        let trash = self.trash.get_or_init(|| self.read_trash()).await.iter().rev();
        let concerns = trash.filter(|it| it.concerns(uid, name));
        concerns
            .map(|it| (it, it.tag.uid == uid, self.owners.contains(&Uid(it.tag.uid))))
            .collect()
    }

    /// Reads the trash, latest last; empty if it can't be read in time.
    async fn read_trash(&self) -> Vec<Trashed> {
        let Some(trash) = self.view.olap.and_then(|olap| olap.trash().ok()) else {
            return Vec::new();
        };
        let cancel = self.view.cancel.child_token();
        match tokio::time::timeout(LONGEST_READ, trash.list(&cancel)).await {
            Ok(Ok(trash)) => trash,
            Ok(Err(failure)) => {
                tracing::debug!(%failure, "the trash was not read");
                Vec::new()
            }
            Err(_) => Vec::new(),
        }
    }
}
