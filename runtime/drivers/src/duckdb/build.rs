//! Building of an output: replacement, statement, checks, tag and record in one transaction.

mod batch;
mod in_lake;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::attach::{attached, hidden};
use super::check::verdicts;
use super::checkpoint::after_change;
use super::disposal::{self, MOST_REPLACED, Throw};
use super::engine::Engine;
use super::failure::{Source, is_of_dependents, not_one};
use super::gate::Company;
use super::hooks;
use super::install::{MOST_EXTENSIONS, install_for};
use super::known_names::Claim;
use super::names::{Edit, Entry, Folded, Names};
use super::partitions;
use super::schema::{self, Before, Left, keyword, qualified};
use super::step;
use super::transaction::Work;
use super::trash;
use crate::crash::around;
use crate::olap::{
    Build, BuildError, Built, Check, Failure, Fate, OutputKind, Step, Tag, Thrown, Trashed, Verdict,
    sole_statement,
};

/// The schema changes around a build's statement, planned from the current objects.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct BuildPlan {
    /// Output of another owner that has the wanted name and must be renamed; none if the name is free.
    aside: Option<(Entry, Tag)>,
    /// Object of the owner with this name to drop first, since REPLACE does not change the kind; none if nothing must
    /// be dropped.
    drop_first: Option<Entry>,
    /// Owner's objects of other names, to drop after the build.
    drop_after: Vec<Entry>,
    /// Owner's tables that move to the trash.
    throw: Vec<Throw>,
    /// Builds whose outputs in the trash are removed to make room.
    outdated: Vec<Uuid>,
    /// Output in the trash that is restored instead of built; none for a build.
    back: Option<Trashed>,
    /// True if the restored output has notes of partitions.
    back_partitioned: bool,
    /// True if the owner's object already has this name and kind.
    stands: bool,
    before: Before,
    /// True if the owner's previous build had partitions, whose notes are removed.
    forgets_partitions: bool,
}

