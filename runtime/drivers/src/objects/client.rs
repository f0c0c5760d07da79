//! Clients of object stores, one per access and bucket, over shared connections.

use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, S3ConditionalPut};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::{
    ClientOptions, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpService,
};
use object_store::{ObjectStore, RetryConfig};
use watershed_locks::Unpoisoned;
use watershed_outside::http::{Client, ClientError, Egress, Refused, Route, Settings, Url};

use super::error::refusal;
use super::{Access, Driver, Location, StoreError};

/// Time limit of a short request, such as a page of a listing.
const ASKED_WITHIN: Duration = Duration::from_secs(30);
/// Time limit of sending a part of an object, sufficient for a slow connection.
const SENT_WITHIN: Duration = Duration::from_secs(10 * 60);
/// The most retries of transient errors.
pub(super) const RETRIES: usize = 3;
/// Time limit of all attempts together.
const RETRY_WITHIN: Duration = Duration::from_secs(60);

/// The most redirects that are followed, since web servers move files.
const REDIRECTS: usize = 10;

/// Endpoint of Google's storage for the S3 protocol.
const GOOGLE: &str = "https://storage.googleapis.com";

/// The purpose of a client, which determines its time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Short requests and removals.
    Ask,
    /// Uploads of content.
    Send,
    /// Downloads of content, which the reader bounds.
    Fetch,
}

/// Returns the client of a store, for the bucket of a location.
///
/// # Errors
/// When the settings are none that its client takes.
pub(super) fn store(
    access: &Access,
    location: &Location,
    purpose: Purpose,
) -> Result<Arc<dyn ObjectStore>, StoreError> {
    let built = match location.driver {
        Driver::Azure => azure(access, location, purpose),
        _ => s3(access, location, purpose),
    };
    built.map_err(|error| StoreError::from_client(&error, &location.address(), &location.bucket))
}

fn retry(purpose: Purpose) -> RetryConfig {
    RetryConfig {
        max_retries: RETRIES,
        retry_timeout: match purpose {
            Purpose::Ask => RETRY_WITHIN,
            Purpose::Send | Purpose::Fetch => SENT_WITHIN,
        },
        ..RetryConfig::default()
    }
}

/// Returns the HTTP client for an access.
///
/// # Errors
/// When its file of certificates can't be read.
pub(super) fn http(access: &Access, purpose: Purpose) -> Result<Client, ClientError> {
    match (&access.authorities, purpose) {
        // Few have one, and its file may change.
        (Some(file), _) => Client::new(Settings {
            authorities: Some(file.clone()),
            ..settings(purpose, &access.egress)
        }),
        (None, _) if access.egress.is_restricted() => restricted(purpose, &access.egress),
        (None, Purpose::Ask) => ASKING.clone(),
        (None, Purpose::Send) => SENDING.clone(),
        (None, Purpose::Fetch) => Client::new(settings(purpose, &access.egress)),
    }
}

/// Shared HTTP client, whose connections are reused since a run makes many requests to one store.
static ASKING: LazyLock<Result<Client, ClientError>> =
    LazyLock::new(|| Client::new(settings(Purpose::Ask, &Egress::default())));
static SENDING: LazyLock<Result<Client, ClientError>> =
    LazyLock::new(|| Client::new(settings(Purpose::Send, &Egress::default())));
/// The clients of the restricted policy that was last used: a process has one.
static RESTRICTED: Mutex<Vec<(Purpose, Egress, Client)>> = Mutex::new(Vec::new());

fn restricted(purpose: Purpose, egress: &Egress) -> Result<Client, ClientError> {
    let mut made = RESTRICTED.lock().unpoisoned();
    if let Some((.., client)) = made.iter().find(|(of, by, _)| *of == purpose && by == egress) {
        return Ok(client.clone());
    }
    let client = Client::new(settings(purpose, egress))?;
    made.retain(|(of, ..)| *of != purpose);
    made.push((purpose, egress.clone(), client.clone()));
    Ok(client)
}

