//! The client, made of settings that are values.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Method, RequestBuilder, Url};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use super::names::Guarded;
use super::{Addresses, Answer, CallError, Names, Refused, SystemNames};

/// The longest time in which a connection must come about.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// The most bytes of a body that are read.
const BODY_MAX: usize = 64 * 1024;

/// The bounds of a client, and what it trusts. By default it follows no redirect, uses no proxy, connects to any address, and
/// trusts the authorities of the web.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The longest time in which a connection must come about; within that of the whole call alone if `None`.
    pub connect_within: Option<Duration>,
    /// The longest time of a call until the end of the body; without end if `None`: a dropped call closes its connection.
    pub within: Option<Duration>,
    /// The most redirects that are followed; at 0 a redirect is an answer like any other.
    pub redirects: usize,
    /// The route of connections.
    pub route: Route,
    /// A file of certificates (PEM) of authorities that are trusted beside those of the web.
    pub authorities: Option<PathBuf>,
    /// The most bytes of a body that are read.
    pub body_max: usize,
    /// The names of hosts.
    pub names: Arc<dyn Names>,
}

/// The route of connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// Straight to the addresses that are allowed.
    Direct(Addresses),
    /// Through the proxies that the environment names. It is they who look up names, so that no address can be refused.
    Environment,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connect_within: Some(CONNECT_WITHIN),
            within: None,
            redirects: 0,
            route: Route::Direct(Addresses::Any),
            authorities: None,
            body_max: BODY_MAX,
            names: Arc::new(SystemNames),
        }
    }
}

/// A client of HTTP services. Cheap to clone; nothing of it is global.
#[derive(Debug, Clone)]
pub struct Client {
    client: reqwest::Client,
    addresses: Addresses,
    body_max: usize,
}

/// The client can't be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// TLS can't be configured.
    #[error("can't make an HTTP client: {0}")]
    Tls(String),
    /// The file of certificates can't be read.
    #[error("can't read certificates from `{}`: {why}", file.display())]
    Certificates {
        /// The file.
        file: PathBuf,
        /// The cause.
        why: String,
    },
}

impl Client {
    /// Returns a client. Nothing is connected before the first call.
    ///
    /// # Errors
    /// When TLS can't be configured, or the file of certificates can't be read.
    pub fn new(settings: Settings) -> Result<Self, ClientError> {
        let tls = tls(settings.authorities.as_deref())?;
        let (addresses, has_proxies) = match settings.route {
            Route::Direct(addresses) => (addresses, false),
            Route::Environment => (Addresses::Any, true),
        };
        let names = Guarded {
            names: settings.names,
            addresses: addresses.clone(),
        };
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(redirects(settings.redirects, addresses.clone()))
            .dns_resolver(names);
        if !has_proxies {
            builder = builder.no_proxy();
        }
        if let Some(within) = settings.connect_within {
            builder = builder.connect_timeout(within);
        }
        if let Some(within) = settings.within {
            builder = builder.timeout(within);
        }
        let client = builder
            .build()
            .map_err(|error| ClientError::Tls(super::chain(&error)))?;
        Ok(Self {
            client,
            addresses,
            body_max: settings.body_max,
        })
    }

    /// Begins a request.
    #[must_use]
    pub fn request(&self, method: Method, to: Url) -> Request<'_> {
        Request {
            client: self,
            to: literal(&to),
            builder: self.client.request(method, to),
        }
    }

    /// Returns the client below, for a library that sends its own requests and bounds what it reads. None where addresses are
    /// refused: such requests could name one in figures, which nobody looks up.
    #[must_use]
    pub fn shared(&self) -> Option<reqwest::Client> {
        (self.addresses == Addresses::Any).then(|| self.client.clone())
    }
}

/// A request that was not sent yet.
#[derive(Debug)]
pub struct Request<'a> {
    client: &'a Client,
    to: Option<IpAddr>,
    builder: RequestBuilder,
}

impl Request<'_> {
    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.builder = self.builder.header(name, value);
        self
    }

    /// Sets headers, in place of those of the same names.
    #[must_use]
    pub fn headers(mut self, headers: HeaderMap) -> Self {
        self.builder = self.builder.headers(headers);
        self
    }

    /// Adds a token that stands for whoever has it.
    #[must_use]
    pub fn bearer(mut self, token: &str) -> Self {
        self.builder = self.builder.bearer_auth(token);
        self
    }

    /// Sets a body of JSON.
    #[must_use]
    pub fn json(mut self, body: Vec<u8>) -> Self {
        let json = HeaderValue::from_static("application/json");
        self.builder = self.builder.header(CONTENT_TYPE, json).body(body);
        self
    }

    /// Sends the request and waits for the head of the answer. Cancel-safe: of a dropped call the connection is closed.
    ///
    /// # Errors
    /// When no answer comes, or an address may not be connected to.
    pub async fn send(self) -> Result<Answer, CallError> {
        if let Some(address) = self.to {
            self.client.addresses.check(address)?;
        }
        let response = self.builder.send().await?;
        Ok(Answer::new(response, self.client.body_max))
    }
}

/// Returns the address that a URL names in figures: nobody looks that up.
fn literal(url: &Url) -> Option<IpAddr> {
    // The parser has written every form of an address in its plain one; those of IPv6 stand in brackets.
    let host = url.host_str()?;
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

fn redirects(max: usize, addresses: Addresses) -> Policy {
    if max == 0 {
        return Policy::none();
    }
    let limited = Policy::limited(max);
    Policy::custom(move |attempt: Attempt<'_>| {
        let refused: Option<Refused> =
            literal(attempt.url()).and_then(|address| addresses.check(address).err());
        match refused {
            Some(refused) => attempt.error(refused),
            None => limited.redirect(attempt),
        }
    })
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
