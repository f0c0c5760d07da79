//! Listing of objects in stores.

use std::time::{Duration, SystemTime};

use futures::TryStreamExt as _;
use globset::{GlobBuilder, GlobMatcher};
use object_store::path::Path as Key;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt as _};
use tokio_util::sync::CancellationToken;
use watershed_outside::http::header::{
    CONTENT_LENGTH, ETAG, HeaderMap, HeaderName, HeaderValue, LAST_MODIFIED,
};
use watershed_outside::http::{Method, StatusCode, Url, retry_after};

use super::client::{self, Purpose, RETRIES, store};
use super::{Access, Driver, Location, MAX_OBJECTS, StoreError};

/// The longest delay that an overloaded server may request.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// Metadata of an object in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Full address of the object.
    pub address: String,
    /// Modification time in nanoseconds since 1970; 0 if unknown.
    pub modified_ns: i64,
    /// Size in bytes; 0 if unknown.
    pub size: u64,
    /// The store's version of the content, such as an `ETag`; none if only time and size are known.
    pub version: Option<String>,
}

/// Returns the objects at an address or pattern, sorted by address, without reading their content.
///
/// Cancel-safe: dropping it closes its connections.
///
/// # Errors
/// When the store can't be asked, or nothing matches. What passes by itself was tried again before.
pub async fn look(
    access: &Access,
    address: &str,
    cancel: &CancellationToken,
) -> Result<Vec<Object>, StoreError> {
    let location = Location::parse(address).ok_or_else(|| StoreError::Missing(address.to_owned()))?;
    let looked = async {
        if location.driver == Driver::Https {
            return Ok(vec![head(access, address, &location).await?]);
        }
        let store = store(access, &location, Purpose::Ask)?;
        match location.folder() {
            None => {
                let found = store.head(&Key::from(location.key.as_str())).await;
                let found = found.map_err(|error| said(&error, address, &location))?;
                Ok(vec![object(&location, found)])
            }
            Some(folder) => list(store.as_ref(), &location, folder, address).await,
        }
    };
    cancel
        .run_until_cancelled(looked)
        .await
        .unwrap_or(Err(StoreError::Cancelled))
}

/// Tests an access: lists one object of a bucket, or requests the root of a web server.
///
/// # Errors
/// When the store can't be asked. A web server may answer anything.
pub async fn try_access(
    access: &Access,
    address: &str,
    cancel: &CancellationToken,
) -> Result<(), StoreError> {
    let location = Location::parse(address).ok_or_else(|| StoreError::Missing(address.to_owned()))?;
    let tried = async {
        if location.driver == Driver::Https {
            return match head(access, address, &location).await {
                Err(error @ (StoreError::Missing(_) | StoreError::Other(..))) => {
                    tracing::debug!(%error, "the server is there");
                    Ok(())
                }
                other => other.map(drop),
            };
        }
        let store = store(access, &location, Purpose::Ask)?;
        let mut listed = store.list(None);
        let first = listed.try_next().await;
        first.map(drop).map_err(|error| said(&error, address, &location))
    };
    cancel
        .run_until_cancelled(tried)
        .await
        .unwrap_or(Err(StoreError::Cancelled))
}

async fn list(
    store: &dyn ObjectStore,
    location: &Location,
    folder: &str,
    address: &str,
) -> Result<Vec<Object>, StoreError> {
    let matcher = matcher(&location.key, address)?;
    let prefix = (!folder.is_empty()).then(|| Key::from(folder));
    let mut listed = store.list(prefix.as_ref());
    let mut found = Vec::new();
    while let Some(meta) = listed
        .try_next()
        .await
        .map_err(|error| said(&error, address, location))?
    {
        // Markers of folders are no data.
        if !matcher.is_match(meta.location.as_ref()) || meta.location.as_ref().ends_with('/') {
            continue;
        }
        if found.len() == MAX_OBJECTS {
            return Err(StoreError::TooMany(address.to_owned()));
        }
        found.push(object(location, meta));
    }
    if found.is_empty() {
        return Err(StoreError::Missing(address.to_owned()));
    }
    found.sort_by(|a, b| a.address.cmp(&b.address));
    Ok(found)
}

