//! Requests to rebuild partitions of models.

use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use watershed_api::request::PartitionChoice;
use watershed_api::{Code, Problem};
use watershed_controller::Uid;
use watershed_drivers::olap::{Failure, Olap, PartitionPhase, PartitionRun};
use watershed_proto::{Message, ModelSpec};
use watershed_reconcilers::model;

use super::problem::engine_problem;
use crate::report::{Entry, names};

/// Marks partitions of models to be built again by the next refresh. Returns the models with such partitions.
///
/// # Errors
/// When a model has no partitions or is not incremental, or a key names none.
pub(super) async fn ask(
    engine: &dyn Olap,
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
        let noted = async {
            let partitions = engine.partitions()?;
            partitions
                .note(uid, notes.collect(), &CancellationToken::new())
                .await
        };
        let noted = noted.await;
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

/// Finds the partition that a person means: by its key, a prefix of the key, or a value in its data.
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

/// Returns the partitioned model with this name.
///
/// # Errors
/// When there is no such model, or the model has none.
pub(crate) fn partitioned<'a>(entries: &'a [Entry], name: &str) -> Result<&'a Entry, Problem> {
    let entry = names::resolve(entries, name)?;
    let spec = ModelSpec::decode(entry.row.spec.as_ref()).unwrap_or_default();
    if entry.row.kind.as_str() == model::KIND && spec.partitions.is_some() {
        return Ok(entry);
    }
    let message = format!("{} \"{}\" has no partitions", entry.row.kind, entry.row.name);
    Err(Problem::new(Code::WrongState, message).hint("a model has some that says `partitions:` in its file"))
}

/// Lists the runs of a model's partitions.
///
/// # Errors
/// When the engine can't be asked.
pub(crate) async fn runs_of(engine: &dyn Olap, uid: Uuid) -> Result<Vec<PartitionRun>, Problem> {
    let runs = async { engine.partitions()?.runs(uid, &CancellationToken::new()).await };
    runs.await.map_err(|failure| refused(&failure))
}

fn refused(failure: &Failure) -> Problem {
    match failure {
        Failure::Open(_) => engine_problem(failure),
        other => Problem::new(Code::Unavailable, other.to_string()),
    }
}
