//! Dropping of outputs: views are deleted, tables move to the trash.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use watershed_dialect::{DuckDb, Quoting as _};

use super::checkpoint::after_change;
use super::disposal::{self, Throw};
use super::engine::Engine;
use super::failure::is_of_dependents;
use super::failures;
use super::gate::Company;
use super::known_names::Claim;
use super::names::{Edit, Entry, Folded};
use super::partitions;
use super::rename::Indexes;
use super::schema;
use super::transaction::Work;
use super::trash;
use crate::crash::around;
use crate::olap::{Dropped, Failure, Guard, OutputKind, Part, Thrown, Trashed};

/// The plan for dropping all objects of an owner.
struct DropPlan {
    throw: Vec<Throw>,
    drop: Vec<Entry>,
    /// Builds whose outputs in the trash are removed to make room.
    outdated: Vec<Uuid>,
    partitioned: bool,
}

/// Drops all objects of an owner.
pub(super) async fn drop_output(
    engine: &Engine,
    uid: Uuid,
    guard: Guard,
    cancel: &CancellationToken,
) -> Result<Dropped, Failure> {
    let claim = Arc::new(engine.claim(uid, None, None, cancel).await?);
    let dropped = match try_drop(engine, uid, guard, Indexes::NotExpected, &claim, cancel).await {
        Err(failure) if is_of_dependents(&failure) => {
            try_drop(engine, uid, guard, Indexes::Expected, &claim, cancel).await
        }
        dropped => dropped,
    }?;
    drop(claim);
    if dropped == Dropped::Done {
        after_change(engine, cancel).await;
    }
    Ok(dropped)
}

async fn try_drop(
    engine: &Engine,
    uid: Uuid,
    guard: Guard,
    indexes: Indexes,
    claim: &Arc<Claim>,
    cancel: &CancellationToken,
) -> Result<Dropped, Failure> {
    let (this, claim) = (engine.clone(), Arc::clone(claim));
    engine
        .work(cancel, Company::Others, move |work| {
            let _claim = claim;
            let mut tries = 1;
            loop {
                match drop_once(&this, work, uid, guard, indexes) {
                    Err(failure) if this.tries_again(work, &failure, &mut tries)? => {}
                    dropped => return dropped,
                }
            }
        })
        .await
}

fn drop_once(
    this: &Engine,
    work: &Work<'_>,
    uid: Uuid,
    guard: Guard,
    indexes: Indexes,
) -> Result<Dropped, Failure> {
    let mut plan = plan_of_drop(this, uid, guard);
    if plan.throw.is_empty() && plan.drop.is_empty() && !plan.partitioned {
        return Ok(Dropped::Nothing);
    }
    if guard == Guard::Held
        && let Some(refused) = find_room(this, work, &mut plan)?
    {
        return Ok(refused);
    }
    let thrown = work.transaction(around!("drop"), || plan.carry_out(work, uid, indexes))?;
    let found = !(plan.throw.is_empty() && plan.drop.is_empty());
    this.parts.names.apply(plan.edits(uid, thrown));
    Ok(if found { Dropped::Done } else { Dropped::Nothing })
}

fn plan_of_drop(engine: &Engine, uid: Uuid, guard: Guard) -> DropPlan {
    let keeps = engine.keeps_trash();
    let names = engine.names();
    let partitioned = names.has_partitions(uid);
    let (mut throw, mut drop) = (Vec::new(), Vec::new());
    for entry in names.owned_by(uid) {
        match entry.tag {
            Some(tag)
                if entry.kind == OutputKind::Table
                    && (keeps || guard == Guard::Held && engine.guarantees().has(Part::Trash)) =>
            {
                throw.push(Throw {
                    entry: entry.clone(),
                    tag,
                    why: Thrown::Deleted,
                    bytes: None,
                    protected: guard == Guard::Held,
                    partitioned,
                });
            }
            _ => drop.push(entry.clone()),
        }
    }
    DropPlan {
        outdated: disposal::doubles(&names, &throw),
        throw,
        drop,
        partitioned,
    }
}

/// Measures the dropped tables. Fails if the trash has no room for them without removing protected tables.
fn find_room(engine: &Engine, work: &Work<'_>, plan: &mut DropPlan) -> Result<Option<Dropped>, Failure> {
    if plan.throw.is_empty() {
        return Ok(None);
    }
    let mut needs = 0;
    for throw in &mut plan.throw {
        let bytes = trash::measure(work, &throw.entry.name)?;
        throw.bytes = Some(bytes);
        needs += bytes;
    }
    let taken = engine
        .names()
        .trash()
        .filter(|it| it.protected)
        .filter_map(|it| it.bytes)
        .sum();
    let limit = engine.parts.trash.limits().bytes;
    let room = limit.saturating_sub(taken);
    Ok((limit == 0 || needs > room).then_some(Dropped::NoRoom { needs, room }))
}

impl DropPlan {
    fn carry_out(&self, work: &Work<'_>, uid: Uuid, indexes: Indexes) -> Result<Vec<Trashed>, Failure> {
        if indexes == Indexes::Expected {
            for throw in &self.throw {
                for index in schema::indexes(work, &throw.entry.name)? {
                    work.run(&format!("DROP INDEX main.{}", DuckDb.name(&index)), &[])?;
                }
            }
        }
        trash::let_go(work, &self.outdated)?;
        let thrown = self.throw.iter().map(|throw| throw.carry_out(work));
        let mut thrown = thrown.collect::<Result<Vec<_>, Failure>>()?;
        trash::note(work, thrown.iter_mut().collect())?;
        self.drop
            .iter()
            .try_for_each(|entry| schema::drop_object(work, entry))?;
        if self.partitioned {
            partitions::forget(work, uid)?;
        }
        failures::forget(work, uid)?;
        schema::delete_record(work, uid)?;
        Ok(thrown)
    }

    fn edits(self, uid: Uuid, thrown: Vec<Trashed>) -> Vec<Edit> {
        let mut edits: Vec<Edit> = trash::gone(&self.outdated).collect();
        for (throw, trashed) in self.throw.iter().zip(thrown) {
            edits.extend(throw.edits(trashed));
        }
        let gone = self
            .drop
            .iter()
            .map(|entry| Edit::Remove(Folded::new(&entry.name)));
        edits.extend(gone);
        edits.extend([Edit::Forgotten(uid), Edit::Whole(uid)]);
        edits
    }
}