fn matcher(pattern: &str, address: &str) -> Result<GlobMatcher, StoreError> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    let glob = glob.map_err(|_| StoreError::Pattern(address.to_owned()))?;
    Ok(glob.compile_matcher())
}

fn object(location: &Location, meta: ObjectMeta) -> Object {
    Object {
        address: location.address_of(meta.location.as_ref()),
        modified_ns: meta.last_modified.timestamp_nanos_opt().unwrap_or_default(),
        size: meta.size,
        version: meta.version.or(meta.e_tag),
    }
}

/// Converts a client's error about an address.
pub(super) fn said(error: &object_store::Error, address: &str, location: &Location) -> StoreError {
    match StoreError::from_client(error, address, &location.bucket) {
        StoreError::Other(..) if matches!(error, object_store::Error::NotFound { .. }) => {
            StoreError::Missing(address.to_owned())
        }
        StoreError::Other(..) if matches!(error, object_store::Error::PermissionDenied { .. }) => {
            StoreError::Forbidden(location.bucket.clone())
        }
        StoreError::Other(..) if matches!(error, object_store::Error::Unauthenticated { .. }) => {
            StoreError::Login
        }
        other => other,
    }
}

/// Requests the metadata of a file from a web server.
async fn head(access: &Access, address: &str, location: &Location) -> Result<Object, StoreError> {
    let other = |text: String| StoreError::Other(address.to_owned(), text);
    let url = Url::parse(address).map_err(|error| other(error.to_string()))?;
    let client = client::http(access, Purpose::Ask).map_err(|error| other(error.to_string()))?;
    let headers =
        headers(access).ok_or_else(|| other("a header of the connector is no header".to_owned()))?;
    let mut attempt = 0;
    loop {
        let mut wait = Duration::from_millis(200 << attempt);
        let asked = client
            .request(Method::HEAD, url.clone())
            .headers(headers.clone())
            .send()
            .await;
        let error = match asked {
            Ok(answer) if answer.status().is_success() => return Ok(described(address, answer.headers())),
            Ok(answer) => match answer.status() {
                StatusCode::NOT_FOUND | StatusCode::GONE => {
                    return Err(StoreError::Missing(address.to_owned()));
                }
                StatusCode::UNAUTHORIZED => return Err(StoreError::Login),
                StatusCode::FORBIDDEN => return Err(StoreError::Forbidden(address.to_owned())),
                // Some servers answer GET alone: the file is there, and nothing is known of it.
                StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => {
                    return Ok(described(address, &HeaderMap::new()));
                }
                status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                    let asked = retry_after(answer.headers()).unwrap_or_default();
                    wait = wait.max(asked.min(LONGEST_WAIT));
                    StoreError::Busy(address.to_owned(), status.to_string())
                }
                status => return Err(other(status.to_string())),
            },
            Err(error) => StoreError::from_client(&error, address, &location.bucket),
        };
        if attempt == RETRIES || !error.passes() {
            return Err(error);
        }
        tokio::time::sleep(wait).await;
        attempt += 1;
    }
}

pub(super) fn headers(access: &Access) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    for (name, value) in &access.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        headers.insert(name, HeaderValue::from_str(value).ok()?);
    }
    Some(headers)
}

fn described(address: &str, headers: &HeaderMap) -> Object {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let modified = text(LAST_MODIFIED).and_then(|at| httpdate::parse_http_date(at).ok());
    let since = modified.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    let size = text(CONTENT_LENGTH).and_then(|size| size.parse().ok());
    Object {
        address: address.to_owned(),
        modified_ns: since
            .and_then(|since| i64::try_from(since.as_nanos()).ok())
            .unwrap_or_default(),
        size: size.unwrap_or_default(),
        version: text(ETAG).map(str::to_owned),
    }
}
