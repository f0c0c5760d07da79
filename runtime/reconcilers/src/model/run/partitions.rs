//! Builds in partitions: due partitions are built into a stage, and published together.
//!
//! A run that is cut off goes on where it stood: what is staged for the same purpose counts. Rows are published once, with
//! the tests of the whole output, so that readers see all of a run or nothing of it.

use std::{iter, mem, time::Instant};

use futures::{StreamExt as _, stream};
use tokio_util::sync::CancellationToken;
use watershed_compilers::Scope;
use watershed_core::Error;
use watershed_drivers::olap::{NewColumns, StageEnd};
use watershed_proto::{IncrementalStrategy, ModelSpec};

use super::{
    Base, Done, Run,
    agenda::{self, Agenda},
    build::Publication,
    known_output::{self, KnownOutput},
    listing,
    stager::{Failures, Stager},
    statements,
    subject::Subject,
    wanted::Plan,
};
use crate::model::{failure, triggers::adds_rows};

/// The number of consecutive failures of partitions after which the rest is left for another run.
const MOST_IN_A_ROW: u64 = 20;
/// The largest number of partitions that are built at once.
const MOST_AT_ONCE: usize = 16;

impl Run<'_> {
    pub(super) async fn build_partitions(
        &self,
        mut plan: Plan,
        base: Base,
        known_output: KnownOutput,
    ) -> Result<Done, Error> {
        let subject = self.subject;
        let started = Instant::now();
        let stands = known_output.object.is_some();
        let spec = subject.opened_spec()?;
        let scope = statements::scope_of_build(subject, &spec, &base).await?;
        let opened = subject.outputs().open(subject.cancel()).await;
        opened.map_err(|failure| failure::from_failure(&failure))?;
        known_output::refuse_shared_output(subject).await?;
        let stage = agenda::stage_name(&plan, &base);
        let files = mem::take(&mut plan.partition_files);
        let listed = listing::list(subject, &spec, &scope, files).await?;
        // Where rows are added to, nothing new is no mistake of the author.
        if listed.is_empty() && !matches!(base, Base::Rows(_)) {
            return Err(failure::no_partitions());
        }
        let agenda = agenda::find(subject, &plan, listed, stage, &base).await?;
        let (done, failures) = stage_all(subject, &spec, &scope, &agenda).await?;
        let staged = agenda.staged + done;
        let whole = matches!(base, Base::Nothing { .. });
        // Good rows are not replaced by fewer; where nothing stands, those of an incremental model count by themselves.
        let publishes = failures.count == 0 || !whole || (!stands && adds_rows(&spec) && staged > 0);
        let error = failures.first.map(|(error, data)| {
            failure::failed_partitions(subject.name(), failures.count, &data, &error, publishes)
        });
        if !publishes {
            return Err(error.unwrap_or_else(failure::cancelled));
        }
        let published = Publication {
            sql: agenda::published_sql(subject, &spec, staged > 0),
            end: StageEnd {
                stage: agenda.stage.clone(),
                whole,
            },
            counts: agenda.counts(whole, staged, failures.count + failures.left),
            brings: staged > 0,
            started,
        };
        let published = self.publish(plan, base, known_output.orphan, published).await;
        if published
            .as_ref()
            .is_err_and(|error| *error.code == *failure::COLUMNS_CODE)
        {
            // The stage has the columns of a partition that does not fit, and they stay when its file is put right.
            let given_up = subject.stages()?.give_up(subject.uid(), subject.cancel()).await;
            given_up.map_err(|failure| failure::from_failure(&failure))?;
        }
        let done = published?;
        match error {
            Some(error) => Err(error),
            None => Ok(done),
        }
    }
}

/// Builds all due partitions into the stage. Returns the number of staged partitions, and the failures.
async fn stage_all(
    subject: Subject<'_>,
    spec: &ModelSpec,
    scope: &Scope,
    agenda: &Agenda,
) -> Result<(u64, Failures), Error> {
    let work = |cancel| async move { stage_due(subject, spec, scope, agenda, &cancel).await };
    match subject.within_limit(work).await {
        (Err(_), true) if !subject.context.is_cancelled() => {
            Err(failure::timeout(subject.time_limit().as_secs()))
        }
        (result, _) => result,
    }
}

async fn stage_due(
    subject: Subject<'_>,
    spec: &ModelSpec,
    scope: &Scope,
    agenda: &Agenda,
    cancel: &CancellationToken,
) -> Result<(u64, Failures), Error> {
    let output = spec.incremental_output.clone().unwrap_or_default();
    // Others wait for a table that gets columns.
    let at_once = match subject.columns() {
        NewColumns::Add => 1,
        NewColumns::Refuse | NewColumns::Leave => spec.partitions_concurrency_limit.max(1) as usize,
    };
    let key = match output.strategy() {
        IncrementalStrategy::Merge if spec.incremental => output.unique_key,
        _ => Vec::new(),
    };
    let stager = Stager::new(subject, spec, scope, agenda, key, cancel);
    let (mut done, mut failures) = (0, Failures::default());
    let mut due = agenda.due.iter().cloned().enumerate();
    // The first makes the table that the others come into.
    if agenda.staged == 0
        && let Some(first) = due.next()
    {
        for end in stager.stage(vec![first]).await? {
            done += u64::from(failures.take(end));
        }
        if let (true, Some((error, data))) = (agenda.notes.by_key.is_empty(), &failures.first) {
            return Err(failure::first_partition(data, error.clone()));
        }
    }
    let batches = iter::from_fn(|| stager.next_batch(&mut due));
    let ends = stream::iter(batches)
        .map(|batch| stager.stage(batch))
        .buffer_unordered(at_once.min(MOST_AT_ONCE));
    tokio::pin!(ends);
    while let Some(batch) = ends.next().await {
        for end in batch? {
            done += u64::from(failures.take(end));
        }
        if failures.in_a_row >= MOST_IN_A_ROW {
            break;
        }
    }
    failures.left = (agenda.due.len() as u64).saturating_sub(done + failures.count);
    Ok((done, failures))
}
