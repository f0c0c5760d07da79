//! The files to which a model's rows are exported: their presence, their owner, and the build they come from.
//!
//! A file is a model's own only by its record in the catalog: by size and time, or by content. Anything else at its path
//! is somebody's, and stays. What is about to be put there is recorded before it is, so that no crash makes a file of ours
//! one of nobody.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use uuid::Uuid;
use watershed_compilers::{Scope, refused_output, render_text};
use watershed_controller::resource::Row;
use watershed_core::{Error, SourcePosition};
use watershed_drivers::files::nanos;
use watershed_drivers::{olap::FileFormat, placing, sandbox::Sandbox};
use watershed_proto::{ExportState, ExportedFiles, FileExport, LocalFileState, Message, ModelState};

use super::{failure, record::Record};
use crate::places;

/// The largest number of files of one export, each of which is recorded with size and time.
const MOST_FILES: usize = 10_000;

/// The error code for files that somebody else made or changed.
pub(super) const TAKEN: &str = "export-taken";
/// The error code for files that can't be written.
pub(super) const UNWRITTEN: &str = "export-failed";

/// Sizes and times of files, by path below the folder; an export to a single file has an empty path.
pub(super) type Stamps = BTreeMap<String, LocalFileState>;

/// The place of an export on the local file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The path as given, relative to the project.
    pub(super) path: String,
    /// The path joined with the project's folder.
    pub(super) whole: PathBuf,
}

impl Place {
    /// Returns the place of a path below the project's folder.
    pub(super) fn of(root: &Path, path: &str) -> Self {
        Self {
            path: path.to_owned(),
            whole: root.join(path),
        }
    }

    /// Returns the path of the part file, which no other model uses.
    pub(super) fn part(&self, uid: Uuid) -> PathBuf {
        let folder = self.whole.parent().unwrap_or(Path::new(""));
        folder.join(format!(".watershed-{}.part", uid.simple()))
    }

    /// Removes the part files that an earlier run left behind.
    pub(super) fn clear(&self, uid: Uuid) -> io::Result<()> {
        let part = self.part(uid);
        placing::remove(&placing::aside(&part))?;
        placing::remove(&part)
    }
}

/// Returns the place that an export names, with its template executed.
///
/// # Errors
/// When the template can't be executed, or its path is none that rows are written to.
pub(super) fn place(
    export: &FileExport,
    scope: &Scope,
    root: &Path,
    sandbox: Option<&Sandbox>,
) -> Result<Place, Error> {
    let path = render_text(&export.path, scope).map_err(|error| failure::from_render(&error))?;
    let path = path.trim().trim_start_matches("./").to_owned();
    if path.is_empty() {
        return Err(Error::permanent("path-missing", "the path of its files is empty"));
    }
    if let Some(why) = refused_output(&path) {
        let message = format!("rows can't be written to \"{path}\": {why}");
        return Err(Error::permanent(UNWRITTEN, message));
    }
    let place = Place::of(root, &path);
    match sandbox {
        Some(sandbox) if !sandbox.holds(&place.whole) => Err(Error {
            hint: Some(failure::confined().into()),
            ..Error::permanent("outside-sandbox", format!("\"{path}\" is outside the sandbox"))
        }),
        _ => Ok(place),
    }
}

/// Returns a digest of the build and the export settings that files depend on.
pub(super) fn made_of(record: &Record, export: &FileExport) -> Vec<u8> {
    let settings = FileExport {
        path: String::new(),
        connector: String::new(),
        store: String::new(),
        at: None,
        ..export.clone()
    };
    let mut hasher = blake3::Hasher::new_derive_key("watershed 2026 files of a build");
    hasher
        .update(record.build.0.as_bytes())
        .update(&record.steps.to_le_bytes())
        .update(record.location.name.as_bytes())
        .update(&settings.encode_to_vec());
    hasher.finalize().as_bytes().to_vec()
}

/// Returns the path of an export that must be written though the model is up to date; none if its files are current.
///
/// # Errors
/// What the run would fail with before it writes.
pub(super) fn due(
    export: &FileExport,
    state: &ModelState,
    scope: &Scope,
    (root, sandbox): (&Path, Option<&Sandbox>),
) -> Result<Option<String>, Error> {
    let Some(record) = Record::from_state(state) else {
        return Ok(None);
    };
    let made_of = made_of(&record, export);
    let known = state.export.clone().unwrap_or_default();
    let (path, stands) = if export.store.is_empty() && export.database.is_empty() {
        let place = place(export, scope, root, sandbox)?;
        let found = stamps(&place.whole).ok().flatten();
        let stands = all(&known)
            .any(|it| it.path == place.path && it.made_of == made_of && Some(&it.files) == found.as_ref());
        (place.path, stands)
    } else {
        // A store or database is asked when there is something to write, not before.
        let path = render_text(&export.path, scope).map_err(|error| failure::from_render(&error))?;
        let path = path.trim().to_owned();
        let stands = stands(&known, &path, &export.connector, &made_of);
        (path, stands)
    };
    Ok((!stands).then_some(path))
}