fn settings(purpose: Purpose, egress: &Egress) -> Settings {
    Settings {
        within: match purpose {
            Purpose::Ask => Some(ASKED_WITHIN),
            Purpose::Send => Some(SENT_WITHIN),
            Purpose::Fetch => None,
        },
        redirects: REDIRECTS,
        route: match egress.is_restricted() {
            true => Route::Direct(egress.clone()),
            false => Route::Environment,
        },
        ..Settings::default()
    }
}

fn azure(
    access: &Access,
    location: &Location,
    purpose: Purpose,
) -> object_store::Result<Arc<dyn ObjectStore>> {
    let mut builder = MicrosoftAzureBuilder::new()
        .with_container_name(&location.bucket)
        .with_retry(retry(purpose))
        .with_http_connector(Connector(http(access, purpose)))
        .with_allow_http(true)
        .with_skip_signature(access.is_anonymous());
    if let Some(account) = &access.key {
        builder = builder.with_account(account);
    }
    if let Some(key) = &access.secret {
        builder = builder.with_access_key(key);
    }
    if let Some(endpoint) = access.endpoint_url() {
        builder = builder.with_endpoint(endpoint);
    }
    Ok(Arc::new(builder.build()?))
}

fn s3(access: &Access, location: &Location, purpose: Purpose) -> object_store::Result<Arc<dyn ObjectStore>> {
    let endpoint = access
        .endpoint_url()
        .or_else(|| (location.driver == Driver::Gcs).then(|| GOOGLE.to_owned()));
    let path_style = access.path_style.unwrap_or(endpoint.is_some());
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(&location.bucket)
        .with_region(access.region.as_deref().unwrap_or("us-east-1"))
        .with_retry(retry(purpose))
        .with_http_connector(Connector(http(access, purpose)))
        .with_allow_http(true)
        .with_virtual_hosted_style_request(!path_style)
        .with_skip_signature(access.is_anonymous());
    if location.driver == Driver::Gcs {
        // Its conditions have other names, which the S3 form does not know.
        builder = builder.with_conditional_put(S3ConditionalPut::Disabled);
    }
    if let (Some(key), Some(secret)) = (&access.key, &access.secret) {
        builder = builder.with_access_key_id(key).with_secret_access_key(secret);
    }
    if let Some(token) = &access.session_token {
        builder = builder.with_token(token);
    }
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(if path_style {
            endpoint
        } else {
            in_host(&endpoint, &location.bucket)
        });
    }
    Ok(Arc::new(builder.build()?))
}

/// Returns the endpoint's URL with the bucket as the first part of the host name.
fn in_host(endpoint: &str, bucket: &str) -> String {
    match endpoint.split_once("://") {
        Some((scheme, host)) => format!("{scheme}://{bucket}.{host}"),
        None => endpoint.to_owned(),
    }
}

/// A factory of HTTP clients that always returns the same one.
#[derive(Debug)]
struct Connector(Result<Client, ClientError>);

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = self.0.clone().map_err(|error| object_store::Error::Generic {
            store: "HTTP",
            source: error.into(),
        })?;
        Ok(HttpClient::new(Checked(client)))
    }
}

/// A service of requests that asks the policy of connections before each of them.
#[derive(Debug)]
struct Checked(Client);

impl HttpService for Checked {
    fn call<'s, 'f>(
        &'s self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'f>>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(async move {
            // An error of this kind is not tried again.
            let refused = |refused: Refused| HttpError::new(HttpErrorKind::Unknown, refused);
            let url = Url::parse(&request.uri().to_string());
            let url = url.map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
            let client = self.0.shared(&url).map_err(refused)?;
            let answered = HttpService::call(&client, request).await;
            answered.map_err(|error| match refusal(&error) {
                Some(found) => refused(found),
                None => error,
            })
        })
    }
}
