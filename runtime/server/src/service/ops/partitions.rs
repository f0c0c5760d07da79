//! The partitions of a model.

use watershed_api::Problem;
use watershed_api::documents::{
    PartitionEntry, PartitionState, PartitionTotals, PartitionsDocument, ResourceName, Time,
};
use watershed_api::request::PartitionsRequest;
use watershed_drivers::olap::{Access, Olap, PartitionPhase, PartitionRun};

use crate::instance::partitions::{partitioned, runs_of};
use crate::out::Out;
use crate::report::Entry;
use crate::report::document::Project;
use crate::service::Principal;
use crate::service::place::{Place, built_engine};

/// Lists the partitions of a model.
pub(crate) async fn partitions(
    place: &impl Place,
    _: &Principal,
    input: PartitionsRequest,
    _: &Out,
) -> Result<PartitionsDocument, Problem> {
    let entries = place.listing().await?.entries;
    let opened = built_engine(place, Access::ReadOnly)?;
    let listed = list(&*opened.engine, place.project(), &entries, &input).await;
    opened.give_back().await;
    listed
}

async fn list(
    engine: &dyn Olap,
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
