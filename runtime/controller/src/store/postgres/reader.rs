//! Reading catalogs that another process may hold.

use std::sync::Arc;

use watershed_core::{HistoryRow, Revision, Stored, Uid};

use super::events::{Event, Follower};
use super::{Database, StoreError, load};

/// Reads catalogs without holding them: takes no lease and writes nothing.
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

    /// The catalog of an instance, all of one moment, with the epoch that was taken last.
    ///
    /// # Errors
    /// When the database can't be read.
    pub async fn read(&self, instance: &str) -> Result<Stored, StoreError> {
        let stored = load::stored(&self.database, instance).await?;
        Ok(stored.0)
    }

    /// The newest entries of a resource's history, newest first, also of one that is no longer there.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn history(&self, instance: &str, uid: Uid, limit: u32) -> Result<Vec<HistoryRow>, StoreError> {
        load::history(&self.database, instance, uid, limit).await
    }

    /// The newest entries of the whole instance, newest first, those of deleted resources among them.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn recent(&self, instance: &str, limit: u32) -> Result<Vec<HistoryRow>, StoreError> {
        load::recent(&self.database, instance, limit).await
    }

    /// Follows the revisions of an instance after `from`, as its holder announces them.
    pub fn revisions(&self, instance: &str, from: Revision) -> Revisions {
        Revisions {
            reader: self.clone(),
            instance: instance.to_owned(),
            seen: from,
            events: self.database.events.follow(instance),
        }
    }
}

/// The stream of [`PostgresReader::revisions`]. It may skip revisions, but not the latest.
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
    /// Waits for a revision later than all before, and returns it; one read after this shows it or a later one.
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
