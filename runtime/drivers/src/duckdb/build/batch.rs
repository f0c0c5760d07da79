//! Batches of small builds that share a transaction.

use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::{BuildPlan, Made, carry_out, note};
use crate::crash::around;
use crate::duckdb::engine::{Engine, Intent, on_blocking_thread};
use crate::duckdb::failure::Aftermath;
use crate::duckdb::gate::Company;
use crate::duckdb::known_names::Claim;
use crate::duckdb::running::{Finished, Running};
use crate::duckdb::transaction::Work;
use crate::olap::{Batch, Build, BuildError, Built, Failed, Failure};

/// Builds an output in a transaction shared with others. Returns `None` if it must be built apart.
///
/// # Cancel safety
/// Dropping the future interrupts the build unless its commit has begun.
pub(super) async fn build(
    engine: &Engine,
    build: &Build,
    claim: &Arc<Claim>,
    cancel: &CancellationToken,
) -> Result<Option<Built>, Failure> {
    let cancel = cancel.child_token();
    let _dropped = cancel.clone().drop_guard();
    let entered = async {
        let turn = engine.parts.gate.enter_to_build(&cancel).await?;
        let turn = (turn, engine.writer_turn(Intent::Change, &cancel).await?);
        Ok((turn, engine.enter(&cancel, Company::Others).await?))
    };
    let make = |held, batch| {
        let engine = engine.clone();
        on_blocking_thread(move || {
            let _held = held;
            make_all(&engine, batch);
        })
    };
    let group = &engine.parts.group;
    group
        .share((build, Arc::clone(claim)), &cancel, entered, make)
        .await
}

/// Runs the builds of a batch in one transaction, repeated without those that fail where a transaction is dear, and sends the
/// results to their callers.
fn make_all(engine: &Engine, mut batch: Batch<Arc<Claim>>) {
    let _change = engine.parts.changes.begin();
    let connection = match engine.checkout() {
        Ok(connection) => connection,
        Err(error) => {
            // Each learns on its own why nothing can be made.
            tracing::debug!(%error, "no connection for a batch of builds");
            return;
        }
    };
    let whole = Work::uninterrupted(&connection).in_lake(engine.lake());
    let mut aftermath = Aftermath::Usable;
    loop {
        if let Err(error) = engine.prepare(&whole, Intent::Change) {
            tracing::debug!(%error, "no batch of builds is made");
            break;
        }
        let (mut made, mut failed) = (Vec::new(), Failed::Whole);
        batch.begin();
        let done = whole.transaction(around!("build"), || {
            let each = make_each(engine, &whole, &mut batch, &mut made, &mut aftermath);
            each.inspect_err(|_| failed = Failed::Last)?;
            note(&whole, &mut made)?;
            match batch.is_cancelled() {
                true => Err(BuildError::from(Failure::Interrupted)),
                false => Ok(()),
            }
        });
        let Err(error) = done else {
            let names = &engine.parts.names;
            let built = made.into_iter().zip(batch.builds()).map(|((plan, made), build)| {
                names.apply(plan.edits(build, &made));
                made.into_built()
            });
            let built: Vec<Built> = built.collect();
            batch.tell(built);
            break;
        };
        let is_usable = whole.aftermath().max(aftermath) == Aftermath::Usable;
        let builds = batch.len();
        if !is_usable || !may_end_otherwise(&error) || !batch.repeat(failed) {
            tracing::debug!(%error, builds, "each build of a batch is made apart");
            break;
        }
        tracing::debug!(%error, builds, "a batch of builds is repeated");
    }
    let aftermath = whole.aftermath().max(aftermath);
    engine.put_back(connection, aftermath);
}

/// Returns false if a batch fails again, whatever it leaves out.
fn may_end_otherwise(error: &BuildError) -> bool {
    !matches!(
        error,
        BuildError::Failed(
            Failure::Fenced
                | Failure::Unknown { .. }
                | Failure::DiskFull { .. }
                | Failure::OutOfMemory { .. }
        )
    )
}

/// Runs the builds of a batch in sequence until the batch is empty.
fn make_each(
    engine: &Engine,
    whole: &Work<'_>,
    batch: &mut Batch<Arc<Claim>>,
    all: &mut Vec<(BuildPlan, Made)>,
    aftermath: &mut Aftermath,
) -> Result<(), BuildError> {
    let connection = whole.connection();
    while let Some((waiting, limit)) = batch.next() {
        let running = Running::start(&waiting.cancel, limit);
        let _finished = Finished(&running);
        let work = Work::new(connection, &running).confined(engine.options());
        let work = work.in_transaction_of(whole);
        running.arm(connection.interrupt());
        let made = waiting.span.in_scope(|| make_one(engine, &work, &waiting.build));
        running.disarm();
        *aftermath = work.aftermath().max(*aftermath);
        all.push(made?);
    }
    Ok(())
}

fn make_one(engine: &Engine, work: &Work<'_>, build: &Build) -> Result<(BuildPlan, Made), BuildError> {
    let started = Instant::now();
    let plan = BuildPlan::new(&engine.names(), build, engine.keeps_trash())?;
    let mut made = carry_out(work, &plan, build)?;
    made.took = started.elapsed();
    Ok((plan, made))
}
