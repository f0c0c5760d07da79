//! Files of a project as readers over HTTP see them.
//!
//! A path that is served is one that the format reads, or a page of Markdown. Whatever else lies in the folder does not exist
//! here: the state, its key, variables, what belongs to git, what the manifest leaves out. Files below the manifest's
//! `public_paths` are for every reader, of whatever sort they are.

mod condition;
mod edit;
mod folder;
mod names;
mod problems;
mod view;
mod writing;

use std::collections::BTreeMap;
use std::sync::Arc;

use watershed_api::documents::ResourceName;
use watershed_api::http::{FileEntry, FilesDocument};
use watershed_api::{Code, Problem};
use watershed_compilers::{FileEvent, Project};

pub(super) use self::condition::Condition;
pub(super) use self::edit::{Edit, delete, remove_leftovers, rename, write, write_variables};
use self::folder::{Found, Unread};
use self::names::check;
use self::problems::{defect, open_root, unavailable};
use self::view::View;
use super::answers::etag;
use crate::instance::Instance;
use crate::projection::Table;
use crate::report::Hidden;

/// The largest public file, in bytes.
const LARGEST_PUBLIC: usize = 16 << 20;

/// Media types of public files by extension. Other files are served as bytes.
const MEDIA_TYPES: [(&str, &str); 14] = [
    ("avif", "image/avif"),
    ("css", "text/css; charset=utf-8"),
    ("csv", "text/csv; charset=utf-8"),
    ("gif", "image/gif"),
    ("ico", "image/x-icon"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("json", "application/json"),
    ("md", "text/plain; charset=utf-8"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("txt", "text/plain; charset=utf-8"),
    ("webp", "image/webp"),
    ("woff2", "font/woff2"),
];

/// Refuses the path of an unsaved text that could mean another one.
///
/// # Errors
/// `bad-argument`.
pub(super) fn check_text(path: &str) -> Result<(), Problem> {
    check(path, "")
}

/// Returns true if callers may know of a file with this path, whether it exists or not. Blocks.
pub(super) fn is_of_project(instance: &Instance, path: &str) -> bool {
    View::of(instance).has(path)
}

/// Lists the readable files of the project.
///
/// # Errors
/// When the folder can't be listed, or holds more than a project may.
pub(super) async fn list(instance: &Arc<Instance>) -> Result<FilesDocument, Problem> {
    let projection = instance.projection().await;
    let mut declared = declared(&projection.table());
    let instance = Arc::clone(instance);
    let found = tokio::task::spawn_blocking(move || found(&instance)).await;
    let mut files = found.map_err(|_| defect())??;
    for file in &mut files {
        file.declares = declared.remove(&file.path).unwrap_or_default();
    }
    Ok(FilesDocument {
        schema: FilesDocument::SCHEMA.to_owned(),
        files,
    })
}

/// Returns the resources that each file declares.
fn declared(table: &Table) -> BTreeMap<String, Vec<ResourceName>> {
    let mut declared: BTreeMap<String, Vec<ResourceName>> = BTreeMap::new();
    let listed = table
        .after(None)
        .filter(|(_, slot)| Table::is_listed(slot, Hidden::Leave));
    for (_, slot) in listed {
        let row = &slot.entry.row;
        for path in row.paths.iter() {
            let name = ResourceName::new(row.kind.as_str(), row.name.as_str());
            declared.entry(path.to_string()).or_default().push(name);
        }
    }
    declared
}

/// Walks the project's folder for readable files. Blocks.
fn found(instance: &Instance) -> Result<Vec<FileEntry>, Problem> {
    let view = View::of(instance);
    let folder = open_root(instance)?;
    let mut files = Vec::new();
    let wants = |found, path: &str| match found {
        Found::Folder => view.holds(path),
        Found::File => view.has(path),
    };
    let walked = folder.walk(&wants, &mut |path, bytes| {
        let read = folder.read(&path, FileEvent::MAX_BYTES);
        files.push(FileEntry {
            etag: read.ok().map(|content| etag(&content)),
            path,
            bytes,
            declares: Vec::new(),
        });
        files.len() <= Project::MAX_FILES
    });
    walked.map_err(|error| unavailable("the project's folder can't be listed", &error))?;
    if files.len() > Project::MAX_FILES {
        let message = format!("the project has more than {} files", Project::MAX_FILES);
        return Err(Problem::new(Code::WrongState, message)
            .hint("leave folders out with `ignore_paths` in the manifest"));
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

/// Reads a file of the project; `raw` is the path before decoding.
///
/// # Errors
/// `bad-argument` for a path that may mean another one, `unknown-name` where there is no such file for readers.
pub(super) async fn read(instance: &Arc<Instance>, path: &str, raw: &str) -> Result<Vec<u8>, Problem> {
    let (path, instance) = (path.to_owned(), Arc::clone(instance));
    check(&path, raw)?;
    blocking(move || content(&instance, &path, View::has, FileEvent::MAX_BYTES)).await
}

/// Reads a public file and its media type; `raw` is the path before decoding.
///
/// # Errors
/// As [`read`].
pub(super) async fn public(
    instance: &Arc<Instance>,
    path: &str,
    raw: &str,
) -> Result<(&'static str, Vec<u8>), Problem> {
    let extension = path.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase());
    let known = MEDIA_TYPES
        .iter()
        .find(|(end, _)| Some(*end) == extension.as_deref());
    let media = known.map_or("application/octet-stream", |(_, media)| media);
    let (path, instance) = (path.to_owned(), Arc::clone(instance));
    check(&path, raw)?;
    let bytes = blocking(move || content(&instance, &path, View::shows, LARGEST_PUBLIC)).await?;
    Ok((media, bytes))
}

async fn blocking(
    read: impl FnOnce() -> Result<Vec<u8>, Problem> + Send + 'static,
) -> Result<Vec<u8>, Problem> {
    tokio::task::spawn_blocking(read).await.map_err(|_| defect())?
}

fn content(
    instance: &Instance,
    path: &str,
    is_there: fn(&View, &str) -> bool,
    most: usize,
) -> Result<Vec<u8>, Problem> {
    let unknown = || Problem::new(Code::UnknownName, format!("there is no file `{path}`"));
    if !is_there(&View::of(instance), path) {
        return Err(unknown());
    }
    open_root(instance)?.read(path, most).map_err(|why| match why {
        Unread::Missing => unknown(),
        Unread::TooLarge(bytes) => {
            let message = format!("`{path}` has {bytes} bytes, and no more than {most} are read");
            Problem::new(Code::WrongState, message)
        }
        Unread::Refused(error) => unavailable(&format!("`{path}` can't be read"), &error),
    })
}

#[cfg(test)]
mod tests;
