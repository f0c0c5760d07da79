//! Changes of outputs, which keep the known outputs true however the change ends.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use watershed_drivers::olap::{
    Build, BuildError, Built, Dropped, Failure, Guard, KeptRows, Left, Location, Migration, Output, Rename,
    RenameError, Renamed, Tag,
};
use watershed_locks::Unpoisoned;

use super::Outputs;
use super::ending::Ending as _;
use super::known::Known;

/// Changes of outputs, from builds to transfers.
impl Outputs {
    /// Builds or replaces an output.
    ///
    /// # Errors
    /// As [`Olap::build`].
    pub async fn build(&self, build: &Build, cancel: &CancellationToken) -> Result<Built, BuildError> {
        self.open(cancel).await?;
        let unlearned = Unlearned::new(self, build.tag.uid);
        let _meddling = (!build.hooks.is_empty()).then(|| Meddling::new(&self.meddlings));
        let begun = Instant::now();
        let result = self.olap.build(build, cancel).await;
        match &result {
            Ok(built) => unlearned.learn(|known| {
                known.put(Output {
                    location: Location::named(&build.name),
                    kind: build.kind,
                    tag: built.tag,
                    record: Some(built.record.clone()),
                    rows: built.rows,
                });
            }),
            // The output is another, and what it is was not told.
            Err(BuildError::After { build: None, .. }) => drop(unlearned),
            Err(error) if error.leaves_doubt() => drop(unlearned),
            Err(_) => unlearned.learn(|_| ()),
        }
        let is_told = result.is_ok();
        let done = |output: Option<Output>| made_by(build, output?, begun.elapsed());
        let built = self.ended(result, build.tag.uid, cancel, done).await?;
        Ok(match is_told || build.checks.is_empty() {
            true => built,
            false => Built {
                verdicts: self.olap.check(&build.checks, cancel).await?,
                ..built
            },
        })
    }

    /// Replaces the record beside an output. Returns true if the output exists.
    ///
    /// # Errors
    /// As [`Olap::retag`].
    pub async fn note(&self, tag: Tag, record: Vec<u8>, cancel: &CancellationToken) -> Result<bool, Failure> {
        let was_there = self.retag(tag, tag, &record, cancel).await?;
        Unlearned::new(self, tag.uid).learn(|known| {
            if let Some(output) = known.get(tag.uid).cloned() {
                known.put(Output {
                    record: Some(record),
                    ..output
                });
            }
        });
        Ok(was_there)
    }

    /// Gives an output another name in the engine.
    ///
    /// # Errors
    /// As [`Olap::rename`].
    pub async fn rename(&self, rename: &Rename, cancel: &CancellationToken) -> Result<Renamed, RenameError> {
        self.open(cancel).await?;
        let unlearned = Unlearned::new(self, rename.uid);
        let result = self.olap.rename(rename, cancel).await;
        match &result {
            Ok(_) => unlearned.learn(|known| {
                if let Some(output) = known.get(rename.uid).cloned() {
                    let record = rename.record.clone().or(output.record);
                    known.put(Output {
                        location: Location::named(&rename.to),
                        record,
                        ..output
                    });
                }
            }),
            Err(error) if error.leaves_doubt() => drop(unlearned),
            Err(_) => unlearned.learn(|_| ()),
        }
        self.ended(result, rename.uid, cancel, |output| {
            let output = output?;
            let is_noted = rename.record.is_none() || rename.record == output.record;
            (output.location == Location::named(&rename.to) && is_noted).then(Renamed::default)
        })
        .await
    }

    /// Drops a resource's output; a table goes to the trash.
    ///
    /// # Errors
    /// As [`Olap::drop_output`].
    pub async fn drop_output(
        &self,
        uid: Uuid,
        guard: Guard,
        cancel: &CancellationToken,
    ) -> Result<Dropped, Failure> {
        self.open(cancel).await?;
        let unlearned = Unlearned::new(self, uid);
        let guard = match self.approved.lock().unpoisoned().contains(&uid) {
            true => Guard::Free,
            false => guard,
        };
        let result = self.olap.drop_output(uid, guard, cancel).await;
        match &result {
            Ok(Dropped::NoRoom { .. }) => unlearned.learn(|_| ()),
            Ok(_) => unlearned.learn(|known| known.remove(uid)),
            Err(failure) if failure.leaves_doubt() => drop(unlearned),
            Err(_) => unlearned.learn(|_| ()),
        }
        self.ended(result, uid, cancel, |output| {
            output.is_none().then_some(Dropped::Done)
        })
        .await
    }

