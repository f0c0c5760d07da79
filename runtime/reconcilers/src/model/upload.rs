//! The objects in stores to which a model's rows are exported: their owner, and which must be written.
//!
//! An object is a model's own by the mark in its metadata, which names the model and the content, or by its version in the
//! catalog. Anything else at its address is somebody's, and stays.

use std::{collections::BTreeMap, fs::File, io, path::Path};

use uuid::Uuid;
use watershed_compilers::{Scope, refused_object, render_text};
use watershed_core::Error;
use watershed_drivers::objects::{Over, Standing, StoreError};
use watershed_proto::{ExportState, ExportedFiles, FileExport, LocalFileState};

use super::{export, failure};

/// Returns the address that an export names, with its template executed.
///
/// # Errors
/// When the template can't be executed, or its address is none that rows are written to.
pub(super) fn address(export: &FileExport, scope: &Scope) -> Result<String, Error> {
    let address = render_text(&export.path, scope).map_err(|error| failure::from_render(&error))?;
    let address = address.trim().to_owned();
    if address.is_empty() {
        return Err(Error::permanent("path-missing", "the path of its files is empty"));
    }
    match refused_object(&export.store, &address) {
        None => Ok(address),
        Some(why) => {
            let message = format!("rows can't be written to \"{address}\": {why}");
            Err(Error::permanent(export::UNWRITTEN, message))
        }
    }
}

/// Returns the address of one file of an export.
pub(super) fn address_of(base: &str, file: &str) -> String {
    match file {
        "" => base.to_owned(),
        file => format!("{base}/{file}"),
    }
}

/// The mark of an object that a model wrote: the model's id and a digest of the content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    uid: Uuid,
    content: Vec<u8>,
}

impl Mark {
    pub(super) fn of(uid: Uuid, file: &LocalFileState) -> Self {
        let content = file.digest.clone();
        Self { uid, content }
    }

    /// Returns the mark as a text for metadata.
    pub(super) fn text(&self) -> String {
        let content: String = self.content.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}:{content}", self.uid)
    }

    /// Returns true if an object's mark is that of the model `uid`, whatever the content.
    fn is_of(uid: Uuid, mark: &str) -> bool {
        let owner = mark.split_once(':').map(|(owner, _)| owner);
        owner.and_then(|owner| Uuid::try_parse(owner).ok()) == Some(uid)
    }

    /// Returns true if an object's mark names the same content, whichever model wrote it.
    fn has_content(&self, mark: &str) -> bool {
        let own = self.text();
        let content = |text: &str| text.split_once(':').map(|(_, content)| content.to_owned());
        content(&own) == content(mark)
    }
}

/// Returns the recorded files at an address, both current and about to be written, each with its name.
pub(super) fn recorded<'a>(
    known: &'a ExportState,
    address: &str,
) -> impl Iterator<Item = (&'a str, &'a LocalFileState)> {
    let of_place = known.now.iter().chain(&known.next);
    let of_place = of_place
        .filter(move |files| files.path == address)
        .collect::<Vec<_>>();
    of_place
        .into_iter()
        .flat_map(|files| files.files.iter().map(|(name, file)| (name.as_str(), file)))
}

/// Returns true if an object is the model's own, by a recorded version or by its mark.
pub(super) fn is_own(uid: Uuid, standing: &Standing, versions: &[&str]) -> bool {
    let by_mark = standing
        .mark
        .as_deref()
        .is_some_and(|mark| Mark::is_of(uid, mark));
    by_mark || versions.contains(&standing.version.as_str())
}

/// The action for one object of an export.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// The object already has the content, in the given version.
    Nothing(String),
    /// The object must be written.
    Write(Over),
    /// The object belongs to somebody else.
    Taken,
}

/// Decides on the action for one object.
pub(super) fn due(uid: Uuid, wanted: &LocalFileState, standing: Option<&Standing>, versions: &[&str]) -> Due {
    let Some(standing) = standing else {
        return Due::Write(Over::Nothing);
    };
    let mark = Mark::of(uid, wanted);
    // After the loss of the catalog the model has another id, and its object the same content.
    if standing
        .mark
        .as_deref()
        .is_some_and(|there| mark.has_content(there))
    {
        return Due::Nothing(standing.version.clone());
    }
    match is_own(uid, standing, versions) {
        true => Due::Write(Over::Version(standing.version.clone())),
        false => Due::Taken,
    }
}

/// Computes the digest of each file below a folder, or of the single file.
///
/// # Errors
/// When one can't be read.
pub(super) fn digests(place: &Path, files: &mut BTreeMap<String, LocalFileState>) -> io::Result<()> {
    for (name, file) in files {
        let path = if name.is_empty() {
            place.to_owned()
        } else {
            place.join(name)
        };
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(File::open(path)?)?;
        // Whoever looks at the object later sees nothing of the file that it was.
        *file = LocalFileState {
            size: file.size,
            digest: hasher.finalize().as_bytes().to_vec(),
            ..LocalFileState::default()
        };
    }
    Ok(())
}

/// Returns true if exported files are objects in a store.
pub(super) fn is_in_store(files: &ExportedFiles) -> bool {
    !files.connector.is_empty()
}

/// Returns the error for an object that belongs to somebody else.
pub(super) fn taken(address: &str) -> Error {
    let message =
        format!("\"{address}\" was not written by this model, or was changed since: it stays as it is");
    let hint = "move it away or delete it, and the next run writes the rows there; or give the model another `output.path`";
    Error {
        hint: Some(hint.into()),
        ..Error::permanent(export::TAKEN, message)
    }
}

/// Returns the error that a store reports about an exported object.
pub(super) fn refused(error: &StoreError) -> Error {
    match error {
        StoreError::Taken(address) => taken(address),
        error => failure::from_store(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(content: u8) -> LocalFileState {
        LocalFileState {
            digest: vec![content; 32],
            ..LocalFileState::default()
        }
    }

    fn standing(mark: Option<String>) -> Standing {
        let version = "v".to_owned();
        Standing { version, mark }
    }

    #[test]
    fn an_object_is_written_over_only_if_it_is_the_models_own() {
        let (own, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let marked = |uid, content| standing(Some(Mark::of(uid, &file(content)).text()));
        let due = |standing: Option<&Standing>, versions: &[&str]| due(own, &file(7), standing, versions);
        assert_eq!(due(None, &[]), Due::Write(Over::Nothing));
        assert_eq!(due(Some(&marked(own, 7)), &[]), Due::Nothing("v".into()));
        let over = Due::Write(Over::Version("v".into()));
        assert_eq!(due(Some(&marked(own, 8)), &[]), over);
        assert_eq!(due(Some(&marked(other, 8)), &[]), Due::Taken);
        assert_eq!(
            due(Some(&marked(other, 8)), &["v"]),
            over,
            "its version is recorded"
        );
        assert_eq!(
            due(Some(&marked(other, 7)), &[]),
            Due::Nothing("v".into()),
            "the very rows, of a lost catalog"
        );
        assert_eq!(due(Some(&standing(None)), &["u"]), Due::Taken);
        assert_eq!(due(Some(&standing(Some("odd".into()))), &[]), Due::Taken);
    }
}