impl BuildPlan {
    /// Plans the schema changes of a build.
    ///
    /// # Errors
    /// [`BuildError::NameTaken`] when an object that is not ours has the name.
    pub(super) fn new(names: &Names, build: &Build, keeps: bool) -> Result<Self, BuildError> {
        let mut plan = Self {
            before: Before::from_names(names, build.tag.uid),
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
        if let Step::TakeBack(back) = build.step {
            let trashed = names.trashed(back).cloned();
            plan.back = Some(trashed.ok_or(BuildError::Absent)?);
            plan.back_partitioned = names.has_partitions(back);
        }
        if keeps && build.replaced == Fate::Trash && !matches!(build.step, Step::Into { .. }) {
            plan.throw_away(names, build);
        }
        Ok(plan)
    }

    /// Plans the move of the owner's tables to the trash, and the removal of the oldest ones there.
    fn throw_away(&mut self, names: &Names, build: &Build) {
        let standing = names.at(&build.name).filter(|_| self.aside.is_none());
        let own = standing.into_iter().chain(&self.drop_after);
        let throw = own.filter_map(|entry| {
            let tag = entry.tag.filter(|_| entry.kind == OutputKind::Table)?;
            Some(Throw {
                entry: entry.clone(),
                tag,
                why: Thrown::Replaced,
                bytes: None,
                protected: false,
                partitioned: names.has_partitions(tag.uid),
            })
        });
        self.throw = throw.collect();
        let goes = |entry: &Entry| self.throw.iter().any(|throw| throw.entry == *entry);
        self.drop_first = self.drop_first.take().filter(|entry| !goes(entry));
        self.drop_after
            .retain(|entry| !self.throw.iter().any(|throw| throw.entry == *entry));
        let back = self.back.as_ref().map(|back| back.tag.build);
        let replaced = names
            .trash()
            .filter(|it| it.tag.uid == build.tag.uid && it.why == Thrown::Replaced);
        let mut replaced: Vec<_> = replaced.filter(|it| Some(it.tag.build) != back).collect();
        replaced.sort_by_key(|it| (it.at_ms, it.tag));
        let outdated = (replaced.len() + self.throw.len()).saturating_sub(MOST_REPLACED);
        let outdated = replaced.into_iter().take(outdated).map(|it| it.tag.build);
        self.outdated = outdated.chain(disposal::doubles(names, &self.throw)).collect();
    }

    /// Returns the changes of the known schema after the commit of the build.
    pub(super) fn edits(self, build: &Build, made: &Made) -> Vec<Edit> {
        let mut edits: Vec<Edit> = trash::gone(&self.outdated).collect();
        for (throw, trashed) in self.throw.iter().zip(&made.thrown) {
            edits.extend(throw.edits(trashed.clone()));
        }
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
        if let Some(back) = &self.back {
            edits.extend(trash::gone(&[back.tag.build]));
            edits.extend(self.back_partitioned.then_some(Edit::Partitioned(made.tag.uid)));
        }
        edits.push(Edit::Put(Entry {
            name: build.name.clone(),
            kind: build.kind,
            tag: Some(made.tag),
        }));
        edits
    }
}

/// Builds an output: together with waiting ones if it may share a transaction, else in a transaction of its own.
pub(super) async fn build(
    engine: &Engine,
    build: &Build,
    cancel: &CancellationToken,
) -> Result<Built, BuildError> {
    let back = match build.step {
        Step::TakeBack(back) => Some(back),
        Step::Replace | Step::Into { .. } => {
            sole_statement(&build.sql).map_err(not_one)?;
            None
        }
    };
    let claim = engine
        .claim(build.tag.uid, Some(&build.name), back, cancel)
        .await?;
    let claim = Arc::new(claim);
    let mut made = match batch::build(engine, build, &claim, cancel).await? {
        Some(built) => Ok(built),
        None => try_build(engine, build, &claim, Company::Others, cancel).await,
    };
    for _ in 0..MOST_EXTENSIONS {
        let Err(BuildError::Failed(failure)) = &mut made else {
            break;
        };
        if !install_for(engine, failure, cancel).await {
            break;
        }
        made = try_build(engine, build, &claim, Company::Others, cancel).await;
    }
    if let Err(error) = &made
        && let BuildError::Failed(Failure::OutOfMemory { limit, peak, .. }) = error.build_error()
    {
        tracing::info!(output = %build.name, limit, peak, "out of memory: building once more, alone");
        made = try_build(engine, build, &claim, Company::Alone, cancel).await;
        made = made.map(|built| Built { attempts: 2, ..built });
    }
    drop(claim);
    let built = made?;
    after_change(engine, cancel).await;
    Ok(built)
}

async fn try_build(
    engine: &Engine,
    build: &Build,
    claim: &Arc<Claim>,
    company: Company,
    cancel: &CancellationToken,
) -> Result<Built, BuildError> {
    let (this, build, claim) = (engine.clone(), build.clone(), Arc::clone(claim));
    // Those with statements around them take turns first: whoever waits for that must not hold up others.
    let turn = engine.parts.gate.turn_of(&build.hooks, cancel).await?;
    let turn = (turn, engine.parts.gate.enter_to_build(cancel).await?);
    engine
        .work(cancel, company, move |work| {
            let _held = (claim, turn);
            let started = Instant::now();
            let made = attached(work, &build.databases, || {
                hooks::around(&this, work, &build.hooks, || {
                    let made = try_here(&this, work, &build);
                    if build.replaced != Fate::Trash || !is_tied(&made) {
                        return made;
                    }
                    // The engine renames no table that has an index. A build has always cost those that people made.
                    let without_trash = Build {
                        replaced: Fate::Gone,
                        ..build.clone()
                    };
                    work.resume_interrupts();
                    try_here(&this, work, &without_trash)
                })
            });
            made.map(|made| Built {
                took: started.elapsed(),
                ..made.into_built()
            })
            .map_err(|error| hidden(&build.databases, error))
        })
        .await
}

/// Builds an output in its own transaction and applies the changes to the known schema.
fn try_here(engine: &Engine, work: &Work<'_>, build: &Build) -> Result<Made, BuildError> {
    let mut tries = 1;
    loop {
        let made = try_once(engine, work, build);
        match &made {
            Err(BuildError::Failed(failure)) if engine.tries_again(work, failure, &mut tries)? => {}
            _ => return made,
        }
    }
}

fn try_once(engine: &Engine, work: &Work<'_>, build: &Build) -> Result<Made, BuildError> {
    let plan = BuildPlan::new(&engine.names(), build, engine.keeps_trash())?;
    let (plan, made) = work.transaction(around!("build"), || {
        let made = carry_out(work, &plan, build)?;
        let mut one = [(plan, made)];
        note(work, &mut one)?;
        let [one] = one;
        Ok::<_, BuildError>(one)
    })?;
    engine.parts.names.apply(plan.edits(build, &made));
    Ok(made)
}

/// Returns true if the build failed because other objects depend on a table that had to be renamed.
fn is_tied(made: &Result<Made, BuildError>) -> bool {
    matches!(made, Err(BuildError::Failed(failure)) if is_of_dependents(failure))
}

/// The result of a build's transaction.
pub(super) struct Made {
    rows: Option<u64>,
    tag: Tag,
    record: Vec<u8>,
    verdicts: Vec<Verdict>,
    /// Time that the engine worked on the build.
    pub(super) took: Duration,
    /// Outputs that moved to the trash, in the order of the plan.
    thrown: Vec<Trashed>,
}

impl Made {
    pub(super) fn into_built(self) -> Built {
        Built {
            rows: self.rows,
            tag: self.tag,
            record: self.record,
            attempts: 1,
            took: self.took,
            verdicts: self.verdicts,
        }
    }

