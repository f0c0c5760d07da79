//! Writing of objects: each appears atomically, carries its writer's mark, and replaces only an object that the writer
//! has examined.

use std::borrow::Cow;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::TryStreamExt as _;
use object_store::path::Path as Key;
use object_store::{
    Attribute, Attributes, Error, GetOptions, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt as _,
    PutMode, PutMultipartOptions, PutOptions, PutPayload, UpdateVersion,
};
use tokio_util::sync::CancellationToken;

use super::client::{Purpose, store};
use super::listing::said;
use super::{Access, Driver, Location, MAX_OBJECTS, Object, StoreError};
use crate::crash;

/// Metadata key of the mark.
const MARK: &str = "watershed";
/// The most bytes of an object that are sent in one request and held in memory.
const PIECE: u64 = 8 << 20;
/// The most parts of one object; stores accept ten thousand.
const MOST_PIECES: u64 = 9_000;
/// Time limit for discarding the uploaded parts of an incomplete object.
const ABORTED_WITHIN: Duration = Duration::from_secs(5);

/// The object that is at an address now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Version of the content, as in [`Object::version`].
    pub version: String,
    /// The writer's mark; none if the object has none.
    pub mark: Option<String>,
}

/// The object that a write replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Over {
    /// No object: the address must be free.
    Nothing,
    /// The object with this version.
    Version(String),
}

/// Returns the object at an address, if any.
///
/// Cancel-safe.
///
/// # Errors
/// When the store can't be asked.
pub async fn find(
    access: &Access,
    address: &str,
    cancel: &CancellationToken,
) -> Result<Option<Standing>, StoreError> {
    let (location, key) = parts(address)?;
    let store = store(access, &location, Purpose::Ask)?;
    let options = GetOptions {
        head: true,
        ..GetOptions::default()
    };
    let found = within(cancel, store.get_opts(&key, options)).await?;
    match found {
        Ok(found) => Ok(Some(Standing {
            version: version(&found.meta),
            mark: found.attributes.get(&name()).map(|mark| mark.to_string()),
        })),
        Err(error) => match said(&error, address, &location) {
            StoreError::Missing(_) => Ok(None),
            error => Err(error),
        },
    }
}

/// Returns all objects below an address, sorted by address. Their versions are always known.
///
/// Cancel-safe.
///
/// # Errors
/// When the store can't be asked, or they are more than [`MAX_OBJECTS`].
pub async fn find_below(
    access: &Access,
    address: &str,
    cancel: &CancellationToken,
) -> Result<Vec<Object>, StoreError> {
    let (location, key) = parts(address)?;
    let store = store(access, &location, Purpose::Ask)?;
    let listed = async {
        let mut listed = store.list(Some(&key));
        let mut found = Vec::new();
        while let Some(meta) = listed.try_next().await? {
            if found.len() == MAX_OBJECTS {
                return Ok(None);
            }
            found.push(Object {
                address: location.address_of(meta.location.as_ref()),
                modified_ns: meta.last_modified.timestamp_nanos_opt().unwrap_or_default(),
                size: meta.size,
                version: Some(version(&meta)),
            });
        }
        Ok(Some(found))
    };
    let found = within(cancel, listed).await?;
    let mut found = found
        .map_err(|error| said(&error, address, &location))?
        .ok_or_else(|| StoreError::TooMany(address.to_owned()))?;
    found.sort_by(|a, b| a.address.cmp(&b.address));
    Ok(found)
}

/// Uploads a file to an address with a mark. Returns the version of the object.
///
/// Whoever reads sees the object of before, or all of the new one. Whether another came to stand there meanwhile is
/// asked by the very request that writes; of objects of several pieces, right before the last one.
///
/// Cancel-safe: what was sent of an object that is not completed is taken back, or never seen.
///
/// # Errors
/// [`StoreError::Taken`] if what stands there is not `over`; when the file can't be read, or the store refuses.
pub async fn put(
    access: &Access,
    address: &str,
    file: &Path,
    mark: &str,
    over: &Over,
    cancel: &CancellationToken,
) -> Result<String, StoreError> {
    let (location, key) = parts(address)?;
    let job = Put {
        store: store(access, &location, Purpose::Send)?.as_ref(),
        key: &key,
        attributes: Attributes::from_iter([(name(), mark.to_owned())]),
        file,
        over,
        cancel,
    }
    .run()
    .await;
    let written = job.map_err(|error| match error {
        PutError::Cancelled => StoreError::Cancelled,
        PutError::File(error) => {
            StoreError::Other(address.to_owned(), format!("`{}`: {error}", file.display()))
        }
        PutError::Store(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {
            StoreError::Taken(address.to_owned())
        }
        PutError::Store(error) => said(&error, address, &location),
    })?;
    crash::point("drivers::put::after");
    match written {
        Some(version) => Ok(version),
        // A store that does not say what it made of it is asked.
        None => match find(access, address, cancel).await? {
            Some(standing) if standing.mark.as_deref() == Some(mark) => Ok(standing.version),
            _ => Err(StoreError::Taken(address.to_owned())),
        },
    }
}

/// Removes the object at an address; succeeds if there is none.
///
/// # Errors
/// When the store refuses.
pub async fn remove(access: &Access, address: &str, cancel: &CancellationToken) -> Result<(), StoreError> {
    let (location, key) = parts(address)?;
    let store = store(access, &location, Purpose::Ask)?;
    let removed = within(cancel, store.delete(&key)).await?;
    match removed.map_err(|error| said(&error, address, &location)) {
        Err(StoreError::Missing(_)) => Ok(()),
        removed => removed,
    }
}

enum PutError {
    Cancelled,
    File(io::Error),
    Store(Error),
}

impl From<Error> for PutError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

struct Put<'a> {
    store: &'a dyn ObjectStore,
    key: &'a Key,
    attributes: Attributes,
    file: &'a Path,
    over: &'a Over,
    cancel: &'a CancellationToken,
}

