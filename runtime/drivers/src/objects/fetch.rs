//! Fetching of objects as files of this machine.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use object_store::ObjectStoreExt as _;
use object_store::path::Path as Key;
use tokio::io::{AsyncWriteExt as _, BufWriter};
use tokio_util::sync::CancellationToken;
use watershed_outside::http::{Method, Url};

use super::client::{self, Purpose, store};
use super::listing::{headers, said};
use super::{Access, Driver, Location, StoreError};

/// The longest time without a byte of an object.
const SILENT_FOR: Duration = Duration::from_secs(60);
/// Bytes that are held before they are written.
const BUFFER: usize = 1 << 20;

/// Writes the content of an object into a new file. Takes its bytes from `left`, the number that several fetches may write
/// together.
///
/// Cancel-safe: dropping it closes its connection; the file stays as far as it was written.
///
/// # Errors
/// When the store can't be asked, the object is larger, or the file can't be written.
pub async fn fetch(
    access: &Access,
    address: &str,
    (file, left): (&Path, &AtomicU64),
    cancel: &CancellationToken,
) -> Result<(), StoreError> {
    let location = Location::parse(address).ok_or_else(|| StoreError::Missing(address.to_owned()))?;
    let other = |text: String| StoreError::Other(address.to_owned(), text);
    let fetched = async {
        let new = tokio::fs::File::create_new(file).await;
        let new = new.map_err(|error| other(format!("`{}`: {error}", file.display())))?;
        let mut sink = Sink {
            file: BufWriter::with_capacity(BUFFER, new),
            left,
        };
        match location.driver {
            Driver::Https => of_web(access, address, &mut sink).await?,
            _ => of_store(access, address, &location, &mut sink).await?,
        }
        let flushed = sink.file.flush().await;
        flushed.map_err(|error| other(error.to_string()))
    };
    let fetched = cancel.run_until_cancelled(fetched).await;
    fetched.unwrap_or(Err(StoreError::Cancelled))
}

/// The file that an object is written into.
struct Sink<'a> {
    file: BufWriter<tokio::fs::File>,
    left: &'a AtomicU64,
}

impl Sink<'_> {
    async fn take(&mut self, address: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let other = |text: String| StoreError::Other(address.to_owned(), text);
        let taken = |left: u64| left.checked_sub(bytes.len() as u64);
        if self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken)
            .is_err()
        {
            return Err(other(
                "its objects are larger than those of one build may be".to_owned(),
            ));
        }
        let written = self.file.write_all(bytes).await;
        written.map_err(|error| other(error.to_string()))
    }
}

async fn of_store(
    access: &Access,
    address: &str,
    location: &Location,
    sink: &mut Sink<'_>,
) -> Result<(), StoreError> {
    let store = store(access, location, Purpose::Fetch)?;
    let key = Key::parse(&location.key);
    let key = key.map_err(|error| StoreError::Other(address.to_owned(), error.to_string()))?;
    let answered = within(address, store.get(&key)).await?;
    let answered = answered.map_err(|error| said(&error, address, location))?;
    let mut bytes = answered.into_stream();
    while let Some(some) = within(address, bytes.next()).await? {
        let some = some.map_err(|error| said(&error, address, location))?;
        sink.take(address, &some).await?;
    }
    Ok(())
}

async fn of_web(access: &Access, address: &str, sink: &mut Sink<'_>) -> Result<(), StoreError> {
    let other = |text: String| StoreError::Other(address.to_owned(), text);
    let url = Url::parse(address).map_err(|error| other(error.to_string()))?;
    let client = client::http(access, Purpose::Fetch).map_err(|error| other(error.to_string()))?;
    let client = client
        .shared(&url)
        .map_err(|refused| StoreError::NotAllowed(address.to_owned(), refused))?;
    let headers =
        headers(access).ok_or_else(|| other("a header of the connector is no header".to_owned()))?;
    let asked = client.request(Method::GET, url).headers(headers).send();
    let answered = within(address, asked).await?;
    let mut answered = answered.map_err(|error| StoreError::from_client(&error, address, ""))?;
    if !answered.status().is_success() {
        return Err(other(format!("the server answers {}", answered.status())));
    }
    while let Some(some) = within(address, answered.chunk())
        .await?
        .map_err(|error| StoreError::from_client(&error, address, ""))?
    {
        sink.take(address, &some).await?;
    }
    Ok(())
}

async fn within<T>(address: &str, work: impl Future<Output = T>) -> Result<T, StoreError> {
    let waited = tokio::time::timeout(SILENT_FOR, work).await;
    waited.map_err(|_| StoreError::Timeout(address.to_owned()))
}
