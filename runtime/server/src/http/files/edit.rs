//! Edits of the project's files by callers: written, deleted, renamed.
//!
//! What an edit replaces is named by its version, so that of two who edit one file the second is told. An edit is compiled
//! at once, and the answer has the findings in its file.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use uuid::Uuid;
use watershed_api::http::FileChange;
use watershed_api::{Code, Problem};
use watershed_compilers::FileEvent;

use super::condition::Condition;
use super::names::{check, check_new};
use super::problems::{defect, open_root, unavailable, unconfirmed};
use super::view::{VARIABLES, View};
use super::writing::{Unchanged, Writing};
use crate::http::answers::{Unanswered, etag};
use crate::instance::Instance;

/// The time for which the answer to an edit waits for the parse.
const PATIENCE: Duration = Duration::from_secs(20);

/// An edit of an instance's files.
pub(in crate::http) struct Edit<'e> {
    /// The instance whose files are edited.
    pub(in crate::http) instance: &'e Arc<Instance>,
    /// Name of the caller.
    pub(in crate::http) caller: &'e str,
    /// The condition on the version of the file.
    pub(in crate::http) condition: Condition,
}

/// Writes a file of the project; `raw` is the path before decoding.
///
/// # Errors
/// `bad-argument` and `unknown-name` for paths of other files, `version-required`, `stale-version` and `already-exists` with
/// the current ETag, `no-space` and `unavailable` where the system refuses. Nothing was changed then.
pub(in crate::http) async fn write(
    edit: Edit<'_>,
    path: &str,
    raw: &str,
    bytes: Bytes,
) -> Result<FileChange, Unanswered> {
    check(path, raw)?;
    let written = etag(&bytes);
    let change = Change::new(&edit, [path.to_owned()]);
    let working = change.clone();
    let is_changed = blocking(move || working.write(&bytes, Secrecy::Usual)).await?;
    change.end(path, Some(written), is_changed).await
}

/// Replaces the variables of the project. Their version is secret, so that none is asked for.
///
/// # Errors
/// As [`write`].
pub(in crate::http) async fn write_variables(edit: Edit<'_>, bytes: Bytes) -> Result<FileChange, Unanswered> {
    if matches!(edit.condition, Condition::OneOf(_)) {
        let message = format!("`{VARIABLES}` has no version that anybody could know");
        return Err(Problem::new(Code::BadArgument, message)
            .hint("leave `If-Match` out")
            .into());
    }
    let change = Change::new(&edit, [VARIABLES.to_owned()]);
    let working = change.clone();
    let is_changed = blocking(move || working.write(&bytes, Secrecy::Secret)).await?;
    change.end(VARIABLES, None, is_changed).await
}

/// Deletes a file of the project; `raw` is the path before decoding.
///
/// # Errors
/// As [`write`].
pub(in crate::http) async fn delete(edit: Edit<'_>, path: &str, raw: &str) -> Result<FileChange, Unanswered> {
    check(path, raw)?;
    let change = Change::new(&edit, [path.to_owned()]);
    let working = change.clone();
    blocking(move || working.delete()).await?;
    change.end(path, None, true).await
}

/// Renames a file of the project.
///
/// # Errors
/// As [`write`]; `already-exists` where something has the new path.
pub(in crate::http) async fn rename(edit: Edit<'_>, from: &str, to: &str) -> Result<FileChange, Unanswered> {
    for path in [from, to] {
        check(path, "")?;
    }
    let change = Change::new(&edit, [from.to_owned(), to.to_owned()]);
    let working = change.clone();
    let version = blocking(move || working.rename()).await?;
    change.end(to, Some(version), true).await
}

/// Removes what edits of a process that died have left in the project's folder, in the background.
pub(in crate::http) fn remove_leftovers(instance: &Arc<Instance>) {
    let instance = Arc::clone(instance);
    let removing = move || {
        let view = View::of(&instance);
        let Ok(folder) = open_root(&instance) else {
            return;
        };
        let removed = folder
            .lock()
            .map(|locked| locked.remove_leftovers(&|path| view.holds(path)));
        if !matches!(removed, Ok(Ok(()))) {
            tracing::warn!("leftovers of edits may be in the project's folder: it could not be listed");
        }
    };
    // An embedder may put instances together before its runtime begins.
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn_blocking(removing);
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Unanswered> + Send + 'static,
) -> Result<T, Unanswered> {
    tokio::task::spawn_blocking(work).await.map_err(|_| defect())?
}

