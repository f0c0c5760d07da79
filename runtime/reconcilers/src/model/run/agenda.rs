//! The partitions that a run builds, and the stage that they are built into.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use watershed_core::Error;
use watershed_dialect::ENGINE;
use watershed_drivers::olap::{Common, PartitionPhase, PartitionRun, Statement, Statements as _};
use watershed_proto::{IncrementalStrategy, ModelSpec, PartitionCounts};

use super::{Base, listing, subject::Subject, wanted::Plan};
use crate::model::{
    failure, inputs,
    partitions::{self, Listed, Notes, Stamped},
    triggers::adds_rows,
};

/// The age up to which the stage of an interrupted build is resumed; older rows would be of another time.
const RESUMED_WITHIN: Duration = Duration::from_secs(24 * 60 * 60);

/// The partitions to build in one run.
pub(super) struct Agenda {
    pub(super) stage: String,
    pub(super) due: Vec<Listed>,
    pub(super) notes: Notes,
    /// The number of partitions whose rows are already in the stage.
    pub(super) staged: u64,
}

impl Agenda {
    /// Returns the counts of partitions in the output after the run is published.
    pub(super) fn counts(&self, whole: bool, staged: u64, failed: u64) -> PartitionCounts {
        if whole {
            return PartitionCounts { done: staged, failed };
        }
        let known = self.notes.by_key.iter();
        let mut keys: BTreeMap<&str, bool> = known
            .filter(|(_, run)| run.phase != PartitionPhase::Gone)
            .map(|(key, run)| (key.as_str(), run.phase != PartitionPhase::Failed))
            .collect();
        for one in &self.due {
            keys.insert(&one.partition.key, true);
        }
        let left = keys.values().filter(|good| !**good).count() as u64;
        let failed = failed + left;
        PartitionCounts {
            done: (keys.len() as u64).saturating_sub(failed),
            failed,
        }
    }
}

/// Returns the name of the stage; stages of the same name can be resumed and published by this run.
pub(super) fn stage_name(plan: &Plan, base: &Base) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("watershed 2026 stage of partitions");
    hasher.update(plan.meaning.version.as_bytes());
    hasher.update(&plan.meaning.digest);
    let purpose = match base {
        Base::Rows(_) => "added",
        Base::Nothing { .. } => {
            for input in &plan.inputs {
                hasher.update(input.build.0.as_bytes());
            }
            for (name, version) in &plan.made.inputs {
                hasher.update(name.as_bytes());
                hasher.update(version);
            }
            let asked = plan.asked;
            hasher.update(&asked.full.to_le_bytes());
            hasher.update(&asked.plain.to_le_bytes());
            "whole"
        }
    };
    format!("{purpose} {}", &hasher.finalize().to_hex()[..16])
}

/// Finds the partitions that are due to be built.
pub(super) async fn find(
    subject: Subject<'_>,
    plan: &Plan,
    mut listed: Vec<Listed>,
    stage: String,
    base: &Base,
) -> Result<Agenda, Error> {
    let adds = matches!(base, Base::Rows(_));
    let mut notes = listing::notes(subject).await?;
    let keys: BTreeSet<&str> = listed.iter().map(|one| one.partition.key.as_str()).collect();
    let oldest = subject.context.now().0 - i64::try_from(RESUMED_WITHIN.as_millis()).unwrap_or(i64::MAX);
    // Of another purpose, of another time, or of a partition that is gone.
    let is_stale = |run: &PartitionRun| {
        let is_listed = run.phase != PartitionPhase::Staged || keys.contains(run.partition.key.as_str());
        let is_part = adds || run.at_ms >= oldest && is_listed;
        !(run.stage.is_empty() || run.stage == stage && is_part)
    };
    if notes.by_key.values().any(is_stale) {
        let given_up = subject.stages()?.give_up(subject.uid(), subject.cancel()).await;
        given_up.map_err(|failure| failure::from_failure(&failure))?;
        notes = Notes {
            next: notes.next,
            ..listing::notes(subject).await?
        };
    }
    listing::let_go(subject, &mut notes, &keys).await?;
    if adds {
        let gone = notes
            .asked()
            .into_iter()
            .filter(|run| !keys.contains(run.partition.key.as_str()));
        let gone: Vec<Listed> = gone.map(partitions::from_note).collect();
        listed.extend(gone);
    }
    let looked_at_ns = plan.looked_at_ns;
    let held = listed.into_iter().map(|one| {
        let run = notes.counting(&one.partition.key, &stage, adds);
        let before = run.map(|run| run.partition.watermark.clone());
        (one, before)
    });
    let held = held.collect();
    let stamped = inputs::blocking(&subject.model.root, subject.cancel(), move |root| {
        partitions::restamp(root, held, looked_at_ns)
    });
    let (same, due): (Vec<Stamped>, Vec<Stamped>) = stamped.await?.into_iter().partition(|one| one.same);
    listing::settle(subject, &notes, same).await?;
    let due: Vec<Listed> = due.into_iter().map(|one| one.listed).collect();
    let again: BTreeSet<&str> = due.iter().map(|one| one.partition.key.as_str()).collect();
    let staged = notes
        .by_key
        .iter()
        .filter(|(key, run)| run.phase == PartitionPhase::Staged && !again.contains(key.as_str()));
    Ok(Agenda {
        staged: staged.count() as u64,
        stage,
        due,
        notes,
    })
}

/// Returns the query of the staged rows. Where partitions share rows, those of the later run win.
pub(super) fn published_sql(subject: Subject<'_>, spec: &ModelSpec, staged: bool) -> String {
    if !staged {
        return ENGINE.write(&Statement::Empty(subject.table()));
    }
    let output = spec.incremental_output.clone().unwrap_or_default();
    let common = match output.strategy() {
        _ if !adds_rows(spec) => Common::None,
        IncrementalStrategy::Merge => Common::Key(&output.unique_key),
        IncrementalStrategy::PartitionOverwrite if output.partition_by.is_empty() => Common::ByPartition,
        IncrementalStrategy::PartitionOverwrite => Common::Expressions(&output.partition_by),
        _ => Common::None,
    };
    let uid = subject.uid();
    ENGINE.write(&Statement::Staged { uid, common })
}
