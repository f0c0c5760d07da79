//! Changes of outputs' names and tags, without reading rows.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use watershed_dialect::{DuckDb, Quoting as _};

use super::engine::{Engine, Intent};
use super::failure::is_of_dependents;
use super::failures;
use super::gate::Company;
use super::known_names::Claim;
use super::names::{Edit, Entry, Folded, Names};
use super::partitions;
use super::schema::{self, Before, Left};
use super::transaction::Work;
use crate::crash::around;
use crate::olap::{Failure, Output, OutputKind, Rename, RenameError, Renamed, Tag};

/// The rename of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Step {
    from: Entry,
    tag: Tag,
    to: String,
}

/// The objects to rename, in order.
#[derive(Debug, PartialEq, Eq)]
struct RenamePlan {
    tag: Tag,
    steps: Vec<Step>,
    before: Before,
}

impl RenamePlan {
    fn new(names: &Names, rename: &Rename) -> Result<Self, RenameError> {
        let (from, tag) = names
            .owned_by(rename.uid)
            .find_map(|entry| Some((entry.clone(), entry.tag?)))
            .ok_or(RenameError::Absent)?;
        let mut steps = Vec::new();
        let to = rename.to.clone();
        match names.at(&to) {
            _ if from.name == to => {}
            None => steps.push(Step { from, tag, to }),
            // The engine takes a name that differs in case only for taken, so this one goes by way of another.
            Some(there) if Folded::new(&there.name) == Folded::new(&from.name) => {
                let between = schema::aside_name(rename.uid);
                let moved = Entry {
                    name: between.clone(),
                    ..from.clone()
                };
                steps.push(Step {
                    from,
                    tag,
                    to: between,
                });
                steps.push(Step { from: moved, tag, to });
            }
            Some(there) => match there.tag {
                None => {
                    return Err(RenameError::NameTaken {
                        name: there.name.clone(),
                        kind: there.kind,
                    });
                }
                Some(other) => {
                    let aside = schema::aside_name(other.uid);
                    steps.push(Step {
                        from: there.clone(),
                        tag: other,
                        to: aside,
                    });
                    steps.push(Step { from, tag, to });
                }
            },
        }
        Ok(Self {
            tag,
            steps,
            before: Before::from_names(names, rename.uid),
        })
    }

    fn edits(self) -> Vec<Edit> {
        let moves = self.steps.into_iter().flat_map(|step| {
            let gone = Edit::Remove(Folded::new(&step.from.name));
            [
                gone,
                Edit::Put(Entry {
                    name: step.to,
                    ..step.from
                }),
            ]
        });
        moves.collect()
    }
}

/// The treatment of indexes that people made and that prevent the rename of their table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Indexes {
    Expected,
    NotExpected,
}

/// Renames an output, moving another one of that name out of the way.
pub(super) async fn rename(
    engine: &Engine,
    rename: &Rename,
    cancel: &CancellationToken,
) -> Result<Renamed, RenameError> {
    let claim = Arc::new(engine.claim(rename.uid, Some(&rename.to), None, cancel).await?);
    match try_rename(engine, rename, &claim, Indexes::NotExpected, cancel).await {
        // The engine renames no table that has an index. Tables of ours have none unless somebody made them.
        Err(RenameError::Failed(failure)) if is_of_dependents(&failure) => {
            try_rename(engine, rename, &claim, Indexes::Expected, cancel).await
        }
        done => done,
    }
}

async fn try_rename(
    engine: &Engine,
    rename: &Rename,
    claim: &Arc<Claim>,
    indexes: Indexes,
    cancel: &CancellationToken,
) -> Result<Renamed, RenameError> {
    let this = engine.clone();
    let rename = rename.clone();
    let claim = Arc::clone(claim);
    engine
        .work(cancel, Company::Others, move |work| {
            let _claim = claim;
            let mut tries = 1;
            let (plan, renamed) = loop {
                let plan = RenamePlan::new(&this.names(), &rename)?;
                let renamed =
                    work.transaction(around!("rename"), || carry_out(work, &plan, &rename, indexes));
                match renamed {
                    Ok(renamed) => break (plan, renamed),
                    Err(RenameError::Failed(failure)) if this.tries_again(work, &failure, &mut tries)? => {}
                    Err(error) => return Err(error),
                }
            };
            let mut edits = plan.edits();
            edits.extend(rename.record.is_some().then_some(Edit::Recorded(rename.uid)));
            this.parts.names.apply(edits);
            Ok(renamed)
        })
        .await
}

