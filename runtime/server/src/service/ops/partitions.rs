//! The partitions of a model: listed, and asked for again.

use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use watershed_api::documents::{
    PartitionEntry, PartitionState, PartitionTotals, PartitionsDocument, ResourceName, Time,
};
use watershed_api::request::{PartitionChoice, PartitionsRequest};
use watershed_api::{Code, Problem};
use watershed_controller::Uid;
use watershed_drivers::duckdb::{Access, Engine};
use watershed_drivers::olap::{Failure, Olap as _, PartitionPhase, PartitionRun};
use watershed_proto::{Message, ModelSpec};
use watershed_reconcilers::model;

use crate::report::document::Project;
use crate::report::{Entry, names};
use crate::service::place::{Place, built_engine};
use crate::service::{Out, Principal};

/// Lists the partitions of a model.
pub(crate) async fn partitions(
    place: &impl Place,
    _: &Principal,
    input: PartitionsRequest,
    _: &Out,
) -> Result<PartitionsDocument, Problem> {
    let entries = place.listing().await?.entries;
    let opened = built_engine(place, Access::ReadOnly)?;
    let listed = list(&opened.engine, place.project(), &entries, &input).await;
    opened.give_back().await;
    listed
}

async fn list(
    engine: &Engine,
    project: &Project,
    entries: &[Entry],
    request: &PartitionsRequest,
) -> Result<PartitionsDocument, Problem> {
    let entry = partitioned(entries, &request.name)?;
    let runs = runs_of(engine, entry.row.uid.0).await?;
    let mut counts = PartitionTotals::default();
    for run in &runs {
        let count = match run.phase {
            PartitionPhase::Done => &mut counts.done,
            PartitionPhase::Staged => &mut counts.staged,
            PartitionPhase::Failed => &mut counts.failed,
            PartitionPhase::Asked => &mut counts.asked,
            PartitionPhase::Gone => &mut counts.gone,
        };
        *count += 1;
    }
    let limit = usize::try_from(request.limit).unwrap_or(usize::MAX);
    let chosen = runs.iter().rev();
    let chosen = chosen.filter(|run| !request.errored || run.phase == PartitionPhase::Failed);
    Ok(PartitionsDocument {
        schema: PartitionsDocument::SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        project: project.name.clone(),
        root: project.root.display().to_string(),
        environment: project.environment.clone(),
        resource: ResourceName::new(entry.row.kind.as_str(), entry.row.name.as_str()),
        counts,
        partitions: chosen.take(limit).map(entry_of).collect(),
    })
}

/// Notes that partitions of models are to be built again by the next refresh. Returns the models that have such.
///
/// # Errors
/// When a model has no partitions or is not incremental, or a key names none.
pub(crate) async fn ask(
    engine: &Engine,
    entries: &[Entry],
    typed: &[String],
    choice: &PartitionChoice,
) -> Result<Vec<Uid>, Problem> {
    let mut asked = Vec::new();
    for name in typed {
        let entry = partitioned(entries, name)?;
        let spec = ModelSpec::decode(entry.row.spec.as_ref()).unwrap_or_default();
        if !spec.incremental {
            let message = format!(
                "\"{}\" is not incremental: all its partitions are built together",
                entry.row.name
            );
            return Err(Problem::new(Code::WrongState, message).hint("`watershed refresh NAME` builds it"));
        }
        let uid = entry.row.uid.0;
        let runs = runs_of(engine, uid).await?;
        let next = runs.iter().map(|run| run.number.saturating_add(1)).max();
        let chosen = chosen(&runs, choice, name)?;
        if chosen.is_empty() {
            continue;
        }
        let notes = chosen.into_iter().zip(next.unwrap_or_default()..);
        let notes = notes.map(|(run, number)| PartitionRun {
            phase: PartitionPhase::Asked,
            stage: String::new(),
            number,
            ..run.clone()
        });
        let noted = engine
            .note_partitions(uid, notes.collect(), &CancellationToken::new())
            .await;
        noted.map_err(|failure| refused(&failure))?;
        asked.push(entry.row.uid);
    }
    Ok(asked)
}