impl Put<'_> {
    /// Performs the upload and returns the version; none if the store does not report it.
    async fn run(&self) -> Result<Option<String>, PutError> {
        let file = self.file.to_owned();
        let size = blocking(move || Ok(file.metadata()?.len())).await?;
        crash::point("drivers::put::before");
        match size <= PIECE {
            true => self.at_once(size).await,
            false => self.by_pieces(size).await,
        }
    }

    async fn at_once(&self, size: u64) -> Result<Option<String>, PutError> {
        let content = piece(self.file, 0, size).await?;
        let put = |mode: PutMode| {
            let options = PutOptions {
                mode,
                attributes: self.attributes.clone(),
                ..PutOptions::default()
            };
            self.store.put_opts(self.key, content.clone(), options)
        };
        let mode = match self.over {
            Over::Nothing => PutMode::Create,
            Over::Version(version) => PutMode::Update(UpdateVersion {
                e_tag: Some(version.clone()),
                version: None,
            }),
        };
        let put = async {
            match put(mode).await {
                // The store has no conditions: it was looked at, and has to do.
                Err(Error::NotImplemented { .. }) => {
                    self.is_as_it_was().await?;
                    Ok(put(PutMode::Overwrite).await?)
                }
                put => Ok(put?),
            }
        };
        let cancelled = self.cancel.run_until_cancelled(put).await;
        Ok(cancelled.unwrap_or(Err(PutError::Cancelled))?.e_tag)
    }

    async fn by_pieces(&self, size: u64) -> Result<Option<String>, PutError> {
        let options = PutMultipartOptions {
            attributes: self.attributes.clone(),
            ..PutMultipartOptions::default()
        };
        let begun = self.store.put_multipart_opts(self.key, options);
        let begun = self.cancel.run_until_cancelled(begun).await;
        let mut upload = begun.ok_or(PutError::Cancelled)??;
        let sent = self.send(upload.as_mut(), size);
        let sent = self.cancel.run_until_cancelled(sent).await;
        let error = match sent.unwrap_or(Err(PutError::Cancelled)) {
            Ok(version) => return Ok(version),
            Err(error) => error,
        };
        // What a store keeps of it nobody sees; its own rules remove it in the end.
        if let Ok(Err(error)) = tokio::time::timeout(ABORTED_WITHIN, upload.abort()).await {
            tracing::debug!(%error, "pieces of an object that is not completed stay in the store");
        }
        Err(error)
    }

    async fn send(&self, upload: &mut dyn MultipartUpload, size: u64) -> Result<Option<String>, PutError> {
        let length = PIECE.max(size.div_ceil(MOST_PIECES));
        let mut from = 0;
        while from < size {
            let content = piece(self.file, from, length.min(size - from)).await?;
            upload.put_part(content).await?;
            from += length;
        }
        crash::point("drivers::put::pieces");
        self.is_as_it_was().await?;
        Ok(upload.complete().await?.e_tag)
    }

    /// Fails if another object has appeared at the address.
    async fn is_as_it_was(&self) -> Result<(), PutError> {
        let now = match self.store.head(self.key).await {
            Ok(meta) => Over::Version(version(&meta)),
            Err(Error::NotFound { .. }) => Over::Nothing,
            Err(error) => return Err(error.into()),
        };
        match now == *self.over {
            true => Ok(()),
            false => Err(PutError::Store(Error::Precondition {
                path: self.key.to_string(),
                source: "another object stands there".into(),
            })),
        }
    }
}

/// Reads a range of bytes from a file.
async fn piece(file: &Path, from: u64, length: u64) -> Result<PutPayload, PutError> {
    let file: PathBuf = file.to_owned();
    let content = blocking(move || {
        use std::io::Seek as _;
        let mut file = std::fs::File::open(file)?;
        file.seek(io::SeekFrom::Start(from))?;
        let mut content = Vec::new();
        file.take(length).read_to_end(&mut content)?;
        Ok(content)
    });
    Ok(content.await?.into())
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, PutError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(io::Error::other)
        .and_then(|done| done)
        .map_err(PutError::File)
}

/// Returns the location of an address and its literal key, in which `%` is not an escape.
fn parts(address: &str) -> Result<(Location, Key), StoreError> {
    let location = Location::parse(address).filter(|it| it.driver != Driver::Https);
    let location = location.ok_or_else(|| StoreError::Missing(address.to_owned()))?;
    let key = Key::parse(&location.key);
    let key = key.map_err(|error| StoreError::Other(address.to_owned(), error.to_string()))?;
    Ok((location, key))
}

fn name() -> Attribute {
    Attribute::Metadata(Cow::Borrowed(MARK))
}

/// Returns the version of an object; its modification time if the store has no tags.
fn version(meta: &ObjectMeta) -> String {
    let tag = meta.e_tag.clone();
    tag.unwrap_or_else(|| meta.last_modified.to_rfc3339())
}

async fn within<T>(cancel: &CancellationToken, work: impl Future<Output = T>) -> Result<T, StoreError> {
    cancel
        .run_until_cancelled(work)
        .await
        .ok_or(StoreError::Cancelled)
}