/// Returns the faults of the local files that a model's rows were exported to, each in a sentence.
pub fn damaged(row: &Row, root: &Path) -> Vec<String> {
    let state = row
        .state
        .as_deref()
        .and_then(|state| ModelState::decode(state).ok());
    let Some(known) = state.and_then(|state| state.export) else {
        return Vec::new();
    };
    let local = known.now.iter().filter(|files| files.connector.is_empty());
    let faults = local.filter_map(|files| {
        let place = Place::of(root, &files.path);
        let fault = match stamps(&place.whole) {
            Ok(None) => "is missing".to_owned(),
            Ok(Some(found)) => match is_ours(&place, &found, all(&known)) {
                Ok(true) => return None,
                Ok(false) => "was changed since it was written".to_owned(),
                Err(error) => format!("can't be read: {error}"),
            },
            Err(error) => format!("can't be looked at: {error}"),
        };
        Some(format!("\"{}\" of model/{} {fault}", files.path, row.name))
    });
    faults.collect()
}

/// Returns the recorded files of an export, both the current ones and those being written.
pub(super) fn all(state: &ExportState) -> impl Iterator<Item = &ExportedFiles> {
    state.now.iter().chain(&state.next)
}

/// Returns true if a completed export is recorded for the given address, connector and digest.
pub(super) fn stands(known: &ExportState, address: &str, connector: &str, made_of: &[u8]) -> bool {
    let now = known.now.as_ref().filter(|_| known.next.is_none());
    now.is_some_and(|now| now.path == address && now.connector == connector && now.made_of == made_of)
}

/// Returns a key for the place of an export, which is equal for the same object or table reached by several connectors.
pub(super) fn place_key(files: &ExportedFiles) -> String {
    if files.connector.is_empty() {
        return files.path.clone();
    }
    let usual_schema = match files.database.as_str() {
        "" => {
            let (_, place) = files.path.split_once("://").unwrap_or(("", &files.path));
            return format!("object {place}");
        }
        "postgres" => "public",
        _ => "main",
    };
    let table = files.path.to_lowercase();
    match table.contains('.') {
        true => format!("table {table}"),
        false => format!("table {usual_schema}.{table}"),
    }
}

/// Returns the format that the export names for its files.
pub(super) fn format(export: &FileExport) -> FileFormat {
    match export.format.as_str() {
        "csv" => FileFormat::Csv,
        "json" => FileFormat::Json,
        _ => FileFormat::Parquet,
    }
}

/// Returns the sizes and times of the files at a place; none if there are no files.
///
/// # Errors
/// When they can't be listed, are too many, or are none that are written: links, pipes.
pub(super) fn stamps(place: &Path) -> io::Result<Option<Stamps>> {
    let found = match fs::symlink_metadata(place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    let mut all = Stamps::new();
    if !found.is_dir() {
        all.insert(String::new(), stamp(&found)?);
        return Ok(Some(all));
    }
    for entry in walkdir::WalkDir::new(place).min_depth(1) {
        let entry = entry?;
        if entry.file_type().is_dir() {
            continue;
        }
        if all.len() == MOST_FILES {
            return Err(io::Error::other(format!(
                "there are more than {MOST_FILES} files"
            )));
        }
        let below = entry.path().strip_prefix(place).unwrap_or(entry.path());
        let below = below
            .to_str()
            .ok_or_else(|| io::Error::other("a name is not in UTF-8"))?;
        all.insert(below.to_owned(), stamp(&entry.metadata()?)?);
    }
    Ok(Some(all))
}

fn stamp(found: &fs::Metadata) -> io::Result<LocalFileState> {
    if !found.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    Ok(LocalFileState {
        size: found.len(),
        modified_ns: found.modified().map(nanos).unwrap_or_default(),
        ..LocalFileState::default()
    })
}

/// Returns a digest of the names and contents of files.
///
/// # Errors
/// When one of them can't be read.
pub(super) fn content(place: &Path, stamps: &Stamps) -> io::Result<Vec<u8>> {
    let mut all = blake3::Hasher::new_derive_key("watershed 2026 content of files");
    for path in stamps.keys() {
        let file = if path.is_empty() {
            place.to_owned()
        } else {
            place.join(path)
        };
        let mut one = blake3::Hasher::new();
        one.update_reader(File::open(file)?)?;
        all.update(&(path.len() as u64).to_le_bytes())
            .update(path.as_bytes())
            .update(one.finalize().as_bytes());
    }
    Ok(all.finalize().as_bytes().to_vec())
}

/// Returns true if the files at a place are the recorded ones, by sizes and times or else by content.
///
/// # Errors
/// When it can't be read.
pub(super) fn is_ours<'a>(
    place: &Place,
    stamps: &Stamps,
    known: impl IntoIterator<Item = &'a ExportedFiles>,
) -> io::Result<bool> {
    let known: Vec<_> = known.into_iter().filter(|it| it.path == place.path).collect();
    if known.iter().any(|it| it.files == *stamps) {
        return Ok(true);
    }
    if known.is_empty() {
        return Ok(false);
    }
    let content = content(&place.whole, stamps)?;
    Ok(known.iter().any(|it| it.content == content))
}