    /// Transfers an output to another resource without touching its rows. Returns true if the output exists.
    ///
    /// # Errors
    /// As [`Olap::retag`].
    pub async fn adopt(
        &self,
        from: Tag,
        to: Tag,
        record: Vec<u8>,
        cancel: &CancellationToken,
    ) -> Result<bool, Failure> {
        self.open(cancel).await?;
        let was_there = self.retag(from, to, &record, cancel).await?;
        Unlearned::new(self, from.uid).learn(|known| {
            let output = known.get(from.uid).cloned().filter(|_| was_there);
            known.remove(from.uid);
            if let Some(output) = output {
                known.put(Output {
                    tag: to,
                    record: Some(record),
                    ..output
                });
            }
        });
        Ok(was_there)
    }

    /// Replaces the tag and record of an output. If it fails, both owners' outputs are unknown until the next listing.
    async fn retag(
        &self,
        from: Tag,
        to: Tag,
        record: &[u8],
        cancel: &CancellationToken,
    ) -> Result<bool, Failure> {
        let unlearned = [from.uid, to.uid].map(|uid| Unlearned::new(self, uid));
        let result = self.olap.retag(from, to, record, cancel).await;
        match &result {
            Ok(_) => unlearned.into_iter().for_each(|one| one.learn(|_| ())),
            Err(_) => drop(unlearned),
        }
        self.ended(result, to.uid, cancel, |output| {
            let output = output?;
            (output.tag == to && output.record.as_deref() == Some(record)).then_some(true)
        })
        .await
    }
}

/// Statements written by people.
impl Outputs {
    /// Runs a migration, whose effect on outputs is unknown: all are listed again before the next look-up.
    ///
    /// # Errors
    /// As [`Migrations::run`](watershed_drivers::olap::Migrations::run).
    pub async fn migrate(&self, migration: &Migration, cancel: &CancellationToken) -> Result<Left, Failure> {
        self.open(cancel).await?;
        let _only_one = self.listing.lock().await;
        self.known().meddle();
        let _meddling = Meddling::new(&self.meddlings);
        let migrations = self.olap.migrations()?;
        match migrations.run(migration, cancel).await {
            Err(failure) if failure.is_unknown() => {
                let last = migrations.last(migration.uid, &migration.proof, cancel).await?;
                let ours =
                    last.filter(|last| last.version == migration.version && last.proof == migration.proof);
                ours.map_or(Err(failure), |last| Ok(last.left))
            }
            end => end,
        }
    }

    /// Replaces the kept rows of an owner with rows that failed tests. Retried once if the outcome is unknown; the
    /// change is idempotent.
    ///
    /// # Errors
    /// As [`TestedRows::keep`](watershed_drivers::olap::TestedRows::keep).
    pub async fn keep_tested_rows(
        &self,
        owner: Uuid,
        table: &str,
        kept: Vec<KeptRows>,
        cancel: &CancellationToken,
    ) -> Result<(), Failure> {
        let rows = self.olap.tested_rows()?;
        match rows.keep(owner, table, kept.clone(), cancel).await {
            Err(failure) if failure.is_unknown() => rows.keep(owner, table, kept, cancel).await,
            end => end,
        }
    }
}

/// A running migration, which may change any table: counted at its start and at its end.
struct Meddling<'a>(&'a AtomicU64);

impl<'a> Meddling<'a> {
    fn new(count: &'a AtomicU64) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count)
    }
}

impl Drop for Meddling<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

/// A change in progress, whose output becomes doubtful unless its result is recorded.
struct Unlearned<'a> {
    outputs: &'a Outputs,
    uid: Uuid,
}

impl<'a> Unlearned<'a> {
    fn new(outputs: &'a Outputs, uid: Uuid) -> Self {
        outputs.known().touch();
        Self { outputs, uid }
    }

    fn learn(self, apply: impl FnOnce(&mut Known)) {
        apply(&mut self.outputs.known());
        std::mem::forget(self);
    }
}

impl Drop for Unlearned<'_> {
    fn drop(&mut self) {
        self.outputs.known().doubt(self.uid);
    }
}

/// Returns the result of a build that produced this output. An output does not tell whether later statements of the
/// build ran.
fn made_by(build: &Build, output: Output, took: Duration) -> Option<Built> {
    let is_new = output.tag == build.tag
        && output.kind == build.kind
        && output.location == Location::named(&build.name);
    let is_left = build.unless_rows.as_ref().is_some_and(|(number, record)| {
        let tag = Tag {
            build: *number,
            ..build.tag
        };
        output.tag == tag && output.record.as_ref() == Some(record)
    });
    let is_whole = build.hooks.after.is_empty() && (is_new || is_left);
    Some(Built {
        rows: output.rows,
        tag: output.tag,
        record: output.record.filter(|_| is_whole)?,
        attempts: 1,
        took,
        verdicts: Vec::new(),
    })
}
