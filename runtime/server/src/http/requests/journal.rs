//! Requests on disk: a small file for each, and one beside it with its end.

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

/// The folder of requests, in that of the environment.
const FOLDER: &str = "requests";
/// The end of the name of a file that has a request.
const REQUEST: &str = "request.json";
/// The end of the name of a file that has the end of one.
const END: &str = "end.json";

/// A request as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Kept {
    /// The id; later requests have greater ones.
    pub(super) id: Uuid,
    /// The time at which the request was stored.
    pub(super) accepted_at: Time,
    /// The name of the one who asked.
    pub(super) caller: String,
    /// The request.
    pub(super) request: Request,
}

/// The end of a request.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum End {
    /// The document.
    Done(Value),
    /// The reason why there is none.
    Refused(Problem),
}

/// A request that was found.
pub(super) struct Found {
    /// The request.
    pub(super) request: Kept,
    /// The time of its end, and the bytes of it.
    pub(super) end: Option<(Time, u64)>,
}

/// The folder of an instance's requests.
pub(super) struct Journal {
    folder: PathBuf,
}

impl Journal {
    /// The requests of an environment.
    pub(super) fn of(environment: &Path) -> Self {
        Self {
            folder: environment.join(FOLDER),
        }
    }

    /// Reads what there is, the earliest first. A file that can't be read is passed over: the next version may.
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

    /// Stores a request.
    ///
    /// # Errors
    /// `unavailable`, when the disk refuses.
    pub(super) fn store(&self, kept: &Kept) -> Result<(), Problem> {
        self.write(kept.id, REQUEST, kept).map(drop)
    }

    /// Stores the end of a request, and returns its bytes.
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
