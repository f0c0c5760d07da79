//! The journal of requests on disk: a file for each request, and a second file for its end.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;
use watershed_api::documents::Time;
use watershed_api::{Code, Problem, Request};

use crate::kept::{Readers, UNFINISHED, replace_for_good};

/// Name of the folder of requests, inside the environment's folder.
const FOLDER: &str = "requests";
/// Suffix of files that hold a request.
const REQUEST: &str = "request.json";
/// Suffix of files that hold the end of a request.
const END: &str = "end.json";

/// A request as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Kept {
    /// Id of the request; later requests have greater ids.
    pub(super) id: Uuid,
    /// Time at which the request was stored.
    pub(super) accepted_at: Time,
    /// Name of the caller.
    pub(super) caller: String,
    /// The requested operation with its arguments.
    pub(super) request: Request,
}

/// The end of a request as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum End {
    /// Success, with the final document.
    Done(Value),
    /// Failure, with the problem.
    Refused(Problem),
}

/// A request found on disk.
pub(super) struct Found {
    /// The request as it is stored.
    pub(super) request: Kept,
    /// Time of the end, and the size of the final document in bytes; none while unfinished.
    pub(super) end: Option<(Time, u64)>,
}

/// The folder that stores an instance's requests.
pub(super) struct Journal {
    folder: PathBuf,
}

impl Journal {
    /// Returns the journal of an environment's folder.
    pub(super) fn of(environment: &Path) -> Self {
        Self {
            folder: environment.join(FOLDER),
        }
    }

    /// Reads all stored requests, the earliest first. Skips unreadable files, since a newer version may read them.
    pub(super) fn read(&self) -> Vec<Found> {
        let files = fs::read_dir(&self.folder)
            .into_iter()
            .flatten()
            .filter_map(Result::ok);
        let mut found: Vec<Found> = files.filter_map(|file| self.found(&file.path())).collect();
        found.sort_by_key(|found| found.request.id);
        found
    }

    fn found(&self, path: &Path) -> Option<Found> {
        let name = path.file_name()?.to_str()?;
        if !name.ends_with(REQUEST) {
            // A file that was being written when the process died.
            if name.starts_with(UNFINISHED) {
                let _ = fs::remove_file(path);
            }
            return None;
        }
        let request: Kept = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
        let end = fs::metadata(self.path(request.id, END)).ok().map(|file| {
            let since = file
                .modified()
                .ok()
                .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            let ms = since.and_then(|since| i64::try_from(since.as_millis()).ok());
            (Time::from_millis(ms.unwrap_or_default()), file.len())
        });
        Some(Found { request, end })
    }

    /// Stores a request durably.
    ///
    /// # Errors
    /// `unavailable`, when the disk refuses.
    pub(super) fn store(&self, kept: &Kept) -> Result<(), Problem> {
        self.write(kept.id, REQUEST, kept).map(drop)
    }

    /// Stores the end of a request, and returns its size in bytes.
    ///
    /// # Errors
    /// `unavailable`, when the disk refuses.
    pub(super) fn end(&self, id: Uuid, end: &End) -> Result<u64, Problem> {
        self.write(id, END, end)
    }

    /// Reads the end of a request.
    ///
    /// # Errors
    /// `unavailable`, when the file can't be read.
    pub(super) fn read_end(&self, id: Uuid) -> Result<End, Problem> {
        let read = fs::read(self.path(id, END));
        let read = read.and_then(|bytes| serde_json::from_slice(&bytes).map_err(io::Error::from));
        read.map_err(|error| self.refused("read", &error))
    }

    /// Removes requests and their ends.
    pub(super) fn forget(&self, ids: &[Uuid]) {
        for id in ids {
            // First the request: without one, an end is nothing.
            let _ = fs::remove_file(self.path(*id, REQUEST));
            let _ = fs::remove_file(self.path(*id, END));
        }
    }

    fn path(&self, id: Uuid, kind: &str) -> PathBuf {
        self.folder.join(format!("{id}.{kind}"))
    }

    fn write(&self, id: Uuid, kind: &str, what: &impl Serialize) -> Result<u64, Problem> {
        let written = serde_json::to_vec(what)
            .map_err(io::Error::from)
            .and_then(|bytes| {
                fs::create_dir_all(&self.folder)?;
                replace_for_good(&self.path(id, kind), &bytes, Readers::Owner)?;
                Ok(u64::try_from(bytes.len()).unwrap_or(u64::MAX))
            });
        written.map_err(|error| self.refused("kept", &error))
    }

    fn refused(&self, what: &str, error: &io::Error) -> Problem {
        let folder = self.folder.display();
        Problem::new(
            Code::Unavailable,
            format!("a request can't be {what} in `{folder}`: {error}"),
        )
    }
}

#[cfg(test)]
mod tests {
    use watershed_api::Operation as _;
    use watershed_api::operations::ops;
    use watershed_api::request::RunRequest;

    use super::*;

    fn kept(number: u128) -> Kept {
        Kept {
            id: Uuid::from_u128(number),
            accepted_at: Time::from_millis(5),
            caller: "me".to_owned(),
            request: ops::Run::request(RunRequest::default()),
        }
    }

    #[test]
    fn requests_are_found_again_with_and_without_their_ends() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::of(folder.path());
        assert!(journal.read().is_empty());
        for number in [2, 1, 3] {
            journal.store(&kept(number)).unwrap();
        }
        let end = End::Done(serde_json::json!({"a": 1}));
        let bytes = journal.end(Uuid::from_u128(2), &end).unwrap();
        fs::write(journal.folder.join(".0.request.json.1"), "half").unwrap();
        fs::write(journal.folder.join("0.request.json"), "half").unwrap();
        let found = journal.read();
        let ids: Vec<u128> = found.iter().map(|found| found.request.id.as_u128()).collect();
        assert_eq!(ids, [1, 2, 3]);
        let ends: Vec<Option<u64>> = found.iter().map(|found| Some(found.end?.1)).collect();
        assert_eq!(ends, [None, Some(bytes), None]);
        assert!(matches!(journal.read_end(Uuid::from_u128(2)), Ok(End::Done(_))));
        journal.forget(&[Uuid::from_u128(2)]);
        assert_eq!(journal.read().len(), 2);
        assert_eq!(
            journal.read_end(Uuid::from_u128(2)).unwrap_err().code,
            Code::Unavailable
        );
    }
}
