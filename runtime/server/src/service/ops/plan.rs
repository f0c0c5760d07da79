//! `plan`: the forecast of a run, from the files and the catalog alone.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use watershed_api::documents::{
    PlanDocument, PlanEdit, PlanStep, PlanSummary, PlanWork, ResourceName, SqlChange,
};
use watershed_api::request::PlanRequest;
use watershed_api::{Code, Exit, Problem};
use watershed_controller::resource::Row;
use watershed_controller::{Timestamp, Uid};
use watershed_drivers::olap::{Access, Olap, OutputKind, TrashLimits};
use watershed_outputs::{secrets::Secrets, settings};
use watershed_proto::{Message, ModelSpec, ModelState};
use watershed_reconcilers::forecast::{EditKind, PlannedWork, Step, View, forecast};
use watershed_reconcilers::{model, project_parser};

use crate::instance::{Options, compiled, sandbox};
use crate::out::Out;
use crate::report::document::Project;
use crate::report::explain::Life;
use crate::report::{Entry, health, kinds, resource};
use crate::selection::Evaluate as _;
use crate::service::Principal;
use crate::service::place::{Place, built_engine};
use crate::state_folder::StateFolder;

/// Forecasts the work of a run without running it.
pub(crate) async fn plan(
    place: &impl Place,
    _: &Principal,
    input: PlanRequest,
    _: &Out,
) -> Result<PlanDocument, Problem> {
    // Before the first run there is nothing that the files could differ from.
    let was_run = place.life() == Life::Live || place.catalog().is_some();
    let entries = match was_run {
        true => place.listing().await?.entries,
        false => Vec::new(),
    };
    let engine = built_engine(place, Access::ReadOnly).await;
    let home = match &engine {
        Ok(opened) => Some(opened.engine.home()),
        // Of the engine's file, which is not there yet.
        Err(problem) if problem.code == Code::NotBuilt => Some(String::new()),
        Err(_) => None,
    };
    let engine = engine.ok();
    let asked = Asked {
        options: place.options(),
        state: place.state(),
        project: place.project(),
        secrets: &place.known_secrets(),
        entries: &entries,
        input: &input,
        engine: engine.as_ref().map(|opened| &*opened.engine),
        home,
    };
    let planned = steps(&asked).await;
    if let Some(engine) = engine {
        engine.give_back().await;
    }
    planned
}

/// The input of a plan.
struct Asked<'a> {
    options: &'a Options,
    state: &'a StateFolder,
    project: &'a Project,
    secrets: &'a Secrets,
    /// The resources in the catalog.
    entries: &'a [Entry],
    input: &'a PlanRequest,
    /// The engine, for its trash; none before anything was built.
    engine: Option<&'a dyn Olap>,
    /// The place that models are built in; none if it is not known.
    home: Option<String>,
}

async fn steps(asked: &Asked<'_>) -> Result<PlanDocument, Problem> {
    let compilation = compiled::compile(asked.options, asked.state).await?;
    asked.secrets.learn(compilation.project().variables());
    let rows: Vec<Arc<Row>> = asked.entries.iter().map(|entry| Arc::clone(&entry.row)).collect();
    let refused = |error: watershed_controller::Error| {
        let refusal = Problem::new(Code::ProjectError, error.message.to_string());
        match &error.hint {
            Some(hint) => refusal.hint(hint.as_ref()),
            None => refusal,
        }
    };
    let trash = settings::trash_limits(compilation.project());
    let parsed = project_parser::foresee(&compilation, &rows, asked.secrets).map_err(refused)?;
    let root: Arc<Path> = asked.options.root.as_path().into();
    let sandbox = sandbox(asked.options, asked.state);
    let cancel = CancellationToken::new();
    let view = View {
        root: &root,
        sandbox: sandbox.as_ref(),
        now: Timestamp::from(std::time::SystemTime::now()),
        environment: &asked.options.environment,
        secrets: asked.secrets,
        cancel: &cancel,
        olap: asked.engine,
        home: asked.home.as_deref(),
    };
    let choice = asked.input.selection.chosen();
    let steps = forecast(parsed, &rows, &view, &choice.chosen).await;
    let (steps, chosen) = (steps.map_err(refused)?, choice.made()?);
    Ok(document(asked, &steps, chosen.as_ref(), trash))
}