/// Replaces the tag and record of an output.
pub(super) async fn retag(
    engine: &Engine,
    from: Tag,
    to: Tag,
    record: &[u8],
    cancel: &CancellationToken,
) -> Result<bool, Failure> {
    let claim = engine.claim(from.uid, None, None, cancel).await?;
    let this = engine.clone();
    let record = record.to_vec();
    engine
        .work(cancel, Company::Others, move |work| {
            let _claim = claim;
            let found = this
                .names()
                .owned_by(from.uid)
                .find(|entry| entry.tag == Some(from))
                .cloned();
            let Some(entry) = found else { return Ok(false) };
            let before = Before::from_names(&this.names(), to.uid);
            work.transaction(around!("retag"), || {
                let rows = schema::read_rows(work, from)?;
                schema::write_tag(work, entry.kind, &entry.name, to)?;
                if from.uid != to.uid {
                    schema::delete_record(work, from.uid)?;
                    partitions::give(work, from.uid, to.uid)?;
                }
                let left = Left {
                    tag: to,
                    rows,
                    record: &record,
                    before,
                };
                schema::write_record(work, left)
            })?;
            let (forgotten, recorded) = (Edit::Forgotten(from.uid), Edit::Recorded(to.uid));
            this.parts.names.apply(vec![
                forgotten,
                Edit::Whole(from.uid),
                Edit::Partitioned(to.uid),
                recorded,
                Edit::Put(Entry {
                    tag: Some(to),
                    ..entry
                }),
            ]);
            Ok(true)
        })
        .await
}

/// Lists all outputs with their tags and records.
pub(super) async fn outputs(engine: &Engine, cancel: &CancellationToken) -> Result<Vec<Output>, Failure> {
    let this = engine.clone();
    engine
        .work_to(Intent::List, cancel, Company::Others, move |work| {
            work.reading(|| {
                let known = this
                    .names()
                    .outputs()
                    .map(|(entry, tag)| (entry.clone(), tag))
                    .collect();
                let outputs = schema::read_outputs(work, known)?;
                if outputs.iter().all(|output| output.record.is_some()) {
                    return Ok(outputs);
                }
                // A build may have been committed since the names were noted. What the file says of both is of one moment.
                let mut entries = schema::read_entries(work)?;
                entries.sort_by_key(|entry| entry.name.to_lowercase());
                let tagged = entries
                    .into_iter()
                    .filter_map(|entry| entry.tag.map(|tag| (entry, tag)));
                schema::read_outputs(work, tagged.collect())
            })
        })
        .await
}

fn carry_out(
    work: &Work<'_>,
    plan: &RenamePlan,
    rename: &Rename,
    indexes: Indexes,
) -> Result<Renamed, RenameError> {
    let mut renamed = Renamed::default();
    for step in &plan.steps {
        if indexes == Indexes::Expected && step.from.kind == OutputKind::Table {
            for index in schema::indexes(work, &step.from.name)? {
                work.run(&format!("DROP INDEX main.{}", DuckDb.name(&index)), &[])?;
                renamed.dropped_indexes.push(index);
            }
        }
        schema::rename_object(work, &step.from, step.tag, &step.to)?;
    }
    failures::rename(work, rename.uid, &rename.to)?;
    if let Some(record) = &rename.record {
        let rows = schema::read_rows(work, plan.tag)?;
        let left = Left {
            tag: plan.tag,
            rows,
            record,
            before: plan.before,
        };
        schema::write_record(work, left)?;
    }
    Ok(renamed)
}
