//! The client, made of settings that are values.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Method, RequestBuilder, Url};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use super::addresses::Addresses;
use super::names::Guarded;
use super::{Answer, CallError, Egress, Names, Refused, SystemNames};

/// The default time limit for establishing a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// The default bound of a body, in bytes.
const BODY_MAX: usize = 64 * 1024;

/// The bounds of a client and the authorities that it trusts. By default it follows no redirect, uses no proxy,
/// connects to any address, and trusts the authorities of the web.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Time limit for establishing a connection; if `None`, only the limit of the whole call applies.
    pub connect_within: Option<Duration>,
    /// Time limit of a call until the end of the body; unlimited if `None`. Dropping a call closes its connection.
    pub within: Option<Duration>,
    /// The most redirects that are followed; at 0, and by a restricted policy, a redirect is returned as the answer.
    pub redirects: usize,
    /// Route of connections: direct or through proxies.
    pub route: Route,
    /// PEM file with certificates of authorities that are trusted beside those of the web.
    pub authorities: Option<PathBuf>,
    /// The most bytes of a body that are read.
    pub body_max: usize,
    /// The resolver of host names.
    pub names: Arc<dyn Names>,
}

/// Route of connections: direct or through proxies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// Directly to the server, if the policy allows it.
    Direct(Egress),
    /// Through the proxies that the environment names. Proxies look up names themselves, so no address can be refused.
    Environment,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connect_within: Some(CONNECT_WITHIN),
            within: None,
            redirects: 0,
            route: Route::Direct(Egress::default()),
            authorities: None,
            body_max: BODY_MAX,
            names: Arc::new(SystemNames),
        }
    }
}

/// A client of HTTP services, without global state. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    /// Connects to public addresses and listed networks, or to all addresses if the policy is not restricted.
    client: reqwest::Client,
    /// The clients of a restricted policy for listed destinations: pools of connections are not shared between them.
    listed: Option<Listed>,
    egress: Egress,
    body_max: usize,
}

/// Clients for the destinations that a restricted policy lists.
#[derive(Debug, Clone)]
struct Listed {
    /// Connects to listed networks alone.
    networks: reqwest::Client,
    /// Connects to listed hosts.
    hosts: reqwest::Client,
}

/// The error of creating a client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// TLS can't be configured.
    #[error("can't make an HTTP client: {0}")]
    Tls(String),
    /// The file of trusted certificates can't be read.
    #[error("can't read certificates from `{}`: {why}", file.display())]
    Certificates {
        /// Path of the certificate file.
        file: PathBuf,
        /// Cause as text.
        why: String,
    },
}

impl Client {
    /// Creates a client without connecting.
    ///
    /// # Errors
    /// When TLS can't be configured, or the file of certificates can't be read.
    pub fn new(settings: Settings) -> Result<Self, ClientError> {
        let tls = tls(settings.authorities.as_deref())?;
        let egress = match &settings.route {
            Route::Direct(egress) => egress.clone(),
            Route::Environment => Egress::default(),
        };
        let build = |addresses| build(&settings, &tls, addresses, egress.is_restricted());
        let listed = match egress.is_restricted() {
            true => Some(Listed {
                networks: build(egress.addresses("", 0, false))?,
                hosts: build(Addresses::Any)?,
            }),
            false => None,
        };
        Ok(Self {
            client: build(egress.addresses("", 0, true))?,
            listed,
            egress,
            body_max: settings.body_max,
        })
    }

    /// Returns true unless the client connects to all addresses.
    #[must_use]
    pub fn is_restricted(&self) -> bool {
        self.egress.is_restricted()
    }

    /// Begins a request.
    #[must_use]
    pub fn request(&self, method: Method, to: Url) -> Request {
        let (client, refused) = match self.choose(&to) {
            Ok(client) => (client, None),
            Err(refused) => (&self.client, Some(refused)),
        };
        Request {
            refused,
            body_max: self.body_max,
            builder: client.request(method, to),
        }
    }