/// The secrecy of a file that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Secrecy {
    /// The file is one that callers read.
    Usual,
    /// The file holds variables, which nobody reads.
    Secret,
}

/// A change of files, as it is carried out.
#[derive(Clone)]
struct Change {
    instance: Arc<Instance>,
    /// Paths that change: of the file, or the old and the new one.
    paths: Vec<String>,
    condition: Condition,
    id: Uuid,
    /// The caller and the id, as causes name them.
    author: Arc<str>,
}

impl Change {
    fn new(edit: &Edit<'_>, paths: impl Into<Vec<String>>) -> Self {
        let id = Uuid::now_v7();
        Self {
            instance: Arc::clone(edit.instance),
            paths: paths.into(),
            condition: edit.condition.clone(),
            id,
            author: format!("{} over HTTP, request {id}", edit.caller).into(),
        }
    }

    fn path(&self) -> &str {
        self.paths.first().map(String::as_str).unwrap_or_default()
    }

    /// Writes the file; returns false if it has the content already. Blocks.
    fn write(&self, bytes: &[u8], secrecy: Secrecy) -> Result<bool, Unanswered> {
        let path = self.path();
        let is_secret = secrecy == Secrecy::Secret;
        if !is_secret && !View::of(&self.instance).has(path) {
            return Err(self.unknown(path).into());
        }
        if bytes.len() > FileEvent::MAX_BYTES {
            let message = format!("a file has at most {} bytes", FileEvent::MAX_BYTES);
            let status = axum::http::StatusCode::PAYLOAD_TOO_LARGE;
            return Err(Unanswered::Status(
                Problem::new(Code::BadArgument, message),
                status,
            ));
        }
        let may_replace = |found: Option<&[u8]>| match is_secret && self.condition == Condition::None {
            true => true,
            false => self.fits(found),
        };
        let folder = open_root(&self.instance)?;
        let locked = folder.lock().map_err(|why| self.refused(why, secrecy))?;
        let most = FileEvent::MAX_BYTES;
        let is_same = folder.read(path, most).is_ok_and(|now| now == bytes);
        if is_same && may_replace(Some(bytes)) {
            return Ok(false);
        }
        if !folder.holds(path) {
            check_new(path)?;
        }
        self.noting(|| {
            locked.write(&Writing {
                path,
                bytes,
                may_replace: &may_replace,
                is_secret,
                most,
            })
        })
        .map_err(|why| self.refused(why, secrecy))?;
        Ok(true)
    }

    /// Deletes the file. Blocks.
    fn delete(&self) -> Result<(), Unanswered> {
        self.check_known(self.path())?;
        let folder = open_root(&self.instance)?;
        let refused = |why| self.refused(why, Secrecy::Usual);
        let locked = folder.lock().map_err(refused)?;
        self.noting(|| {
            locked.delete(self.path(), FileEvent::MAX_BYTES, &|found| {
                found.is_some() && self.fits(found)
            })
        })
        .map_err(refused)
    }

    /// Renames the file, and returns its version. Blocks.
    fn rename(&self) -> Result<String, Unanswered> {
        let [from, to] = self.paths.as_slice() else {
            return Err(defect().into());
        };
        self.check_known(from)?;
        if !View::of(&self.instance).has(to) {
            return Err(self.unknown(to).into());
        }
        check_new(to)?;
        let folder = open_root(&self.instance)?;
        let refused = |why| match why {
            Unchanged::Occupied => occupied(to).into(),
            why => self.refused(why, Secrecy::Usual),
        };
        let locked = folder.lock().map_err(refused)?;
        let most = FileEvent::MAX_BYTES;
        let renamed =
            self.noting(|| locked.rename(from, to, most, &|found| found.is_some() && self.fits(found)));
        renamed.map_err(refused)?;
        let read = folder.read(to, most);
        Ok(read.map(|bytes| etag(&bytes)).unwrap_or_default())
    }

    /// Refuses a file that does not exist for callers.
    fn check_known(&self, path: &str) -> Result<(), Unanswered> {
        let is_there = View::of(&self.instance).has(path) && open_root(&self.instance)?.holds(path);
        match is_there {
            true => Ok(()),
            false => Err(self.unknown(path).into()),
        }
    }

