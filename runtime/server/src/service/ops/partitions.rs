//! The partitions of a model.

use watershed_api::documents::{
    PartitionEntry, PartitionState, PartitionTotals, PartitionsDocument, ResourceName, Time,
};
use watershed_api::request::PartitionsRequest;
use watershed_api::{Code, Problem};
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
    let opened = built_engine(place, Access::ReadOnly).await?;
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
    let before = request.page.as_deref().map(place_of).transpose()?;
    let is_meant = |run: &&PartitionRun| {
        let key = run.partition.key.as_str();
        (!request.errored || run.phase == PartitionPhase::Failed)
            && (request.phases.is_empty() || request.phases.contains(&state_of(run.phase)))
            && request.from.as_deref().is_none_or(|from| from <= key)
            && request.to.as_deref().is_none_or(|to| key < to)
            && before.is_none_or(|before| run.number < before)
    };
    // Each run has a number of its own, and one that comes later a higher one: what is built again meanwhile is told first.
    let mut chosen: Vec<&PartitionRun> = runs.iter().filter(is_meant).collect();
    chosen.sort_by_key(|run| std::cmp::Reverse(run.number));
    let limit = usize::try_from(request.limit).unwrap_or(usize::MAX);
    let has_more = chosen.len() > limit;
    chosen.truncate(limit);
    let next = chosen
        .last()
        .filter(|_| has_more)
        .map(|run| run.number.to_string());
    Ok(PartitionsDocument {
        schema: PartitionsDocument::SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        project: project.name.clone(),
        root: project.root.display().to_string(),
        environment: project.environment.clone(),
        resource: ResourceName::new(entry.row.kind.as_str(), entry.row.name.as_str()),
        counts,
        partitions: chosen.into_iter().map(entry_of).collect(),
        next,
    })
}

fn entry_of(run: &PartitionRun) -> PartitionEntry {
    PartitionEntry {
        key: run.partition.key.clone(),
        data: serde_json::from_str(&run.partition.data).unwrap_or_default(),
        watermark: run.partition.watermark.clone(),
        phase: state_of(run.phase),
        ran_at: Time::from_millis(run.at_ms),
        duration_ms: run.took_ms,
        rows: run.rows,
        error: run.error.clone(),
    }
}

fn state_of(phase: PartitionPhase) -> PartitionState {
    match phase {
        PartitionPhase::Done => PartitionState::Done,
        PartitionPhase::Staged => PartitionState::Staged,
        PartitionPhase::Failed => PartitionState::Failed,
        PartitionPhase::Asked => PartitionState::Asked,
        PartitionPhase::Gone => PartitionState::Gone,
    }
}

/// Reads the token of a page: the number of the run that the page before ends with.
fn place_of(token: &str) -> Result<u64, Problem> {
    token.parse().map_err(|_| {
        Problem::new(Code::BadArgument, "the token of the page was not given out here")
            .hint("begin again without a token")
    })
}