    /// Returns the underlying client for a URL, for a library that sends its own requests and bounds the bytes that it
    /// reads. It must be used for the host, port and scheme of the URL alone.
    ///
    /// # Errors
    /// When the URL may not be connected to.
    pub fn shared(&self, to: &Url) -> Result<reqwest::Client, Refused> {
        self.choose(to).cloned()
    }

    fn choose(&self, to: &Url) -> Result<&reqwest::Client, Refused> {
        let Some(listed) = &self.listed else {
            return Ok(&self.client);
        };
        Ok(match self.egress.addresses_of(to)? {
            Addresses::Any => &listed.hosts,
            Addresses::Only(_) => &listed.networks,
            Addresses::PublicAnd(_) => &self.client,
        })
    }
}

fn build(
    settings: &Settings,
    tls: &ClientConfig,
    addresses: Addresses,
    is_restricted: bool,
) -> Result<reqwest::Client, ClientError> {
    let names = Guarded {
        names: Arc::clone(&settings.names),
        addresses,
    };
    let redirects = match settings.redirects {
        0 => Policy::none(),
        _ if is_restricted => Policy::none(),
        most => Policy::limited(most),
    };
    let mut builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls.clone())
        .redirect(redirects)
        .dns_resolver(names);
    if settings.route != Route::Environment {
        builder = builder.no_proxy();
    }
    if let Some(within) = settings.connect_within {
        builder = builder.connect_timeout(within);
    }
    if let Some(within) = settings.within {
        builder = builder.timeout(within);
    }
    builder
        .build()
        .map_err(|error| ClientError::Tls(super::chain(&error)))
}

/// A request under construction.
#[derive(Debug)]
pub struct Request {
    refused: Option<Refused>,
    body_max: usize,
    builder: RequestBuilder,
}

impl Request {
    /// Adds a header to the request.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.builder = self.builder.header(name, value);
        self
    }

    /// Sets headers, replacing headers of the same names.
    #[must_use]
    pub fn headers(mut self, headers: HeaderMap) -> Self {
        self.builder = self.builder.headers(headers);
        self
    }

    /// Adds an `Authorization` header with a bearer token.
    #[must_use]
    pub fn bearer(mut self, token: &str) -> Self {
        self.builder = self.builder.bearer_auth(token);
        self
    }

    /// Sets the body as it is; its type stands in the headers.
    #[must_use]
    pub fn body(mut self, body: Vec<u8>) -> Self {
        self.builder = self.builder.body(body);
        self
    }

    /// Sets a JSON body.
    #[must_use]
    pub fn json(mut self, body: Vec<u8>) -> Self {
        let json = HeaderValue::from_static("application/json");
        self.builder = self.builder.header(CONTENT_TYPE, json).body(body);
        self
    }

    /// Sets the body of a form.
    #[must_use]
    pub fn form(mut self, body: String) -> Self {
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        self.builder = self.builder.header(CONTENT_TYPE, form).body(body);
        self
    }

    /// Sends the request and waits for status and headers of the answer. Cancel-safe: dropping the call closes its
    /// connection.
    ///
    /// # Errors
    /// When no answer comes, or an address may not be connected to.
    pub async fn send(self) -> Result<Answer, CallError> {
        if let Some(refused) = self.refused {
            return Err(refused.into());
        }
        let response = self.builder.send().await?;
        Ok(Answer::new(response, self.body_max))
    }
}

fn tls(authorities: Option<&Path>) -> Result<ClientConfig, ClientError> {
    let mut roots = RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    if let Some(file) = authorities {
        trust(&mut roots, file).map_err(|why| ClientError::Certificates {
            file: file.to_owned(),
            why,
        })?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| ClientError::Tls(error.to_string()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn trust(roots: &mut RootCertStore, file: &Path) -> Result<(), String> {
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| error.to_string())? {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    Ok(())
}