fn document(
    asked: &Asked<'_>,
    all: &[Step],
    chosen: Option<&BTreeSet<Uid>>,
    trash: TrashLimits,
) -> PlanDocument {
    let keep = u64::try_from(trash.keep.as_millis()).unwrap_or(u64::MAX);
    let kept_ms = (trash.bytes > 0).then_some(keep);
    let listed = all
        .iter()
        .filter(|step| !step.row.hidden && kinds::is_supported(step.row.kind.as_str()));
    let stay = listed.clone().filter(|step| step.edit != Some(EditKind::Deleted));
    let is_chosen = |step: &Step| chosen.is_none_or(|chosen| chosen.contains(&step.row.uid));
    let (resources, selected) = (stay.clone().count(), stay.filter(|step| is_chosen(step)).count());
    // Deletes and renames are not chosen: the catalog follows the files.
    let steps: Vec<PlanStep> = listed
        .filter(
            |step| match is_chosen(step) || step.edit == Some(EditKind::Deleted) {
                true => step.edit.is_some() || !matches!(step.work, PlannedWork::Nothing),
                false => !matches!(step.work, PlannedWork::Nothing),
            },
        )
        .map(|step| told(step, kept_ms, asked.home.as_deref()))
        .collect();
    let mut summary = summary(&steps, resources);
    summary.selected = chosen.is_some().then_some(selected as u64);
    let exit = match () {
        () if summary.failures > 0 => Exit::ProjectError,
        () if asked.input.exit_code && !steps.is_empty() => Exit::WouldChange,
        () => Exit::Converged,
    };
    PlanDocument {
        schema: PlanDocument::SCHEMA.to_owned(),
        project: asked.project.name.clone(),
        environment: asked.project.environment.clone(),
        exit_code: exit.code(),
        steps,
        summary,
    }
}

fn told(step: &Step, kept_ms: Option<u64>, home: Option<&str>) -> PlanStep {
    let name = ResourceName::new(&declared_as(&step.row), step.row.name.as_str());
    let error = match &step.work {
        PlannedWork::Fail(error) => Some(error),
        _ => None,
    };
    let work = match &step.work {
        PlannedWork::Build | PlannedWork::MakeAgain => PlanWork::Build,
        PlannedWork::Restore => PlanWork::Restore,
        PlannedWork::Add => PlanWork::Add,
        PlannedWork::Rename => PlanWork::Rename,
        PlannedWork::Drop => PlanWork::Drop,
        PlannedWork::Check => PlanWork::Check,
        PlannedWork::Fail(error) if health::is_dependency(error) => PlanWork::Blocked,
        PlannedWork::Fail(_) => PlanWork::Failed,
        PlannedWork::Nothing => PlanWork::None,
    };
    let before = step.before.as_ref().map(|row| row.name.as_str());
    let destructive = match work {
        PlanWork::Drop => holds_rows(&step.row),
        PlanWork::Build => step.before.as_deref().is_some_and(|row| gathers_rows(row, home)),
        _ => false,
    };
    PlanStep {
        kind: name.kind,
        renamed_from: before.filter(|before| *before != name.name).map(str::to_owned),
        name: name.name,
        edit: match step.edit {
            None => PlanEdit::None,
            Some(EditKind::Created) => PlanEdit::Created,
            Some(EditKind::Edited) => PlanEdit::Edited,
            Some(EditKind::Renamed) => PlanEdit::Renamed,
            Some(EditKind::Deleted) => PlanEdit::Deleted,
        },
        work,
        reason: step.reason.as_deref().map(str::to_owned),
        destructive,
        kept_ms: kept_ms.filter(|_| destructive),
        estimate_ms: step
            .took_ms
            .filter(|_| matches!(work, PlanWork::Build | PlanWork::Add)),
        error: error.map(resource::failure),
        sql: sql_change(step),
    }
}

fn declared_as(row: &Row) -> String {
    kinds::declared_as(row).unwrap_or_else(|| row.kind.to_string())
}

/// Returns true if a model's output is a table.
fn holds_rows(row: &Row) -> bool {
    model::claim(row).is_some_and(|claim| claim.kind == OutputKind::Table)
}

/// Returns true if a model's output is a table with rows of several builds, in the place that models are built in.
fn gathers_rows(row: &Row, home: Option<&str>) -> bool {
    let state = row
        .state
        .as_deref()
        .and_then(|state| ModelState::decode(state).ok());
    let is_here = |state: &ModelState| home.is_none_or(|home| home == state.result_home);
    holds_rows(row) && state.is_some_and(|state| state.incremental && is_here(&state))
}

fn sql_change(step: &Step) -> Option<SqlChange> {
    let sql = |row: &Row| {
        let spec = ModelSpec::decode(row.spec.as_ref()).unwrap_or_default();
        spec.sql.map(|sql| sql.text).unwrap_or_default()
    };
    if step.row.kind.as_str() != kinds::MODEL || step.edit == Some(EditKind::Deleted) {
        return None;
    }
    let before = step.before.as_deref().map(sql).unwrap_or_default();
    let after = sql(&step.row);
    (!before.is_empty() && before != after).then_some(SqlChange { before, after })
}

fn summary(steps: &[PlanStep], resources: usize) -> PlanSummary {
    let count = |keep: fn(PlanWork) -> bool| steps.iter().filter(|step| keep(step.work)).count() as u64;
    PlanSummary {
        resources: resources as u64,
        builds: count(|work| matches!(work, PlanWork::Build | PlanWork::Add)),
        restores: count(|work| work == PlanWork::Restore),
        renames: count(|work| work == PlanWork::Rename),
        drops: count(|work| work == PlanWork::Drop),
        checks: count(|work| work == PlanWork::Check),
        failures: count(|work| matches!(work, PlanWork::Blocked | PlanWork::Failed)),
        estimate_ms: steps.iter().filter_map(|step| step.estimate_ms).sum(),
        selected: None,
    }
}
