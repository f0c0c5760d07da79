//! Objects that a confined project reads, fetched for the time of a build: the engine of a confined project reaches no
//! network.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use watershed_compilers::Scope;
use watershed_core::Error;
use watershed_drivers::files::{self, FileNow};
use watershed_drivers::objects::{self, Driver, Location, Object};
use watershed_proto::{ModelSpec, OutputKind};

use super::{stores, subject::Subject};
use crate::model::{failure, inputs, source};

/// The most bytes of the objects of one build.
const MOST_BYTES: u64 = 64 << 30;
/// The most objects that are fetched at once.
const AT_ONCE: usize = 4;
/// Signs in a name that the engine or a template would read as more than themselves.
const SPECIAL: [char; 6] = ['*', '?', '[', ']', '{', '}'];

/// The objects of a source as files of this machine, which are removed when this is dropped.
pub(super) struct Fetched {
    pub(super) folder: PathBuf,
    /// The files with absolute paths, in the order of their addresses.
    pub(super) files: Vec<FileNow>,
}

impl Drop for Fetched {
    fn drop(&mut self) {
        // Files that stay are removed before the next build of the model.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Fetched {
    /// Returns no files yet, in a folder which is emptied for them.
    pub(super) fn in_folder(folder: PathBuf) -> Self {
        let _ = std::fs::remove_dir_all(&folder);
        Self {
            folder,
            files: Vec::new(),
        }
    }

    /// Returns the spec with the files in the place of the objects.
    pub(super) fn reading(&self, spec: &ModelSpec) -> ModelSpec {
        source::reading_files(spec, self.files.iter().map(|file| file.path.as_str()))
    }
}

/// Fetches the objects that a source of a confined project reads; none if the project is not confined or the source reads
/// no objects.
///
/// # Errors
/// When an address is outside of what the operator lists, or an object can't be fetched.
pub(super) async fn fetch(
    subject: Subject<'_>,
    spec: &ModelSpec,
    scope: &Scope,
) -> Result<Option<Fetched>, Error> {
    let (Some(sandbox), Some(driver)) = (subject.outputs().sandbox(), source::store(spec)) else {
        return Ok(None);
    };
    if source::form(spec, scope).is_none() {
        return Err(failure::unfetched(
            "tables of a lakehouse are not fetched for a confined project",
        ));
    }
    if spec.output_kind() != OutputKind::Table {
        return Err(failure::unfetched(
            "objects are fetched for a table of a confined project, and a view keeps none",
        ));
    }
    let access = stores::access_of(subject, &spec.input_connector, driver)?;
    let mut fetched = Fetched::in_folder(subject.model.parts.join(format!("fetched-{}", subject.uid())));
    let mut found = Vec::new();
    for address in source::addresses(spec, scope).map_err(|error| failure::from_source(&error))? {
        stores::refuse_unreached(sandbox, &access, &address)?;
        let look = objects::look(&access, &address, subject.cancel()).await;
        found.extend(look.map_err(|error| failure::from_store(&error))?);
    }
    for object in &found {
        stores::refuse_unreached(sandbox, &access, &object.address)?;
    }
    let bytes = found.iter().fold(0_u64, |all, one| all.saturating_add(one.size));
    let count = found.len();
    subject
        .context
        .progress(format!("fetching {count} objects, {bytes} bytes"));
    let left = AtomicU64::new(MOST_BYTES);
    let places = found.into_iter().enumerate().map(|(index, object)| {
        let place = place(&fetched.folder, index, &object)?;
        Ok::<_, Error>((object, place))
    });
    let places = places.collect::<Result<Vec<_>, _>>()?;
    let fetches = places.into_iter().map(|(object, place)| {
        let (access, left) = (&access, &left);
        async move {
            let folder = place.parent().unwrap_or(&place).to_owned();
            let made = tokio::fs::create_dir_all(folder).await;
            made.map_err(|error| {
                Error::transient("store-failed", format!("`{}`: {error}", place.display()))
            })?;
            let written = objects::fetch(access, &object.address, (&place, left), subject.cancel()).await;
            written.map_err(|error| failure::from_store(&error))?;
            Ok::<_, Error>(place.to_string_lossy().into_owned())
        }
    });
    let paths: Vec<String> = stream::iter(fetches).buffered(AT_ONCE).try_collect().await?;
    fetched.files = inputs::blocking(&subject.model.root, subject.cancel(), move |root| {
        paths.iter().map(|path| files::look_at(root, path)).collect()
    })
    .await?;
    Ok(Some(fetched))
}

/// Returns the place of an object's file. The parts of its key stay, since readers take columns of partitions from them.
fn place(folder: &Path, index: usize, object: &Object) -> Result<PathBuf, Error> {
    let address = &object.address;
    let (driver, key) = Location::parse(address).map_or_else(Default::default, |it| (it.driver, it.key));
    let key = match driver {
        // A query may follow, and the path says nothing.
        Driver::Https => key.split('?').next().and_then(|path| path.rsplit('/').next()),
        _ => Some(key.as_str()),
    };
    let key = key.unwrap_or_default();
    let is_plain = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains(SPECIAL);
    let parts = || key.split('/');
    match parts().all(is_plain) && !key.chars().any(char::is_control) {
        true => Ok(parts().fold(folder.join(index.to_string()), |place, part| place.join(part))),
        false => Err(failure::unfetched(format!(
            "\"{address}\" has a name that no file of a confined project can have"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> Result<PathBuf, Error> {
        let object = Object {
            address: address.to_owned(),
            modified_ns: 0,
            size: 0,
            version: None,
        };
        place(Path::new("/f"), 3, &object)
    }

    #[test]
    fn keys_keep_their_parts_and_web_addresses_their_last() {
        for (address, expected) in [
            ("s3://lake/a/day=1/x y.csv", "/f/3/a/day=1/x y.csv"),
            ("https://host/a/b/x.csv?day=../1", "/f/3/x.csv"),
            ("HTTPS://host/x.csv?day=1", "/f/3/x.csv"),
        ] {
            assert_eq!(at(address).unwrap(), Path::new(expected), "{address}");
        }
        for address in [
            "s3://lake/a/../x.csv",
            "s3://lake/a//x.csv",
            "s3://lake/{{x}}.csv",
            "https://host/",
        ] {
            assert!(at(address).is_err(), "{address}");
        }
    }
}
