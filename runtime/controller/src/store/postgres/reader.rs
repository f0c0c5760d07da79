//! Reads of catalogs that another process may hold.

use std::sync::Arc;

use watershed_core::{HistoryRow, Revision, Stored, Uid};

use super::events::{Event, Follower};
use super::{Database, StoreError, load};

/// A reader of catalogs that takes no lease and writes nothing.
///
/// See [`PostgresStore`](super::PostgresStore) for an example.
#[derive(Debug, Clone)]
pub struct PostgresReader {
    database: Arc<Database>,
}

impl PostgresReader {
    pub(super) fn new(database: Arc<Database>) -> Self {
        Self { database }
    }

    /// Reads the catalog of an instance as of one moment, with the latest epoch.
    ///
    /// # Errors
    /// When the database can't be read.
    pub async fn read(&self, instance: &str) -> Result<Stored, StoreError> {
        let stored = load::stored(&self.database, instance).await?;
        Ok(stored.0)
    }

    /// Reads the newest history entries of a resource, newest first, even after its removal.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn history(&self, instance: &str, uid: Uid, limit: u32) -> Result<Vec<HistoryRow>, StoreError> {
        load::history(&self.database, instance, uid, limit).await
    }

    /// Reads the newest history entries of the instance, newest first, including entries of removed resources.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn recent(&self, instance: &str, limit: u32) -> Result<Vec<HistoryRow>, StoreError> {
        load::recent(&self.database, instance, limit).await
    }

    /// Follows the revisions of an instance after `from`, as its leader announces them.
    pub fn revisions(&self, instance: &str, from: Revision) -> Revisions {
        Revisions {
            reader: self.clone(),
            instance: instance.to_owned(),
            seen: from,
            events: self.database.events.follow(instance),
        }
    }
}

/// The stream of [`PostgresReader::revisions`], which may skip revisions, but not the latest.
///
/// See [`PostgresStore`](super::PostgresStore) for an example.
#[derive(Debug)]
pub struct Revisions {
    reader: PostgresReader,
    instance: String,
    seen: Revision,
    events: Follower,
}

impl Revisions {
    /// Waits for a later revision than all before, and returns it. A read afterwards shows at least that revision.
    ///
    /// Cancel-safe.
    ///
    /// # Errors
    /// When the database can't be read.
    pub async fn next(&mut self) -> Result<Revision, StoreError> {
        loop {
            let present = load::revision(&self.reader.database, &self.instance).await?;
            if present > self.seen {
                self.seen = present;
                return Ok(present);
            }
            let (instance, seen) = (&self.instance, self.seen);
            let is_later = |event: &Event| matches!(event, Event::Committed(of, revision) if of == instance && *revision > seen);
            self.events.until(is_later).await;
        }
    }
}
