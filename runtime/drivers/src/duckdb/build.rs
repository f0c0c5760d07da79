//! Making an output: whatever was there, the statement, the checks, the tag and the record in one transaction.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::check::verdicts;
use super::engine::{Claim, Company, Engine};
use super::failure::{Source, not_one};
use super::names::{Edit, Entry, Folded, Names};
use super::partitions;
use super::schema::{self, Before, keyword, qualified};
use super::step;
use super::work::Work;
use crate::crash::around;
use crate::olap::{Build, BuildError, Built, Check, Failure, OutputKind, Step, Tag, Verdict, sole_statement};

/// The steps besides the statement, given the objects in the schema.
#[derive(Debug, Default, PartialEq, Eq)]
struct Plan {
    /// Another owner's output of that name, to be moved out of the way.
    aside: Option<(Entry, Tag)>,
    /// The owner's object of this name, to be dropped first: REPLACE does not change the kind.
    drop_first: Option<Entry>,
    /// The owner's objects of other names.
    drop_after: Vec<Entry>,
    /// The owner's object has this name and kind already.
    stands: bool,
    before: Before,
    /// The owner was built by partitions before.
    forgets_partitions: bool,
}

impl Plan {
    /// # Errors
    /// [`BuildError::NameTaken`] when an object that is not ours has the name.
    fn new(names: &Names, build: &Build) -> Result<Self, BuildError> {
        let mut plan = Self {
            before: Before::of(names, build.tag.uid),
            forgets_partitions: build.stage.is_none() && names.has_partitions(build.tag.uid),
            ..Self::default()
        };
        match names.at(&build.name) {
            None => {}
            Some(entry) => match entry.tag {
                None => {
                    return Err(BuildError::NameTaken {
                        name: entry.name.clone(),
                        kind: entry.kind,
                    });
                }
                Some(tag) if tag.uid != build.tag.uid => plan.aside = Some((entry.clone(), tag)),
                Some(_) if entry.kind != build.kind => plan.drop_first = Some(entry.clone()),
                Some(_) => plan.stands = true,
            },
        }
        let name = Folded::new(&build.name);
        plan.drop_after = names
            .owned_by(build.tag.uid)
            .filter(|entry| Folded::new(&entry.name) != name)
            .cloned()
            .collect();
        Ok(plan)
    }

    /// Returns the edits of the schema once the plan and the build are committed.
    fn edits(self, build: &Build, made: &Made) -> Vec<Edit> {
        let mut edits = Vec::new();
        if let Some((entry, tag)) = self.aside {
            let name = schema::aside_name(tag.uid);
            edits.push(Edit::Put(Entry { name, ..entry }));
        }
        edits.extend(
            self.drop_after
                .iter()
                .map(|entry| Edit::Remove(Folded::new(&entry.name))),
        );
        edits.push(Edit::Recorded(made.tag.uid));
        edits.push(match self.forgets_partitions {
            true => Edit::Whole(made.tag.uid),
            false => Edit::Unstaged(made.tag.uid),
        });
        edits.push(Edit::Put(Entry {
            name: build.name.clone(),
            kind: build.kind,
            tag: Some(made.tag),
        }));
        edits
    }
}

impl Engine {
    pub(super) async fn build_output(
        &self,
        build: &Build,
        cancel: &CancellationToken,
    ) -> Result<Built, BuildError> {
        sole_statement(&build.sql).map_err(not_one)?;
        let claim = Arc::new(self.claim(build.tag.uid, Some(&build.name), cancel).await?);
        let mut attempts = 1;
        let mut made = self.try_build(build, &claim, Company::Others, cancel).await;
        if let Err(BuildError::Failed(Failure::OutOfMemory { limit, peak, .. })) = &made {
            tracing::info!(output = %build.name, limit, peak, "out of memory: building once more, alone");
            attempts += 1;
            made = self.try_build(build, &claim, Company::Alone, cancel).await;
        }
        drop(claim);
        let made = made?;
        let built = Built {
            rows: made.rows,
            tag: made.tag,
            record: made.record,
            attempts,
            verdicts: made.verdicts,
        };
        self.after_change(cancel).await;
        Ok(built)
    }

    async fn try_build(
        &self,
        build: &Build,
        claim: &Arc<Claim>,
        company: Company,
        cancel: &CancellationToken,
    ) -> Result<Made, BuildError> {
        let engine = self.clone();
        let build = build.clone();
        let claim = Arc::clone(claim);
        self.work(cancel, company, move |work| {
            let _claim = claim;
            let plan = Plan::new(&engine.names(), &build)?;
            let made = work.transaction(around!("build"), || carry_out(work, &plan, &build))?;
            engine.apply(plan.edits(&build, &made));
            Ok(made)
        })
        .await
    }
}

/// The output after a transaction.
struct Made {
    rows: Option<u64>,
    tag: Tag,
    record: Vec<u8>,
    verdicts: Vec<Verdict>,
}

/// The steps within the transaction.
fn carry_out(work: &Work<'_>, plan: &Plan, build: &Build) -> Result<Made, BuildError> {
    let (rows, brought) = match &build.step {
        Step::Replace => (replace(work, plan, build)?, true),
        Step::Into { .. } if plan.stands => {
            let brought = step::put_rows(work, build)?;
            (step::count_rows(work, &build.name)?, brought)
        }
        Step::Into { .. } => return Err(BuildError::Absent),
    };
    let verdicts = verdicts(work, &build.checks)?;
    let undone = |(verdict, check): (&Verdict, &Check)| verdict.undoes(check.gravity);
    if verdicts.iter().zip(&build.checks).any(undone) {
        return Err(BuildError::Undone(verdicts));
    }
    for entry in &plan.drop_after {
        schema::drop_object(work, entry)?;
    }
    let (tag, record) = match &build.unless_rows {
        Some((before, record)) if !brought => {
            let tag = Tag {
                build: *before,
                ..build.tag
            };
            (tag, record)
        }
        _ => (build.tag, &build.record),
    };
    let record = step::with_state(work, build.state.as_ref(), record)?;
    schema::write_tag(work, build.kind, &build.name, tag)?;
    schema::write_record(work, tag, rows, &record, plan.before)?;
    if let Some(end) = &build.stage {
        partitions::publish(work, build.tag.uid, end)?;
    } else if plan.forgets_partitions {
        partitions::forget(work, build.tag.uid)?;
    }
    Ok(Made {
        rows,
        tag,
        record,
        verdicts,
    })
}

/// Makes the output whole. Returns the number of rows of a table.
fn replace(work: &Work<'_>, plan: &Plan, build: &Build) -> Result<Option<u64>, BuildError> {
    if let Some((entry, tag)) = &plan.aside {
        schema::rename_object(work, entry, *tag, &schema::aside_name(tag.uid))?;
    }
    if let Some(entry) = &plan.drop_first {
        schema::drop_object(work, entry)?;
    }
    let sql = sole_statement(&build.sql).map_err(not_one)?;
    // On a line of its own: a comment at its end must not swallow what follows, nor ours what it begins with.
    let prefix = format!(
        "CREATE OR REPLACE {} {} AS\n",
        keyword(build.kind),
        qualified(&build.name)
    );
    let made = work.run_theirs(Source { prefix: &prefix, sql })?;
    step::refuse_same_key(work, &build.key, &qualified(&build.name))?;
    Ok(match build.kind {
        OutputKind::Table => schema::count(&made),
        OutputKind::View => None,
    })
}