    /// Returns true if the condition of the call holds for a file of this content, or for no file.
    fn fits(&self, found: Option<&[u8]>) -> bool {
        self.condition.holds_for(found.map(etag).as_deref())
    }

    /// Carries out a change whose author is known before readers see it.
    fn noting(&self, change: impl FnOnce() -> Result<(), Unchanged>) -> Result<(), Unchanged> {
        let each = self.paths.iter();
        each.clone()
            .for_each(|path| self.instance.note_author(path, &self.author));
        let changed = change();
        // An unconfirmed change is one.
        if !matches!(changed, Ok(()) | Err(Unchanged::Unconfirmed(_))) {
            each.for_each(|path| self.instance.forget_author(path));
        }
        changed
    }

    /// Compiles the files after the change, and returns the answer.
    async fn end(
        self,
        path: &str,
        version: Option<String>,
        is_changed: bool,
    ) -> Result<FileChange, Unanswered> {
        let paths: Vec<&str> = self.paths.iter().map(String::as_str).collect();
        let parsed = self
            .instance
            .parse_edits(&paths, Arc::clone(&self.author), PATIENCE);
        // The file is written: an answer without findings is right, a refusal would not be.
        let parsed = parsed.await.unwrap_or_else(|problem| {
            tracing::warn!(%problem, "an edited file was not compiled at once");
            crate::instance::Parsed::default()
        });
        Ok(FileChange {
            schema: FileChange::SCHEMA.to_owned(),
            path: path.to_owned(),
            etag: version,
            request: is_changed.then(|| self.id.to_string()),
            is_applied: parsed.is_done && parsed.not_applied.is_none(),
            not_applied: parsed.not_applied,
            diagnostics: parsed.diagnostics,
        })
    }

    fn unknown(&self, path: &str) -> Problem {
        Problem::new(
            Code::UnknownName,
            format!("there is no file `{path}` that can be written"),
        )
        .hint(
            "a project has files of SQL, YAML and Markdown; what the manifest leaves out does not exist here",
        )
    }

    fn refused(&self, why: Unchanged, secrecy: Secrecy) -> Unanswered {
        let path = self.path();
        match why {
            Unchanged::Occupied => occupied(path).into(),
            Unchanged::Stale(found) => {
                let current = found
                    .filter(|_| secrecy == Secrecy::Usual)
                    .map(|bytes| etag(&bytes));
                self.stale(path, current)
            }
            Unchanged::TooLarge => {
                let message = format!(
                    "`{path}` has more than {} bytes, so that it has no version",
                    FileEvent::MAX_BYTES
                );
                Problem::new(Code::WrongState, message).into()
            }
            Unchanged::OtherCase(there) => {
                let message = format!("`{path}` differs from `{there}` by small and capital letters alone");
                Problem::new(Code::WrongState, message)
                    .hint("not every system tells such names apart: use the one that is there")
                    .into()
            }
            Unchanged::Busy => Problem::new(Code::Busy, "others change files of the project").into(),
            Unchanged::Refused(error) => unavailable(&format!("`{path}` can't be written"), &error).into(),
            Unchanged::Unconfirmed(error) => unconfirmed(path, &error).into(),
        }
    }

    /// Returns the problem of a condition that does not hold for the current version.
    fn stale(&self, path: &str, current: Option<String>) -> Unanswered {
        let problem = match (&self.condition, &current) {
            (Condition::Absent, _) => Problem::new(Code::AlreadyExists, format!("`{path}` exists already"))
                .hint("who replaces a file names the version that was read: its ETag"),
            (Condition::None, Some(_)) => Problem::new(
                Code::VersionRequired,
                format!("`{path}` exists, and the call does not name the version that it is for"),
            )
            .hint("send the file's ETag as `If-Match`"),
            (_, Some(_)) => Problem::new(
                Code::StaleVersion,
                format!("`{path}` has another version than the one of `If-Match`"),
            )
            .hint("read the file again: the answer has the current ETag"),
            (_, None) => Problem::new(Code::StaleVersion, format!("`{path}` does not exist")),
        };
        Unanswered::Version(problem, current)
    }
}

fn occupied(path: &str) -> Problem {
    Problem::new(
        Code::AlreadyExists,
        format!("`{path}` is taken, or a part of it is no folder"),
    )
}
