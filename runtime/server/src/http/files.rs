//! Files of a project as readers over HTTP see them.
//!
//! A path that is served is one that the format reads, or a page of Markdown. Whatever else lies in the folder does not exist
//! here: the state, its key, variables, what belongs to git, what the manifest leaves out. Files below the manifest's
//! `public_paths` are for every reader, of whatever sort they are.

mod folder;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use watershed_api::documents::ResourceName;
use watershed_api::http::{FileEntry, FilesDocument};
use watershed_api::{Code, Problem};
use watershed_compilers::{FileEvent, Project};
use watershed_reconcilers::project_parser::compilation::manifest;
use watershed_reconcilers::project_parser::folder::{is_ignored, is_project_file};

use self::folder::{Folder, Found, Unread};
use super::answers::etag;
use super::service::Open;
use crate::instance::{Instance, compiler_options};
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

/// The rules that decide which files of a project are readable.
struct View {
    /// The project with its manifest and no other files.
    project: Project,
    /// State folders inside the project, which are never readable.
    state: Vec<String>,
}

impl View {
    fn of(instance: &Instance) -> Self {
        let (options, state) = (&instance.options, &instance.state);
        let folders = [state.root().to_owned(), state.path()];
        let inside = folders.iter().filter_map(|folder| below(&options.root, folder));
        Self {
            project: manifest(&options.root, compiler_options(options)),
            state: inside.filter(|folder| !folder.is_empty()).collect(),
        }
    }

    /// Returns true if a reader may know that the file or folder exists.
    fn holds(&self, path: &str) -> bool {
        let mut parts = path.split('/');
        let is_kept_back = |part: &str| {
            let is = |name: &str| part.eq_ignore_ascii_case(name);
            is(".git") || is(".watershed") || is_env(part)
        };
        let first = parts.clone().next().map(str::to_ascii_lowercase);
        !self.state.iter().any(|state| is_below(path, state))
            && !is_ignored(first.as_deref())
            && !parts.any(is_kept_back)
            && !self.project.ignores(path)
    }

    /// Returns true if the file belongs to the project.
    fn has(&self, path: &str) -> bool {
        let is_page = path.rsplit('/').next().is_some_and(|name| {
            let stem = name.strip_suffix(".md");
            stem.is_some_and(|stem| !stem.is_empty() && !stem.starts_with(['.', '#']))
        });
        self.holds(path) && (is_page || is_project_file(Path::new(path)))
    }

    /// Returns true if the file is public.
    fn shows(&self, path: &str) -> bool {
        let is_public = self
            .project
            .public_paths()
            .iter()
            .any(|folder| is_below(path, folder));
        is_public && self.holds(path) && !path.split('/').any(|part| part.starts_with('.'))
    }
}

/// Returns true if the path is the folder or lies inside the folder.
fn is_below(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns true if the name ends in `.env`; such files hold variables and are never readable.
fn is_env(name: &str) -> bool {
    name.len() >= 4
        && name.is_char_boundary(name.len() - 4)
        && name[name.len() - 4..].eq_ignore_ascii_case(".env")
}

/// Returns a path relative to a folder, `/` between parts; none if the path lies elsewhere.
fn below(root: &Path, path: &Path) -> Option<String> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (root, path) = (real(root), real(path));
    let parts = path.strip_prefix(root).ok()?.components();
    let parts: Vec<_> = parts.map(|part| part.as_os_str().to_string_lossy()).collect();
    Some(parts.join("/"))
}

/// Refuses a path that could stand for another path: empty, `.` or `..` segments, and ambiguous characters.
///
/// # Errors
/// `bad-argument`.
fn check(path: &str, raw: &str) -> Result<(), Problem> {
    let refused = |what: &str| {
        Err(Problem::new(
            Code::BadArgument,
            format!("the path of the file {what}"),
        ))
    };
    // Slashes, dots and backslashes stand for themselves, so that one file has one address.
    let raw = raw.to_ascii_lowercase();
    if ["%2f", "%2e", "%5c"].iter().any(|odd| raw.contains(odd)) {
        return refused("has a slash, a dot or a backslash that is encoded");
    }
    if path.chars().any(|letter| letter.is_control() || letter == '\\') {
        return refused("has a letter that no path has");
    }
    match path.split('/').all(|part| !matches!(part, "" | "." | "..")) {
        true => Ok(()),
        false => refused("has a part that is empty or leads up"),
    }
}

/// Lists the readable files of the project.
///
/// # Errors
/// When the folder can't be listed, or holds more than a project may.
pub(super) async fn list(open: &Open) -> Result<FilesDocument, Problem> {
    let projection = open.instance.projection().await;
    let mut declared = declared(&projection.table());
    let instance = Arc::clone(&open.instance);
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
pub(super) async fn read(open: &Open, path: &str, raw: &str) -> Result<Vec<u8>, Problem> {
    let (path, instance) = (path.to_owned(), Arc::clone(&open.instance));
    check(&path, raw)?;
    blocking(move || content(&instance, &path, View::has, FileEvent::MAX_BYTES)).await
}

/// Reads a public file and its media type; `raw` is the path before decoding.
///
/// # Errors
/// As [`read`].
pub(super) async fn public(open: &Open, path: &str, raw: &str) -> Result<(&'static str, Vec<u8>), Problem> {
    let extension = path.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase());
    let known = MEDIA_TYPES
        .iter()
        .find(|(end, _)| Some(*end) == extension.as_deref());
    let media = known.map_or("application/octet-stream", |(_, media)| media);
    let (path, instance) = (path.to_owned(), Arc::clone(&open.instance));
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

fn open_root(instance: &Instance) -> Result<Folder, Problem> {
    let opened = Folder::open(&instance.options.root);
    opened.map_err(|error| unavailable("the project's folder can't be opened", &error))
}

fn unavailable(what: &str, error: &std::io::Error) -> Problem {
    Problem::new(Code::Unavailable, format!("{what}: {error}"))
}

fn defect() -> Problem {
    Problem::new(Code::Defect, "the thread that reads files has panicked")
}

#[cfg(test)]
mod tests;