fn chosen<'a>(
    runs: &'a [PartitionRun],
    choice: &PartitionChoice,
    name: &str,
) -> Result<Vec<&'a PartitionRun>, Problem> {
    match choice {
        PartitionChoice::Errored => {
            let failed = runs.iter().filter(|run| run.phase == PartitionPhase::Failed);
            Ok(failed.collect())
        }
        PartitionChoice::Keys(keys) => keys.iter().map(|key| meant(runs, key, name)).collect(),
    }
}

/// The partition that a person means: by its key, the beginning of it, or a value in its data.
fn meant<'a>(runs: &'a [PartitionRun], typed: &str, name: &str) -> Result<&'a PartitionRun, Problem> {
    let by_key: Vec<_> = runs
        .iter()
        .filter(|run| run.partition.key.starts_with(typed))
        .collect();
    let found = match by_key.is_empty() {
        false => by_key,
        true => runs.iter().filter(|run| has_value(run, typed)).collect(),
    };
    match found.as_slice() {
        [one] => Ok(one),
        [] => Err(Problem::new(
            Code::UnknownName,
            format!("\"{name}\" has no partition \"{typed}\""),
        )
        .hint(format!("`watershed partitions {name}` lists them"))),
        several => Err(Problem::new(
            Code::AmbiguousName,
            format!("\"{typed}\" means {} partitions of \"{name}\"", several.len()),
        )
        .hint("name one by its key")),
    }
}

fn has_value(run: &PartitionRun, typed: &str) -> bool {
    let data: serde_json::Value = serde_json::from_str(&run.partition.data).unwrap_or_default();
    let is_it = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => text == typed,
        other => typed
            .parse()
            .is_ok_and(|typed: serde_json::Value| typed == *other),
    };
    data.as_object().is_some_and(|fields| fields.values().any(is_it))
}

/// The model of a name, which has partitions.
fn partitioned<'a>(entries: &'a [Entry], name: &str) -> Result<&'a Entry, Problem> {
    let entry = names::resolve(entries, name)?;
    let spec = ModelSpec::decode(entry.row.spec.as_ref()).unwrap_or_default();
    if entry.row.kind.as_str() == model::KIND && spec.partitions.is_some() {
        return Ok(entry);
    }
    let message = format!("{} \"{}\" has no partitions", entry.row.kind, entry.row.name);
    Err(Problem::new(Code::WrongState, message).hint("a model has some that says `partitions:` in its file"))
}

async fn runs_of(engine: &Engine, uid: Uuid) -> Result<Vec<PartitionRun>, Problem> {
    let runs = engine.partitions(uid, &CancellationToken::new()).await;
    runs.map_err(|failure| refused(&failure))
}

fn refused(failure: &Failure) -> Problem {
    match failure {
        Failure::Open(_) => super::care::problem(failure),
        other => Problem::new(Code::Unavailable, other.to_string()),
    }
}

fn entry_of(run: &PartitionRun) -> PartitionEntry {
    PartitionEntry {
        key: run.partition.key.clone(),
        data: serde_json::from_str(&run.partition.data).unwrap_or_default(),
        watermark: run.partition.watermark.clone(),
        phase: match run.phase {
            PartitionPhase::Done => PartitionState::Done,
            PartitionPhase::Staged => PartitionState::Staged,
            PartitionPhase::Failed => PartitionState::Failed,
            PartitionPhase::Asked => PartitionState::Asked,
            PartitionPhase::Gone => PartitionState::Gone,
        },
        ran_at: Time::from_millis(run.at_ms),
        duration_ms: run.took_ms,
        rows: run.rows,
        error: run.error.clone(),
    }
}
