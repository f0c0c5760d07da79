//! A store that commits late, fails, applies what it says has failed, and dies in between.

use std::collections::BTreeMap;
use std::sync::Arc;

use watershed_core::{Commit, Epoch, Revision, Row, Stored, StoredRow, Uid, Write};

#[derive(Default, Debug)]
pub(crate) struct Store {
    pub(crate) rows: BTreeMap<Uid, Arc<Row>>,
    pub(crate) revision: Revision,
    pub(crate) epoch: Epoch,
    /// Handed in and not answered.
    pub(crate) in_flight: Option<Commit>,
    pub(crate) failures: u32,
}

impl Store {
    pub(crate) fn accept(&mut self, commit: Commit) -> Result<(), String> {
        if self.in_flight.is_some() {
            return Err("two commits are under way".into());
        }
        if commit.epoch != self.epoch {
            return Err("a commit of another epoch".into());
        }
        self.in_flight = Some(commit);
        Ok(())
    }

    /// Makes what is in flight durable, whether or not anybody learns of it.
    pub(crate) fn write(&mut self) {
        let Some(commit) = &self.in_flight else { return };
        overlay(&mut self.rows, &commit.writes);
        self.revision = commit.revision;
    }

    /// Returns the catalog that the next process reads.
    pub(crate) fn reopen(&mut self) -> Stored {
        self.in_flight = None;
        self.failures = 0;
        self.epoch = self.epoch.next();
        let rows = self
            .rows
            .values()
            .map(|row| StoredRow::from(row.clone()))
            .collect();
        Stored {
            revision: self.revision,
            epoch: self.epoch,
            rows,
        }
    }
}

pub(crate) fn overlay(rows: &mut BTreeMap<Uid, Arc<Row>>, writes: &[Write]) {
    for write in writes {
        match write {
            Write::Put(row) => rows.insert(row.uid, row.clone()),
            Write::Remove(uid) => rows.remove(uid),
        };
    }
}