/// Removes recorded files if they are unchanged. Returns true if none of them is left.
///
/// # Errors
/// When they can't be looked at or removed.
pub(super) fn remove(root: &Path, uid: Uuid, files: &ExportedFiles) -> io::Result<bool> {
    let place = Place::of(root, &files.path);
    place.clear(uid)?;
    let Some(stamps) = stamps(&place.whole)? else {
        return Ok(true);
    };
    if !is_ours(&place, &stamps, [files])? {
        return Ok(false);
    }
    placing::remove(&place.whole)?;
    Ok(true)
}

/// Returns the error for files that belong to somebody else.
pub(super) fn taken(place: &Place) -> Error {
    let message = format!(
        "\"{}\" was not written by this model, or was changed since: it stays as it is",
        place.path
    );
    let hint = "move it away or delete it, and the next run writes the rows there; or give the model another `output.path`";
    Error {
        hint: Some(hint.into()),
        ..Error::permanent(TAKEN, message)
    }
}

/// Returns the error for files that can't be written or inspected.
pub(super) fn unwritable(place: &Place, error: &io::Error) -> Error {
    let message = format!("can't write \"{}\": {error}", place.path);
    Error::permanent(UNWRITTEN, message)
}

/// Returns the error for a model that would read its own exported files.
pub(super) fn reads_itself(place: &Place) -> Error {
    let message = format!("\"{}\" is among the files that the model reads", place.path);
    Error::permanent(UNWRITTEN, message)
}

/// Sets the place of an error to the model's output, if the error has no place.
pub(super) fn at_its_place(error: Error, export: &FileExport, paths: &[std::sync::Arc<str>]) -> Error {
    let place = error.place.clone();
    let place: SourcePosition = place.unwrap_or_else(|| places::from_spot(paths, export.at.as_ref()));
    Error {
        place: Some(place),
        ..error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(place: &Place) -> ExportedFiles {
        let files = stamps(&place.whole).unwrap().unwrap();
        ExportedFiles {
            path: place.path.clone(),
            content: content(&place.whole, &files).unwrap(),
            files,
            ..ExportedFiles::default()
        }
    }

    #[test]
    fn a_touched_file_is_ours_and_one_of_another_content_is_not() {
        let temp = tempfile::tempdir().unwrap();
        let place = Place::of(temp.path(), "a.csv");
        fs::write(&place.whole, "x\n1\n").unwrap();
        let ours = known(&place);
        let again = File::options().append(true).open(&place.whole).unwrap();
        again.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        let now = stamps(&place.whole).unwrap().unwrap();
        assert_ne!(now, ours.files);
        assert!(is_ours(&place, &now, [&ours]).unwrap());
        fs::write(&place.whole, "x\n2\n").unwrap();
        let now = stamps(&place.whole).unwrap().unwrap();
        assert!(!is_ours(&place, &now, [&ours]).unwrap());
        assert!(!remove(temp.path(), Uuid::nil(), &ours).unwrap());
        assert!(place.whole.exists(), "somebody changed it");
    }

    #[test]
    fn a_folder_with_a_file_of_somebody_is_not_removed() {
        let temp = tempfile::tempdir().unwrap();
        let place = Place::of(temp.path(), "days");
        fs::create_dir_all(place.whole.join("day=1")).unwrap();
        fs::write(place.whole.join("day=1/a.csv"), "x\n").unwrap();
        let ours = known(&place);
        fs::write(place.whole.join("notes.txt"), "mine").unwrap();
        assert!(!remove(temp.path(), Uuid::nil(), &ours).unwrap());
        fs::remove_file(place.whole.join("notes.txt")).unwrap();
        assert!(remove(temp.path(), Uuid::nil(), &ours).unwrap());
        assert!(!place.whole.exists());
        assert!(remove(temp.path(), Uuid::nil(), &ours).unwrap(), "once more");
    }

    #[test]
    fn names_of_one_table_or_object_are_one_place() {
        let of = |connector: &str, database: &str, path: &str| {
            place_key(&ExportedFiles {
                path: path.into(),
                connector: connector.into(),
                database: database.into(),
                ..ExportedFiles::default()
            })
        };
        assert_eq!(of("a", "postgres", "days"), of("b", "postgres", "public.Days"));
        assert_eq!(of("a", "duckdb", "days"), of("a", "duckdb", "main.days"));
        assert_ne!(of("a", "postgres", "days"), of("a", "postgres", "results.days"));
        assert_eq!(of("a", "", "s3://lake/x.csv"), of("b", "", "s3a://lake/x.csv"));
        assert_ne!(of("a", "", "s3://lake/x.csv"), of("a", "", "s3://pond/x.csv"));
        assert_ne!(of("", "", "lake/x.csv"), of("a", "", "s3://lake/x.csv"));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_never_ours() {
        let temp = tempfile::tempdir().unwrap();
        let place = Place::of(temp.path(), "a.csv");
        std::os::unix::fs::symlink("elsewhere.csv", &place.whole).unwrap();
        assert!(stamps(&place.whole).is_err());
    }
}