    /// Returns the record that the build leaves beside its output.
    fn left(&self, plan: &BuildPlan) -> Left<'_> {
        Left {
            tag: self.tag,
            rows: self.rows,
            record: &self.record,
            before: plan.before,
        }
    }
}

/// Notes the effects of a transaction's builds beside their outputs: changes of the trash, and records.
pub(super) fn note(work: &Work<'_>, all: &mut [(BuildPlan, Made)]) -> Result<(), Failure> {
    let back = all.iter().filter_map(|(plan, _)| plan.back.as_ref());
    let back: Vec<Uuid> = back.map(|back| back.tag.build).collect();
    trash::forget(work, &back)?;
    let thrown = all.iter_mut().flat_map(|(_, made)| &mut made.thrown);
    trash::note(work, thrown.collect())?;
    let left: Vec<_> = all.iter().map(|(plan, made)| made.left(plan)).collect();
    schema::write_records(work, &left)
}

/// Performs the steps of a build within the transaction, except for notes and records.
pub(super) fn carry_out(work: &Work<'_>, plan: &BuildPlan, build: &Build) -> Result<Made, BuildError> {
    let thrown = make_way(work, plan)?;
    let (rows, brought) = match &build.step {
        Step::Replace => (replace(work, plan, build)?, true),
        Step::TakeBack(_) => (take_back(work, plan, build)?, true),
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
    let record = step::with_columns(work, build, record)?;
    // A table keeps its tag through the trash.
    if plan.back.as_ref().is_none_or(|back| back.tag != tag) {
        schema::write_tag(work, build.kind, &build.name, tag)?;
    }
    if let Some(end) = &build.stage {
        partitions::publish(work, build.tag.uid, end)?;
    } else if plan.forgets_partitions && !plan.back_partitioned {
        partitions::forget(work, build.tag.uid)?;
    }
    Ok(Made {
        rows,
        tag,
        record,
        verdicts,
        took: Duration::ZERO,
        thrown,
    })
}

/// Moves existing objects out of the output's place. Returns the outputs that moved to the trash.
fn make_way(work: &Work<'_>, plan: &BuildPlan) -> Result<Vec<Trashed>, BuildError> {
    if let Some((entry, tag)) = &plan.aside {
        schema::rename_object(work, entry, *tag, &schema::aside_name(tag.uid))?;
    }
    trash::let_go(work, &plan.outdated)?;
    let thrown = plan.throw.iter().map(|throw| throw.carry_out(work));
    let thrown = thrown.collect::<Result<Vec<_>, Failure>>()?;
    if let Some(entry) = &plan.drop_first {
        schema::drop_object(work, entry)?;
    }
    Ok(thrown)
}

/// Restores an output from the trash. Returns its number of rows.
fn take_back(work: &Work<'_>, plan: &BuildPlan, build: &Build) -> Result<Option<u64>, BuildError> {
    let back = plan.back.as_ref().ok_or(BuildError::Absent)?;
    if plan.throw.is_empty() && plan.stands {
        let standing = Entry {
            name: build.name.clone(),
            kind: build.kind,
            tag: Some(build.tag),
        };
        schema::drop_object(work, &standing)?;
    }
    if plan.forgets_partitions {
        // Before those of the one that comes back are its owner's.
        partitions::forget(work, build.tag.uid)?;
    }
    disposal::take_back(work, back, (&build.name, build.tag), plan.back_partitioned)?;
    match back.rows {
        None => Ok(step::count_rows(work, &build.name)?),
        rows => Ok(rows),
    }
}

/// Builds the output as a whole. Returns the number of rows of a table.
fn replace(work: &Work<'_>, plan: &BuildPlan, build: &Build) -> Result<Option<u64>, BuildError> {
    let sql = sole_statement(&build.sql).map_err(not_one)?;
    if let Some(lake) = work.lake() {
        let stands = plan.stands && plan.throw.is_empty();
        return in_lake::replace(work, lake, build, sql, stands);
    }
    // On a line of its own: a comment at its end must not swallow what follows, nor ours what it begins with.
    let prefix = format!(
        "CREATE OR REPLACE {} {} AS\n",
        keyword(build.kind),
        qualified(&build.name)
    );
    let made = step::run_ordered(work, Source { prefix: &prefix, sql }, build.order_by.as_deref())?;
    step::refuse_same_key(work, &build.key, &qualified(&build.name))?;
    Ok(match build.kind {
        OutputKind::Table => schema::count(&made),
        OutputKind::View => None,
    })
}
