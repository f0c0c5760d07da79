//! Changes of outputs: what is known of them stays true, whatever becomes of the change.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use watershed_drivers::olap::{
    Build, BuildError, Built, Dropped, Failure, Guard, Left, Location, Migration, Output, Rename,
    RenameError, Renamed, Tag,
};
use watershed_locks::Unpoisoned;

use super::Outputs;
use super::known::Known;

/// Changes.
impl Outputs {
    /// Makes or replaces an output.
    ///
    /// # Errors
    /// As [`Olap::build`].
    pub async fn build(&self, build: &Build, cancel: &CancellationToken) -> Result<Built, BuildError> {
        self.open(cancel).await?;
        let unlearned = Unlearned::new(self, build.tag.uid);
        let _meddling = (!build.hooks.is_empty()).then(|| Meddling::new(&self.meddlings));
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
            Err(BuildError::Failed(failure)) if leaves_doubt(failure) => {}
            // The output is another, and what it is was not told.
            Err(BuildError::After { build: None, .. }) => {}
            Err(_) => unlearned.learn(|_| ()),
        }
        result
    }

    /// Replaces the record beside an output. Says whether it was there.
    ///
    /// # Errors
    /// As [`Olap::retag`].
    pub async fn note(&self, tag: Tag, record: Vec<u8>, cancel: &CancellationToken) -> Result<bool, Failure> {
        let unlearned = Unlearned::new(self, tag.uid);
        let was_there = self.olap.retag(tag, tag, &record, cancel).await?;
        unlearned.learn(|known| {
            if let Some(output) = known.get(tag.uid).cloned() {
                known.put(Output {
                    record: Some(record),
                    ..output
                });
            }
        });
        Ok(was_there)
    }

    /// Gives an output another name.
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
            Err(RenameError::Failed(failure)) if leaves_doubt(failure) => {}
            Err(_) => unlearned.learn(|_| ()),
        }
        result
    }

    /// Drops what a resource has in the engine; its tables go to the trash.
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
            Err(failure) if leaves_doubt(failure) => {}
            Err(_) => unlearned.learn(|_| ()),
        }
        result
    }

    /// Gives an output to another resource, rows untouched. Says whether it was there.
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
        let (old, new) = (Unlearned::new(self, from.uid), Unlearned::new(self, to.uid));
        let was_there = self.olap.retag(from, to, &record, cancel).await?;
        let output = self.known().get(from.uid).cloned().filter(|_| was_there);
        old.learn(|known| known.remove(from.uid));
        new.learn(|known| {
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
}

/// Statements of a person's.
impl Outputs {
    /// Runs a migration. What it does to outputs is not known: all are listed anew before the next question about one.
    ///
    /// # Errors
    /// As [`Migrations::run`](watershed_drivers::olap::Migrations::run).
    pub async fn migrate(&self, migration: &Migration, cancel: &CancellationToken) -> Result<Left, Failure> {
        self.open(cancel).await?;
        let _only_one = self.listing.lock().await;
        self.known().meddle();
        let _meddling = Meddling::new(&self.meddlings);
        self.olap.migrations()?.run(migration, cancel).await
    }
}

/// Statements of a person's under way, which may change any table: counted when they begin, and when they end in any way.
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

/// A change under way: unless somebody learns how it ended, its output is in doubt.
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

/// Returns true if a failure leaves open what became of the work.
fn leaves_doubt(failure: &Failure) -> bool {
    matches!(
        failure,
        Failure::Interrupted | Failure::Fatal { .. } | Failure::Closed
    )
}
