//! Objects in stores that a source reads, treated as files, and the detection of changes.
//!
//! A store is asked when a build is asked for (a refresh, a schedule, another definition), never by a run that finds
//! nothing to do: between such times its objects are what the last build read.

use std::time::SystemTime;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use tokio_util::sync::CancellationToken;
use watershed_core::Error;
use watershed_drivers::files::{self, FileNow};
use watershed_drivers::objects::{self, Access, Object};

use super::{failure, plan::is_address, record::Record};

/// The largest number of requests that one source makes to stores at once.
const AT_ONCE: usize = 16;

/// The objects that a source reads from a store.
pub(super) struct Objects<'a> {
    /// The credentials for the store, with the policy of the connections to it.
    pub(super) access: Access,
    /// The addresses of the objects, or patterns of addresses.
    pub(super) addresses: Vec<String>,
    pub(super) cancel: &'a CancellationToken,
}

impl Objects<'_> {
    /// Lists the objects in the store, sorted by address.
    ///
    /// # Errors
    /// When it can't be asked, or something is missing.
    pub(super) async fn look(&self) -> Result<Vec<FileNow>, Error> {
        let access = &self.access;
        let asked = self
            .addresses
            .clone()
            .into_iter()
            .map(|address| async move { objects::look(access, &address, self.cancel).await });
        let found: Vec<Vec<Object>> = stream::iter(asked)
            .buffered(AT_ONCE)
            .try_collect()
            .await
            .map_err(|error| failure::from_store(&error))?;
        let mut all: Vec<FileNow> = found.into_iter().flatten().map(as_file).collect();
        all.sort_by(|a, b| a.path.cmp(&b.path));
        all.dedup_by(|a, b| a.path == b.path);
        Ok(all)
    }
}

/// Returns the objects that the last build read, as if they were unchanged.
pub(super) fn remembered(record: Option<&Record>) -> Vec<FileNow> {
    let files = record.map(|record| record.files.as_slice()).unwrap_or_default();
    let objects = files.iter().filter(|file| is_address(&file.path));
    let as_they_were = objects.map(|file| FileNow {
        path: file.path.clone(),
        modified_ns: file.modified_ns,
        size: file.size,
        content: file.content,
    });
    as_they_were.collect()
}

/// Returns an object as a file whose content hash is made from the object's version, or else from its time. Without
/// either, the object always counts as changed.
fn as_file(object: Object) -> FileNow {
    let mut hasher = blake3::Hasher::new();
    match &object.version {
        Some(version) => hasher.update(version.as_bytes()),
        None if object.modified_ns == 0 => hasher.update(&files::nanos(SystemTime::now()).to_le_bytes()),
        None => hasher.update(&object.modified_ns.to_le_bytes()),
    };
    hasher.update(&object.size.to_le_bytes());
    FileNow {
        path: object.address,
        modified_ns: object.modified_ns,
        size: object.size,
        content: Some(hasher.finalize().into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(version: Option<&str>, modified_ns: i64) -> Object {
        Object {
            address: "s3://lake/a.parquet".into(),
            modified_ns,
            size: 3,
            version: version.map(str::to_owned),
        }
    }

    #[test]
    fn an_object_is_the_same_by_its_version_and_without_one_by_its_time() {
        let content = |version, modified| as_file(object(version, modified)).content;
        assert_eq!(content(Some("\"e1\""), 5), content(Some("\"e1\""), 5));
        assert_ne!(content(Some("\"e1\""), 5), content(Some("\"e2\""), 5));
        assert_eq!(content(None, 5), content(None, 5));
        assert_ne!(content(None, 5), content(None, 6));
    }

    #[test]
    fn an_object_of_which_nothing_is_known_is_never_the_same() {
        let first = as_file(object(None, 0)).content;
        std::hint::black_box(&first);
        assert_ne!(first, as_file(object(None, 0)).content);
    }
}
